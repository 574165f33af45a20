//! How much of a query stands in a text word for word.
//!
//! BM25 does not see the order of words, so a message and a text about the same things look alike.
//! Here neighbouring words of the query are pairs, each telling as much as its two words; a text
//! holds a pair where the two stand next to each other in that order. Separate from relevance, which
//! only takes the share. Words are numbers here: what is a word, the caller knows.

use super::{PHRASE_EXPONENT, PHRASE_GAIN, Relevance};
use crate::unit::unit;
use std::collections::BTreeMap;

/// A word of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// How much it tells.
    pub idf: f64,
    /// What a match counts: less than 1 where another spelling stands for it.
    pub weight: f64,
}

/// The pairs of neighbouring words of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phrase {
    /// By the numbers of the two words: what the pair tells, and what of it a match counts.
    pairs: BTreeMap<(usize, usize), (f64, f64)>,
    tells: f64,
}

impl Phrase {
    /// The pairs of words in this order, as numbers of `terms`. A pair that comes again is the same.
    #[must_use]
    pub fn new(order: &[usize], terms: &[Term]) -> Self {
        let mut pairs = BTreeMap::new();
        for (first, second) in order.iter().zip(order.iter().skip(1)) {
            let Some((one, two)) = terms.get(*first).zip(terms.get(*second)) else { continue };
            let tells = one.idf + two.idf;
            pairs.insert((*first, *second), (tells, tells * one.weight.min(two.weight)));
        }
        let tells = pairs.values().map(|(tells, _)| tells).sum();
        Self { pairs, tells }
    }

    /// Whether there is nothing to hear: the query is one word, or none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Begins to listen to a text.
    #[must_use]
    pub fn listen(&self) -> Heard<'_> {
        Heard { phrase: self, last: None, pairs: BTreeMap::new() }
    }
}

/// What was heard of a phrase so far.
#[derive(Clone, Debug)]
pub struct Heard<'a> {
    phrase: &'a Phrase,
    last: Option<usize>,
    pairs: BTreeMap<(usize, usize), f64>,
}

impl Heard<'_> {
    /// Hears the next word of a text: its number in the query, or none if it is another.
    pub fn word(&mut self, word: Option<usize>) {
        if let Some(pair) = self.last.zip(word)
            && let Some((_, counts)) = self.phrase.pairs.get(&pair)
        {
            self.pairs.insert(pair, *counts);
        }
        self.last = word;
    }

    /// The share of the query's pairs that were heard, by what they tell, in [0, 1].
    #[must_use]
    pub fn share(&self) -> f64 {
        let heard: f64 = self.pairs.values().sum();
        if self.phrase.tells > 0.0 { unit(heard / self.phrase.tells) } else { 0.0 }
    }
}

impl Relevance {
    /// The relevance of a text that holds this share of the query's pairs.
    ///
    /// `1 − (1 − value) · (1 − 0.4 · share⁴)`: half of a sentence is found in many texts and says
    /// little, all of it in one.
    #[must_use]
    pub fn with_phrase(self, share: f64) -> Self {
        let phrase = unit(share);
        let gain = PHRASE_GAIN * phrase.powi(PHRASE_EXPONENT);
        Self { value: 1.0 - (1.0 - self.value) * (1.0 - gain), phrase, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Phrase, Term};
    use crate::relevance::Relevance;

    const TERMS: [Term; 4] = [
        Term { idf: 1.0, weight: 1.0 },
        Term { idf: 3.0, weight: 1.0 },
        Term { idf: 5.0, weight: 1.0 },
        Term { idf: 7.0, weight: 0.8 },
    ];

    fn share(order: &[usize], text: &[Option<usize>]) -> f64 {
        let phrase = Phrase::new(order, &TERMS);
        let mut heard = phrase.listen();
        text.iter().for_each(|word| heard.word(*word));
        heard.share()
    }

    #[test]
    fn a_phrase_is_heard_by_its_pairs() {
        type Case<'a> = (&'a [usize], &'a [Option<usize>], f64);
        let (a, b, c, d) = (Some(0), Some(1), Some(2), Some(3));
        // Pairs 0 1, 1 2 and 2 3 tell 4, 8 and 12.
        let cases: [Case<'_>; 11] = [
            (&[0, 1, 2, 3], &[], 0.0),
            (&[0, 1, 2, 3], &[a, b], 4.0 / 24.0),
            (&[0, 1, 2, 3], &[None, a, b, c, None], 12.0 / 24.0),
            (&[0, 1, 2, 3], &[a, b, c, d], (12.0 + 12.0 * 0.8) / 24.0),
            (&[0, 1, 2, 3], &[a, b, a, b], 4.0 / 24.0),
            (&[0, 1, 2, 3], &[d, c, b, a], 0.0),
            (&[0, 1, 2, 3], &[a, None, b], 0.0),
            (&[0, 1, 0, 1], &[a, b], 4.0 / 8.0),
            (&[0], &[a], 0.0),
            (&[], &[a, b], 0.0),
            (&[0, 9], &[a, b], 0.0),
        ];
        for (order, text, expect) in cases {
            let given = share(order, text);
            assert!((given - expect).abs() < 1e-9, "{order:?} in {text:?}: {given}");
        }
        assert!(Phrase::new(&[2], &TERMS).is_empty());
        assert!(!Phrase::new(&[2, 2], &TERMS).is_empty());
    }

    #[test]
    fn a_whole_phrase_counts_and_half_of_it_hardly() {
        let before = Relevance { value: 0.5, meaning: 0.2, coverage: 0.4, names: 0.0, phrase: 0.0 };
        for (share, expect) in [
            (0.0, 0.5),
            (0.5, 0.5125),
            (0.8, 0.581_92),
            (1.0, 0.7),
            (3.0, 0.7),
            (-1.0, 0.5),
            (f64::NAN, 0.5),
        ] {
            let given = before.with_phrase(share);
            assert!((given.value - expect).abs() < 1e-9, "{share}: {given:?}");
            assert!((0.0..=1.0).contains(&given.phrase), "{share}: {given:?}");
        }
    }
}
