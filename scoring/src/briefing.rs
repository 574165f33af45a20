//! What of a workspace matters now, without a question: which entries, under which heading, in
//! which order.
//!
//! Every entry stands under one heading at most, and what warns comes before what recommends: a
//! verified entry whose anchor is broken is told as broken. Separate from ranking, which needs a
//! question. The same facts give the same briefing; ties go by id.

use crate::rank::signals::Check;
use crate::status::Status;
use klnode_crdt::ids::EntryId;
use std::cmp::Ordering;

/// The numbers of a briefing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Entries under one heading.
    pub section_entries_max: usize,
    /// A verified entry that is less fresh than this is told among the stale.
    pub fresh_min: f64,
    /// What peers brought longer ago than this, in days, is no news.
    pub recent_days: u32,
    /// Entries of members that nobody here has tried, in the whole briefing.
    pub untried_max: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params { section_entries_max: 5, fresh_min: 0.25, recent_days: 14, untried_max: 2 }
    }
}

/// A heading. Their order is the order of the briefing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Proven here, and fresh.
    Verified,
    /// Authors disagree about it, or another entry says the opposite.
    Contested,
    /// Not needed for long, not confirmed for long, or resting on something that is broken.
    Stale,
    /// New from peers.
    Brought,
}

impl Section {
    /// All headings, in their order.
    pub const ALL: [Section; 4] =
        [Section::Verified, Section::Contested, Section::Stale, Section::Brought];

    /// Its name, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::Verified => "verified",
            Section::Contested => "contested",
            Section::Stale => "stale",
            Section::Brought => "brought",
        }
    }

    /// Its title, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Section::Verified => "Verified",
            Section::Contested => "Contested or competing",
            Section::Stale => "Stale, or resting on something broken",
            Section::Brought => "Recently brought by peers",
        }
    }
}

/// Why an entry stands under its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Verified, and fresh.
    Fresh,
    /// Contested, or competing with another.
    Disputed,
    /// Something it depends on is broken.
    Broken,
    /// Its status is stale.
    Stale,
    /// Verified, and confirmed by nobody for long.
    Faded,
    /// A peer brought it so many days ago.
    Brought {
        /// The days.
        days: u32,
    },
}

/// Whether an entry may be told to somebody who did not ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may: it is own, or has been seen to work.
    Open,
    /// Only as one of a few, labelled: a member says so, and nobody has tried it.
    Untried,
    /// It may not.
    Shut,
}

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Which.
    pub entry: EntryId,
    /// Where it stands.
    pub status: Status,
    /// What a look at what it depends on said.
    pub check: Check,
    /// How surely it still holds, in [0, 1].
    pub freshness: f64,
    /// How far it is believed.
    pub mean: f64,
    /// What that rests on, in observations.
    pub observations: f64,
    /// Whether authors disagree about it, or another entry says the opposite.
    pub is_disputed: bool,
    /// Whether it belongs to the caller's thread.
    pub is_in_thread: bool,
    /// Whether the operator pinned it.
    pub is_pinned: bool,
    /// Whether it may be told at all.
    pub access: Access,
    /// How many days ago a peer brought it; none if it was written here.
    pub brought_days: Option<u32>,
}

/// An entry of the briefing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Which.
    pub entry: EntryId,
    /// Under which heading.
    pub section: Section,
    /// Why.
    pub reason: Reason,
    /// How much it matters beside the others when there is too little room: the first of each
    /// heading before the second of any.
    pub relevance: f64,
}

/// A briefing before it is cut to its budget.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Briefing {
    /// What is told, in order.
    pub placed: Vec<Placed>,
    /// What would have been, and is too much.
    pub left_out: Vec<EntryId>,
}

/// The heading that an entry stands under, and why; none if it is no news.
#[must_use]
pub fn section(facts: &Facts, params: &Params) -> Option<(Section, Reason)> {
    let is_told = facts.status.is_retrieved() || facts.status == Status::Stale;
    if !is_told || facts.access == Access::Shut {
        return None;
    }
    if facts.check == Check::Broken {
        return Some((Section::Stale, Reason::Broken));
    }
    if facts.status == Status::Stale {
        return Some((Section::Stale, Reason::Stale));
    }
    if facts.is_disputed {
        return Some((Section::Contested, Reason::Disputed));
    }
    if facts.status == Status::Verified {
        return Some(match facts.freshness >= params.fresh_min {
            true => (Section::Verified, Reason::Fresh),
            false => (Section::Stale, Reason::Faded),
        });
    }
    let days = facts.brought_days.filter(|days| *days <= params.recent_days)?;
    Some((Section::Brought, Reason::Brought { days }))
}

/// What matters now, in order.
#[must_use]
pub fn brief(facts: &[Facts], params: &Params) -> Briefing {
    let mut briefing = Briefing::default();
    let mut untried = 0;
    for (number, heading) in Section::ALL.into_iter().enumerate() {
        let mut under: Vec<(&Facts, Reason)> = facts
            .iter()
            .filter_map(|facts| Some((facts, section(facts, params)?)))
            .filter(|(_, (section, _))| *section == heading)
            .map(|(facts, (_, reason))| (facts, reason))
            .collect();
        under.sort_by(|(one, _), (two, _)| order(heading, one, two));
        let mut place = 0_u32;
        for (facts, reason) in under {
            let is_untried = facts.access == Access::Untried;
            let is_full = place as usize >= params.section_entries_max;
            if is_full || (is_untried && untried >= params.untried_max) {
                briefing.left_out.push(facts.entry);
                continue;
            }
            untried += usize::from(is_untried);
            let relevance = -(f64::from(place) * Section::ALL.len() as f64 + number as f64);
            briefing.placed.push(Placed {
                entry: facts.entry,
                section: heading,
                reason,
                relevance,
            });
            place += 1;
        }
    }
    briefing
}

/// What was tried before what was not, then the caller's thread, what is pinned, of news what came
/// last, what is believed most, what rests on most; then by id.
fn order(heading: Section, one: &Facts, two: &Facts) -> Ordering {
    let is_untried = |facts: &Facts| facts.access == Access::Untried;
    let days = |facts: &Facts| match heading {
        Section::Brought => facts.brought_days,
        Section::Verified | Section::Contested | Section::Stale => None,
    };
    is_untried(one)
        .cmp(&is_untried(two))
        .then(two.is_in_thread.cmp(&one.is_in_thread))
        .then(two.is_pinned.cmp(&one.is_pinned))
        .then(days(one).cmp(&days(two)))
        .then(two.mean.total_cmp(&one.mean))
        .then(two.observations.total_cmp(&one.observations))
        .then(one.entry.cmp(&two.entry))
}

#[cfg(test)]
mod tests;
