//! A word of a question, the forms in which it is looked up, and its weight.
//!
//! This module is pure: it maps counts to weights. The built-in word frequencies count as about a
//! hundred entries, so that "the" does not weigh like an identifier in a store of three entries.
//! Separate from `query`, because word order and passage scores need the words without the question.

use crate::spelling::NEIGHBOUR_WEIGHT;
use klnode_scoring::relevance::{PRIOR_DOCUMENTS, idf, prior_holding};

/// A word of a question.
#[derive(Clone, Debug)]
pub(super) struct QueryWord {
    /// The inverse document frequency.
    pub(super) idf: f64,
    /// The forms to look up: the word itself, or its neighbours if no document contains it.
    pub(super) forms: Vec<WordForm>,
}

/// A spelling that is looked up for a query word: the word itself or, if no document contains it,
/// one that is a typing error away.
#[derive(Clone, Debug)]
pub(super) struct WordForm {
    pub(super) text: String,
    /// The factor of a match: 1 for the word itself, less for a neighbour.
    pub(super) weight: f64,
    /// True if a text by an insider contains it.
    pub(super) is_inside: bool,
}

impl QueryWord {
    /// A word that `holding` of `documents` texts contain, with its built-in share in software
    /// texts.
    pub(super) fn new(documents: u64, holding: u64, share: f64, forms: Vec<WordForm>) -> Self {
        let idf = idf(documents + PRIOR_DOCUMENTS, holding + prior_holding(share));
        Self { idf, forms }
    }

    /// The same word without weight: a function word of the question.
    pub(super) fn weightless(self) -> Self {
        Self { idf: 0.0, ..self }
    }

    /// The highest factor of the forms that texts by insiders contain.
    pub(super) fn weight(&self) -> f64 {
        let inside = self.forms.iter().filter(|form| form.is_inside);
        inside.map(|form| form.weight).fold(NEIGHBOUR_WEIGHT, f64::max)
    }

    /// The weight of the word by its best form that may match; 0 without one.
    pub(super) fn matching_weight(&self, may_match: &dyn Fn(&WordForm) -> bool) -> f64 {
        let forms = self.forms.iter().filter(|form| may_match(form));
        self.idf * forms.map(|form| form.weight).fold(0.0, f64::max)
    }
}

impl WordForm {
    /// The word itself.
    pub(super) fn whole(text: String, is_inside: bool) -> Self {
        Self { text, weight: 1.0, is_inside }
    }

    /// A word one typing error away.
    pub(super) fn neighbour(text: String) -> Self {
        Self { text, weight: NEIGHBOUR_WEIGHT, is_inside: true }
    }
}
