//! The order in which hits are selected, and the order in which they are listed.
//!
//! Contradictions, supersession and the gate move entries within a ranking. Weak answers then
//! change the order of the list but not the selection: they lower an entry and never hide it.

use super::ReadContext;
use super::contradictions::{self, ContradictingPair};
use super::foreign_gate::GateDecision;
use super::read_candidate::ReadCandidate;
use super::search_types::{Audience, SearchQuery};
use super::supersession::Successions;
use klnode_crdt::ids::EntryId;
use klnode_scoring::rank::{self, RankedEntry};
use klnode_scoring::weak_answers::{self, QuerySketch};
use std::collections::BTreeMap;

/// The inputs that move entries of a ranking, in addition to their scores.
pub(super) struct OrderRules<'a> {
    pub(super) read: &'a BTreeMap<EntryId, ReadCandidate>,
    pub(super) contradicting_pairs: &'a [ContradictingPair],
    pub(super) successions: &'a Successions,
}

/// The two orders of a ranking.
pub(super) struct ResultOrder {
    /// The order in which hits are selected.
    pub(super) chosen: Vec<RankedEntry>,
    /// The order in which hits are listed.
    pub(super) listed: Vec<EntryId>,
    /// The amounts by which entries are demoted for weak answers to similar questions.
    pub(super) demotions: BTreeMap<EntryId, f64>,
}

impl ReadContext<'_> {
    /// Computes both orders. `answer_min` is the relevance threshold of an answer.
    pub(super) fn arrange(
        &self,
        placed: Vec<RankedEntry>,
        rules: &OrderRules<'_>,
        question: &SearchQuery,
        (sketch, answer_min): (&QuerySketch, f64),
    ) -> ResultOrder {
        let today = self.now.day();
        let lowered = placed.iter().filter_map(|placed| {
            let entry = placed.candidate.entry;
            let answers = rules.read.get(&entry)?.found.assessment.weak_answers.iter().copied();
            let demotion = weak_answers::demotion(sketch, answers, today);
            (demotion > 0.0).then_some((entry, demotion))
        });
        let demotions: BTreeMap<EntryId, f64> = lowered.collect();
        let demotion = |entry| demotions.get(&entry).copied().unwrap_or_default();
        let listed = match demotions.is_empty() {
            true => placed.clone(),
            false => rank::demote(&placed, demotion, answer_min),
        };
        let listed = rules.apply(listed, question.audience);
        let listed = listed.iter().map(|placed| placed.candidate.entry).collect();
        ResultOrder { chosen: rules.apply(placed, question.audience), listed, demotions }
    }
}

impl OrderRules<'_> {
    fn apply(&self, placed: Vec<RankedEntry>, audience: Audience) -> Vec<RankedEntry> {
        let mut placed =
            self.successions.order(contradictions::order(placed, self.contradicting_pairs));
        if audience == Audience::Gated {
            placed.sort_by_key(|placed| is_untried(self.read, placed.candidate.entry));
        }
        placed
    }
}

/// True if the gate allows an entry in the last places only: it is unconfirmed here.
pub(super) fn is_untried(read: &BTreeMap<EntryId, ReadCandidate>, entry: EntryId) -> bool {
    read.get(&entry).is_some_and(|read| read.found.gate() == GateDecision::LastPlaces)
}
