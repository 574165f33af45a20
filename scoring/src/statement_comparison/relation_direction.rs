//! Temporal order and direction of action: relations between two parts of a statement, and whether
//! two statements relate the same parts in reverse.

use super::token::{StatementToken, TokenKind, bag};
use super::word_lists::Lexicon;
use std::collections::BTreeSet;

/// A relation from its first part to its second.
#[derive(Debug)]
struct DirectedRelation<'a> {
    kind: &'a str,
    first: BTreeSet<&'a str>,
    second: BTreeSet<&'a str>,
}

/// Kind of relation that two statements reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReversedRelation {
    /// The temporal order.
    Order,
    /// The direction of an action.
    Direction,
}

/// Whether two statements relate the same parts in opposite directions.
pub(super) fn reversed(one: &[StatementToken], two: &[StatementToken]) -> Option<ReversedRelation> {
    let (ours, theirs) = (relations(one), relations(two));
    for a in &ours {
        for b in theirs.iter().filter(|b| b.kind == a.kind) {
            let common = |x: &BTreeSet<&str>, y: &BTreeSet<&str>| x.intersection(y).count();
            let straight = common(&a.first, &b.first) + common(&a.second, &b.second);
            let (there, back) = (common(&a.first, &b.second), common(&a.second, &b.first));
            if there > 0 && back > 0 && there + back > straight {
                let is_order = a.kind == "before";
                return Some(if is_order {
                    ReversedRelation::Order
                } else {
                    ReversedRelation::Direction
                });
            }
        }
    }
    swapped(one, two)
}

fn relations(tokens: &[StatementToken]) -> Vec<DirectedRelation<'_>> {
    let mut found = Vec::new();
    for sentence in tokens.split(StatementToken::is_end) {
        found.extend(in_time(sentence));
        found.extend(from_to(sentence));
        found.extend(into(sentence));
        found.extend(by_verb(sentence));
    }
    found.retain(|of| !of.first.is_empty() && !of.second.is_empty());
    found
}

/// Finds "A before B", "B after A", "once A, B", "A, then B", "not B until A".
fn in_time(sentence: &[StatementToken]) -> Option<DirectedRelation<'_>> {
    let at = sentence
        .iter()
        .position(|token| token.is(&["before", "after", "once", "until", "till", "then"]))?;
    let word = sentence[at].word.as_str();
    let is_leading = sentence[..at].iter().all(|token| !token.is_content());
    let (main, sub) = if is_leading && word != "then" {
        let rest = &sentence[at + 1..];
        let comma = rest.iter().position(StatementToken::is_mark)?;
        (&rest[comma + 1..], &rest[..comma])
    } else {
        (&sentence[..at], &sentence[at + 1..])
    };
    // "Expires after 15 minutes" is a duration, not an order.
    if sub
        .iter()
        .find(|token| !token.senses.is_light)
        .is_some_and(|of| matches!(of.kind, TokenKind::Value(_)))
    {
        return None;
    }
    let is_denied = main.iter().filter(|token| token.senses.is_negator).count() % 2 == 1;
    let is_main_first = match word {
        "before" => !is_denied,
        "then" => true,
        "until" | "till" if !is_denied => return None,
        _ => false,
    };
    let (main, sub) = (bag(main), bag(sub));
    let (first, second) = if is_main_first { (main, sub) } else { (sub, main) };
    Some(DirectedRelation { kind: "before", first, second })
}

/// Finds "from A to B".
fn from_to(sentence: &[StatementToken]) -> Option<DirectedRelation<'_>> {
    let from = sentence.iter().position(|token| token.is(&["from"]))?;
    let to = sentence.iter().position(|token| token.is(&["to", "into", "onto"]))?;
    let [low, high] = [from.min(to), from.max(to)];
    let between = bag(&sentence[low + 1..high]);
    let after = bag(part_after(&sentence[high + 1..]));
    let (first, second) = if from < to { (between, after) } else { (after, between) };
    Some(DirectedRelation { kind: "from", first, second })
}

/// Finds "A into B", "A onto B".
fn into(sentence: &[StatementToken]) -> Option<DirectedRelation<'_>> {
    let at = sentence.iter().position(|token| token.is(&["into", "onto"]))?;
    let (first, second) = (bag(&sentence[..at]), bag(part_after(&sentence[at + 1..])));
    Some(DirectedRelation { kind: "into", first, second })
}

/// Finds "A depends on B", "B is called by A".
fn by_verb(sentence: &[StatementToken]) -> Option<DirectedRelation<'_>> {
    let at = sentence
        .iter()
        .position(|token| token.senses.is_directed && token.kind == TokenKind::Word)?;
    let (before, after) = (&sentence[..at], &sentence[at + 1..]);
    let is_passive = after.first().is_some_and(|next| next.is(&["by"]));
    let (one, two) = (bag(before), bag(part_after(after)));
    let (first, second) = if is_passive { (two, one) } else { (one, two) };
    Some(DirectedRelation { kind: &sentence[at].stem, first, second })
}

/// Tokens up to the next mark.
fn part_after(tokens: &[StatementToken]) -> &[StatementToken] {
    let end = tokens.iter().position(StatementToken::is_mark).unwrap_or(tokens.len());
    &tokens[..end]
}

/// Light words that stay in a sequence, because they relate its parts.
const LINKS: &[&str] = &[
    "in",
    "on",
    "at",
    "by",
    "for",
    "from",
    "to",
    "into",
    "onto",
    "with",
    "without",
    "before",
    "after",
    "then",
    "first",
    "over",
    "under",
    "and",
    "or",
    "when",
    "if",
    "than",
    "between",
    "via",
    "through",
    "per",
    "until",
    "as",
    "rather-than",
    "afterwards",
    "not",
    "until",
    "unless",
    "because",
];

/// Words and commas of a statement in order, without articles, pronouns and auxiliaries.
fn sequence(tokens: &[StatementToken]) -> Vec<String> {
    let kept = tokens.iter().filter(|token| match &token.kind {
        TokenKind::Mark => token.word == ",",
        TokenKind::Value(_) | TokenKind::Version | TokenKind::Code => true,
        TokenKind::Word => token.is_content() || token.senses.is_negator || token.is(LINKS),
    });
    kept.map(|token| match &token.kind {
        TokenKind::Value(value) => format!("{}{}", value.amount, value.of),
        _ => token.concept.clone(),
    })
    .collect()
}

/// Whether two statements are equal except for two parts that are swapped around the words relating
/// them: `P A M B S` and `P B M A S`. Swapped items of an enumeration do not count.
fn swapped(one: &[StatementToken], two: &[StatementToken]) -> Option<ReversedRelation> {
    let (one, two) = (sequence(one), sequence(two));
    if one.len() != two.len() || one == two || one.len() > SEQUENCE_MAX {
        return None;
    }
    let prefix = one.iter().zip(&two).take_while(|(a, b)| a == b).count();
    let suffix = one.iter().rev().zip(two.iter().rev()).take_while(|(a, b)| a == b).count();
    let suffix = suffix.min(one.len() - prefix);
    let (a, b) = (&one[prefix..one.len() - suffix], &two[prefix..two.len() - suffix]);
    for first in 1..a.len() {
        for last in 1..=a.len() - first {
            let middle = &a[first..a.len() - last];
            let is_swap = b.starts_with(&a[a.len() - last..])
                && b.ends_with(&a[..first])
                && b[last..b.len() - first] == *middle;
            // "In tests X is mocked" and "mock X in tests": a part with a leading preposition may
            // be anywhere.
            let is_led =
                |part: &[String]| part.first().is_some_and(|one| LINKS.contains(&one.as_str()));
            if is_swap
                && !is_led(&a[a.len() - last..])
                && !is_led(&a[..first])
                && !is_enumeration(middle)
            {
                let is_order = middle.iter().any(|word| {
                    ["before", "after", "then", "first", "until"].contains(&word.as_str())
                });
                return Some(if is_order {
                    ReversedRelation::Order
                } else {
                    ReversedRelation::Direction
                });
            }
        }
    }
    None
}

/// Whether the words between two parts make them items of an enumeration: a comma or an "and" is on
/// either side.
fn is_enumeration(middle: &[String]) -> bool {
    let is_symmetric = |word: Option<&String>| word.is_none_or(|word| Lexicon::is_symmetric(word));
    is_symmetric(middle.first()) && is_symmetric(middle.last())
}

/// Maximum length in words of statements that are searched for swapped parts.
const SEQUENCE_MAX: usize = 80;
