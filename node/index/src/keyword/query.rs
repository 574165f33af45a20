//! A parsed question, and the BM25 score of a text. This module is pure.

use super::passage_score::Terms;
use super::query_word::{QueryWord, WordForm};
use super::word_order::WordOrder;
use crate::document::Document;
use crate::tokenizer::each_word;
use klnode_scoring::relevance::{BM25_K1, ceiling};
use std::collections::BTreeMap;

/// The BM25 parameter b, which discounts long texts.
const B: f64 = 0.75;
/// The number of times that a title counts.
pub(super) const TITLE_TIMES: usize = 2;

/// A parsed question with word weights.
#[derive(Clone, Debug)]
pub struct KeywordQuery {
    pub(super) words: Vec<QueryWord>,
    /// The average length of a text in words.
    pub(super) length_average: f64,
    /// Number of texts by insiders.
    pub(super) documents: u64,
    /// True if the index holds texts by outsiders.
    pub(super) has_outside: bool,
    /// The order of the words, for identifiers and phrases.
    pub(super) order: WordOrder,
}

impl KeywordQuery {
    /// The upper bound of the score of any text.
    pub fn ceiling(&self) -> f64 {
        ceiling(self.words.iter().map(|word| word.idf))
    }

    /// True if the question has no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Number of texts by insiders.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The share of the total word weight that lies in identifiers.
    pub fn names(&self) -> f64 {
        self.order.names()
    }

    /// The share of the question that an entry contains as a phrase.
    pub fn phrase_in(&self, title: &str, content: &str) -> f64 {
        self.order.phrase_in(title, content)
    }

    /// The words in the form used to score passages.
    pub fn terms(&self) -> Terms {
        Terms::new(&self.words)
    }

    /// The score of a form that occurs `occurrences` times in a text of this length.
    pub(super) fn part(
        &self,
        word: &QueryWord,
        form: &WordForm,
        occurrences: u32,
        length: u32,
    ) -> f64 {
        let occurrences = f64::from(occurrences);
        let norm = BM25_K1 * (1.0 - B + B * f64::from(length) / self.length_average.max(1.0));
        form.weight * word.idf * (BM25_K1 + 1.0) * occurrences / (occurrences + norm)
    }
}

/// Word counts of a text that the index has not processed.
#[derive(Clone, Debug, Default)]
pub struct TermCounts {
    /// True if an outsider wrote the text.
    pub(super) is_outside: bool,
    /// True if the index holds the entry already, in this or an older version: its frequencies
    /// count the entry, which must not count twice.
    pub is_indexed: bool,
    pub(super) length: u32,
    pub(super) occurrences: BTreeMap<String, u32>,
}

impl TermCounts {
    /// Counts the words of a document.
    pub fn new(document: &Document) -> Self {
        let mut counted = Self { is_outside: document.is_outside, ..Self::default() };
        for text in texts(document) {
            each_word(text, |word| {
                counted.length += 1;
                match counted.occurrences.get_mut(word) {
                    Some(count) => *count += 1,
                    None => drop(counted.occurrences.insert(word.to_owned(), 1)),
                }
            });
        }
        counted
    }

    /// The BM25 score of a question in this text.
    pub fn weigh(&self, question: &KeywordQuery) -> f64 {
        let of = |word: &QueryWord| {
            let parts = word.forms.iter().filter_map(|form| {
                let count = self.occurrences.get(&form.text)?;
                Some(question.part(word, form, *count, self.length))
            });
            parts.fold(0.0, f64::max)
        };
        question.words.iter().map(of).sum()
    }
}

/// The indexed parts of a document; the title is repeated according to its weight.
pub(super) fn texts(document: &Document) -> impl Iterator<Item = &str> {
    let titles = std::iter::repeat_n(document.title.as_str(), TITLE_TIMES);
    titles.chain([document.content.as_str(), document.labels.as_str()])
}

#[cfg(test)]
mod tests {
    use super::TermCounts;
    use crate::document::Document;
    use crate::keyword::Keyword;
    use crate::word_frequency::WordFrequencies;

    #[test]
    fn function_words_of_a_question_have_no_weight() {
        let folder = tempfile::tempdir().unwrap();
        let look = Keyword::create(folder.path()).unwrap().look();
        let tail = [
            TermCounts::new(&Document::plain(1, "How we do it: rotate the signing keys.")),
            TermCounts::new(&Document::plain(2, "Die Schlüssel ersetzt man jährlich.")),
        ];
        let ask = |text| look.question(text, &tail, &WordFrequencies::default()).unwrap();
        for (long, short) in [
            ("How do I rotate the keys?", "rotate keys"),
            ("Wann ersetzt man die Schlüssel?", "ersetzt Schlüssel"),
        ] {
            let (long, short) = (ask(long), ask(short));
            assert_eq!(long.ceiling(), short.ceiling());
            for text in &tail {
                assert_eq!(text.weigh(&long), text.weigh(&short));
            }
        }
        assert!(tail[0].weigh(&ask("how do we")) > 0.0, "a question of nothing else keeps them");
    }
}
