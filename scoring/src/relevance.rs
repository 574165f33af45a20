//! How relevant a candidate's text is to a query, and whether anything found is worth answering.
//!
//! Two engines look. Vectors say how near the meaning is, a cosine; keywords say how much of the
//! query the text holds, a BM25 score as a share of the most it could be. Both are read absolutely,
//! not against what else was found, so a lone candidate is judged like one of a hundred and the best
//! of nothing relevant stays low. Separate from `rank`, which weighs relevance against confidence,
//! freshness and the rest. The numbers were measured: `docs/retrieval.md`.

mod calibration;
mod phrase;

pub use calibration::{Calibration, SAMPLE_COSINES_MIN};
pub use phrase::{Heard, Phrase, Term};

use crate::unit::unit;

/// How fast a word that occurs again stops counting, as in the keyword index.
pub const BM25_K1: f64 = 1.2;
/// What is known of common words speaks as loudly as this many entries of the store.
pub const PRIOR_DOCUMENTS: u64 = 500;
/// How fast covered words make up for distant meaning.
pub const COVERAGE_EXPONENT: f64 = 1.5;
/// What meaning loses where a query is nothing but names of code: what a name means is what it is
/// used for, and that no vector knows.
pub const NAMES_MEANING_LOSS: f64 = 0.3;
/// By how much faster covered words make up for distant meaning there.
pub const NAMES_COVERAGE_GAIN: f64 = 0.6;
/// What a text that holds the query word for word makes up for, of all that is open.
pub const PHRASE_GAIN: f64 = 0.4;
/// How much less a part of the query says, word for word, than all of it.
pub const PHRASE_EXPONENT: i32 = 4;
/// A text that covers less of a query cannot hold enough of it word for word to be worth a look.
pub const PHRASE_COVERAGE_MIN: f64 = 0.2;
/// A query whose words tell less than this, all together, is not covered by holding them: "the" is
/// no question.
pub const IDF_SUM_MIN: f64 = 3.0;
/// From this many entries on, more of them raise no threshold. Measured up to 44,000.
pub const ENTRIES_MAX: u64 = 100_000;

/// What the engines say of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The cosine of its vector and the query's; none where either has no vector.
    pub cosine: Option<f64>,
    /// Its keyword score; 0 where no word matches.
    pub bm25: f64,
}

/// What is known of a query beside its candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// What a text would score that held every word of the query without end: see [`ceiling`].
    pub ceiling: f64,
    /// How many entries were looked through. The best of many unrelated ones is nearer than the
    /// best of few.
    pub entries: u64,
    /// The share of what the query's words tell that stands in names of code, in [0, 1]. 0 where one
    /// engine answers alone: then there is nothing to weigh against each other.
    pub names: f64,
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
    /// The share of the query that stands in names of code, as [`Asked`] says.
    pub names: f64,
    /// The share of the query that stands in the text word for word, as far as it was looked at:
    /// see [`Relevance::with_phrase`].
    pub phrase: f64,
}

/// The relevance of a candidate: what neither meaning nor words leave open.
///
/// `1 − (1 − meaning) · (1 − coverage)^1.5`; for a query of names, meaning counts 0.3 less and the
/// exponent is 0.6 greater, each as a share, and in between for one that holds some.
#[must_use]
pub fn relevance(found: &Match, asked: &Asked, calibration: &Calibration) -> Relevance {
    let coverage = if asked.ceiling > 0.0 { unit(found.bm25 / asked.ceiling) } else { 0.0 };
    let meaning = found.cosine.map_or(0.0, |cosine| calibration.meaning(cosine));
    let names = unit(asked.names);
    let exponent = COVERAGE_EXPONENT * (1.0 + NAMES_COVERAGE_GAIN * names);
    let meant = meaning * (1.0 - NAMES_MEANING_LOSS * names);
    let value = 1.0 - (1.0 - meant) * (1.0 - coverage).powf(exponent);
    Relevance { value, meaning, coverage, names, phrase: 0.0 }
}

/// Which engines a query was answered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engines {
    /// Vectors and keywords.
    Both,
    /// Keywords alone: there is no model, or its vectors are not ready.
    Keywords,
}

/// Whether there is an answer, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The relevance of the best candidate; 0 where there is none.
    pub best: f64,
    /// The least relevance worth an answer.
    pub answer_min: f64,
}

impl Verdict {
    /// Whether the answer is "checked, nothing relevant".
    #[must_use]
    pub fn abstains(&self) -> bool {
        self.best < self.answer_min
    }
}

/// Judges whether the candidates, in any order, hold an answer.
#[must_use]
pub fn judge(
    candidates: &[Relevance],
    asked: &Asked,
    engines: Engines,
    calibration: &Calibration,
) -> Verdict {
    let best = candidates.iter().map(|one| unit(one.value)).fold(0.0, f64::max);
    Verdict { best, answer_min: answer_min(asked.entries, engines, calibration) }
}

/// The least relevance worth an answer, which rises with the logarithm of what was looked through.
#[must_use]
pub fn answer_min(entries: u64, engines: Engines, calibration: &Calibration) -> f64 {
    let (one, per_tenfold) = match engines {
        Engines::Both => (calibration.answer_min, calibration.answer_min_per_tenfold),
        Engines::Keywords => (calibration.keywords_min, calibration.keywords_min_per_tenfold),
    };
    unit(one + per_tenfold * (entries.clamp(1, ENTRIES_MAX) as f64).log10())
}

/// How many of [`PRIOR_DOCUMENTS`] hold a word that this share of all texts holds.
#[must_use]
pub fn prior_holding(share: f64) -> u64 {
    (unit(share) * PRIOR_DOCUMENTS as f64).round() as u64
}

/// How much a word tells that `holding` of `documents` texts hold, both with their prior.
#[must_use]
pub fn idf(documents: u64, holding: u64) -> f64 {
    let (documents, holding) = (documents as f64, holding.min(documents) as f64);
    (1.0 + (documents - holding + 0.5) / (holding + 0.5)).ln()
}

/// The most that a text can score for a query whose distinct words have these idfs, words that no
/// entry holds included.
#[must_use]
pub fn ceiling(idfs: impl IntoIterator<Item = f64>) -> f64 {
    idfs.into_iter().sum::<f64>().max(IDF_SUM_MIN) * (BM25_K1 + 1.0)
}

#[cfg(test)]
mod tests;
