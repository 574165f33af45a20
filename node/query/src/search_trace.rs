//! All entries that a search considered, each with its place in the answer or the reason why it was
//! dropped. Only a caller that asks for it receives the list.
//!
//! Separate from `search`, which collects the reasons anyway but reads no further entry for them.

use super::candidates::QueryCandidate;
use super::drop_reason::{ConsideredEntry, DropReason};
use super::foreign_gate::GateDecision;
use super::search_types::{Audience, SearchAnswer};
use super::{AssessedEntry, ReadContext};
use klnode_crdt::entry_type::code_digits;
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of entries in the list, the most relevant ones.
const CONSIDERED_MAX: usize = 500;

/// A candidate that is no hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedEntry {
    pub(super) entry: EntryId,
    pub(super) relevance: f64,
    pub(super) reason: DropReason,
}

impl DroppedEntry {
    pub(super) fn of(candidate: &QueryCandidate, reason: DropReason) -> Self {
        let (entry, relevance) = (candidate.entry, candidate.relevance.value);
        Self { entry, relevance, reason }
    }

    /// An entry that was read with its duplicates. The candidates know its relevance, if it was one.
    pub(super) fn merged(entry: &EntryId) -> Self {
        Self { entry: *entry, relevance: 0.0, reason: DropReason::Merged }
    }
}

impl ReadContext<'_> {
    /// Lists what the search considered, most relevant first. `all` maps each candidate to its
    /// relevance; a candidate without a known reason is below the threshold `relevance_min`.
    pub(super) fn considered(
        &self,
        answer: &SearchAnswer,
        all: &BTreeMap<EntryId, f64>,
        dropped: &[DroppedEntry],
        (relevance_min, audience): (f64, Audience),
    ) -> Result<Vec<ConsideredEntry>, Error> {
        let mut reasons: BTreeMap<EntryId, DropReason> =
            dropped.iter().map(|one| (one.entry, one.reason)).collect();
        let left_out = answer.left_out.iter();
        reasons.extend(left_out.map(|(entry, reason)| (*entry, DropReason::LeftOut(*reason))));
        let of_dropped = dropped.iter().map(|one| (one.entry, one.relevance));
        let mut all: BTreeMap<EntryId, f64> = of_dropped.chain(all.clone()).collect();
        let hits: Vec<EntryId> = answer.hits.iter().map(|hit| hit.found.entry).collect();
        all.extend(answer.hits.iter().map(|hit| (hit.found.entry, hit.relevance.value)));
        let mut best: Vec<(EntryId, f64)> = all.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut listed = Vec::new();
        let mut seen = BTreeSet::new();
        for (entry, relevance) in best.into_iter().take(CONSIDERED_MAX) {
            let place = hits.iter().position(|hit| *hit == entry).map(|place| place + 1);
            let reason = match place {
                Some(_) => None,
                None => Some(
                    reasons.get(&entry).copied().unwrap_or(DropReason::NotRelevant(relevance_min)),
                ),
            };
            if seen.insert(entry) {
                listed.extend(self.considered_entry(
                    entry,
                    relevance,
                    (place, reason),
                    audience,
                )?);
            }
        }
        Ok(listed)
    }

    fn considered_entry(
        &self,
        entry: EntryId,
        relevance: f64,
        (place, reason): (Option<usize>, Option<DropReason>),
        audience: Audience,
    ) -> Result<Option<ConsideredEntry>, Error> {
        let found = self.read_sound(entry)?;
        let is_gated = audience == Audience::Gated;
        if is_gated && found.as_ref().is_some_and(|found| found.gate() == GateDecision::Shut) {
            // The answer only counts entries that the gate withholds.
            return Ok(None);
        }
        let is_private = is_gated && reason == Some(DropReason::OtherThread);
        let readable = found.as_ref().filter(|_| !is_private);
        let title = readable.and_then(|found| found.view.text(Register::TITLE)).map(str::to_owned);
        let code = found.as_ref().map_or_else(|| code_digits(entry), AssessedEntry::code);
        Ok(Some(ConsideredEntry { entry, code, title, relevance, place, reason }))
    }
}
