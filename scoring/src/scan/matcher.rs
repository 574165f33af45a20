//! Finds where patterns match, in time linear in the text.
//!
//! One pass of an automaton finds every hint; only there is the pattern's expression tried, anchored
//! and on a window of fixed length. Nothing is ever tried from every position.

use super::check::{self, Candidate};
use super::fold;
use super::rule::{Check, Pattern, Reading};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;

/// An expression sees at most this much from where its hint begins.
const WINDOW_BYTES: usize = 512;

/// Patterns, ready to be looked for. A match is told by the pattern's position.
#[derive(Debug)]
pub(super) struct Matcher {
    raw: Hints,
    words: Hints,
    expressions: Vec<Regex>,
    checks: Vec<Check>,
}

/// Where a pattern matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The pattern's position.
    pub(super) pattern: usize,
    /// The value, in bytes of the text, at the boundaries of characters.
    pub(super) span: Range<usize>,
}

impl Matcher {
    pub(super) fn new(patterns: &[&'static Pattern]) -> Self {
        Self {
            raw: Hints::new(patterns, Reading::Raw),
            words: Hints::new(patterns, Reading::Words),
            expressions: patterns.iter().map(|pattern| expression(pattern)).collect(),
            checks: patterns.iter().map(|pattern| pattern.check).collect(),
        }
    }

    /// Every match, in no particular order.
    pub(super) fn find(&self, text: &str) -> Vec<Match> {
        let mut found = self.find_in(text.as_bytes(), &self.raw);
        for found in &mut found {
            found.span = whole_characters(text, found.span.clone());
        }
        let words = self.find_in(&fold::fold(text), &self.words);
        if !words.is_empty() {
            let places = fold::places(text);
            found.extend(words.into_iter().map(|Match { pattern, span }| Match {
                pattern,
                span: places[span.start].start..places[span.end - 1].end,
            }));
        }
        found
    }

    fn find_in(&self, text: &[u8], hints: &Hints) -> Vec<Match> {
        let mut found = Vec::new();
        let Some(automaton) = &hints.automaton else { return found };
        // A pattern is not tried again inside of what it has found already.
        let mut done = vec![0; self.expressions.len()];
        for hint in automaton.find_overlapping_iter(text) {
            let pattern = hints.patterns[hint.pattern().as_usize()];
            if hint.start() < done[pattern] || !self.may_begin(text, hint.start(), pattern) {
                continue;
            }
            if let Some(span) = self.try_at(text, hint.start(), pattern) {
                done[pattern] = span.end;
                found.push(Match { pattern, span });
            }
        }
        found
    }

    /// A hint that is a word begins one, except in names such as `dbPassword`.
    fn may_begin(&self, text: &[u8], at: usize, pattern: usize) -> bool {
        let joins = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        self.checks[pattern] == Check::Assigned
            || !text.get(at).is_some_and(joins)
            || !before.is_some_and(joins)
    }

    fn try_at(&self, text: &[u8], at: usize, pattern: usize) -> Option<Range<usize>> {
        let window = &text[at..text.len().min(at + WINDOW_BYTES)];
        let expression = &self.expressions[pattern];
        if !expression.is_match(window) {
            return None;
        }
        let groups = expression.captures(window)?;
        let value = groups.iter().skip(1).flatten().next().or(groups.get(0))?;
        let candidate = Candidate { text, at, value: at + value.start()..at + value.end() };
        check::passes(self.checks[pattern], &candidate)
    }
}

/// The hints of the patterns of one reading.
#[derive(Debug)]
struct Hints {
    automaton: Option<AhoCorasick>,
    /// For each hint, its pattern.
    patterns: Vec<usize>,
}

impl Hints {
    fn new(patterns: &[&'static Pattern], reading: Reading) -> Self {
        let of_reading = patterns.iter().enumerate().filter(|(_, p)| p.reading == reading);
        let (patterns, hints): (Vec<usize>, Vec<&str>) =
            of_reading.flat_map(|(at, p)| p.hints.iter().map(move |hint| (at, *hint))).unzip();
        let automaton = (!hints.is_empty()).then(|| {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .kind(Some(AhoCorasickKind::DFA))
                .build(&hints)
                .expect("the hints are a table of constants, few and short")
        });
        Self { automaton, patterns }
    }
}

fn expression(pattern: &Pattern) -> Regex {
    let body = match pattern.reading {
        Reading::Raw => pattern.expression.to_owned(),
        Reading::Words => pattern.expression.replace(' ', " ?"),
    };
    RegexBuilder::new(&format!("^(?:{body})"))
        .unicode(false)
        .build()
        .expect("the expressions are a table of constants, each tried by a test")
}

/// The span, widened to the boundaries of characters.
fn whole_characters(text: &str, span: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(span.start)..text.ceil_char_boundary(span.end)
}
