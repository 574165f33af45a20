//! The words of a question, how telling each is, and what they weigh in a text.
//!
//! Pure: counts come in, weights go out, by BM25. What is known of common words before the store
//! knows them speaks as loudly as some hundred entries, so that "the" does not count like a name in
//! a store of three.

use super::order::Order;
use super::terms::Terms;
use crate::index::document::Document;
use crate::index::spelling::NEIGHBOUR_WEIGHT;
use crate::index::words::each_word;
use klnode_scoring::relevance::{BM25_K1, PRIOR_DOCUMENTS, ceiling, idf, prior_holding};
use std::collections::BTreeMap;

/// BM25's correction for long texts.
const B: f64 = 0.75;
/// The title counts so often.
pub(super) const TITLE_TIMES: usize = 2;

/// A word of a question.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// How telling it is.
    pub(super) idf: f64,
    /// What it is looked up as: itself, or its neighbours where nothing holds it.
    pub(super) forms: Vec<Form>,
}

/// What a word is looked up as.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) text: String,
    /// What a match counts.
    pub(super) weight: f64,
    /// Whether anything holds it but what stands outside.
    pub(super) is_inside: bool,
}

/// A question in words.
#[derive(Clone, Debug)]
pub struct Question {
    pub(super) words: Vec<Word>,
    /// The average length of a text, in words.
    pub(super) length_average: f64,
    /// How many texts there are, without those from outside.
    pub(super) documents: u64,
    /// Whether the index holds any from outside.
    pub(super) has_outside: bool,
    /// What the order of the words says.
    pub(super) order: Order,
}

impl Question {
    /// What a text would score that held every word without end.
    pub fn ceiling(&self) -> f64 {
        ceiling(self.words.iter().map(|word| word.idf))
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many texts are looked through, without those from outside.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The share of what its words tell that stands in names of code.
    pub fn names(&self) -> f64 {
        self.order.names()
    }

    /// The share of it that stands in an entry word for word.
    pub fn phrase_in(&self, title: &str, content: &str) -> f64 {
        self.order.phrase_in(title, content)
    }

    /// Its words, to score passages by.
    pub fn terms(&self) -> Terms {
        Terms::new(&self.words)
    }

    /// What a form that occurs so often in a text of that length weighs.
    pub(super) fn part(&self, word: &Word, form: &Form, occurrences: u32, length: u32) -> f64 {
        let occurrences = f64::from(occurrences);
        let norm = BM25_K1 * (1.0 - B + B * f64::from(length) / self.length_average.max(1.0));
        form.weight * word.idf * (BM25_K1 + 1.0) * occurrences / (occurrences + norm)
    }
}

impl Word {
    /// A word that so many texts hold, of which this share of all texts about software does.
    pub(super) fn new(documents: u64, holding: u64, share: f64, forms: Vec<Form>) -> Self {
        let idf = idf(documents + PRIOR_DOCUMENTS, holding + prior_holding(share));
        Self { idf, forms }
    }

    /// What a match of it counts, by the form that counts most of those inside.
    pub(super) fn weight(&self) -> f64 {
        let inside = self.forms.iter().filter(|form| form.is_inside);
        inside.map(|form| form.weight).fold(NEIGHBOUR_WEIGHT, f64::max)
    }

    /// How much it tells by the form that counts most of those that may match; nothing without one.
    pub(super) fn tells(&self, may_match: &dyn Fn(&Form) -> bool) -> f64 {
        let forms = self.forms.iter().filter(|form| may_match(form));
        self.idf * forms.map(|form| form.weight).fold(0.0, f64::max)
    }
}

impl Form {
    /// The word itself.
    pub(super) fn whole(text: String, is_inside: bool) -> Self {
        Self { text, weight: 1.0, is_inside }
    }

    /// A word that is one slip away.
    pub(super) fn neighbour(text: String) -> Self {
        Self { text, weight: NEIGHBOUR_WEIGHT, is_inside: true }
    }
}

/// A text that the index has not yet taken in, counted.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Whether somebody outside wrote it.
    pub(super) is_outside: bool,
    pub(super) length: u32,
    pub(super) occurrences: BTreeMap<String, u32>,
}

impl Counted {
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

    /// What the words of a question weigh in it.
    pub fn weigh(&self, question: &Question) -> f64 {
        let of = |word: &Word| {
            let parts = word.forms.iter().filter_map(|form| {
                let count = self.occurrences.get(&form.text)?;
                Some(question.part(word, form, *count, self.length))
            });
            parts.fold(0.0, f64::max)
        };
        question.words.iter().map(of).sum()
    }
}

/// The parts of a document whose words it is found by, each as often as it counts.
pub(super) fn texts(document: &Document) -> impl Iterator<Item = &str> {
    let titles = std::iter::repeat_n(document.title.as_str(), TITLE_TIMES);
    titles.chain([document.content.as_str(), document.labels.as_str()])
}
