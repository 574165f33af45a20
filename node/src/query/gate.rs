//! What may enter an answer that nobody looks at before it is acted upon.
//!
//! A foreign text enters once it has been seen to work: here, or by two members who are trusted
//! themselves. Until then a member's text may take one of the last places, labelled, so that a
//! colleague's knowledge gets its chance; anyone else's stays out. Own texts are not concerned.

use super::Reading;
use super::standing::Standing;
use crate::store::Error;
use crate::store::rows::ViewRow;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::{Day, FUTURE_SKEW_MAX, WallTime};
use klnode_crdt::view::{Counts, View};
use std::collections::BTreeSet;

/// Who has seen a text work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corroboration {
    /// This node, so many times.
    Here(u32),
    /// So many members of the entry's workspace who are trusted, each independently.
    Members(u32),
    /// Nobody who counts.
    None,
}

/// Whether an entry may enter a gated answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may: it is own, or has been seen to work.
    Open,
    /// In one of the last places, labelled: a member says so, and nobody has tried it.
    LastPlaces,
    /// It may not.
    Shut,
}

/// Numbers of the gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Params {
    pub(super) last_places_max: usize,
    pub(super) successes_min: u32,
    pub(super) members_min: u32,
    pub(super) trust_min: f64,
}

/// Who has seen the shown text of an entry work.
pub(super) fn corroboration(
    reading: &Reading<'_>,
    view: &View,
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
    let since = confirmable(reading, view, row)?;
    let authors: BTreeSet<AuthorId> = view.text_authors().collect();
    let mut members = 0;
    for (by, counts) in &view.counts {
        let is_other = !authors.contains(by) && !reading.society.mine.contains(by);
        if !is_other || !has_confirmed(counts, since, reading.now.day()) {
            continue;
        }
        if reading.is_fellow_in(*by, workspace) {
            let of = reading.standing(*by)?;
            // The operator's vouch opens no gate: trust must be earned here.
            members += u32::from(of.earned.trust >= params.trust_min && of.earned.weight > 0.0);
        }
    }
    Ok(match members >= params.members_min {
        true => Corroboration::Members(members),
        false => Corroboration::None,
    })
}

/// The first day on which a confirmation is one of the text that is shown. What was confirmed before a
/// text was written was another one; and when a text took the place of another is not its author's
/// to say, but was seen here.
fn confirmable(reading: &Reading<'_>, view: &View, row: &ViewRow) -> Result<Day, Error> {
    let written = view.text_day().unwrap_or_default();
    Ok(match view.is_text_edited() {
        false => written,
        true => {
            let seen = seen(reading, row)?.day();
            Day(written.max(seen).0.saturating_add(1))
        }
    })
}

/// When a text was seen to take the place of another. What was noted under a clock that stood ahead
/// was seen before that clock was set right, which began an epoch: not one that stood behind, by which
/// the entry was not known yet.
fn seen(reading: &Reading<'_>, row: &ViewRow) -> Result<WallTime, Error> {
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

impl Reading<'_> {
    /// Whether an entry surely may not enter a gated answer, told without reading it: somebody
    /// outside created it, and nobody whose word would let it in has said anything about it.
    pub(super) fn is_surely_shut(&self, entry: EntryId) -> Result<bool, Error> {
        let row = Error::unless_damaged(self.snapshot.view_row(entry))?.flatten();
        let Some((creator, workspace)) = row.and_then(|row| row.creator.zip(row.workspace)) else {
            return Ok(false);
        };
        // Whoever is blocked or convicted weighs nothing: its word lets nothing in.
        let counts = |author: AuthorId| !self.society.is_outside(author, workspace);
        Ok(!counts(creator) && !self.snapshot.authors(entry)?.into_iter().any(counts))
    }
}

fn has_confirmed(counts: &Counts, since: Day, today: Day) -> bool {
    // Of what was folded nobody knows whether it is of this text.
    let is_since = |day: Option<Day>| day.is_some_and(|day| day >= since);
    counts.confirmations.iter().any(|cell| cell.amount.0 > 0 && is_since(cell.day(today)))
}

/// Whether a foreign text may enter a gated answer.
pub(super) fn gate(
    reading: &Reading<'_>,
    view: &View,
    author: Option<&Standing>,
    corroboration: Corroboration,
) -> Gate {
    let Some(author) = author else { return Gate::Shut };
    if author.is_own() {
        return Gate::Open;
    }
    let workspace = view.origin.as_ref().map(|origin| origin.workspace());
    let is_member = workspace.is_some_and(|id| reading.is_fellow_in(author.author, id));
    if corroboration != Corroboration::None {
        Gate::Open
    } else if is_member && author.earned.weight > 0.0 {
        Gate::LastPlaces
    } else {
        Gate::Shut
    }
}
