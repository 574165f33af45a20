//! The gate: decides which entries may enter an answer that no person reviews.
//!
//! A foreign text passes once it was confirmed to work, on this node or by two trusted members, or if
//! other texts of its author, a member, have earned trust on this node. Until then a text by a member
//! may take one of the last places, so that a colleague's knowledge gets its chance; texts by
//! non-members are excluded. The owner's texts always pass. Every unconfirmed text has a label.
//!
//! A text that replaced another one has to be confirmed itself: otherwise an author could let a good
//! text earn trust, and then replace it.

use super::ReadContext;
use super::author_standing::AuthorStanding;
use klnode_crdt::entry_view::{AuthorCounts, EntryView};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::{Day, FUTURE_SKEW_MAX, WallTime};
use klnode_store::Error;
use klnode_store::row_types::ViewRow;
use std::collections::BTreeSet;

/// The authors who confirmed that a text works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corroboration {
    /// This node, with the number of successes.
    Here(u32),
    /// Trusted members of the entry's workspace, with their number; each confirmed independently.
    Members(u32),
    /// No author whose confirmation counts confirmed that the text works.
    None,
}

/// The gate decision for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateDecision {
    /// The entry passes: it is the owner's, was confirmed to work, or is by a member whose other texts
    /// earned trust here.
    Open,
    /// The entry may take one of the last places: a member without such trust wrote it and it is
    /// unconfirmed.
    LastPlaces,
    /// The entry is excluded.
    Shut,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Params {
    pub(super) last_places_max: usize,
    pub(super) successes_min: u32,
    pub(super) members_min: u32,
    pub(super) trust_min: f64,
    pub(super) author_trust_min: f64,
    pub(super) author_successes_min: f64,
}

/// Determines who confirmed the shown text of an entry.
pub(super) fn corroboration(
    reading: &ReadContext<'_>,
    view: &EntryView,
    row: &ViewRow,
    local_successes: u32,
) -> Result<Corroboration, Error> {
    let params = &reading.reader.numbers.gate;
    if local_successes >= params.successes_min {
        return Ok(Corroboration::Here(local_successes));
    }
    let Some(workspace) = view.origin.as_ref().map(|origin| origin.workspace()) else {
        return Ok(Corroboration::None);
    };
    let since = text_known_since(reading, view, row)?;
    let authors: BTreeSet<AuthorId> = view.text_authors().collect();
    let mut members = 0;
    for (by, counts) in &view.counts {
        let is_other = !authors.contains(by) && !reading.membership.mine.contains(by);
        if !is_other || !has_confirmed(counts, since, reading.now.day()) {
            continue;
        }
        if reading.is_fellow_in(*by, workspace) {
            let of = reading.standing(*by)?;
            // The operator's vouch does not open the gate: the trust must be earned on this node.
            members += u32::from(of.earned.trust >= params.trust_min && of.earned.weight > 0.0);
        }
    }
    Ok(match members >= params.members_min {
        true => Corroboration::Members(members),
        false => Corroboration::None,
    })
}

/// The first day from which an observation applies to the shown text. An earlier one applied to an
/// earlier text. For an edited text the day is when this node saw the edit, because
/// the author's stamp cannot be trusted.
pub(super) fn text_known_since(
    reading: &ReadContext<'_>,
    view: &EntryView,
    row: &ViewRow,
) -> Result<Day, Error> {
    let written = view.text_day().unwrap_or_default();
    Ok(match view.is_text_edited() {
        false => written,
        true => {
            let seen = edit_seen_at(reading, row)?.day();
            Day(written.max(seen).0.saturating_add(1))
        }
    })
}

/// The time at which this node saw the edit. If it was recorded by a clock that was ahead, use the
/// time at which the clock was corrected, which began a new epoch. An epoch before the entry was
/// known comes from a clock that was behind, and does not count.
fn edit_seen_at(reading: &ReadContext<'_>, row: &ViewRow) -> Result<WallTime, Error> {
    let noted = row.reworded.unwrap_or(row.first_seen);
    let latest = reading.now.plus(FUTURE_SKEW_MAX);
    if noted <= latest {
        return Ok(noted);
    }
    let mut set_right = None;
    for began in reading.snapshot.epoch_times()? {
        let began = began?;
        if began > latest {
            set_right = None;
        } else if began >= row.first_seen {
            set_right = set_right.or(Some(began));
        }
    }
    Ok(set_right.unwrap_or(noted))
}

impl ReadContext<'_> {
    /// True if the gate certainly excludes an entry, judged without reading it: an outsider created
    /// it, and no author whose claim would let it pass made one about it.
    pub(super) fn is_surely_shut(&self, entry: EntryId) -> Result<bool, Error> {
        let row = Error::unless_damaged(self.snapshot.view_row(entry))?.flatten();
        let Some((creator, workspace)) = row.and_then(|row| row.creator.zip(row.workspace)) else {
            return Ok(false);
        };
        // A blocked or equivocating author has no weight, so its claims let no entry pass.
        let counts = |author: AuthorId| !self.membership.is_outside(author, workspace);
        Ok(!counts(creator) && !self.snapshot.authors(entry)?.into_iter().any(counts))
    }
}

/// Whether the texts of an author have proved themselves on this node.
pub(super) fn is_trusted_author(author: &AuthorStanding, params: &Params) -> bool {
    let earned = &author.earned;
    earned.trust >= params.author_trust_min && earned.successes >= params.author_successes_min
}

fn has_confirmed(counts: &AuthorCounts, since: Day, today: Day) -> bool {
    // A folded count has no day, so it may belong to an earlier text.
    let is_since = |day: Option<Day>| day.is_some_and(|day| day >= since);
    counts.confirmations.iter().any(|cell| cell.amount.0 > 0 && is_since(cell.day(today)))
}

/// The gate decision for a text.
pub(super) fn gate(
    reading: &ReadContext<'_>,
    view: &EntryView,
    author: Option<&AuthorStanding>,
    corroboration: Corroboration,
) -> GateDecision {
    let Some(author) = author else { return GateDecision::Shut };
    if author.is_own() {
        return GateDecision::Open;
    }
    let workspace = view.origin.as_ref().map(|origin| origin.workspace());
    let is_member = workspace.is_some_and(|id| reading.is_text_of_fellow(author.author, id));
    if corroboration != Corroboration::None {
        GateDecision::Open
    } else if !is_member || author.earned.weight <= 0.0 {
        GateDecision::Shut
    } else if is_trusted_author(author, &reading.reader.numbers.gate) && !view.is_text_edited() {
        GateDecision::Open
    } else {
        GateDecision::LastPlaces
    }
}
