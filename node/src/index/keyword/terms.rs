//! How well a passage answers a question, by the words that it holds.
//!
//! The same words and the same idf as the keyword index, by BM25 with the length of a passage in place
//! of that of an entry. Separate from [`Question`](super::Question), which weighs whole entries.

use super::question::Word;
use crate::index::words::each_word;
use klnode_scoring::relevance::BM25_K1;
use std::collections::{BTreeMap, HashMap};

/// A passage of so many words is neither long nor short.
const LENGTH_AVERAGE: f64 = 20.0;
/// How much longer passages are discounted.
const LENGTH_DISCOUNT: f64 = 0.5;
/// A word that stands in the heading alone counts so much.
const HEADING_SHARE: f64 = 0.5;

/// The words of a question by their forms, each with the number of the word and what it tells.
#[derive(Clone, Debug, Default)]
pub struct Terms(HashMap<String, (usize, f64)>);

impl Terms {
    pub(super) fn new(words: &[Word]) -> Self {
        let mut terms = HashMap::new();
        for (number, word) in words.iter().enumerate() {
            for form in &word.forms {
                terms.entry(form.text.clone()).or_insert((number, word.idf * form.weight));
            }
        }
        Self(terms)
    }

    /// How well a passage below a heading answers; 0 if it holds no word of the question.
    pub fn score(&self, heading: &str, passage: &str) -> f64 {
        // Sums in the order of the words: equal passages have equal scores.
        let (mut found, mut length) = (BTreeMap::<usize, (f64, f64)>::new(), 0.0);
        each_word(passage, |word| {
            length += 1.0;
            if let Some((number, tells)) = self.0.get(word) {
                found.entry(*number).or_insert((*tells, 0.0)).1 += 1.0;
            }
        });
        let norm = 1.0 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * length / LENGTH_AVERAGE;
        let part = |(tells, count): &(f64, f64)| {
            tells * (BM25_K1 + 1.0) * count / (count + BM25_K1 * norm)
        };
        let mut score: f64 = found.values().map(part).sum();
        each_word(heading, |word| {
            if let Some((number, tells)) = self.0.get(word)
                && !found.contains_key(number)
            {
                found.insert(*number, (*tells, 0.0));
                score += HEADING_SHARE * tells;
            }
        });
        score
    }
}

#[cfg(test)]
mod tests {
    use super::Terms;
    use crate::index::keyword::question::{Form, Word};

    #[test]
    fn rare_words_tell_more_and_the_heading_half() {
        let word = |text: &str, holding| {
            Word::new(10_000, holding, 0.0, vec![Form::whole(text.into(), true)])
        };
        let terms = Terms::new(&[word("pool", 5_000), word("timeout", 10)]);
        let of = |heading, passage| terms.score(heading, passage);
        assert_eq!(of("", "Nothing of it."), 0.0);
        assert!(of("", "The timeout is short.") > of("", "The pool is short."));
        assert!(of("", "The pool timeout.") > of("", "The timeout is short."));
        assert!(of("# Timeout", "It is short.") > 0.0);
        assert!(of("# Timeout", "It is short.") < of("", "The timeout is short."));
        assert_eq!(of("# Timeout", "The timeout."), of("", "The timeout."), "counted once");
        let long = format!("The timeout. {}", "And so on and so forth. ".repeat(10));
        assert!(of("", &long) < of("", "The timeout."), "a shorter passage says it better");
    }
}
