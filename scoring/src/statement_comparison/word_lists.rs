//! Word lists of the rules, indexed by stem.
//!
//! The lists are plain text files next to this one, so that the vocabulary can be read and extended
//! without reading code: one word or group per line, in the base form, comments after `#`. They are
//! stemmed as the tokenizer stems a statement. A test checks their format.

use super::stem::stem;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const NEGATORS: &str = include_str!("lists/negators.txt");
const LIGHT: &str = include_str!("lists/light.txt");
const SCOPES: &str = include_str!("lists/scopes.txt");
const PRODUCTS: &str = include_str!("lists/products.txt");
const ATTRIBUTES: &str = include_str!("lists/attributes.txt");
const DIRECTED: &str = include_str!("lists/directed.txt");
const SYNONYMS: &str = include_str!("lists/synonyms.txt");
const ALTERNATIVES: &str = include_str!("lists/alternatives.txt");
const ANTONYMS: &str = include_str!("lists/antonyms.txt");
const PHRASES: &str = include_str!("lists/phrases.txt");
const NUMBERS: &str = include_str!("lists/numbers.txt");
const UNITS: &str = include_str!("lists/units.txt");

/// Symmetric connectives, whose sides may be swapped.
const SYMMETRIC: &[&str] = &["and", "or", ",", "with", "between", "plus", "nor", "&", "/"];

/// Lines of a list, without comments.
fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// Both sides of each line of a list.
fn sides(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(list).filter_map(|line| line.split_once(" | "))
}

/// Properties of a stem in the word lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Senses {
    /// The word negates its clause.
    pub(super) is_negator: bool,
    /// The word carries no subject.
    pub(super) is_light: bool,
    /// The word names a platform or environment.
    pub(super) is_scope: bool,
    /// The word names a product with versions.
    pub(super) is_product: bool,
    /// The word names an attribute with one value at a time.
    pub(super) is_attribute: bool,
    /// The word relates two sides in one direction.
    pub(super) is_directed: bool,
}

/// Membership of a word in an antonym pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pole {
    /// Index of the pair.
    pub(super) pair: usize,
    /// Whether the word is on the second side.
    pub(super) is_second: bool,
}

/// All lists, indexed by stem.
#[derive(Debug)]
pub(super) struct Lexicon {
    senses: BTreeMap<String, Senses>,
    concepts: BTreeMap<String, String>,
    poles: BTreeMap<String, Vec<Pole>>,
    choices: BTreeMap<String, Vec<usize>>,
    numbers: BTreeMap<&'static str, f64>,
    units: BTreeMap<&'static str, (&'static str, f64)>,
    phrases: Vec<(Vec<&'static str>, &'static str)>,
}

impl Lexicon {
    /// The global instance, built on first use.
    pub(super) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(Self::build)
    }

    fn build() -> Self {
        let mut senses: BTreeMap<String, Senses> = BTreeMap::new();
        let mut mark = |list: &'static str, set: fn(&mut Senses)| {
            for word in lines(list).flat_map(str::split_whitespace) {
                set(senses.entry(stem(word)).or_default());
            }
        };
        mark(NEGATORS, |of| of.is_negator = true);
        mark(LIGHT, |of| of.is_light = true);
        mark(SCOPES, |of| of.is_scope = true);
        mark(PRODUCTS, |of| of.is_product = true);
        mark(ATTRIBUTES, |of| of.is_attribute = true);
        mark(DIRECTED, |of| of.is_directed = true);
        let mut concepts = BTreeMap::new();
        for group in lines(SYNONYMS) {
            let mut words = group.split_whitespace().map(stem);
            let Some(first) = words.next() else { continue };
            for word in words.chain([first.clone()]) {
                concepts.entry(word).or_insert_with(|| first.clone());
            }
        }
        let mut poles: BTreeMap<String, Vec<Pole>> = BTreeMap::new();
        for (pair, (first, second)) in sides(ANTONYMS).enumerate() {
            for (words, is_second) in [(first, false), (second, true)] {
                for word in words.split_whitespace() {
                    poles.entry(stem(word)).or_default().push(Pole { pair, is_second });
                }
            }
        }
        let mut choices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (group, words) in lines(ALTERNATIVES).enumerate() {
            for word in words.split_whitespace() {
                choices.entry(stem(word)).or_default().push(group);
            }
        }
        let mut phrases: Vec<(Vec<&str>, &str)> =
            sides(PHRASES).map(|(words, one)| (words.split(' ').collect(), one)).collect();
        phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        let (numbers, units) = (numbers(), units());
        Self { senses, concepts, poles, choices, numbers, units, phrases }
    }

    pub(super) fn senses(&self, stem: &str) -> Senses {
        self.senses.get(stem).copied().unwrap_or_default()
    }

    /// Stem that represents all synonyms of `stem`.
    pub(super) fn concept<'a>(&'a self, stem: &'a str) -> &'a str {
        self.concepts.get(stem).map_or(stem, String::as_str)
    }

    /// Antonym pairs that a stem belongs to.
    pub(super) fn poles(&self, stem: &str) -> &[Pole] {
        self.poles.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Whether two different stems are mutually exclusive alternatives.
    pub(super) fn are_alternatives(&self, one: &str, two: &str) -> bool {
        let groups = |of: &str| self.choices.get(of).cloned().unwrap_or_default();
        one != two && groups(one).iter().any(|group| groups(two).contains(group))
    }

    /// Whether a stem is one of several alternatives.
    pub(super) fn is_choice(&self, stem: &str) -> bool {
        self.choices.contains_key(stem)
    }

    /// Number that a word names.
    pub(super) fn number(&self, word: &str) -> Option<f64> {
        self.numbers.get(word).copied()
    }

    /// Quantity that a unit measures, and its factor to the base unit.
    pub(super) fn unit(&self, word: &str) -> Option<(&'static str, f64)> {
        self.units.get(word).copied()
    }

    /// Replacement for a phrase at the start of `words`, and the length of the phrase.
    pub(super) fn phrase(&self, words: &[&str]) -> Option<(&'static str, usize)> {
        let found = self.phrases.iter().find(|(phrase, _)| words.starts_with(phrase));
        found.map(|(phrase, one)| (*one, phrase.len()))
    }

    /// Whether a connective is symmetric.
    pub(super) fn is_symmetric(word: &str) -> bool {
        SYMMETRIC.contains(&word)
    }
}

fn numbers() -> BTreeMap<&'static str, f64> {
    let number = |line: &'static str| {
        let (word, amount) = line.split_once(' ')?;
        Some((word, amount.parse().ok()?))
    };
    lines(NUMBERS).filter_map(number).collect()
}

/// Each spelling of a unit, with its quantity and the factor to the base unit.
fn units() -> BTreeMap<&'static str, (&'static str, f64)> {
    let mut units = BTreeMap::new();
    for line in lines(UNITS) {
        let mut words = line.split_whitespace();
        let (Some(of), Some(factor)) = (words.next(), words.next()) else { continue };
        let Ok(factor) = factor.parse() else { continue };
        units.extend(words.map(|word| (word, (of, factor))));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lists_is_read() {
        assert_eq!(numbers().len(), lines(NUMBERS).count());
        let spellings: usize = lines(UNITS).map(|line| line.split_whitespace().count() - 2).sum();
        assert_eq!(units().len(), spellings);
        for list in [ANTONYMS, PHRASES] {
            assert_eq!(sides(list).count(), lines(list).count());
        }
        assert!(sides(ANTONYMS).count() >= 100);
    }
}
