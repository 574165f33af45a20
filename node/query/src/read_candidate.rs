//! A candidate of a search after it was read, and the reasons that exclude a candidate.
//!
//! Separate from `search`, because contradictions, the order of the hits and the budget of the answer
//! work on candidates that were read, whichever way the search found them.

use super::anchor_check::AnchorCheck;
use super::candidates::{Candidates, QueryCandidate, SearchError};
use super::drop_reason::DropReason;
use super::endorsements::Endorsements;
use super::foreign_gate::GateDecision;
use super::search_trace::DroppedEntry;
use super::search_types::{Audience, SearchQuery};
use super::{AssessedEntry, Cancel, ReadContext};
use klnode_crdt::ids::EntryId;
use klnode_index::document::FilterFields;
use klnode_scoring::rank::signals;
use klnode_scoring::relevance::Relevance;
use klnode_scoring::review_namespace::NamespaceMatch;
use klnode_scoring::status::Status;
use std::collections::BTreeSet;

/// A candidate that was read and may enter the answer.
pub(super) struct ReadCandidate {
    pub(super) found: AssessedEntry,
    pub(super) scope: FilterFields,
    pub(super) relevance: Relevance,
    pub(super) freshness: signals::Freshness,
    pub(super) looked: AnchorCheck,
    pub(super) endorsements: Endorsements,
}

/// The result of reading a part of a batch.
#[derive(Default)]
pub(super) struct CandidateReads {
    pub(super) read: Vec<ReadCandidate>,
    /// All entries that were read as merged duplicates of these.
    pub(super) joined: BTreeSet<EntryId>,
    /// The relevance of each entry that only the gate excludes.
    pub(super) shut: Vec<f64>,
    /// Entries that only their thread excludes.
    pub(super) elsewhere: Vec<OtherThreadEntry>,
    /// All entries that may not enter the answer, with the reason.
    pub(super) dropped: Vec<DroppedEntry>,
}

/// An entry of a thread that is not the caller's.
pub(super) struct OtherThreadEntry {
    pub(super) thread: String,
    pub(super) relevance: f64,
}

impl ReadContext<'_> {
    /// Reads candidates in order, without those that may not enter the answer. The first of several
    /// merged duplicates is read with its whole group: once in each part, so that the result does
    /// not depend on which thread is faster.
    pub(super) fn read_part(
        &self,
        question: &SearchQuery,
        candidates: &Candidates,
        some: &[QueryCandidate],
        cancel: &Cancel,
    ) -> Result<CandidateReads, SearchError> {
        let mut part =
            CandidateReads { read: Vec::with_capacity(some.len()), ..CandidateReads::default() };
        for candidate in some {
            if cancel.is_cancelled() {
                return Err(SearchError::GivenUp);
            }
            if part.joined.contains(&candidate.entry) {
                continue;
            }
            // A damaged entry is skipped.
            let found =
                klnode_store::Error::unless_damaged(self.read_whole(candidate.entry))?.flatten();
            let Some(found) = found else {
                part.drop(candidate, DropReason::Unreadable);
                continue;
            };
            part.joined.extend(found.read_with());
            if let Some(mut one) = self.admit(question, candidate, found, &mut part)? {
                candidates.apply_phrase_bonus(&mut one);
                part.read.push(one);
            }
        }
        Ok(part)
    }

    /// Turns an entry that was read into a `ReadCandidate`; `None` if it may not enter the answer. The
    /// reason is added to `part`, with the relevance if only the gate or its thread excludes it.
    pub(super) fn admit(
        &self,
        question: &SearchQuery,
        candidate: &QueryCandidate,
        found: AssessedEntry,
        part: &mut CandidateReads,
    ) -> Result<Option<ReadCandidate>, SearchError> {
        let (scope, reason) = match obstacle(question, &found) {
            Ok(scope) => (Some(scope), None),
            Err(reason) => (None, Some(reason)),
        };
        let value = candidate.relevance.value;
        if let Some(reason) = reason {
            match reason {
                DropReason::Gate => part.shut.push(value),
                DropReason::OtherThread => {
                    let thread = found.thread().unwrap_or_default().to_owned();
                    part.elsewhere.push(OtherThreadEntry { thread, relevance: value });
                }
                _ => {}
            }
            part.drop(candidate, reason);
        }
        let Some(scope) = scope else { return Ok(None) };
        let endorsements = self.endorsements(&found)?;
        let looked = AnchorCheck::unchecked(&found.view);
        let freshness = self.freshness(looked.check, endorsements, &found);
        let relevance = candidate.relevance;
        Ok(Some(ReadCandidate { found, scope, relevance, freshness, looked, endorsements }))
    }
}

impl CandidateReads {
    fn drop(&mut self, candidate: &QueryCandidate, reason: DropReason) {
        let (entry, relevance) = (candidate.entry, candidate.relevance.value);
        self.dropped.push(DroppedEntry { entry, relevance, reason });
    }
}

/// The fields of an entry that may enter the answer, or the reason why it may not.
fn obstacle(question: &SearchQuery, found: &AssessedEntry) -> Result<FilterFields, DropReason> {
    let known = question.known.get(&found.entry);
    if known.is_some_and(|version| *version == found.version()) {
        return Err(DropReason::Known);
    }
    let scope = FilterFields::of(&found.view).filter(|scope| question.filter.admits(scope));
    let scope = scope.ok_or(DropReason::Filter)?;
    let status = found.assessment.standing.status;
    // A stale entry may become current when its predicates are evaluated and hold.
    let may_be_shown = status == Status::Stale && question.checkout.is_some();
    if !(is_shown(status, question) || may_be_shown) {
        return Err(DropReason::Status(status));
    }
    if found.overlay.is_muted || found.overlay.is_invalidated {
        return Err(DropReason::Mark);
    }
    let tags = scope.tags.iter().map(String::as_str);
    let relation = question.namespace.as_ref().map(|of| of.relation(tags));
    if relation == Some(NamespaceMatch::Other) {
        return Err(DropReason::OtherReviewer);
    }
    if question.audience == Audience::Gated && found.gate() == GateDecision::Shut {
        return Err(DropReason::Gate);
    }
    match found.thread().is_some_and(|thread| !question.serves_thread(thread)) {
        true => Err(DropReason::OtherThread),
        false => Ok(scope),
    }
}

/// True if entries of this status may be hits.
pub(super) fn is_shown(status: Status, question: &SearchQuery) -> bool {
    status.is_retrieved() || question.also.contains(&status)
}
