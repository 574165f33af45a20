//! Demotion of an entry for questions to which it was a weak answer.
//!
//! An entry that was ranked first but hardly matched gets evidence against it for similar
//! questions, and for no others. A question is stored as a sketch: hashes of its significant words,
//! few enough to be stored with the entry. Separate from `status`: a weak answer changes a rank and
//! nothing else, so it never makes an entry stale or archives it.

use klnode_crdt::time::Day;

/// Maximum number of hashes in a sketch. Most questions have fewer significant words.
pub const SKETCH_TERMS_MAX: usize = 12;
/// Fraction of common words from which two questions are similar.
pub const SIMILARITY_MIN: f64 = 0.5;
/// Amount that one weak answer to the same question subtracts from the ranking score.
pub const DEMOTION_STEP: f64 = 0.03;
/// Upper bound of the amount that all weak answers together subtract.
pub const DEMOTION_MAX: f64 = 0.09;
/// Age in days after which a weak answer is ignored: the store has changed since.
pub const AGE_DAYS_MAX: u32 = 90;

/// Significant words of a question, as the smallest of their hashes, in ascending order. Unused
/// slots at the end are 0, which is not a valid hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QuerySketch([u32; SKETCH_TERMS_MAX]);

impl QuerySketch {
    /// Sketch of a question whose words have these hashes, in any order.
    #[must_use]
    pub fn new(hashes: impl IntoIterator<Item = u32>) -> QuerySketch {
        let mut sorted: Vec<u32> = hashes.into_iter().filter(|hash| *hash != 0).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut sketch = QuerySketch::default();
        for (place, hash) in sketch.0.iter_mut().zip(sorted) {
            *place = hash;
        }
        sketch
    }

    /// The hashes, without unused slots.
    #[must_use]
    pub fn hashes(&self) -> &[u32] {
        let end = self.0.iter().position(|hash| *hash == 0).unwrap_or(SKETCH_TERMS_MAX);
        &self.0[..end]
    }

    /// Jaccard index of the words of two questions, in [0, 1]: exact for short questions, an
    /// estimate for those with more words than a sketch holds. 0 if either has no words.
    #[must_use]
    pub fn similarity(&self, other: &QuerySketch) -> f64 {
        let (one, two) = (self.hashes(), other.hashes());
        if one.is_empty() || two.is_empty() {
            return 0.0;
        }
        let both = QuerySketch::new(one.iter().chain(two).copied());
        let common = both.hashes().iter().filter(|hash| one.contains(hash) && two.contains(hash));
        common.count() as f64 / both.hashes().len() as f64
    }
}

/// An answer in which the entry was ranked first but hardly matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakAnswer {
    /// Day of the answer.
    pub day: Day,
    /// Sketch of the question.
    pub question: QuerySketch,
}

/// Amount subtracted from the ranking score of an entry with these weak answers, for an answer to
/// `question`, in [0, [`DEMOTION_MAX`]].
#[must_use]
pub fn demotion(
    question: &QuerySketch,
    answers: impl IntoIterator<Item = WeakAnswer>,
    today: Day,
) -> f64 {
    let recent = answers.into_iter().filter(|of| today.days_since(of.day) <= AGE_DAYS_MAX);
    let similar = recent
        .map(|of| of.question.similarity(question))
        .filter(|similarity| *similarity >= SIMILARITY_MIN);
    let sum: f64 = similar.map(|similarity| DEMOTION_STEP * similarity).sum();
    sum.min(DEMOTION_MAX)
}

#[cfg(test)]
mod tests {
    use super::{AGE_DAYS_MAX, DEMOTION_MAX, QuerySketch, WeakAnswer, demotion};
    use klnode_crdt::time::Day;
    use quickcheck::QuickCheck;

    const TODAY: Day = Day(1_000);

    fn weak(hashes: &[u32], days_ago: u32) -> WeakAnswer {
        let question = QuerySketch::new(hashes.iter().copied());
        WeakAnswer { day: Day(TODAY.0 - days_ago), question }
    }

    #[test]
    fn a_sketch_is_deduplicated_and_bounded() {
        assert_eq!(QuerySketch::new([3, 0, 1, 3, 2]).hashes(), [1, 2, 3]);
        assert!(QuerySketch::new([]).hashes().is_empty());
        assert_eq!(QuerySketch::new(1..100).hashes(), (1..=12).collect::<Vec<u32>>());
    }

    #[test]
    fn similarity_is_the_fraction_of_common_words() {
        for (one, two, expect) in [
            (&[1, 2][..], &[1, 2][..], 1.0),
            (&[1, 2, 3], &[1, 2], 2.0 / 3.0),
            (&[1, 2], &[2, 3], 1.0 / 3.0),
            (&[1], &[2], 0.0),
            (&[], &[], 0.0),
            (&[], &[1], 0.0),
        ] {
            let [one, two] = [one, two].map(|of| QuerySketch::new(of.iter().copied()));
            assert!((one.similarity(&two) - expect).abs() < 1e-9, "{one:?} {two:?}");
        }
    }

    #[test]
    fn only_recent_weak_answers_to_similar_questions_lower_an_entry() {
        let question = QuerySketch::new([1, 2, 3, 4]);
        let of = |answers: &[WeakAnswer]| demotion(&question, answers.iter().copied(), TODAY);
        assert_eq!(of(&[]), 0.0);
        assert!((of(&[weak(&[1, 2, 3, 4], 0)]) - 0.03).abs() < 1e-9);
        assert!((of(&[weak(&[1, 2], 0)]) - 0.015).abs() < 1e-9, "half of the words");
        assert_eq!(of(&[weak(&[1, 9], 0)]), 0.0, "another question");
        assert!(of(&[weak(&[1, 2, 3, 4], AGE_DAYS_MAX)]) > 0.0);
        assert_eq!(of(&[weak(&[1, 2, 3, 4], AGE_DAYS_MAX + 1)]), 0.0);
        assert_eq!(of(&[weak(&[1, 2, 3, 4], 0); 24]), DEMOTION_MAX);
    }

    #[test]
    fn similarity_is_symmetric_and_1_for_the_same_question() {
        fn holds(one: Vec<u8>, two: Vec<u8>) -> bool {
            let [one, two] = [one, two].map(|of| QuerySketch::new(of.into_iter().map(u32::from)));
            let (there, back) = (one.similarity(&two), two.similarity(&one));
            let own = if one.hashes().is_empty() { 0.0 } else { 1.0 };
            there == back && (0.0..=1.0).contains(&there) && one.similarity(&one) == own
        }
        QuickCheck::new().tests(1_000).quickcheck(holds as fn(Vec<u8>, Vec<u8>) -> bool);
    }
}
