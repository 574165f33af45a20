//! Values of two statements: numbers that differ, numbers that changed places, and choices that
//! exclude each other.

use super::token::{Kind, Token, Value, bag};
use super::words::Lexicon;
use std::collections::BTreeSet;

/// Numbers that one statement has and the other has not, of either.
pub(super) fn differing<'a>(
    one: &'a [Token],
    two: &'a [Token],
) -> (Vec<&'a Value>, Vec<&'a Value>) {
    let (ours, theirs) = (values(one), values(two));
    (missing(&ours, &theirs), missing(&theirs, &ours))
}

fn values(tokens: &[Token]) -> Vec<&Value> {
    let values = tokens.iter().filter_map(|token| match &token.kind {
        Kind::Value(value) => Some(value),
        _ => None,
    });
    values.collect()
}

fn missing<'a>(of: &[&'a Value], other: &[&'a Value]) -> Vec<&'a Value> {
    let mut other: Vec<&Value> = other.to_vec();
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

/// Two numbers of equal statements that are bound to each other's names.
pub(super) fn exchanged<'a>(one: &'a [Token], two: &'a [Token]) -> Option<(&'a Value, &'a Value)> {
    let (ours, theirs) = (bound(one), bound(two));
    for (at, (value, name)) in ours.iter().enumerate() {
        for (other, other_name) in &ours[at + 1..] {
            if value.is_equal(other) {
                continue;
            }
            let named = |wanted: &Value| {
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

/// Each number with the words it is bound to: those before it in its part of the sentence, or those
/// after it where there are none.
fn bound(tokens: &[Token]) -> Vec<(&Value, BTreeSet<&str>)> {
    let is_break = |token: &Token| {
        token.is_mark() || token.is(&["and", "or", "but"]) || matches!(token.kind, Kind::Value(_))
    };
    let mut bound = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Kind::Value(value) = &token.kind else { continue };
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

/// Words after which the value of something follows.
const BINDERS: &[&str] = &[
    "is", "are", "be", "=", "to", "as", "in", "called", "named", "uses", "use", "via", "at", "on",
    "from", "with", "using",
];
/// Verbs whose complement is the only one of its kind.
const EXCLUSIVE: &[&str] = &[
    "is", "are", "be", "=", "set", "listen", "live", "default", "store", "located", "lie", "read",
    "point", "name", "call", "resolve", "reside", "bind",
];

/// The words in which two otherwise equal statements name different values of one thing.
pub(super) fn choices<'a>(one: &'a [Token], two: &'a [Token]) -> Option<(&'a Token, &'a Token)> {
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
    let same_flag = |of: &Token| of.word.starts_with('-');
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
    let are_code = a.kind == Kind::Code && b.kind == Kind::Code;
    let are_names = a.is_content() && b.is_content() && at + 1 == ours.len();
    let is_value =
        is_bound && ((are_code && is_exclusive) || (are_names && has_attribute && is_exclusive));
    is_value.then_some((a, b))
}

/// Whether two statements are equal but for one or two words that stand in the same places: then one
/// word stands for another, and the two are not one statement in other words.
pub(super) fn is_substituted(one: &[Token], two: &[Token]) -> bool {
    let (ours, theirs) = (kept(one), kept(two));
    let differing = ours.iter().zip(&theirs).filter(|(a, b)| a.concept != b.concept).count();
    ours.len() == theirs.len() && differing <= 2 && differing * 2 < ours.len()
}

/// All words but articles, pronouns and marks.
fn kept(tokens: &[Token]) -> Vec<&Token> {
    const DROPPED: &[&str] = &[
        "a", "an", "the", "this", "that", "its", "our", "your", "we", "you", "always", "must",
        "should", "please",
    ];
    tokens.iter().filter(|token| !token.is_mark() && !token.is(DROPPED)).collect()
}
