//! Supersession: entries that replace other entries.
//!
//! The link is stored on the successor, where any author may write one. It is shown only if one of its
//! authors is entitled to make claims about the superseded entry, and it changes the order only once
//! this node has a reason to believe it: the link is the owner's, or replaces a text of its author, or
//! its author's texts have proved themselves here. Otherwise any member could put a false text above
//! every true one.

use super::candidates::{QueryCandidate, SearchError};
use super::foreign_gate::{GateDecision, is_trusted_author};
use super::read_candidate::{CandidateReads, ReadCandidate};
use super::search_types::SearchQuery;
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

/// An entry that is said to supersede another, by an author who is entitled to say so.
#[derive(Clone, Debug)]
pub struct Successor {
    /// The entry that supersedes.
    pub found: AssessedEntry,
    /// Whether this node believes it. Until then it is shown as a claim, and changes no order.
    pub is_believed: bool,
}

impl ReadContext<'_> {
    /// The entries that supersede `of`, counting only links by entitled authors.
    pub fn successors(&self, of: &AssessedEntry) -> Result<Vec<Successor>, Error> {
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
            let Some(found) = self.read_sound(entry)?.filter(is_standing) else { continue };
            let by = found.view.links.get(&link).into_iter().flatten().copied();
            let by: Vec<AuthorId> = by.filter(|by| entitlement.includes(*by, origin)).collect();
            let mut is_believed = false;
            for author in &by {
                is_believed = is_believed || self.may_replace(*author, of, &found)?;
            }
            if !by.is_empty() {
                successors.push(Successor { found, is_believed });
            }
        }
        Ok(successors)
    }

    /// Whether the word of an entitled author is enough to replace an entry: its own text, or any
    /// text, if the author's texts have proved themselves here. The successor's own proof counts if
    /// the author wrote it and has not misled.
    fn may_replace(
        &self,
        author: AuthorId,
        old: &AssessedEntry,
        new: &AssessedEntry,
    ) -> Result<bool, Error> {
        let wrote =
            |entry: &AssessedEntry| entry.author.as_ref().is_some_and(|by| by.author == author);
        let standing = self.standing(author)?;
        if standing.is_own() || wrote(old) {
            return Ok(true);
        }
        let is_proved = is_trusted_author(&standing, &self.reader.numbers.gate)
            || (wrote(new) && new.gate() == GateDecision::Open);
        Ok(is_proved && !self.has_misled(author)?)
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

    /// Gives the successors of the most relevant candidates the relevance of what they replace, and
    /// adds those that the search did not find: an entry answers the questions of the entry that it
    /// replaces, even if it has none of their words. Successors that the gate does not open for get
    /// nothing, or any member could claim the questions of any entry.
    ///
    /// Returns the candidates that were replaced in this way.
    pub(super) fn inherit_relevance(
        &self,
        question: &SearchQuery,
        read: &mut Vec<ReadCandidate>,
    ) -> Result<BTreeSet<EntryId>, SearchError> {
        let mut replaced = BTreeSet::new();
        let mut at = 0;
        while at < read.len().min(LOOKED_MAX) {
            let (old, relevance) = (read[at].found.entry, read[at].relevance);
            let successors = self.successions([&read[at].found].into_iter())?;
            let believed = successors.of(old).iter().filter(|new| new.is_believed);
            let open = believed.filter(|new| new.found.gate() == GateDecision::Open);
            for entry in open.map(|new| new.found.entry) {
                let is_known =
                    |one: &&mut ReadCandidate| one.found.read_with().any(|of| of == entry);
                if let Some(known) = read.iter_mut().find(is_known) {
                    if known.relevance.value < relevance.value {
                        known.relevance = relevance;
                    }
                    replaced.insert(old);
                } else if let Some(new) = self.read_whole(entry)? {
                    let (candidate, mut part) =
                        (QueryCandidate { entry, relevance }, CandidateReads::default());
                    let new = self.admit(question, &candidate, new, &mut part)?;
                    replaced.extend(new.is_some().then_some(old));
                    read.extend(new);
                }
            }
            at += 1;
        }
        Ok(replaced)
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
pub(super) struct Successions(BTreeMap<EntryId, Vec<Successor>>);

impl Successions {
    pub(super) fn of(&self, entry: EntryId) -> &[Successor] {
        self.0.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// Moves every hit below the successors that this node believes.
    pub(super) fn order(&self, mut placed: Vec<RankedEntry>) -> Vec<RankedEntry> {
        // Each pass moves a hit past its direct successors; a chain of n links needs n passes.
        for _ in 0..self.0.len() {
            for (old, successors) in &self.0 {
                let place = |entry| placed.iter().position(|one| one.candidate.entry == entry);
                let believed = successors.iter().filter(|new| new.is_believed);
                let lowest = believed.filter_map(|new| place(new.found.entry)).max();
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
