//! Fusion of three signals into one score: the words of the question, the embedding table and the
//! transformer.
//!
//! The score is a weighted sum of absolute signals, so it does not depend on the other candidates.
//! A candidate may lack a signal: the transformer embeds entries in the background, and a question
//! may have no vector at all. A missing cosine of the transformer is estimated from the other two
//! signals, so that entries with and without it can be compared. The constants were chosen on the
//! `dev` sets: `docs/internals/retrieval.md`.

use crate::clamp_to_unit::unit;
use crate::relevance::ENTRIES_MAX;

/// Weight of the covered share of the question's words; that of the transformer's cosine is 1.
pub const WORDS_WEIGHT: f64 = 0.3;
/// Weight of the table's cosine.
pub const TABLE_WEIGHT: f64 = 0.35;
/// The estimate of a missing transformer cosine: a constant, and factors of the table's cosine and
/// of the covered share. Fitted to the twenty best candidates of each question.
const ESTIMATE: [f64; 3] = [0.26, 0.20, 0.38];

/// The signals of one candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// The share of the question's word weight that the text covers, in [0, 1].
    pub coverage: f64,
    /// The cosine of the embedding table; `None` if the question or the entry has no such vector.
    pub table: Option<f64>,
    /// The greatest cosine of the transformer over the passages of the entry; `None` if it has no
    /// such vector yet.
    pub transformer: Option<f64>,
}

/// The signals that a question can have, by the best embedder that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignalSet {
    /// The keyword index only.
    Words,
    /// The keyword index and the embedding table.
    Table,
    /// The keyword index, the embedding table and the transformer.
    Transformer,
}

impl SignalSet {
    /// The highest possible score.
    #[must_use]
    pub fn score_max(self) -> f64 {
        match self {
            Self::Words => 1.0,
            Self::Table | Self::Transformer => 1.0 + WORDS_WEIGHT + TABLE_WEIGHT,
        }
    }
}

/// The score of a candidate. Candidates of one question are comparable if they are scored with the
/// same set of signals.
#[must_use]
pub fn fuse(found: &Signals, set: SignalSet) -> f64 {
    let words = unit(found.coverage);
    let table = found.table.map_or(0.0, unit);
    let estimate = || ESTIMATE[0] + ESTIMATE[1] * table + ESTIMATE[2] * words;
    let transformer = match set {
        SignalSet::Words => return words,
        SignalSet::Table => estimate(),
        // The best passage of an entry may be unrelated, but not the opposite of the question.
        SignalSet::Transformer => found.transformer.map_or_else(estimate, unit),
    };
    transformer + WORDS_WEIGHT * words + TABLE_WEIGHT * table
}

/// Smallest score of a candidate that is worth mentioning. It rises with the number of entries,
/// because the best of many unrelated texts is nearer than the best of few.
#[must_use]
pub fn mention_min(entries: u64, set: SignalSet) -> f64 {
    let (one, per_tenfold) = match set {
        SignalSet::Words => (0.07, 0.04),
        SignalSet::Table => (0.40, 0.045),
        SignalSet::Transformer => (0.25, 0.07),
    };
    one + per_tenfold * (entries.clamp(1, ENTRIES_MAX) as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(coverage: f64, table: f64, transformer: Option<f64>) -> Signals {
        Signals { coverage, table: Some(table), transformer }
    }

    #[test]
    fn every_signal_raises_the_score() {
        let base = signals(0.4, 0.3, Some(0.5));
        let of = |found: &Signals| fuse(found, SignalSet::Transformer);
        assert!((of(&base) - (0.5 + 0.12 + 0.105)).abs() < 1e-9);
        for better in [
            signals(0.5, 0.3, Some(0.5)),
            signals(0.4, 0.4, Some(0.5)),
            signals(0.4, 0.3, Some(0.6)),
        ] {
            assert!(of(&better) > of(&base), "{better:?}");
        }
        let only_words = Signals { coverage: 0.4, ..Signals::default() };
        assert_eq!(fuse(&only_words, SignalSet::Words), 0.4);
        assert_eq!(fuse(&base, SignalSet::Words), 0.4);
    }

    #[test]
    fn an_entry_without_a_transformer_vector_ranks_between_good_and_bad_ones() {
        let of = |transformer| fuse(&signals(0.5, 0.4, transformer), SignalSet::Transformer);
        assert!(of(Some(0.8)) > of(None) && of(None) > of(Some(0.1)));
        let table = fuse(&signals(0.5, 0.4, Some(0.9)), SignalSet::Table);
        assert_eq!(table, of(None), "a set without the transformer ignores its cosine");
        let none = Signals { coverage: 0.5, ..Signals::default() };
        assert!(fuse(&none, SignalSet::Table) < table);
    }

    #[test]
    fn invalid_numbers_count_as_unrelated() {
        for (coverage, table, transformer) in
            [(f64::NAN, 0.0, 0.0), (0.0, f64::NAN, 0.0), (0.0, 0.0, f64::NAN), (-1.0, -1.0, -1.0)]
        {
            let found = signals(coverage, table, Some(transformer));
            assert_eq!(fuse(&found, SignalSet::Transformer), 0.0, "{found:?}");
        }
    }

    #[test]
    fn the_threshold_rises_with_the_store_up_to_a_bound() {
        for set in [SignalSet::Words, SignalSet::Table, SignalSet::Transformer] {
            let of = |entries| mention_min(entries, set);
            assert!(of(0) == of(1) && of(1) < of(1_000) && of(1_000) < of(100_000));
            assert_eq!(of(100_000), of(10_000_000));
        }
    }
}
