//! How relevant a candidate's text is to a query, and whether anything found is worth answering.
//!
//! Two engines look: vectors say how near the meaning is (a cosine), keywords say how much of the
//! query the text holds (a BM25 score as a share of the most it could be). Both are absolute: they
//! do not depend on what else was found, so a lone candidate is judged like one of a hundred and
//! the best of nothing relevant stays low. Separate from `rank`, which weighs relevance against
//! confidence, freshness and the rest.

use crate::unit::unit;

/// How fast a word that occurs again stops counting, as in the keyword index.
pub const BM25_K1: f64 = 1.2;

/// What the engines say of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The cosine of its vector and the query's; none where either has no vector.
    pub cosine: Option<f64>,
    /// Its keyword score; 0 where no word matches.
    pub bm25: f64,
    /// The share of the query's idf that belongs to words the text holds, in [0, 1].
    pub held: f64,
}

/// What is known of a query before anything is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// What a text would score that held every word of the query without end: see [`ceiling`].
    pub ceiling: f64,
    /// How many distinct words it has.
    pub words: u32,
}

/// What must be known of an embedding model before its cosines mean anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The cosine of unrelated texts: at or below it, the meaning says nothing.
    pub unrelated: f64,
    /// What coverage weighs where meaning weighs 1.
    pub coverage_weight: f64,
    /// The least relevance worth an answer.
    pub answer_min: f64,
}

impl Calibration {
    /// Of the built-in embedding table.
    pub const BUILT_IN: Calibration =
        Calibration { unrelated: 0.0, coverage_weight: 1.5, answer_min: 0.24 };
}

/// The relevance of a candidate, with what led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relevance {
    /// The fused relevance, in [0, 1].
    pub value: f64,
    /// How near the meaning is, in [0, 1]: 0 at the level of unrelated texts.
    pub meaning: f64,
    /// The share of the query that the words cover, in [0, 1].
    pub coverage: f64,
}

/// The relevance of a candidate.
#[must_use]
pub fn relevance(found: &Match, asked: &Asked, calibration: &Calibration) -> Relevance {
    let coverage = if asked.ceiling > 0.0 { unit(found.bm25 / asked.ceiling) } else { 0.0 };
    let weight = calibration.coverage_weight;
    let Some(cosine) = found.cosine else {
        return Relevance { value: coverage, meaning: 0.0, coverage };
    };
    let meaning = unit((cosine - calibration.unrelated) / (1.0 - calibration.unrelated));
    let value = (meaning + weight * coverage) / (1.0 + weight);
    Relevance { value, meaning, coverage }
}

/// Whether there is an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// There is: the best candidate's score and what it had to reach.
    Answer {
        /// How surely there is an answer, in [0, 1].
        score: f64,
        /// The least that is worth an answer.
        score_min: f64,
    },
    /// Checked, and nothing relevant was found.
    Abstain {
        /// How surely there is an answer, in [0, 1].
        score: f64,
        /// The least that is worth an answer.
        score_min: f64,
    },
}

/// Decides whether the candidates, the most relevant first, hold an answer.
#[must_use]
pub fn judge(best_first: &[Relevance], _asked: &Asked, calibration: &Calibration) -> Verdict {
    let score = best_first.first().map_or(0.0, |best| best.value);
    let score_min = calibration.answer_min;
    if score >= score_min {
        Verdict::Answer { score, score_min }
    } else {
        Verdict::Abstain { score, score_min }
    }
}

/// How much a word tells that `holding` of `documents` texts hold.
#[must_use]
pub fn idf(documents: u64, holding: u64) -> f64 {
    let (documents, holding) = (documents as f64, holding.min(documents) as f64);
    (1.0 + (documents - holding + 0.5) / (holding + 0.5)).ln()
}

/// The most that a text can score for a query whose words have these idfs, unknown ones included.
#[must_use]
pub fn ceiling(idfs: impl IntoIterator<Item = f64>) -> f64 {
    idfs.into_iter().sum::<f64>() * (BM25_K1 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::{Asked, Calibration, Match, Verdict, ceiling, idf, judge, relevance};

    fn near(given: f64, expect: f64) -> bool {
        (given - expect).abs() < 1e-6
    }

    #[test]
    fn relevance_is_meaning_and_coverage() {
        let asked = Asked { ceiling: 20.0, words: 4 };
        for (cosine, bm25, expect) in [
            (Some(0.5), 10.0, 0.5),
            (Some(0.5), 0.0, 0.2),
            (Some(-0.5), 10.0, 0.3),
            (Some(1.0), 20.0, 1.0),
            (Some(f64::NAN), 99.0, 0.6),
            (None, 10.0, 0.5),
            (None, 0.0, 0.0),
        ] {
            let given =
                relevance(&Match { cosine, bm25, held: 0.5 }, &asked, &Calibration::BUILT_IN);
            assert!(near(given.value, expect), "{cosine:?}, {bm25}: {given:?}");
        }
        let given = relevance(
            &Match { cosine: Some(0.5), bm25: 3.0, held: 0.0 },
            &Asked { ceiling: 0.0, words: 0 },
            &Calibration::BUILT_IN,
        );
        assert!(near(given.value, 0.2), "without words: {given:?}");
    }

    #[test]
    fn nothing_near_enough_is_no_answer() {
        let asked = Asked { ceiling: 20.0, words: 4 };
        let of = |cosine, bm25| {
            relevance(
                &Match { cosine: Some(cosine), bm25, held: 0.5 },
                &asked,
                &Calibration::BUILT_IN,
            )
        };
        let judge = |found: &[_]| judge(found, &asked, &Calibration::BUILT_IN);
        assert!(matches!(judge(&[]), Verdict::Abstain { .. }));
        assert!(matches!(judge(&[of(0.3, 1.0)]), Verdict::Abstain { .. }));
        assert!(matches!(judge(&[of(0.6, 8.0), of(0.1, 0.0)]), Verdict::Answer { .. }));
    }

    #[test]
    fn rare_words_tell_more_and_unknown_ones_most() {
        for (documents, holding, expect) in
            [(3, 3, 0.133_531), (3, 1, 0.980_829), (3, 0, 2.079_442), (1000, 10, 4.557_380)]
        {
            let given = idf(documents, holding);
            assert!(near(given, expect), "{holding} of {documents}: {given}");
        }
        assert!(near(ceiling([1.0, 2.0]), 6.6));
    }
}
