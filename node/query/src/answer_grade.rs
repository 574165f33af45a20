//! Grades an answer: strong, weak or nothing, with the probability of each candidate.
//!
//! Separate from ranking: the grade depends on the relevance of the candidates alone, not on
//! confidence or freshness.

use super::foreign_gate::GateDecision;
use super::read_candidate::ReadCandidate;
use klnode_crdt::ids::EntryId;
use klnode_scoring::relevance::QueryStats;
use klnode_scoring::relevance::answer_grade::{
    Grade, LENGTHENED_MIN, LISTED_MIN, SHOWN_MIN, grade, probabilities,
};
use klnode_scoring::relevance::fusion::SignalSet;
use std::collections::{BTreeMap, BTreeSet};

/// The grade of an answer and the probabilities of its candidates.
pub(super) struct AnswerGrade {
    pub(super) grade: Grade,
    pub(super) set: SignalSet,
    pub(super) probabilities: BTreeMap<EntryId, f64>,
    /// Candidates that another candidate replaces.
    pub(super) replaced: BTreeSet<EntryId>,
}

impl AnswerGrade {
    /// Grades the candidates of a question, without those that another one replaces. `is_answer`:
    /// one of them reaches the threshold.
    pub(super) fn of(
        read: &[ReadCandidate],
        asked: &QueryStats,
        is_english: bool,
        is_answer: bool,
        replaced: BTreeSet<EntryId>,
    ) -> Self {
        let read = || read.iter().filter(|read| !replaced.contains(&read.found.entry));
        let all = || read().map(|read| (read.found.entry, read.relevance.score));
        let (by_all, mut probabilities) = grade_scores(all().collect(), asked.entries, asked.set);
        // An unconfirmed entry next to a confirmed one takes nothing from its lead: otherwise an
        // author could make the entries of others look doubtful by writing more.
        let tried = read().filter(|read| read.found.gate() != GateDecision::LastPlaces);
        let tried = tried.map(|read| (read.found.entry, read.relevance.score));
        let (by_tried, of_tried) = grade_scores(tried.collect(), asked.entries, asked.set);
        probabilities.extend(of_tried);
        let by_score = by_all.max(by_tried);
        let mut grade = match (is_answer, asked.set) {
            (false, _) => Grade::Nothing,
            (true, SignalSet::Transformer) => by_score.max(Grade::Weak),
            // Their thresholds were chosen for answers with texts.
            (true, SignalSet::Table | SignalSet::Words) => Grade::Strong,
        };
        if !is_english {
            // The embedders know no other language, so fewer covered words are enough.
            let covered = read().map(|read| (read.found.entry, read.relevance.coverage));
            let by_words = grade_scores(covered.collect(), asked.entries, SignalSet::Words).0;
            grade = grade.max(by_words);
        }
        Self { grade, set: asked.set, probabilities, replaced }
    }

    /// The probability that an entry answers the question, in [0, 1]; 0 for an entry that is no
    /// candidate.
    pub(super) fn probability(&self, entry: EntryId) -> f64 {
        self.probabilities.get(&entry).copied().unwrap_or_default()
    }

    /// True if the entry hardly answers or was replaced, so that its title is enough and it comes
    /// after the others.
    pub(super) fn is_doubtful(&self, entry: EntryId) -> bool {
        let hardly_answers = || self.probability(entry) < SHOWN_MIN;
        self.replaced.contains(&entry) || (self.set == SignalSet::Transformer && hardly_answers())
    }

    /// True if a program does not pay for the title of the entry in a strong answer. The note that an
    /// entry was replaced is worth its title.
    pub(super) fn is_unlikely(&self, entry: EntryId) -> bool {
        self.set == SignalSet::Transformer
            && self.grade == Grade::Strong
            && !self.replaced.contains(&entry)
            && self.probability(entry) < LISTED_MIN
    }

    /// True if the rest of the budget may show more of the entry than its best passage. Half of the
    /// questions without an answer get a strong answer as well, mostly with lower probabilities.
    pub(super) fn may_lengthen(&self, entry: EntryId) -> bool {
        self.set != SignalSet::Transformer || self.probability(entry) >= LENGTHENED_MIN
    }
}

fn grade_scores(
    mut scored: Vec<(EntryId, f64)>,
    entries: u64,
    set: SignalSet,
) -> (Grade, BTreeMap<EntryId, f64>) {
    scored.sort_by(|one, two| two.1.total_cmp(&one.1));
    let scores: Vec<f64> = scored.iter().map(|(_, score)| *score).collect();
    let found = probabilities(&scores, set);
    let grade = match (scores.first(), found.first()) {
        (Some(score), Some(probability)) => grade(*score, *probability, entries, set),
        _ => Grade::Nothing,
    };
    (grade, scored.iter().map(|(entry, _)| *entry).zip(found).collect())
}
