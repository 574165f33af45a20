//! What the order of a question's words says: which are names of code, and which stand together.
//!
//! Separate from [`Question`](super::Question), whose words are a set. Nothing here looks anything
//! up: how much a word tells is known by then.

use super::question::Word;
use crate::index::words::{each_name, each_word, is_spaced};
use klnode_scoring::relevance::{Phrase, Term};
use std::collections::HashMap;

/// So much of a content is looked at for a phrase: what an entry is about it says first.
const CONTENT_BYTES_MAX: usize = 2_048;

/// The order of a question's words.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The share of what the words tell that stands in names, in [0, 1].
    names: f64,
    phrase: Phrase,
    /// The number of the word that each form stands for.
    numbers: HashMap<String, usize>,
}

impl Order {
    /// Of a question with these words, which `spelt` gives in order, as they were typed.
    pub(super) fn of(text: &str, spelt: &[String], words: &[Word]) -> Self {
        let (mut order, mut in_names, mut in_all) = (Vec::new(), 0.0, 0.0);
        each_name(text, |name| {
            let (mut tells, mut count) = (0.0, 0);
            each_word(name, |word| {
                let Ok(number) = spelt.binary_search_by(|other| other.as_str().cmp(word)) else {
                    return;
                };
                order.push(number);
                tells += words[number].idf;
                count += 1;
            });
            in_all += tells;
            // `max_retries` is a whole and its parts; letters without spaces are pairs of letters.
            if count > 1 && is_spaced(name) {
                in_names += tells;
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
        let terms: Vec<Term> =
            words.iter().map(|word| Term { idf: word.idf, weight: word.weight() }).collect();
        let mut numbers = HashMap::new();
        for (number, word) in words.iter().enumerate() {
            for form in &word.forms {
                numbers.entry(form.text.clone()).or_insert(number);
            }
        }
        Self { names, phrase: Phrase::new(&order, &terms), numbers }
    }

    /// The share of what the words tell that stands in names of code. A lone word is one.
    pub(super) fn names(&self) -> f64 {
        self.names
    }

    /// The share of the question that stands in an entry word for word.
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
    use crate::index::keyword::question::Form;
    use crate::index::words::words;
    use std::collections::BTreeSet;

    /// Every word tells the same; none is known but by itself.
    fn order(text: &str) -> Order {
        let spelt: BTreeSet<String> = words(text).into_iter().collect();
        let spelt: Vec<String> = spelt.into_iter().collect();
        let word = |form: &String| Word::new(1_000, 1, 0.0, vec![Form::whole(form.clone(), true)]);
        let words: Vec<Word> = spelt.iter().map(word).collect();
        Order::of(text, &spelt, &words)
    }

    #[test]
    fn names_are_what_is_cut_into_a_whole_and_its_parts() {
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
    fn a_message_is_heard_where_it_stands_word_for_word() {
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
    fn only_the_beginning_of_a_long_content_is_heard() {
        let order = order("never be closed");
        let long = "ß ".repeat(CONTENT_BYTES_MAX / 3);
        for (before, expect) in [("", 1.0), ("ß", 1.0), (long.as_str(), 0.0)] {
            assert_eq!(order.phrase_in("", &format!("{before} never be closed")), expect);
        }
        assert_eq!(order.phrase_in("", &"ß".repeat(CONTENT_BYTES_MAX)), 0.0);
    }
}
