//! Measures how much of a query a text contains verbatim.
//!
//! BM25 ignores the order of words, so a quoted message and a text about the same topic score
//! alike. Here each pair of neighbouring query words counts with the sum of their idfs; a text
//! contains a pair if the two words are next to each other in that order. Separate from relevance,
//! which only uses the fraction. Words are indices here: the caller tokenises the text.

use super::fusion::SignalSet;
use super::{PHRASE_EXPONENT, PHRASE_GAIN, Relevance};
use crate::clamp_to_unit::unit;
use std::collections::BTreeMap;

/// A distinct word of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhraseTerm {
    /// Inverse document frequency of the word.
    pub idf: f64,
    /// Weight of a match; less than 1 for another spelling of the word.
    pub weight: f64,
}

/// Pairs of neighbouring words of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phrase {
    /// By the indices of the two words: the idf of the pair, and the part of it that a match
    /// counts.
    pairs: BTreeMap<(usize, usize), (f64, f64)>,
    tells: f64,
}

impl Phrase {
    /// Builds the pairs from the word order, given as indices into `terms`. Repeated pairs count
    /// once.
    #[must_use]
    pub fn new(order: &[usize], terms: &[PhraseTerm]) -> Self {
        let mut pairs = BTreeMap::new();
        for (first, second) in order.iter().zip(order.iter().skip(1)) {
            let Some((one, two)) = terms.get(*first).zip(terms.get(*second)) else { continue };
            let tells = one.idf + two.idf;
            pairs.insert((*first, *second), (tells, tells * one.weight.min(two.weight)));
        }
        let tells = pairs.values().map(|(tells, _)| tells).sum();
        Self { pairs, tells }
    }

    /// Whether there are no pairs: the query has at most one word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Starts matching a text.
    #[must_use]
    pub fn listen(&self) -> PhraseMatcher<'_> {
        PhraseMatcher { phrase: self, last: None, pairs: BTreeMap::new() }
    }
}

/// Matching state for one text.
#[derive(Clone, Debug)]
pub struct PhraseMatcher<'a> {
    phrase: &'a Phrase,
    last: Option<usize>,
    pairs: BTreeMap<(usize, usize), f64>,
}

impl PhraseMatcher<'_> {
    /// Feeds the next word of the text: its index in the query, or `None` for any other word.
    pub fn word(&mut self, word: Option<usize>) {
        if let Some(pair) = self.last.zip(word)
            && let Some((_, counts)) = self.phrase.pairs.get(&pair)
        {
            self.pairs.insert(pair, *counts);
        }
        self.last = word;
    }

    /// Fraction of the query's pairs found in the text, weighted by idf, in [0, 1].
    #[must_use]
    pub fn share(&self) -> f64 {
        let heard: f64 = self.pairs.values().sum();
        if self.phrase.tells > 0.0 { unit(heard / self.phrase.tells) } else { 0.0 }
    }
}

impl Relevance {
    /// Raises the relevance of a text that contains this fraction of the query's pairs.
    ///
    /// `1 − (1 − value) · (1 − 0.4 · share⁴)`: many texts contain half of a sentence, so it says
    /// little; few contain all of it.
    #[must_use]
    pub fn with_phrase(self, share: f64, set: SignalSet) -> Self {
        let phrase = unit(share);
        let gain = PHRASE_GAIN * phrase.powi(PHRASE_EXPONENT);
        let fill = |of: f64, most: f64| most - (most - of) * (1.0 - gain);
        let (value, score) = (fill(self.value, 1.0), fill(self.score, set.score_max()));
        Self { value, score, phrase, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Phrase, PhraseTerm};
    use crate::relevance::Relevance;
    use crate::relevance::fusion::SignalSet;

    const TERMS: [PhraseTerm; 4] = [
        PhraseTerm { idf: 1.0, weight: 1.0 },
        PhraseTerm { idf: 3.0, weight: 1.0 },
        PhraseTerm { idf: 5.0, weight: 1.0 },
        PhraseTerm { idf: 7.0, weight: 0.8 },
    ];

    fn share(order: &[usize], text: &[Option<usize>]) -> f64 {
        let phrase = Phrase::new(order, &TERMS);
        let mut heard = phrase.listen();
        text.iter().for_each(|word| heard.word(*word));
        heard.share()
    }

    #[test]
    fn a_phrase_is_matched_by_its_word_pairs() {
        type Case<'a> = (&'a [usize], &'a [Option<usize>], f64);
        let (a, b, c, d) = (Some(0), Some(1), Some(2), Some(3));
        // The pairs 0 1, 1 2 and 2 3 have weights 4, 8 and 12.
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
    fn a_whole_phrase_raises_relevance_and_half_of_it_hardly() {
        let before = Relevance {
            value: 0.5,
            score: 0.6,
            meaning: 0.2,
            transformer: None,
            coverage: 0.4,
            names: 0.0,
            phrase: 0.0,
        };
        for (share, expect) in [
            (0.0, 0.5),
            (0.5, 0.5125),
            (0.8, 0.581_92),
            (1.0, 0.7),
            (3.0, 0.7),
            (-1.0, 0.5),
            (f64::NAN, 0.5),
        ] {
            let given = before.with_phrase(share, SignalSet::Table);
            assert!((given.value - expect).abs() < 1e-9, "{share}: {given:?}");
            assert!((0.0..=1.0).contains(&given.phrase), "{share}: {given:?}");
        }
    }
}
