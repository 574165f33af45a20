//! How far evidence of weak answers lowers an entry for a question.
//!
//! An entry that came first and hardly matched is evidence against it for questions like that one, and
//! for no others. A question is kept as a sketch: hashes of its telling words, few enough to be stored
//! with the entry. Separate from `status`: a weak answer changes a rank and nothing else, so it never
//! makes an entry stale or archives it.

use klnode_crdt::time::Day;

/// Hashes in a sketch. Most questions have fewer telling words.
pub const SKETCH_TERMS_MAX: usize = 12;
/// Two questions are similar from this share of common words on.
pub const SIMILARITY_MIN: f64 = 0.5;
/// One weak answer to the same question takes this from the score that orders an answer.
pub const DEMOTION_STEP: f64 = 0.03;
/// All weak answers together take at most this.
pub const DEMOTION_MAX: f64 = 0.09;
/// A weak answer that is older says nothing any more: the store has changed since.
pub const AGE_DAYS_MAX: u32 = 90;

/// The telling words of a question, as the smallest hashes among them, in ascending order. Unused
/// places at the end are 0, which is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sketch([u32; SKETCH_TERMS_MAX]);

impl Sketch {
    /// The sketch of a question whose words have these hashes, in any order.
    #[must_use]
    pub fn new(hashes: impl IntoIterator<Item = u32>) -> Sketch {
        let mut sorted: Vec<u32> = hashes.into_iter().filter(|hash| *hash != 0).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut sketch = Sketch::default();
        for (place, hash) in sketch.0.iter_mut().zip(sorted) {
            *place = hash;
        }
        sketch
    }

    /// Its hashes.
    #[must_use]
    pub fn hashes(&self) -> &[u32] {
        let end = self.0.iter().position(|hash| *hash == 0).unwrap_or(SKETCH_TERMS_MAX);
        &self.0[..end]
    }

    /// The share of the words of both questions that both have, in [0, 1]: exact for short questions,
    /// an estimate for those with more words than a sketch holds. 0 where either has no words.
    #[must_use]
    pub fn similarity(&self, other: &Sketch) -> f64 {
        let (one, two) = (self.hashes(), other.hashes());
        if one.is_empty() || two.is_empty() {
            return 0.0;
        }
        let both = Sketch::new(one.iter().chain(two).copied());
        let common = both.hashes().iter().filter(|hash| one.contains(hash) && two.contains(hash));
        common.count() as f64 / both.hashes().len() as f64
    }
}

/// An answer in which the entry came first and hardly matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakAnswer {
    /// On which day.
    pub day: Day,
    /// To which question.
    pub question: Sketch,
}

/// What an entry with these weak answers loses in the order of an answer to `question`, in
/// [0, [`DEMOTION_MAX`]].
#[must_use]
pub fn demotion(
    question: &Sketch,
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
    use super::{AGE_DAYS_MAX, DEMOTION_MAX, Sketch, WeakAnswer, demotion};
    use klnode_crdt::time::Day;
    use quickcheck::QuickCheck;

    const TODAY: Day = Day(1_000);

    fn weak(hashes: &[u32], days_ago: u32) -> WeakAnswer {
        let question = Sketch::new(hashes.iter().copied());
        WeakAnswer { day: Day(TODAY.0 - days_ago), question }
    }

    #[test]
    fn a_sketch_holds_each_word_once_and_only_so_many() {
        assert_eq!(Sketch::new([3, 0, 1, 3, 2]).hashes(), [1, 2, 3]);
        assert!(Sketch::new([]).hashes().is_empty());
        assert_eq!(Sketch::new(1..100).hashes(), (1..=12).collect::<Vec<u32>>());
    }

    #[test]
    fn similarity_is_the_share_of_common_words() {
        for (one, two, expect) in [
            (&[1, 2][..], &[1, 2][..], 1.0),
            (&[1, 2, 3], &[1, 2], 2.0 / 3.0),
            (&[1, 2], &[2, 3], 1.0 / 3.0),
            (&[1], &[2], 0.0),
            (&[], &[], 0.0),
            (&[], &[1], 0.0),
        ] {
            let [one, two] = [one, two].map(|of| Sketch::new(of.iter().copied()));
            assert!((one.similarity(&two) - expect).abs() < 1e-9, "{one:?} {two:?}");
        }
    }

    #[test]
    fn only_recent_weak_answers_to_similar_questions_lower_an_entry() {
        let question = Sketch::new([1, 2, 3, 4]);
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
    fn similarity_is_symmetric_and_full_for_the_same_question() {
        fn holds(one: Vec<u8>, two: Vec<u8>) -> bool {
            let [one, two] = [one, two].map(|of| Sketch::new(of.into_iter().map(u32::from)));
            let (there, back) = (one.similarity(&two), two.similarity(&one));
            let own = if one.hashes().is_empty() { 0.0 } else { 1.0 };
            there == back && (0.0..=1.0).contains(&there) && one.similarity(&one) == own
        }
        QuickCheck::new().tests(1_000).quickcheck(holds as fn(Vec<u8>, Vec<u8>) -> bool);
    }
}
