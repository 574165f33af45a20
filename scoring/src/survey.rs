//! Whether what a node holds is in order: which entries break a rule, which have drifted, and whether
//! all of it together wants somebody's attention.
//!
//! Three questions, one look. A [`Mark`] is a rule that an entry breaks, or a sign that it has
//! drifted; a [`Measure`] is a number about all entries, beside the limit from which somebody should
//! look. Only what is procedural binds anybody, so only there a broken rule blocks, and only where
//! this person wrote it: nobody else has a say in how a gate ends.

use crate::rank::signals::Check;
use crate::status::Status;
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;

/// The numbers of a survey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// A norm that nobody has confirmed for so many days is outdated.
    pub norm_days_max: u32,
    /// More entries under one tag, or one below it, than anybody looks through.
    pub tag_entries_max: u64,
    /// So many days are recent.
    pub recent_days: u32,
    /// Of fewer than this no fraction is told: one of three says nothing.
    pub sample_min: u64,
    /// The part of all entries that may be stale, or rest on something broken.
    pub stale_fraction_max: f64,
    /// The part that may be contested or contradicted.
    pub disputed_fraction_max: f64,
    /// Recent friction.
    pub friction_max: u64,
    /// What may wait for a decision: in quarantine, or proposed by upkeep.
    pub waiting_max: u64,
    /// The part of recent tasks that may have failed.
    pub failed_fraction_max: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            norm_days_max: 90,
            tag_entries_max: 200,
            recent_days: 7,
            sample_min: 20,
            stale_fraction_max: 0.3,
            disputed_fraction_max: 0.05,
            friction_max: 20,
            waiting_max: 50,
            failed_fraction_max: 0.5,
        }
    }
}

/// What is known of an entry that may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which memory it was made in.
    pub memory: Memory,
    /// Its type, where that is known here.
    pub kind: Option<Kind>,
    /// Where it stands.
    pub status: Status,
    /// Whether somebody else wrote the text that is shown.
    pub is_foreign: bool,
    /// Whether it cites anything, if only where it was written.
    pub has_citation: bool,
    /// Entries that it names and that are not here.
    pub links_missing: usize,
    /// Whether it was made of a raw observation, and nobody promoted it.
    pub is_backflow: bool,
    /// Entries that say the opposite ...
    pub opposed: usize,
    /// ... and how many of them are procedural.
    pub opposed_by_procedural: usize,
    /// Whether authors disagree about what it says.
    pub is_contested: bool,
    /// What a look at what it depends on said.
    pub check: Check,
    /// Days since it was last confirmed, or else written.
    pub unconfirmed_days: u32,
}

/// A rule that an entry breaks, or a sign of drift. Their order is that of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It cites nothing.
    Evidence,
    /// It was made of a raw observation without being promoted.
    Backflow,
    /// Another entry says the opposite.
    Contradiction,
    /// It names an entry that is not here.
    Links,
    /// It is a norm that nobody has confirmed for long.
    Outdated,
    /// Something it depends on is gone.
    Orphaned,
    /// Nobody has needed it for long, or it has been a weak answer.
    Stale,
}

impl Mark {
    /// All of them, in their order.
    pub const ALL: [Self; 7] = [
        Self::Evidence,
        Self::Backflow,
        Self::Contradiction,
        Self::Links,
        Self::Outdated,
        Self::Orphaned,
        Self::Stale,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Backflow => "backflow",
            Self::Contradiction => "contradiction",
            Self::Links => "links",
            Self::Outdated => "outdated",
            Self::Orphaned => "orphaned",
            Self::Stale => "stale",
        }
    }

    /// The mark of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.name() == name)
    }

    /// Whether it is a rule that is broken.
    #[must_use]
    pub fn is_rule(self) -> bool {
        !matches!(self, Self::Orphaned | Self::Stale)
    }

    /// Whether it is a sign of drift.
    #[must_use]
    pub fn is_drift(self) -> bool {
        matches!(self, Self::Contradiction | Self::Orphaned | Self::Stale)
    }

    /// Whether it keeps an entry from being built upon.
    #[must_use]
    pub fn blocks(self, facts: &Facts) -> bool {
        let is_binding = facts.memory == Memory::Procedural && !facts.is_foreign;
        is_binding
            && match self {
                Self::Evidence | Self::Backflow => true,
                Self::Contradiction => facts.opposed_by_procedural > 0,
                Self::Links | Self::Outdated | Self::Orphaned | Self::Stale => false,
            }
    }
}

/// What is wrong with an entry. Of raw observations nothing is asked, nor of what is put away.
#[must_use]
pub fn marks(facts: &Facts, params: &Params) -> Vec<Mark> {
    let is_told = facts.status.is_retrieved() || facts.status == Status::Stale;
    if facts.memory == Memory::Episodic || !is_told {
        return Vec::new();
    }
    let is_old_norm =
        facts.kind == Some(Kind::Norm) && facts.unconfirmed_days > params.norm_days_max;
    let has = |mark: &Mark| match mark {
        Mark::Evidence => !facts.has_citation,
        Mark::Backflow => facts.is_backflow,
        Mark::Contradiction => facts.opposed > 0,
        Mark::Links => facts.links_missing > 0,
        Mark::Outdated => is_old_norm && facts.check != Check::Holds,
        Mark::Orphaned => facts.check == Check::Broken,
        Mark::Stale => facts.status == Status::Stale,
    };
    Mark::ALL.into_iter().filter(has).collect()
}

/// What is counted of all entries. Tallies of parts add up to that of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries that may speak.
    pub entries: u64,
    /// Of these: stale, or resting on something broken.
    pub stale: u64,
    /// Of these: contested or contradicted.
    pub disputed: u64,
    /// Friction that was recorded recently.
    pub friction: u64,
    /// What waits for a decision; none where only a part of everything was looked at.
    pub waiting: Option<u64>,
    /// Tasks that were finished recently ...
    pub tasks: u64,
    /// ... and how many of them failed.
    pub failed: u64,
}

impl Tally {
    /// Counts one entry that may speak.
    pub fn add(&mut self, facts: &Facts) {
        self.entries += 1;
        let is_stale = facts.status == Status::Stale || facts.check == Check::Broken;
        self.stale += u64::from(is_stale);
        self.disputed += u64::from(facts.is_contested || facts.opposed > 0);
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// How much is stale.
    Stale,
    /// How much is disputed.
    Disputed,
    /// How many tags have too many entries.
    Bloated,
    /// How much friction there is.
    Friction,
    /// How much waits for a decision.
    Waiting,
    /// How many tasks fail.
    Failed,
}

impl Aspect {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Disputed => "disputed",
            Self::Bloated => "bloated",
            Self::Friction => "friction",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }

    /// Whether it is a part of something, not a number.
    #[must_use]
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Stale | Self::Disputed | Self::Failed)
    }
}

/// A number about all entries, and the limit from which somebody should look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Of what.
    pub aspect: Aspect,
    /// How much; none of a fraction of too little, and of what was not looked at.
    pub value: Option<f64>,
    /// The most that is well.
    pub limit: f64,
}

impl Measure {
    /// Whether somebody should look.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.value.is_some_and(|value| value > self.limit)
    }
}

/// Measures everything. `bloated` is how many tags have more entries than anybody looks through.
#[must_use]
pub fn measures(tally: &Tally, bloated: u64, params: &Params) -> [Measure; 6] {
    let number = |count: u64| Some(count as f64);
    let fraction =
        |part: u64, of: u64| (of >= params.sample_min.max(1)).then(|| part as f64 / of as f64);
    let (entries, tasks) = (tally.entries, tally.tasks);
    [
        (Aspect::Stale, fraction(tally.stale, entries), params.stale_fraction_max),
        (Aspect::Disputed, fraction(tally.disputed, entries), params.disputed_fraction_max),
        (Aspect::Bloated, number(bloated), 0.0),
        (Aspect::Friction, number(tally.friction), params.friction_max as f64),
        (Aspect::Waiting, tally.waiting.and_then(number), params.waiting_max as f64),
        (Aspect::Failed, fraction(tally.failed, tasks), params.failed_fraction_max),
    ]
    .map(|(aspect, value, limit)| Measure { aspect, value, limit })
}

#[cfg(test)]
mod tests;
