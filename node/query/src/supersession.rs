//! Supersession: entries that replace other entries.
//!
//! The link is stored on the successor, where any author may write one. It takes effect only if one
//! of its authors is entitled to make claims about the superseded entry. A member whose texts have
//! misled on this node replaces its own entries only: otherwise it could put a false text above every
//! true one.

use super::{AssessedEntry, ReadContext, entry_ref};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_scoring::rank::RankedEntry;
use klnode_scoring::status::Status;
use klnode_store::Error;
use klnode_store::checkouts::HINTS_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of successors read for one entry.
const SUCCESSORS_MAX: usize = 16;
/// Maximum number of entries visited when checking for a cycle.
const CIRCLE_MAX: usize = 1_000;
/// Number of hits, from the first on, for which successors are looked up.
const LOOKED_MAX: usize = 40;

/// Reasons why one entry cannot supersede another.
#[derive(Debug, thiserror::Error)]
pub enum SuccessionError {
    /// The link would create a cycle.
    #[error("{new} cannot supersede {old}: {new} is superseded by {old} already.")]
    Circle {
        /// The citation code of the entry to be superseded.
        old: String,
        /// The citation code of the successor.
        new: String,
    },
    /// The cycle check reached its limit.
    #[error(
        "{old} supersedes more than {CIRCLE_MAX} other entries; klnode cannot check for a cycle."
    )]
    TooMany {
        /// The citation code of the entry to be superseded.
        old: String,
    },
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
}

impl ReadContext<'_> {
    /// The entries that supersede `of`, counting only links by entitled authors.
    pub fn successors(&self, of: &AssessedEntry) -> Result<Vec<AssessedEntry>, Error> {
        let Some(origin) = &of.view.origin else { return Ok(Vec::new()) };
        let entitlement = self.membership.entitlement(Some(origin.workspace()));
        let link = Link { relation: Relation::SUPERSEDES, to: of.entry };
        let mut successors = Vec::new();
        for entry in self.snapshot.successors(of.entry, HINTS_MAX)? {
            if successors.len() >= SUCCESSORS_MAX {
                break;
            }
            // Check the authors first: an entry without an entitled author cannot supersede, and
            // need not be read.
            let authors = self.snapshot.authors(entry)?;
            if !authors.into_iter().any(|author| entitlement.includes(author, origin)) {
                continue;
            }
            let Some(new) = self.read_sound(entry)?.filter(is_standing) else { continue };
            for author in new.view.links.get(&link).into_iter().flatten() {
                if entitlement.includes(*author, origin) && self.may_replace(*author, of)? {
                    successors.push(new);
                    break;
                }
            }
        }
        Ok(successors)
    }

    /// Whether the word of an entitled author is enough to replace an entry.
    fn may_replace(&self, author: AuthorId, old: &AssessedEntry) -> Result<bool, Error> {
        let is_its_text = old.author.as_ref().is_some_and(|of| of.author == author);
        Ok(is_its_text || !self.has_misled(author)?)
    }

    /// Rejects a supersession link from `new` to `old` that would create a cycle.
    pub fn may_supersede(&self, old: EntryId, new: EntryId) -> Result<(), SuccessionError> {
        let code = |entry| entry_ref::code(self.snapshot, entry);
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

    /// The successors of the best hits, by hit.
    pub(super) fn successions<'f>(
        &self,
        hits: impl Iterator<Item = &'f AssessedEntry>,
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

/// The successors of each hit that has any.
#[derive(Debug, Default)]
pub(super) struct Successions(BTreeMap<EntryId, Vec<AssessedEntry>>);

impl Successions {
    pub(super) fn of(&self, entry: EntryId) -> &[AssessedEntry] {
        self.0.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// Moves every hit below its successors.
    pub(super) fn order(&self, mut placed: Vec<RankedEntry>) -> Vec<RankedEntry> {
        // Each pass moves a hit past its direct successors; a chain of n links needs n passes.
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

/// True if an entry may supersede or contradict another: it is live, not muted or invalidated, and
/// either retrievable or stale.
pub(super) fn is_standing(found: &AssessedEntry) -> bool {
    let is_hidden = found.overlay.is_muted || found.overlay.is_invalidated;
    let status = found.assessment.standing.status;
    found.view.state == State::Live
        && !is_hidden
        && (status.is_retrieved() || status == Status::Stale)
}
