//! The order in which hits are chosen, and the order in which they are listed.
//!
//! Contradictions, successions and the gate move entries of a ranking. Evidence of weak answers then
//! reorders the list, and has no say in which entries are hits: it lowers an entry and never hides it.

use super::Reading;
use super::gate::Gate;
use super::question::{Audience, Question};
use super::rivals::{self, Rivalry};
use super::search::Read;
use super::succession::Successions;
use klnode_crdt::ids::EntryId;
use klnode_scoring::rank::{self, Placed};
use klnode_scoring::weakness::{self, Sketch};
use std::collections::BTreeMap;

/// What moves the entries of a ranking beside their scores.
pub(super) struct Movers<'a> {
    pub(super) read: &'a BTreeMap<EntryId, Read>,
    pub(super) rivalries: &'a [Rivalry],
    pub(super) successions: &'a Successions,
}

/// A ranking, arranged.
pub(super) struct Arranged {
    /// In the order in which hits are chosen.
    pub(super) chosen: Vec<Placed>,
    /// In the order in which hits are listed.
    pub(super) listed: Vec<EntryId>,
    /// What entries have lost in that order for weak answers to similar questions.
    pub(super) demotions: BTreeMap<EntryId, f64>,
}

impl Reading<'_> {
    /// Arranges a ranking. `answer_min` is the relevance from which an entry answers.
    pub(super) fn arrange(
        &self,
        placed: Vec<Placed>,
        movers: &Movers<'_>,
        question: &Question,
        (sketch, answer_min): (&Sketch, f64),
    ) -> Arranged {
        let today = self.now.day();
        let lowered = placed.iter().filter_map(|placed| {
            let entry = placed.candidate.entry;
            let answers = movers.read.get(&entry)?.found.judged.weak_answers.iter().copied();
            let demotion = weakness::demotion(sketch, answers, today);
            (demotion > 0.0).then_some((entry, demotion))
        });
        let demotions: BTreeMap<EntryId, f64> = lowered.collect();
        let demotion = |entry| demotions.get(&entry).copied().unwrap_or_default();
        let listed = match demotions.is_empty() {
            true => placed.clone(),
            false => rank::demote(&placed, demotion, answer_min),
        };
        let listed = movers.apply(listed, question.audience);
        let listed = listed.iter().map(|placed| placed.candidate.entry).collect();
        Arranged { chosen: movers.apply(placed, question.audience), listed, demotions }
    }
}

impl Movers<'_> {
    fn apply(&self, placed: Vec<Placed>, audience: Audience) -> Vec<Placed> {
        let mut placed = self.successions.order(rivals::order(placed, self.rivalries));
        if audience == Audience::Gated {
            placed.sort_by_key(|placed| is_untried(self.read, placed.candidate.entry));
        }
        placed
    }
}

/// Whether an entry may enter in one of the last places only: no author who counts has tried it.
pub(super) fn is_untried(read: &BTreeMap<EntryId, Read>, entry: EntryId) -> bool {
    read.get(&entry).is_some_and(|read| read.found.gate() == Gate::LastPlaces)
}
