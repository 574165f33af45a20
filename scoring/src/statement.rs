//! Whether two short statements are equal, may say the same, or may contradict each other: by rule.
//!
//! Vectors of words know no order and hardly a negation, so nearness alone calls "retry" and "never
//! retry" the same. The rules here compare word by word: negations, opposites, values, and the
//! direction of what is said. They read English; of another language they see words without lists,
//! and call two statements equal or compatible at most. Separate from `duplicates` and `conflict`,
//! which decide what follows for two entries. Nothing here knows entries or vectors.

mod canonical;
mod direction;
mod polarity;
mod stem;
mod token;
mod value;
mod words;

pub use canonical::canonical;

use direction::Reversed;
use polarity::{Pairs, Signed};
use std::collections::BTreeSet;
use std::fmt;
use token::{Kind, Token, tokens};

/// How two statements relate.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Their texts are equal, but for white space and final punctuation.
    Equal,
    /// No rule tells them apart; by this fraction their content is the same, from 0 to 1.
    Compatible {
        /// The content that both have, of all they have.
        overlap: f64,
    },
    /// They are about the same thing, and one says the opposite of the other.
    Contradiction(Reason),
    /// They differ in a version, a platform, a value or in what they deny.
    Different,
}

/// What makes a contradiction. It quotes numbers and words of klnode's own lists, and no other words
/// of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One denies what the other affirms.
    Negation,
    /// One has a word, the other its opposite.
    Opposites(String, String),
    /// They give different values.
    Values(String, String),
    /// They give the same values to different things.
    ExchangedValues(String, String),
    /// They name different choices of which one excludes the other.
    Choice,
    /// They put the same things into opposite order.
    Order,
    /// They say of the same things that they act on each other the other way round.
    Direction,
}

impl fmt::Display for Reason {
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

/// Longer texts are compared for equality alone: the rules are for short statements.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Whether two statements contradict each other.
#[must_use]
pub fn contradict(one: &str, two: &str) -> bool {
    matches!(compare(one, two), Comparison::Contradiction(_))
}

/// Compares two statements. The order of the two does not matter, except in the reason.
#[must_use]
pub fn compare(one: &str, two: &str) -> Comparison {
    if canonical(one) == canonical(two) {
        return Comparison::Equal;
    }
    if one.len() > TEXT_BYTES_MAX || two.len() > TEXT_BYTES_MAX {
        return Comparison::Different;
    }
    let (one, two) = (tokens(one), tokens(two));
    Compared::new(&one, &two).outcome()
}

/// Two statements, and what they share.
struct Compared<'a> {
    one: &'a [Token],
    two: &'a [Token],
    pairs: Pairs,
    shared: usize,
    /// Content of one that the other has not, of either.
    extra: [usize; 2],
    total: usize,
}

impl<'a> Compared<'a> {
    fn new(one: &'a [Token], two: &'a [Token]) -> Self {
        let pairs = Pairs::between(one, two);
        let (ours, theirs) = (pairs.bag(one), pairs.bag(two));
        let shared = ours.intersection(&theirs).count();
        let extra = [ours.len() - shared, theirs.len() - shared];
        let total = ours.len() + theirs.len();
        Self { one, two, pairs, shared, extra, total }
    }

    fn outcome(&self) -> Comparison {
        let (ours, theirs) = (scopes(self.one), scopes(self.two));
        let is_one_scope = ours == theirs;
        if !ours.is_subset(&theirs) && !theirs.is_subset(&ours) {
            return Comparison::Different;
        }
        let reversed = direction::reversed(self.one, self.two);
        if let Some(reversed) = reversed {
            let is_close = self.extra.iter().all(|extra| *extra <= 1);
            return match reversed {
                _ if !is_one_scope || !(is_close || self.is_same_subject()) => {
                    Comparison::Different
                }
                Reversed::Order => Comparison::Contradiction(Reason::Order),
                Reversed::Direction => Comparison::Contradiction(Reason::Direction),
            };
        }
        if let Some(outcome) = self.by_value(is_one_scope) {
            return outcome;
        }
        let signs = [self.one, self.two].map(|of| Signed::of(of, &self.pairs));
        let [affirms, denies] = &signs;
        let is_opposed = affirms.opposes(denies);
        if is_opposed {
            return match (self.pairs.listed(), is_one_scope && self.is_same_subject()) {
                (_, false) => Comparison::Different,
                (Some((one, two)), true) => Comparison::Contradiction(Reason::Opposites(one, two)),
                (None, true) => Comparison::Contradiction(Reason::Negation),
            };
        }
        if let Some((one, two)) = value::choices(self.one, self.two) {
            let is_flag = one.kind == Kind::Code || two.kind == Kind::Code || is_one_scope;
            return if is_flag {
                Comparison::Contradiction(Reason::Choice)
            } else {
                Comparison::Different
            };
        }
        let is_clean =
            affirms.is_like(denies) && self.pairs.found.is_none() && !self.has_other_names();
        if !is_clean || self.total == 0 {
            return Comparison::Different;
        }
        Comparison::Compatible { overlap: 2.0 * self.shared as f64 / self.total as f64 }
    }

    /// Whether one has a number or a name of code that the other lacks, or names something else in the
    /// same place.
    fn has_other_names(&self) -> bool {
        let (ours, theirs) = value::differing(self.one, self.two);
        let codes = |of: &[Token]| -> BTreeSet<String> {
            let codes = of.iter().filter(|token| token.kind == Kind::Code);
            codes.map(|token| token.concept.clone()).collect()
        };
        let (one, two) = (codes(self.one), codes(self.two));
        let is_both = self.extra.iter().all(|extra| *extra > 0);
        !ours.is_empty()
            || !theirs.is_empty()
            || (!one.is_subset(&two) && !two.is_subset(&one))
            || (is_both && value::is_substituted(self.one, self.two))
    }

    fn by_value(&self, is_one_scope: bool) -> Option<Comparison> {
        let (ours, theirs) = value::differing(self.one, self.two);
        let found = match (ours.first(), theirs.first()) {
            (None, None) => {
                let (one, two) = value::exchanged(self.one, self.two)?;
                Reason::ExchangedValues(one.shown.clone(), two.shown.clone())
            }
            (Some(one), Some(two)) => Reason::Values(one.shown.clone(), two.shown.clone()),
            _ => return None,
        };
        // With opposite words as well, the two are about different things.
        let is_found = is_one_scope && self.is_same_subject() && self.pairs.found.is_none();
        Some(if is_found { Comparison::Contradiction(found) } else { Comparison::Different })
    }

    /// Whether both are about the same thing: no content of the one stands for other content of the
    /// other, and neither says much more.
    fn is_same_subject(&self) -> bool {
        let [ours, theirs] = self.extra;
        self.shared > 0 && (ours == 0 || theirs == 0) && ours.max(theirs) <= self.shared.max(2)
    }
}

/// The platforms, environments and versions that a statement names.
fn scopes(tokens: &[Token]) -> BTreeSet<&str> {
    let named = tokens.iter().filter(|token| token.kind == Kind::Version || token.senses.is_scope);
    named.map(|token| token.concept.as_str()).collect()
}

#[cfg(test)]
mod tests;
