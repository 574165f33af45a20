//! The word order of a question: identifiers in it, and words that stand together.
//!
//! It is separate from [`KeywordQuery`](super::KeywordQuery), whose words are an unordered set. This
//! module looks up nothing: the word weights are known already.

use super::query_word::QueryWord;
use crate::tokenizer::{each_name, each_word, is_spaced};
use klnode_scoring::relevance::{Phrase, PhraseTerm};
use std::collections::HashMap;

/// Bytes of an entry's content that are searched for a phrase; an entry states its subject first.
const CONTENT_BYTES_MAX: usize = 2_048;

/// The order of a question's words.
#[derive(Clone, Debug, Default)]
pub(super) struct WordOrder {
    /// The share of the total word weight that lies in identifiers, in [0, 1].
    names: f64,
    phrase: Phrase,
    /// The index of the word for each form.
    numbers: HashMap<String, usize>,
}

impl WordOrder {
    /// The order of a question. `spelt` has its distinct words, sorted, parallel to `words`.
    pub(super) fn of(text: &str, spelt: &[String], words: &[QueryWord]) -> Self {
        let (mut order, mut in_names, mut in_all) = (Vec::new(), 0.0, 0.0);
        each_name(text, |name| {
            let (mut name_weight, mut count) = (0.0, 0);
            each_word(name, |word| {
                let Ok(number) = spelt.binary_search_by(|other| other.as_str().cmp(word)) else {
                    return;
                };
                order.push(number);
                name_weight += words[number].idf;
                count += 1;
            });
            in_all += name_weight;
            // `max_retries` gives the whole and its parts; a text without spaces gives pairs of
            // letters.
            if count > 1 && is_spaced(name) {
                in_names += name_weight;
            }
        });
        let is_lone = text.split_whitespace().count() == 1 && is_spaced(text);
        let names = if is_lone {
            1.0
        } else if in_all > 0.0 {
            in_names / in_all
        } else {
            0.0
        };
        let terms: Vec<PhraseTerm> =
            words.iter().map(|word| PhraseTerm { idf: word.idf, weight: word.weight() }).collect();
        let mut numbers = HashMap::new();
        for (number, word) in words.iter().enumerate() {
            for form in &word.forms {
                numbers.entry(form.text.clone()).or_insert(number);
            }
        }
        Self { names, phrase: Phrase::new(&order, &terms), numbers }
    }

    /// The share of the total word weight that lies in identifiers. A lone word counts as one.
    pub(super) fn names(&self) -> f64 {
        self.names
    }

    /// The share of the question that an entry contains as a phrase.
    pub(super) fn phrase_in(&self, title: &str, content: &str) -> f64 {
        if self.phrase.is_empty() {
            return 0.0;
        }
        let content = &content[..content.floor_char_boundary(CONTENT_BYTES_MAX)];
        let mut heard = self.phrase.listen();
        for text in [title, content] {
            each_word(text, |word| heard.word(self.numbers.get(word).copied()));
            heard.word(None);
        }
        heard.share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::query_word::WordForm;
    use crate::tokenizer::words;
    use std::collections::BTreeSet;

    /// All words have the same weight and no neighbours.
    fn order(text: &str) -> WordOrder {
        let spelt: BTreeSet<String> = words(text).into_iter().collect();
        let spelt: Vec<String> = spelt.into_iter().collect();
        let word = |form: &String| {
            QueryWord::new(1_000, 1, 0.0, vec![WordForm::whole(form.clone(), true)])
        };
        let words: Vec<QueryWord> = spelt.iter().map(word).collect();
        WordOrder::of(text, &spelt, &words)
    }

    #[test]
    fn identifiers_are_recognised_in_a_question() {
        for (text, expect) in [
            ("", 0.0),
            ("wait for the lock", 0.0),
            ("max_retries", 1.0),
            ("src/api/mod.rs:42", 1.0),
            ("reunite", 1.0),
            ("ValueError: out of range", 3.0 / 6.0),
            ("don't wait", 0.0),
            ("接続が切れた", 0.0),
            ("接続が切れた x", 0.0),
        ] {
            let given = order(text).names();
            assert!((given - expect).abs() < 1e-9, "{text}: {given}");
        }
    }

    #[test]
    fn a_phrase_is_found_word_for_word() {
        let order = order("panic: token channel should never be closed");
        for (title, content, expect) in [
            ("", "", 0.0),
            ("drag", "Fails with: panic: token channel should never be closed. More.", 1.0),
            ("Panic: tokens channel should", "never be closing", 5.0 / 6.0),
            ("", "closed be never should channel token panic", 0.0),
            ("the channel of a token", "is never closed", 0.0),
        ] {
            let given = order.phrase_in(title, content);
            assert!((given - expect).abs() < 1e-9, "{title} / {content}: {given}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_content_is_searched() {
        let order = order("never be closed");
        let long = "ß ".repeat(CONTENT_BYTES_MAX / 3);
        for (before, expect) in [("", 1.0), ("ß", 1.0), (long.as_str(), 0.0)] {
            assert_eq!(order.phrase_in("", &format!("{before} never be closed")), expect);
        }
        assert_eq!(order.phrase_in("", &"ß".repeat(CONTENT_BYTES_MAX)), 0.0);
    }
}
