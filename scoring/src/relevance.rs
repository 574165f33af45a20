//! Relevance of a candidate's text to a query, and the decision whether to answer or abstain.
//!
//! The keyword index gives a BM25 score, read as a fraction of the highest possible score; the
//! embedding table and the transformer give the similarity of meaning as cosines. A question that
//! the transformer answers is judged by [`fusion`], any other by [`relevance`]. All signals are
//! absolute, not relative to the other candidates, so a lone candidate is judged like one of a
//! hundred, and the best of several irrelevant candidates stays low. Separate from `rank`, which
//! weighs relevance against confidence, freshness and other signals. The constants were measured:
//! `docs/internals/retrieval.md`.

pub mod answer_grade;
mod cosine_calibration;
pub mod fusion;
mod phrase_match;

pub use cosine_calibration::{Calibration, SAMPLE_COSINES_MIN};
pub use phrase_match::{Phrase, PhraseMatcher, PhraseTerm};

use crate::clamp_to_unit::unit;
use fusion::{SignalSet, Signals, fuse, mention_min};

/// BM25 term saturation, as in the keyword index.
pub const BM25_K1: f64 = 1.2;
/// Weight of the prior word frequencies, as a number of entries of the store.
pub const PRIOR_DOCUMENTS: u64 = 500;
/// Exponent by which covered words make up for distant meaning.
pub const COVERAGE_EXPONENT: f64 = 1.5;
/// Fraction of the meaning that is discounted for a query made of code identifiers only: a vector
/// carries little about the use of an identifier.
pub const NAMES_MEANING_LOSS: f64 = 0.3;
/// Relative increase of the coverage exponent for such a query.
pub const NAMES_COVERAGE_GAIN: f64 = 0.6;
/// Fraction of the missing relevance that a verbatim match of the whole query fills.
pub const PHRASE_GAIN: f64 = 0.4;
/// Exponent that discounts a verbatim match of only part of the query.
pub const PHRASE_EXPONENT: i32 = 4;
/// Coverage below which a verbatim match is not looked for, since it could not matter.
pub const PHRASE_COVERAGE_MIN: f64 = 0.2;
/// Smallest sum of idf that counts as full coverage: a query of very common words such as "the" is
/// not covered by a text that contains them.
pub const IDF_SUM_MIN: f64 = 3.0;
/// Number of entries above which the answer threshold no longer rises. Measured up to 44,000.
pub const ENTRIES_MAX: u64 = 100_000;

/// Scores of the engines for one candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineScores {
    /// Cosine of the candidate's and the query's vector; `None` if either has no vector.
    pub cosine: Option<f64>,
    /// The transformer's cosine of the query and the nearest passage; `None` if either has no such
    /// vector.
    pub transformer: Option<f64>,
    /// BM25 score; 0 if no word matches.
    pub bm25: f64,
}

/// Properties of a query that are the same for all candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryStats {
    /// Highest possible BM25 score of the query, see [`ceiling`].
    pub ceiling: f64,
    /// Number of entries searched. The best of many unrelated entries is nearer than the best of
    /// few.
    pub entries: u64,
    /// Fraction in [0, 1] of the query's idf that lies in code identifiers. 0 if only one engine
    /// answers, since there is nothing to balance then.
    pub names: f64,
    /// The signals that the query has.
    pub set: SignalSet,
}

/// Relevance of a candidate, with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relevance {
    /// Combined relevance, in [0, 1].
    pub value: f64,
    /// The fused score, from which the probability of an answer is computed.
    pub score: f64,
    /// Similarity of meaning by the embedding table or the configured model, in [0, 1]: 0 at the
    /// level of unrelated texts.
    pub meaning: f64,
    /// The transformer's cosine; `None` if the query or the entry has no such vector.
    pub transformer: Option<f64>,
    /// Fraction of the query that the matched words cover, in [0, 1].
    pub coverage: f64,
    /// Fraction of the query in code identifiers, copied from [`QueryStats`].
    pub names: f64,
    /// Fraction of the query that the text contains verbatim; 0 until [`Relevance::with_phrase`]
    /// sets it.
    pub phrase: f64,
}

/// Combines meaning and word coverage into one relevance.
///
/// With a vector of the transformer it is the fused score, as a share of the highest one. Otherwise
/// it is `1 − (1 − meaning) · (1 − coverage)^1.5`. For a query of code identifiers, meaning is discounted
/// by 30 % and the exponent is 60 % greater; for a mixed query, both apply in proportion.
#[must_use]
pub fn relevance(found: &EngineScores, asked: &QueryStats, calibration: &Calibration) -> Relevance {
    let coverage = if asked.ceiling > 0.0 { unit(found.bm25 / asked.ceiling) } else { 0.0 };
    let meaning = found.cosine.map_or(0.0, |cosine| calibration.meaning(cosine));
    let names = unit(asked.names);
    let exponent = COVERAGE_EXPONENT * (1.0 + NAMES_COVERAGE_GAIN * names);
    let meant = meaning * (1.0 - NAMES_MEANING_LOSS * names);
    let table = found.cosine.map(|_| meaning);
    let signals = Signals { coverage, table, transformer: found.transformer };
    let score = fuse(&signals, asked.set);
    let value = match asked.set {
        SignalSet::Transformer => unit(score / asked.set.score_max()),
        SignalSet::Table | SignalSet::Words => {
            1.0 - (1.0 - meant) * (1.0 - coverage).powf(exponent)
        }
    };
    let transformer = found.transformer;
    Relevance { value, score, meaning, transformer, coverage, names, phrase: 0.0 }
}

/// Whether there is an answer, with the numbers behind the decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnswerThreshold {
    /// Relevance of the best candidate; 0 if there is none.
    pub best: f64,
    /// Smallest relevance that is worth an answer.
    pub answer_min: f64,
}

impl AnswerThreshold {
    /// Whether the answer is that nothing relevant was found.
    #[must_use]
    pub fn abstains(&self) -> bool {
        self.best < self.answer_min
    }
}

/// Decides whether the candidates, in any order, contain an answer.
#[must_use]
pub fn judge(
    candidates: &[Relevance],
    asked: &QueryStats,
    calibration: &Calibration,
) -> AnswerThreshold {
    let best = candidates.iter().map(|one| unit(one.value)).fold(0.0, f64::max);
    AnswerThreshold { best, answer_min: answer_min(asked.entries, asked.set, calibration) }
}

/// Smallest relevance worth an answer; rises with the logarithm of the number of entries searched.
#[must_use]
pub fn answer_min(entries: u64, set: SignalSet, calibration: &Calibration) -> f64 {
    let (one, per_tenfold) = match set {
        SignalSet::Transformer => return unit(mention_min(entries, set) / set.score_max()),
        SignalSet::Table => (calibration.answer_min, calibration.answer_min_per_tenfold),
        SignalSet::Words => (calibration.keywords_min, calibration.keywords_min_per_tenfold),
    };
    unit(one + per_tenfold * (entries.clamp(1, ENTRIES_MAX) as f64).log10())
}

/// Number of the [`PRIOR_DOCUMENTS`] that contain a word which this fraction of all texts contains.
#[must_use]
pub fn prior_holding(share: f64) -> u64 {
    (unit(share) * PRIOR_DOCUMENTS as f64).round() as u64
}

/// Inverse document frequency of a word that `holding` of `documents` texts contain, priors
/// included.
#[must_use]
pub fn idf(documents: u64, holding: u64) -> f64 {
    let (documents, holding) = (documents as f64, holding.min(documents) as f64);
    (1.0 + (documents - holding + 0.5) / (holding + 0.5)).ln()
}

/// Highest possible BM25 score of a query whose distinct words have these idfs, including words
/// that no entry contains.
#[must_use]
pub fn ceiling(idfs: impl IntoIterator<Item = f64>) -> f64 {
    idfs.into_iter().sum::<f64>().max(IDF_SUM_MIN) * (BM25_K1 + 1.0)
}

#[cfg(test)]
mod tests;
