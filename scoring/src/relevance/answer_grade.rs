//! The probability that a hit answers the question, and the grade of a whole answer.
//!
//! A question whose answer is missing gets neighbours that score like an answer, so no threshold
//! separates the two. The answer says how sure it is instead: strong answers show passages, weak
//! ones only titles. The probability is fitted to the `dev` sets and checked on the `test` sets; it
//! uses the score, the lead of the first candidate over the second, and the distance of the others
//! from the first: `docs/internals/retrieval.md`.

use super::fusion::{SignalSet, mention_min};

/// Smallest probability of the best hit of a strong answer, with vectors and with words alone.
const STRONG_MIN: f64 = 0.22;
const STRONG_MIN_WORDS: f64 = 0.19;
/// Smallest probability of a hit whose text a strong answer shows; others are reduced to a title.
pub const SHOWN_MIN: f64 = 0.08;
/// Smallest probability of a hit whose title a strong answer lists for a program.
pub const LISTED_MIN: f64 = 0.02;
/// Smallest probability of a hit that a strong answer shows with more than its best passage: it
/// answers more likely than not.
pub const LENGTHENED_MIN: f64 = 0.5;
/// Maximum number of titles in a weak answer.
pub const WEAK_TITLES_MAX: usize = 3;

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// No entry is worth mentioning.
    Nothing,
    /// A few entries are near the topic; only their titles are shown.
    Weak,
    /// An entry probably answers the question.
    Strong,
}

impl Grade {
    /// The name in answers and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Weak => "weak",
            Self::Strong => "strong",
        }
    }
}

/// Coefficients of a logistic function.
struct Coefficients {
    constant: f64,
    score: f64,
    lead: f64,
    lag: f64,
}

const VECTORS: Coefficients = Coefficients { constant: -3.96, score: 3.54, lead: 9.55, lag: -9.0 };
const WORDS: Coefficients = Coefficients { constant: -2.83, score: 2.78, lead: 13.4, lag: -8.57 };

/// The probability of each candidate to answer the question, from the scores of all candidates in
/// descending order.
#[must_use]
pub fn probabilities(best_first: &[f64], set: SignalSet) -> Vec<f64> {
    let of = match set {
        SignalSet::Words => WORDS,
        SignalSet::Table | SignalSet::Transformer => VECTORS,
    };
    let first = best_first.first().copied().unwrap_or(0.0);
    let second = best_first.get(1).copied().unwrap_or(0.0);
    let one = |(at, score): (usize, &f64)| {
        let lead = if at == 0 { score - second } else { 0.0 };
        let sum = of.constant + of.score * score + of.lead * lead + of.lag * (first - score);
        1.0 / (1.0 + (-sum).exp())
    };
    best_first.iter().enumerate().map(one).collect()
}

/// The grade of an answer, from the score and the probability of its best candidate.
#[must_use]
pub fn grade(score: f64, probability: f64, entries: u64, set: SignalSet) -> Grade {
    let strong_min = match set {
        SignalSet::Words => STRONG_MIN_WORDS,
        SignalSet::Table | SignalSet::Transformer => STRONG_MIN,
    };
    if score.is_nan() || score < mention_min(entries, set) {
        Grade::Nothing
    } else if probability.is_nan() || probability < strong_min {
        Grade::Weak
    } else {
        Grade::Strong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_fall_with_the_scores() {
        let found = probabilities(&[1.0, 0.8, 0.7, 0.2], SignalSet::Transformer);
        assert!(found.windows(2).all(|two| two[0] > two[1]), "{found:?}");
        assert!(found.iter().all(|one| (0.0..=1.0).contains(one)));
        assert!(found[0] > 0.8 && found[3] < 0.01, "{found:?}");
        assert!(probabilities(&[], SignalSet::Words).is_empty());
    }

    #[test]
    fn a_lead_makes_the_first_candidate_more_probable() {
        let first = |scores: &[f64]| probabilities(scores, SignalSet::Transformer)[0];
        assert!(first(&[0.8, 0.5]) > first(&[0.8, 0.79]));
        assert!(first(&[0.8]) >= first(&[0.8, 0.1]), "a lone candidate has the greatest lead");
    }

    #[test]
    fn grades_follow_score_and_probability() {
        let of = |score, probability| grade(score, probability, 1_000, SignalSet::Transformer);
        assert_eq!(of(0.9, 0.7), Grade::Strong);
        assert_eq!(of(0.6, 0.1), Grade::Weak);
        assert_eq!(of(0.3, 0.7), Grade::Nothing, "far from every entry, however great the lead");
        assert_eq!(of(f64::NAN, 0.7), Grade::Nothing);
        assert_eq!(of(0.9, f64::NAN), Grade::Weak);
        assert!(Grade::Strong > Grade::Weak && Grade::Weak > Grade::Nothing);
    }

    #[test]
    fn a_larger_store_needs_a_higher_score() {
        let of = |entries| grade(0.55, 0.5, entries, SignalSet::Transformer);
        assert_eq!((of(100), of(100_000)), (Grade::Strong, Grade::Nothing));
    }
}
