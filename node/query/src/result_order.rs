//! The order in which hits are selected, and the order in which they are listed.
//!
//! Contradictions, doubt, supersession and the gate move entries within a ranking. Weak answers and
//! recent failures then change the order of the list but not the selection: they lower an entry and
//! never hide it.

use super::ReadContext;
use super::answer_grade::AnswerGrade;
use super::contradictions::{self, ContradictingPair};
use super::foreign_gate::GateDecision;
use super::read_candidate::ReadCandidate;
use super::search_types::{Audience, SearchQuery};
use super::supersession::Successions;
use klnode_crdt::ids::EntryId;
use klnode_scoring::rank::{self, RankedEntry};
use klnode_scoring::recent_failures;
use klnode_scoring::weak_answers::{self, QuerySketch};
use std::collections::BTreeMap;

/// The inputs that move entries of a ranking, in addition to their scores.
pub(super) struct OrderRules<'a> {
    pub(super) read: &'a BTreeMap<EntryId, ReadCandidate>,
    pub(super) contradicting_pairs: &'a [ContradictingPair],
    pub(super) successions: &'a Successions,
    pub(super) graded: &'a AnswerGrade,
}

/// The two orders of a ranking.
pub(super) struct ResultOrder {
    /// The order in which hits are selected.
    pub(super) chosen: Vec<RankedEntry>,
    /// The order in which hits are listed.
    pub(super) listed: Vec<EntryId>,
    /// The amounts by which entries are demoted, for weak answers to similar questions and for
    /// failures since the last success.
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
        let per_failure = self.reader.numbers.recent_failure_penalty;
        let lowered = placed.iter().filter_map(|placed| {
            let entry = placed.candidate.entry;
            let assessment = &rules.read.get(&entry)?.found.assessment;
            let weak =
                weak_answers::demotion(sketch, assessment.weak_answers.iter().copied(), today);
            let failed = recent_failures::demotion(assessment.recent_failures, per_failure);
            let demotion = weak + failed;
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
        let mut placed = contradictions::order(placed, self.contradicting_pairs);
        // However well an entry served other questions, it comes after those that answer this one.
        placed.sort_by_key(|placed| self.graded.is_doubtful(placed.candidate.entry));
        let mut placed = self.successions.order(placed);
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
