//! Audit of the stored entries: rule violations, signs of drift, and health numbers with limits.
//!
//! A [`AuditRule`] is a rule that an entry violates or a sign that it has drifted. A [`Measure`] is a
//! number over all entries together with the limit above which the operator should act. Only
//! procedural entries are binding, so only there a violation blocks, and only if this person wrote
//! the entry: other authors cannot make a gate of this node fail.

use crate::predicate::AnchorState;
use crate::status::Status;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;

/// Parameters of the audit; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// A norm without a confirmation for more than this many days is outdated.
    pub norm_days_max: u32,
    /// Above this many entries a tag, or a tag below it, is too large to browse.
    pub tag_entries_max: u64,
    /// An entry of a reviewer is stale this many days after it was written or last confirmed.
    pub review_days_max: u32,
    /// Above this many entries the knowledge of a reviewer is too large to browse.
    pub review_entries_max: u64,
    /// Number of days that count as recent.
    pub recent_days: u32,
    /// Below this sample size no fraction is reported: one of three says nothing.
    pub sample_min: u64,
    /// Limit for the fraction of entries that are stale or whose anchors are broken.
    pub stale_fraction_max: f64,
    /// Limit for the fraction of entries with an edit conflict or a contradiction.
    pub disputed_fraction_max: f64,
    /// Limit for the number of friction records in the recent days.
    pub friction_max: u64,
    /// Limit for the number of pending decisions: quarantined entries and maintenance proposals.
    pub waiting_max: u64,
    /// Limit for the fraction of recent tasks that failed.
    pub failed_fraction_max: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            norm_days_max: 90,
            tag_entries_max: 200,
            review_days_max: 90,
            review_entries_max: 50,
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

/// Inputs of the audit for one entry that may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditFacts {
    /// Memory the entry was created in.
    pub memory: Memory,
    /// Entry type; `None` if this version of klnode does not know it.
    pub kind: Option<EntryType>,
    /// Current status of the entry.
    pub status: Status,
    /// Whether another author wrote the text that is shown.
    pub is_foreign: bool,
    /// Whether the entry cites anything, including the context it was written in.
    pub has_citation: bool,
    /// Number of linked entries that are not stored on this node.
    pub links_missing: usize,
    /// Whether the entry was derived from a raw observation without a promotion.
    pub is_backflow: bool,
    /// Number of entries that contradict this one.
    pub opposed: usize,
    /// Number of contradicting entries that are procedural.
    pub opposed_by_procedural: usize,
    /// Whether the entry has an edit conflict between authors.
    pub is_contested: bool,
    /// Result of the last check of the entry's anchors.
    pub check: AnchorState,
    /// Days since the last confirmation, or since the entry was written if there is none.
    pub unconfirmed_days: u32,
    /// Whether the entry belongs to a reviewer.
    pub is_review: bool,
    /// Number of paths in the text that do not exist in the checkout.
    pub paths_missing: usize,
}

/// Rule violation or sign of drift. Reports list marks in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditRule {
    /// The entry cites nothing.
    Evidence,
    /// The entry was derived from a raw observation without being promoted.
    Backflow,
    /// Another entry contradicts this one.
    Contradiction,
    /// The entry links to an entry that is not stored on this node.
    Links,
    /// The entry is a norm without a recent confirmation.
    Outdated,
    /// An anchor of the entry is broken, or its text names a file that does not exist.
    Orphaned,
    /// The entry has not been used for long, has been a weak answer, or belongs to a reviewer and has
    /// not been confirmed for long.
    Stale,
}

impl AuditRule {
    /// All marks, in report order.
    pub const ALL: [Self; 7] = [
        Self::Evidence,
        Self::Backflow,
        Self::Contradiction,
        Self::Links,
        Self::Outdated,
        Self::Orphaned,
        Self::Stale,
    ];

    /// Name used in the API, the CLI and the configuration.
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

    /// The mark with this name; `None` for an unknown name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.name() == name)
    }

    /// Whether the mark is a rule violation.
    #[must_use]
    pub fn is_rule(self) -> bool {
        !matches!(self, Self::Orphaned | Self::Stale)
    }

    /// Whether the mark is a sign of drift.
    #[must_use]
    pub fn is_drift(self) -> bool {
        matches!(self, Self::Contradiction | Self::Orphaned | Self::Stale)
    }

    /// Whether the mark makes an audit of this entry fail.
    #[must_use]
    pub fn blocks(self, facts: &AuditFacts) -> bool {
        let is_binding = facts.memory == Memory::Procedural && !facts.is_foreign;
        is_binding
            && match self {
                Self::Evidence | Self::Backflow => true,
                Self::Contradiction => facts.opposed_by_procedural > 0,
                Self::Links | Self::Outdated | Self::Orphaned | Self::Stale => false,
            }
    }
}

/// All marks of an entry. Raw observations and entries that are not served are not audited.
#[must_use]
pub fn marks(facts: &AuditFacts, params: &Params) -> Vec<AuditRule> {
    let is_served = facts.status.is_retrieved() || facts.status == Status::Stale;
    if facts.memory == Memory::Episodic || !is_served {
        return Vec::new();
    }
    let is_old_norm =
        facts.kind == Some(EntryType::Norm) && facts.unconfirmed_days > params.norm_days_max;
    let is_old_review = facts.is_review && facts.unconfirmed_days > params.review_days_max;
    let has = |mark: &AuditRule| match mark {
        AuditRule::Evidence => !facts.has_citation,
        AuditRule::Backflow => facts.is_backflow,
        AuditRule::Contradiction => facts.opposed > 0,
        AuditRule::Links => facts.links_missing > 0,
        AuditRule::Outdated => is_old_norm && facts.check != AnchorState::Holds,
        AuditRule::Orphaned => facts.check == AnchorState::Broken || facts.paths_missing > 0,
        AuditRule::Stale => facts.status == Status::Stale || is_old_review,
    };
    AuditRule::ALL.into_iter().filter(has).collect()
}

/// Counts over all audited entries. The tallies of disjoint parts add up to the tally of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditTally {
    /// Number of entries that may be served.
    pub entries: u64,
    /// Number of these entries that are stale or have a broken anchor.
    pub stale: u64,
    /// Number of these entries with an edit conflict or a contradiction.
    pub disputed: u64,
    /// Number of friction records within the recent days.
    pub friction: u64,
    /// Number of pending decisions; `None` if the audit covered only part of the store.
    pub waiting: Option<u64>,
    /// Number of tasks that were finished within the recent days.
    pub tasks: u64,
    /// Number of these tasks that failed.
    pub failed: u64,
}

impl AuditTally {
    /// Counts one entry that may be served.
    pub fn add(&mut self, facts: &AuditFacts) {
        self.entries += 1;
        let is_stale = facts.status == Status::Stale || facts.check == AnchorState::Broken;
        self.stale += u64::from(is_stale);
        self.disputed += u64::from(facts.is_contested || facts.opposed > 0);
    }
}

/// Quantity that a [`Measure`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Fraction of entries that are stale or have a broken anchor.
    Stale,
    /// Fraction of entries with an edit conflict or a contradiction.
    Disputed,
    /// Number of tags with too many entries.
    Bloated,
    /// Number of recent friction records.
    Friction,
    /// Number of pending decisions.
    Waiting,
    /// Fraction of recent tasks that failed.
    Failed,
}

impl Aspect {
    /// Name used in the API and the CLI.
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

    /// Whether the value is a fraction rather than a count.
    #[must_use]
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Stale | Self::Disputed | Self::Failed)
    }
}

/// Health number over all entries, with the limit above which the operator should act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The measured quantity.
    pub aspect: Aspect,
    /// Measured value; `None` for a fraction of too small a sample and for a part that was not
    /// audited.
    pub value: Option<f64>,
    /// Highest value that is still healthy.
    pub limit: f64,
}

impl Measure {
    /// Whether the value exceeds its limit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.value.is_some_and(|value| value > self.limit)
    }
}

/// Computes all measures. `bloated` is the number of tags with more than `tag_entries_max` entries.
#[must_use]
pub fn measures(tally: &AuditTally, bloated: u64, params: &Params) -> [Measure; 6] {
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
