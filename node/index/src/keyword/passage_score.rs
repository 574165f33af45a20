//! Scores how well a passage matches the words of a question.
//!
//! It uses the words and idf values of the keyword index, and BM25 with the length of a passage
//! instead of an entry. It is separate from [`KeywordQuery`](super::KeywordQuery), which scores
//! whole entries.

use super::query_word::QueryWord;
use crate::tokenizer::each_word;
use klnode_scoring::relevance::BM25_K1;
use std::collections::{BTreeMap, HashMap};

/// The average length of a passage in words.
const LENGTH_AVERAGE: f64 = 20.0;
/// The BM25 parameter b for passages.
const LENGTH_DISCOUNT: f64 = 0.5;
/// The share of a word's weight if it occurs only in the heading.
const HEADING_SHARE: f64 = 0.5;

/// The forms of a question's words, each with the index of the word and its weight.
#[derive(Clone, Debug, Default)]
pub struct Terms(HashMap<String, (usize, f64)>);

impl Terms {
    pub(super) fn new(words: &[QueryWord]) -> Self {
        let mut terms = HashMap::new();
        for (number, word) in words.iter().enumerate() {
            for form in &word.forms {
                terms.entry(form.text.clone()).or_insert((number, word.idf * form.weight));
            }
        }
        Self(terms)
    }

    /// The score of a passage below a heading; 0 if neither contains a word of the question.
    pub fn score(&self, heading: &str, passage: &str) -> f64 {
        // Sum in the order of the words, so that equal passages get equal scores.
        let (mut found, mut length) = (BTreeMap::<usize, (f64, f64)>::new(), 0.0);
        each_word(passage, |word| {
            length += 1.0;
            if let Some((number, weight)) = self.0.get(word) {
                found.entry(*number).or_insert((*weight, 0.0)).1 += 1.0;
            }
        });
        let norm = 1.0 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * length / LENGTH_AVERAGE;
        let part = |(weight, count): &(f64, f64)| {
            weight * (BM25_K1 + 1.0) * count / (count + BM25_K1 * norm)
        };
        let mut score: f64 = found.values().map(part).sum();
        each_word(heading, |word| {
            if let Some((number, weight)) = self.0.get(word)
                && !found.contains_key(number)
            {
                found.insert(*number, (*weight, 0.0));
                score += HEADING_SHARE * weight;
            }
        });
        score
    }
}

#[cfg(test)]
mod tests {
    use super::Terms;
    use crate::keyword::query_word::{QueryWord, WordForm};

    #[test]
    fn rare_words_weigh_more_and_heading_words_half() {
        let word = |text: &str, holding| {
            QueryWord::new(10_000, holding, 0.0, vec![WordForm::whole(text.into(), true)])
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
        assert!(of("", &long) < of("", "The timeout."), "a shorter passage scores higher");
    }
}
