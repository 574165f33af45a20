//! Entries that take the place of others.
//!
//! An edge is drawn on the successor, where its author may write what they like; it holds only if one
//! of those who draw it may speak for the entry that is to give way.

use super::{Found, Reading, reference};
use crate::store::Error;
use crate::store::places::HINTS_MAX;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::EntryId;
use klnode_crdt::view::State;
use klnode_scoring::rank::Placed;
use klnode_scoring::status::Status;
use std::collections::{BTreeMap, BTreeSet};

/// Successors of one entry that are looked at.
const SUCCESSORS_MAX: usize = 16;
/// Entries that are looked at for a circle.
const CIRCLE_MAX: usize = 1_000;
/// Hits of which it is looked up whether something takes their place, from the first on.
const LOOKED_MAX: usize = 40;

/// Why one entry cannot take another's place. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum SuccessionError {
    /// The other way round already.
    #[error("supersede {old} by {new}: {new} is superseded by {old} already")]
    Circle {
        /// The code of what would give way.
        old: String,
        /// The code of what would take its place.
        new: String,
    },
    /// Nobody could tell.
    #[error("supersede {old}: it supersedes more than {CIRCLE_MAX} others, too many to look at")]
    TooMany {
        /// The code of what would give way.
        old: String,
    },
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] Error),
}

impl Reading<'_> {
    /// What takes an entry's place, as far as somebody says so who may.
    pub fn successors(&self, of: &Found) -> Result<Vec<Found>, Error> {
        let Some(origin) = &of.view.origin else { return Ok(Vec::new()) };
        let entitlement = self.society.entitlement(Some(origin.workspace()));
        let link = Link { relation: Relation::SUPERSEDES, to: of.entry };
        let mut successors = Vec::new();
        for entry in self.snapshot.successors(of.entry, HINTS_MAX)? {
            if successors.len() >= SUCCESSORS_MAX {
                break;
            }
            // Whoever may not say so takes no place, and costs no reading.
            let authors = self.snapshot.authors(entry)?;
            if !authors.into_iter().any(|author| entitlement.includes(author, origin)) {
                continue;
            }
            let Some(new) = self.read_sound(entry)?.filter(is_standing) else { continue };
            let by = new.view.links.get(&link);
            let may = |authors: &BTreeSet<_>| {
                authors.iter().any(|author| entitlement.includes(*author, origin))
            };
            if by.is_some_and(may) {
                successors.push(new);
            }
        }
        Ok(successors)
    }

    /// Says no where `new` would take the place of what takes its own.
    pub fn may_supersede(&self, old: EntryId, new: EntryId) -> Result<(), SuccessionError> {
        let code = |entry| reference::code(self.snapshot, entry);
        let (mut seen, mut next) = (BTreeSet::new(), vec![old]);
        while let Some(entry) = next.pop() {
            if entry == new {
                let (old, new) = (code(old)?, code(new)?);
                return Err(SuccessionError::Circle { old, new });
            }
            if seen.len() >= CIRCLE_MAX {
                return Err(SuccessionError::TooMany { old: code(old)? });
            }
            if !seen.insert(entry) {
                continue;
            }
            if let Some(found) = self.read_sound(entry)? {
                let links = found.view.links.keys();
                let older = links.filter(|link| link.relation == Relation::SUPERSEDES);
                next.extend(older.map(|link| link.to));
            }
        }
        Ok(())
    }

    /// What takes the place of the best hits, by hit.
    pub(super) fn successions<'f>(
        &self,
        hits: impl Iterator<Item = &'f Found>,
    ) -> Result<Successions, Error> {
        let mut successions = Successions::default();
        for found in hits.take(LOOKED_MAX) {
            let successors = self.successors(found)?;
            if !successors.is_empty() {
                successions.0.insert(found.entry, successors);
            }
        }
        Ok(successions)
    }
}

/// What takes the place of which hit.
#[derive(Debug, Default)]
pub(super) struct Successions(BTreeMap<EntryId, Vec<Found>>);

impl Successions {
    pub(super) fn of(&self, entry: EntryId) -> &[Found] {
        self.0.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// Puts every hit below what takes its place.
    pub(super) fn order(&self, mut placed: Vec<Placed>) -> Vec<Placed> {
        // Each pass moves a hit down at most; a line of successors needs one for each link.
        for _ in 0..self.0.len() {
            for (old, successors) in &self.0 {
                let place = |entry| placed.iter().position(|one| one.candidate.entry == entry);
                let lowest = successors.iter().filter_map(|new| place(new.entry)).max();
                if let (Some(from), Some(to)) = (place(*old), lowest)
                    && from < to
                {
                    let moved = placed.remove(from);
                    placed.insert(to, moved);
                }
            }
        }
        placed
    }
}

/// Whether an entry is there to take another's place, or to speak against it.
pub(super) fn is_standing(found: &Found) -> bool {
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let status = found.judged.standing.status;
    found.view.state == State::Live
        && !is_hidden
        && (status.is_retrieved() || status == Status::Stale)
}
