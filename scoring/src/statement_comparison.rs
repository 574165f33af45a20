//! Compares two short statements by rule: equal, compatible, contradictory or different.
//!
//! Word vectors ignore word order and nearly ignore negation, so similarity alone calls "retry" and
//! "never retry" the same. The rules here compare word by word: negations, antonyms, values, and
//! the direction of a relation. They are for English; in another language all words are unknown,
//! and two statements are at most equal or compatible. Separate from `duplicates` and
//! `contradiction`, which draw conclusions for two entries. This module does not depend on entries
//! or vectors.

mod canonical_form;
mod polarity;
mod relation_direction;
mod stem;
mod token;
mod value_differences;
mod word_lists;

pub use canonical_form::canonical;

use polarity::{AntonymPairs, SignedContent};
use relation_direction::ReversedRelation;
use std::collections::BTreeSet;
use std::fmt;
use token::{StatementToken, TokenKind, tokens};

/// Relation between two statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementRelation {
    /// The texts are equal except for white space and final punctuation.
    Equal,
    /// No rule separates the statements; they may say the same.
    Compatible {
        /// Fraction of the content words that both statements share, in [0, 1].
        overlap: f64,
    },
    /// Both are about the same subject, and one contradicts the other.
    Contradiction(ContradictionReason),
    /// The statements differ in a version, a platform, a value or in their negations.
    Different,
}

/// Cause of a contradiction. It quotes numbers and words of klnode's own lists, and no other words
/// of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContradictionReason {
    /// One statement negates the other.
    Negation,
    /// One statement has a word, the other its antonym.
    Opposites(String, String),
    /// The statements give different values.
    Values(String, String),
    /// The statements give the same values to different things.
    ExchangedValues(String, String),
    /// The statements name different, mutually exclusive choices.
    Choice,
    /// The statements put the same things into opposite order.
    Order,
    /// The statements relate the same things in opposite directions.
    Direction,
}

impl fmt::Display for ContradictionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negation => f.write_str("differs in negation"),
            Self::Opposites(one, two) => write!(f, "opposites: {one} against {two}"),
            Self::Values(one, two) => write!(f, "differs in value: {one} against {two}"),
            Self::ExchangedValues(one, two) => write!(f, "exchanged values: {one} and {two}"),
            Self::Choice => f.write_str("differs in a choice of which one excludes the other"),
            Self::Order => f.write_str("opposite order"),
            Self::Direction => f.write_str("opposite direction"),
        }
    }
}

/// Maximum length in bytes for the rules; longer texts are compared for equality only.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Whether two statements contradict each other.
#[must_use]
pub fn contradict(one: &str, two: &str) -> bool {
    matches!(compare(one, two), StatementRelation::Contradiction(_))
}

/// Compares two statements. The result does not depend on their order, except for the reason.
#[must_use]
pub fn compare(one: &str, two: &str) -> StatementRelation {
    if canonical(one) == canonical(two) {
        return StatementRelation::Equal;
    }
    if one.len() > TEXT_BYTES_MAX || two.len() > TEXT_BYTES_MAX {
        return StatementRelation::Different;
    }
    let (one, two) = (tokens(one), tokens(two));
    StatementPair::new(&one, &two).outcome()
}

/// Two statements and the content they share.
struct StatementPair<'a> {
    one: &'a [StatementToken],
    two: &'a [StatementToken],
    pairs: AntonymPairs,
    shared: usize,
    /// Number of content words that only the first, or only the second, statement has.
    extra: [usize; 2],
    total: usize,
}

impl<'a> StatementPair<'a> {
    fn new(one: &'a [StatementToken], two: &'a [StatementToken]) -> Self {
        let pairs = AntonymPairs::between(one, two);
        let (ours, theirs) = (pairs.bag(one), pairs.bag(two));
        let shared = ours.intersection(&theirs).count();
        let extra = [ours.len() - shared, theirs.len() - shared];
        let total = ours.len() + theirs.len();
        Self { one, two, pairs, shared, extra, total }
    }

    fn outcome(&self) -> StatementRelation {
        let (ours, theirs) = (scopes(self.one), scopes(self.two));
        let is_one_scope = ours == theirs;
        if !ours.is_subset(&theirs) && !theirs.is_subset(&ours) {
            return StatementRelation::Different;
        }
        let reversed = relation_direction::reversed(self.one, self.two);
        if let Some(reversed) = reversed {
            let is_close = self.extra.iter().all(|extra| *extra <= 1);
            return match reversed {
                _ if !is_one_scope || !(is_close || self.is_same_subject()) => {
                    StatementRelation::Different
                }
                ReversedRelation::Order => {
                    StatementRelation::Contradiction(ContradictionReason::Order)
                }
                ReversedRelation::Direction => {
                    StatementRelation::Contradiction(ContradictionReason::Direction)
                }
            };
        }
        if let Some(outcome) = self.by_value(is_one_scope) {
            return outcome;
        }
        let signs = [self.one, self.two].map(|of| SignedContent::of(of, &self.pairs));
        let [affirms, denies] = &signs;
        let is_opposed = affirms.opposes(denies);
        if is_opposed {
            return match (self.pairs.listed_pair(), is_one_scope && self.is_same_subject()) {
                (_, false) => StatementRelation::Different,
                (Some((one, two)), true) => {
                    StatementRelation::Contradiction(ContradictionReason::Opposites(one, two))
                }
                (None, true) => StatementRelation::Contradiction(ContradictionReason::Negation),
            };
        }
        if let Some((one, two)) = value_differences::choices(self.one, self.two) {
            let is_flag =
                one.kind == TokenKind::Code || two.kind == TokenKind::Code || is_one_scope;
            return if is_flag {
                StatementRelation::Contradiction(ContradictionReason::Choice)
            } else {
                StatementRelation::Different
            };
        }
        let is_clean =
            affirms.is_like(denies) && self.pairs.found.is_none() && !self.has_other_names();
        if !is_clean || self.total == 0 {
            return StatementRelation::Different;
        }
        StatementRelation::Compatible { overlap: 2.0 * self.shared as f64 / self.total as f64 }
    }

    /// Whether one statement has a number or a code identifier that the other lacks, or names
    /// something else in the same place.
    fn has_other_names(&self) -> bool {
        let (ours, theirs) = value_differences::differing(self.one, self.two);
        let codes = |of: &[StatementToken]| -> BTreeSet<String> {
            let codes = of.iter().filter(|token| token.kind == TokenKind::Code);
            codes.map(|token| token.concept.clone()).collect()
        };
        let (one, two) = (codes(self.one), codes(self.two));
        let is_both = self.extra.iter().all(|extra| *extra > 0);
        !ours.is_empty()
            || !theirs.is_empty()
            || (!one.is_subset(&two) && !two.is_subset(&one))
            || (is_both && value_differences::is_substituted(self.one, self.two))
    }

    fn by_value(&self, is_one_scope: bool) -> Option<StatementRelation> {
        let (ours, theirs) = value_differences::differing(self.one, self.two);
        let found = match (ours.first(), theirs.first()) {
            (None, None) => {
                let (one, two) = value_differences::exchanged(self.one, self.two)?;
                ContradictionReason::ExchangedValues(one.shown.clone(), two.shown.clone())
            }
            (Some(one), Some(two)) => {
                ContradictionReason::Values(one.shown.clone(), two.shown.clone())
            }
            _ => return None,
        };
        // If the statements also contain antonyms, they are about different things.
        let is_found = is_one_scope && self.is_same_subject() && self.pairs.found.is_none();
        Some(if is_found {
            StatementRelation::Contradiction(found)
        } else {
            StatementRelation::Different
        })
    }

    /// Whether both have the same subject: all content of one is in the other, and the longer one
    /// does not add much.
    fn is_same_subject(&self) -> bool {
        let [ours, theirs] = self.extra;
        self.shared > 0 && (ours == 0 || theirs == 0) && ours.max(theirs) <= self.shared.max(2)
    }
}

/// Platforms, environments and versions that a statement names.
fn scopes(tokens: &[StatementToken]) -> BTreeSet<&str> {
    let named =
        tokens.iter().filter(|token| token.kind == TokenKind::Version || token.senses.is_scope);
    named.map(|token| token.concept.as_str()).collect()
}

#[cfg(test)]
mod tests;
