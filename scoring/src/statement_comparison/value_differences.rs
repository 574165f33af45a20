//! Values of two statements: differing numbers, exchanged numbers, and mutually exclusive choices.

use super::token::{Quantity, StatementToken, TokenKind, bag};
use super::word_lists::Lexicon;
use std::collections::BTreeSet;

/// Numbers that only the first and only the second statement contains.
pub(super) fn differing<'a>(
    one: &'a [StatementToken],
    two: &'a [StatementToken],
) -> (Vec<&'a Quantity>, Vec<&'a Quantity>) {
    let (ours, theirs) = (values(one), values(two));
    (missing(&ours, &theirs), missing(&theirs, &ours))
}

fn values(tokens: &[StatementToken]) -> Vec<&Quantity> {
    let values = tokens.iter().filter_map(|token| match &token.kind {
        TokenKind::Value(value) => Some(value),
        _ => None,
    });
    values.collect()
}

fn missing<'a>(of: &[&'a Quantity], other: &[&'a Quantity]) -> Vec<&'a Quantity> {
    let mut other: Vec<&Quantity> = other.to_vec();
    let mut missing = Vec::new();
    for value in of {
        match other.iter().position(|one| one.is_equal(value)) {
            Some(at) => {
                other.remove(at);
            }
            None => missing.push(*value),
        }
    }
    missing
}

/// Two numbers that the statements assign to each other's names.
pub(super) fn exchanged<'a>(
    one: &'a [StatementToken],
    two: &'a [StatementToken],
) -> Option<(&'a Quantity, &'a Quantity)> {
    let (ours, theirs) = (bound(one), bound(two));
    for (at, (value, name)) in ours.iter().enumerate() {
        for (other, other_name) in &ours[at + 1..] {
            if value.is_equal(other) {
                continue;
            }
            let named = |wanted: &Quantity| {
                theirs.iter().find(|(of, _)| of.is_equal(wanted)).map(|(_, name)| name)
            };
            let (Some(first), Some(second)) = (named(value), named(other)) else { continue };
            let common = |x: &BTreeSet<&str>, y: &BTreeSet<&str>| x.intersection(y).count();
            let straight = common(name, first) + common(other_name, second);
            let crossed = common(name, second) + common(other_name, first);
            let is_each = common(name, second) > common(name, first)
                && common(other_name, first) > common(other_name, second);
            if is_each && crossed > straight {
                return Some((value, other));
            }
        }
    }
    None
}

/// Each number with the content words it belongs to: those before it in its part of the sentence,
/// or those after it if there are none.
fn bound(tokens: &[StatementToken]) -> Vec<(&Quantity, BTreeSet<&str>)> {
    let is_break = |token: &StatementToken| {
        token.is_mark()
            || token.is(&["and", "or", "but"])
            || matches!(token.kind, TokenKind::Value(_))
    };
    let mut bound = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let TokenKind::Value(value) = &token.kind else { continue };
        let begin = tokens[..at].iter().rposition(is_break).map_or(0, |last| last + 1);
        let mut names = bag(&tokens[begin..at]);
        if names.is_empty() {
            let rest = &tokens[at + 1..];
            let end = rest.iter().position(is_break).unwrap_or(rest.len());
            names = bag(&rest[..end]);
        }
        bound.push((value, names));
    }
    bound
}

/// Words after which a value follows.
const BINDERS: &[&str] = &[
    "is", "are", "be", "=", "to", "as", "in", "called", "named", "uses", "use", "via", "at", "on",
    "from", "with", "using",
];
/// Verbs that admit only one complement at a time.
const EXCLUSIVE: &[&str] = &[
    "is", "are", "be", "=", "set", "listen", "live", "default", "store", "located", "lie", "read",
    "point", "name", "call", "resolve", "reside", "bind",
];

/// The words in which two otherwise equal statements name different values of one thing.
pub(super) fn choices<'a>(
    one: &'a [StatementToken],
    two: &'a [StatementToken],
) -> Option<(&'a StatementToken, &'a StatementToken)> {
    let (ours, theirs) = (kept(one), kept(two));
    if ours.len() != theirs.len() {
        return None;
    }
    let mut differing = (0..ours.len()).filter(|at| ours[*at].concept != theirs[*at].concept);
    let at = differing.next()?;
    if differing.next().is_some() {
        return None;
    }
    let (a, b) = (ours[at], theirs[at]);
    let lexicon = Lexicon::get();
    let same_flag = |of: &StatementToken| of.word.starts_with('-');
    if same_flag(a) && same_flag(b) {
        return a.word.eq_ignore_ascii_case(&b.word).then_some((a, b));
    }
    if lexicon.are_alternatives(&a.stem, &b.stem)
        || lexicon.are_alternatives(&a.concept, &b.concept)
    {
        return Some((a, b));
    }
    let is_bound = at > 0 && ours[at - 1].is(BINDERS);
    let has_attribute = ours[..at].iter().any(|token| token.senses.is_attribute);
    let is_exclusive = ours[..at]
        .iter()
        .any(|token| token.is(EXCLUSIVE) || EXCLUSIVE.contains(&token.stem.as_str()));
    let are_code = a.kind == TokenKind::Code && b.kind == TokenKind::Code;
    let are_names = a.is_content() && b.is_content() && at + 1 == ours.len();
    let is_value =
        is_bound && ((are_code && is_exclusive) || (are_names && has_attribute && is_exclusive));
    is_value.then_some((a, b))
}

/// Whether two statements are equal except for one or two words at the same positions: then one
/// word replaces another, and the statements are not rewordings of each other.
pub(super) fn is_substituted(one: &[StatementToken], two: &[StatementToken]) -> bool {
    let (ours, theirs) = (kept(one), kept(two));
    let differing = ours.iter().zip(&theirs).filter(|(a, b)| a.concept != b.concept).count();
    ours.len() == theirs.len() && differing <= 2 && differing * 2 < ours.len()
}

/// All words except articles, pronouns and marks.
fn kept(tokens: &[StatementToken]) -> Vec<&StatementToken> {
    const DROPPED: &[&str] = &[
        "a", "an", "the", "this", "that", "its", "our", "your", "we", "you", "always", "must",
        "should", "please",
    ];
    tokens.iter().filter(|token| !token.is_mark() && !token.is(DROPPED)).collect()
}
