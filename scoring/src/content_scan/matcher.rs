//! Finds where patterns match, in time linear in the length of the text.
//!
//! One pass of an automaton finds every hint; only there the pattern's expression is tried,
//! anchored and on a window of fixed length. No expression is tried at every position.

use super::normalize;
use super::rule_definition::{ScanPattern, TextForm, ValueCheck};
use super::validators::{self, MatchCandidate};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;

/// Number of bytes that an expression sees, counted from its hint.
const WINDOW_BYTES: usize = 512;

/// Compiled patterns. A match refers to its pattern by index.
#[derive(Debug)]
pub(super) struct Matcher {
    raw: Hints,
    words: Hints,
    expressions: Vec<Regex>,
    checks: Vec<ValueCheck>,
}

/// A match of one pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternMatch {
    /// Index of the pattern.
    pub(super) pattern: usize,
    /// Byte range of the value, on character boundaries.
    pub(super) span: Range<usize>,
}

impl Matcher {
    pub(super) fn new(patterns: &[&'static ScanPattern]) -> Self {
        Self {
            raw: Hints::new(patterns, TextForm::Raw),
            words: Hints::new(patterns, TextForm::Words),
            expressions: patterns.iter().map(|pattern| expression(pattern)).collect(),
            checks: patterns.iter().map(|pattern| pattern.check).collect(),
        }
    }

    /// All matches, in no particular order.
    pub(super) fn find(&self, text: &str) -> Vec<PatternMatch> {
        let mut found = self.find_in(text.as_bytes(), &self.raw);
        for found in &mut found {
            found.span = whole_characters(text, found.span.clone());
        }
        let words = self.find_in(&normalize::fold(text), &self.words);
        if !words.is_empty() {
            let places = normalize::places(text);
            found.extend(words.into_iter().map(|PatternMatch { pattern, span }| PatternMatch {
                pattern,
                span: places[span.start].start..places[span.end - 1].end,
            }));
        }
        found
    }

    fn find_in(&self, text: &[u8], hints: &Hints) -> Vec<PatternMatch> {
        let mut found = Vec::new();
        let Some(automaton) = &hints.automaton else { return found };
        // A pattern is not tried again inside its previous match.
        let mut done = vec![0; self.expressions.len()];
        for hint in automaton.find_overlapping_iter(text) {
            let pattern = hints.patterns[hint.pattern().as_usize()];
            if hint.start() < done[pattern] || !self.may_begin(text, hint.start(), pattern) {
                continue;
            }
            if let Some(span) = self.try_at(text, hint.start(), pattern) {
                done[pattern] = span.end;
                found.push(PatternMatch { pattern, span });
            }
        }
        found
    }

    /// A hint that starts with a word character must begin a word, except in names such as
    /// `dbPassword`.
    fn may_begin(&self, text: &[u8], at: usize, pattern: usize) -> bool {
        let joins = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        self.checks[pattern] == ValueCheck::Assigned
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
        let candidate = MatchCandidate { text, at, value: at + value.start()..at + value.end() };
        validators::passes(self.checks[pattern], &candidate)
    }
}

/// Automaton over the hints of all patterns of one reading.
#[derive(Debug)]
struct Hints {
    automaton: Option<AhoCorasick>,
    /// Index of the pattern of each hint.
    patterns: Vec<usize>,
}

impl Hints {
    fn new(patterns: &[&'static ScanPattern], reading: TextForm) -> Self {
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

fn expression(pattern: &ScanPattern) -> Regex {
    let body = match pattern.reading {
        TextForm::Raw => pattern.expression.to_owned(),
        TextForm::Words => pattern.expression.replace(' ', " ?"),
    };
    RegexBuilder::new(&format!("^(?:{body})"))
        .unicode(false)
        .build()
        .expect("the expressions are a table of constants, each tried by a test")
}

/// Extends the span to character boundaries.
fn whole_characters(text: &str, span: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(span.start)..text.ceil_char_boundary(span.end)
}
