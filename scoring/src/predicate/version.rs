//! Versions and what is asked of them, in one notation for all four kinds of manifest.
//!
//! A comparison looks at as many numbers as are asked for: 1.40.3 is `=1.40`, and is not `>1.40`.
//! A pre-release comes before its release only where all three numbers are asked for, so that
//! 2.0.0-rc.1 is neither `<2` nor `>=2.0.0`. Separate from the manifests, which only say where
//! versions stand and how their own notations differ.

use std::cmp::Ordering;
use std::fmt;

/// The most numbers in a version.
const NUMBERS_MAX: usize = 6;

/// From so many numbers on, a pre-release counts as before its release.
const NUMBERS_OF_A_RELEASE: usize = 3;

/// A version: `1.40.3`, `v0.20`, `2.0.0-rc.1`, `1.0rc1`, `1.0.post2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    numbers: Vec<u64>,
    stage: Stage,
}

/// Where a version stands beside the release of its numbers, earliest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before(Vec<Part>),
    Release,
    After(u64),
}

/// A part of a pre-release; numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Version {
    /// The version, if the text is one. What follows a `+` says nothing about order.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let text = text.split('+').next().unwrap_or_default();
        let mut numbers = Vec::new();
        let mut rest = text;
        loop {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            numbers.push(rest[..digits].parse().ok()?);
            rest = &rest[digits..];
            match rest.strip_prefix('.') {
                Some(more) if more.starts_with(|c: char| c.is_ascii_digit()) => rest = more,
                _ => break,
            }
        }
        if numbers.len() > NUMBERS_MAX {
            return None;
        }
        Some(Version { numbers, stage: Stage::parse(rest)? })
    }

    /// The order of two versions, where numbers left out are 0.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        self.compare_numbers(other, longest).then_with(|| self.stage.cmp(&other.stage))
    }

    fn number(&self, at: usize) -> u64 {
        self.numbers.get(at).copied().unwrap_or(0)
    }

    fn compare_numbers(&self, other: &Self, first: usize) -> Ordering {
        let pairs = (0..first).map(|at| self.number(at).cmp(&other.number(at)));
        pairs.fold(Ordering::Equal, Ordering::then)
    }

    /// How this version compares with what is asked for.
    fn compare(&self, wanted: &Self) -> Ordering {
        let numbers = wanted.numbers.len();
        let is_whole = numbers >= NUMBERS_OF_A_RELEASE || wanted.stage != Stage::Release;
        let stages = if is_whole { self.stage.cmp(&wanted.stage) } else { Ordering::Equal };
        self.compare_numbers(wanted, numbers).then(stages)
    }

    /// The next release that a version beyond this one can have, where `numbers_min` are written.
    fn next(&self, numbers_min: usize) -> Option<Self> {
        let mut numbers = self.numbers.clone();
        numbers.resize(numbers.len().max(numbers_min), 0);
        let last = numbers.last_mut()?;
        *last = last.checked_add(1)?;
        (self.stage == Stage::Release).then_some(Version { numbers, stage: Stage::Release })
    }
}

impl Stage {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Stage::Release);
        }
        if let Some(parts) = text.strip_prefix('-') {
            return parts.split('.').map(Part::parse).collect::<Option<_>>().map(Stage::Before);
        }
        // Python writes 1.0rc1, 1.0.post2 and 1.0.dev3.
        let text = text.trim_start_matches(['.', '_']);
        let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let digits = text[letters..].trim_start_matches(['.', '-', '_']);
        let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let before =
            |word: &str| Stage::Before(vec![Part::Word(word.to_owned()), Part::Number(number)]);
        match text[..letters].to_ascii_lowercase().as_str() {
            "a" | "alpha" => Some(before("a")),
            "b" | "beta" => Some(before("b")),
            "c" | "rc" | "pre" | "preview" => Some(before("rc")),
            "dev" => Some(Stage::Before(vec![Part::Number(0), Part::Number(number)])),
            "post" | "rev" | "r" => Some(Stage::After(number)),
            _ => None,
        }
    }
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.is_empty() || !text.chars().all(is_word) {
            None
        } else if text.chars().all(|c| c.is_ascii_digit()) {
            text.parse().ok().map(Part::Number)
        } else {
            Some(Part::Word(text.to_owned()))
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))?;
        match &self.stage {
            Stage::Release => Ok(()),
            Stage::After(number) => write!(f, ".post{number}"),
            Stage::Before(parts) => {
                let text = |part: &Part| match part {
                    Part::Number(number) => number.to_string(),
                    Part::Word(word) => word.clone(),
                };
                write!(f, "-{}", parts.iter().map(text).collect::<Vec<_>>().join("."))
            }
        }
    }
}

/// How a version is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Exact,
    Unequal,
    Greater,
    AtLeast,
    Less,
    AtMost,
    Caret,
    Tilde,
    Compatible,
}

/// The operators as written; the longer ones first, as they begin with shorter ones.
const OPERATORS: [(&str, Operator); 10] = [
    ("==", Operator::Exact),
    ("!=", Operator::Unequal),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("~=", Operator::Compatible),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("^", Operator::Caret),
    ("~", Operator::Tilde),
    ("=", Operator::Exact),
];

impl Operator {
    /// The operator at the beginning of a text, and what follows it.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        OPERATORS.iter().find_map(|(sign, of)| text.strip_prefix(sign).map(|rest| (*of, rest)))
    }

    fn sign(self) -> &'static str {
        // From the end, so that it is `=` rather than `==`.
        OPERATORS.iter().rev().find(|(_, of)| *of == self).map_or("", |(sign, _)| sign)
    }
}

/// One thing asked of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparator {
    operator: Operator,
    version: Version,
}

impl Comparator {
    /// The comparison; `~=` needs two numbers, the last of which may grow.
    pub(super) fn new(operator: Operator, version: Version) -> Option<Self> {
        let is_whole = operator != Operator::Compatible || version.numbers.len() >= 2;
        is_whole.then_some(Comparator { operator, version })
    }

    /// Whether a version is what is asked for.
    pub(super) fn admits(&self, found: &Version) -> bool {
        let wanted = &self.version;
        let order = found.compare(wanted);
        let same = |first: usize| found.compare_numbers(wanted, first) == Ordering::Equal;
        let written = wanted.numbers.len();
        match self.operator {
            Operator::Exact => order == Ordering::Equal,
            Operator::Unequal => order != Ordering::Equal,
            Operator::Greater => order == Ordering::Greater,
            Operator::AtLeast => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::AtMost => order != Ordering::Greater,
            Operator::Caret => {
                let kept = wanted.numbers.iter().position(|number| *number != 0);
                order != Ordering::Less && same(kept.map_or(written, |at| at + 1))
            }
            Operator::Tilde => order != Ordering::Less && same(written.min(2)),
            Operator::Compatible => order != Ordering::Less && same(written - 1),
        }
    }

    /// The lowest version it admits, if there is one. Beyond `>V` lies the next version with at
    /// least `numbers_min` numbers.
    fn lowest(&self, numbers_min: usize) -> Option<Version> {
        match self.operator {
            Operator::Exact
            | Operator::AtLeast
            | Operator::Caret
            | Operator::Tilde
            | Operator::Compatible => Some(self.version.clone()),
            Operator::Greater => self.version.next(numbers_min),
            Operator::Unequal | Operator::Less | Operator::AtMost => None,
        }
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.operator.sign(), self.version)
    }
}

/// The lowest version that all of these admit: the highest of their lower bounds, unless one of
/// them excludes it.
pub(super) fn lowest(comparators: &[Comparator], numbers_min: usize) -> Option<Version> {
    let bounds = comparators.iter().filter_map(|of| of.lowest(numbers_min));
    let lowest = bounds.max_by(Version::order)?;
    let is_excluded = |of: &Comparator| of.operator == Operator::Unequal && !of.admits(&lowest);
    (!comparators.iter().any(is_excluded)).then_some(lowest)
}
