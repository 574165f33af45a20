//! Versions and version comparisons, in one notation for all four ecosystems.
//!
//! A comparison looks at as many numbers as are written: 1.40.3 satisfies `=1.40` and does not
//! satisfy `>1.40`. A pre-release sorts before its release only if all three numbers are written,
//! so that 2.0.0-rc.1 satisfies neither `<2` nor `>=2.0.0`. Separate from the manifests, which only
//! say where versions are written and how their notations differ.

use std::cmp::Ordering;
use std::fmt;

/// Maximum number of numbers in a version.
const NUMBERS_MAX: usize = 6;

/// Number of written numbers from which a pre-release sorts before its release.
const NUMBERS_OF_A_RELEASE: usize = 3;

/// A version: `1.40.3`, `v0.20`, `2.0.0-rc.1`, `1.0rc1`, `1.0.post2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackageVersion {
    numbers: Vec<u64>,
    stage: ReleaseStage,
}

/// Position of a version relative to the release of its numbers, earliest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReleaseStage {
    Before(Vec<PreReleasePart>),
    Release,
    After(u64),
}

/// Part of a pre-release; numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreReleasePart {
    Number(u64),
    Word(String),
}

impl PackageVersion {
    /// Parses a version. The build metadata after a `+` does not affect the order.
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
        Some(PackageVersion { numbers, stage: ReleaseStage::parse(rest)? })
    }

    /// Order of two versions, where missing numbers are 0.
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

    /// Order relative to a wanted version, on as many numbers as that one has.
    fn compare(&self, wanted: &Self) -> Ordering {
        let numbers = wanted.numbers.len();
        let is_whole = numbers >= NUMBERS_OF_A_RELEASE || wanted.stage != ReleaseStage::Release;
        let stages = if is_whole { self.stage.cmp(&wanted.stage) } else { Ordering::Equal };
        self.compare_numbers(wanted, numbers).then(stages)
    }

    /// The next release after this one, written with at least `numbers_min` numbers.
    fn next(&self, numbers_min: usize) -> Option<Self> {
        let mut numbers = self.numbers.clone();
        numbers.resize(numbers.len().max(numbers_min), 0);
        let last = numbers.last_mut()?;
        *last = last.checked_add(1)?;
        (self.stage == ReleaseStage::Release)
            .then_some(PackageVersion { numbers, stage: ReleaseStage::Release })
    }
}

impl ReleaseStage {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(ReleaseStage::Release);
        }
        if let Some(parts) = text.strip_prefix('-') {
            return parts
                .split('.')
                .map(PreReleasePart::parse)
                .collect::<Option<_>>()
                .map(ReleaseStage::Before);
        }
        // Python writes 1.0rc1, 1.0.post2 and 1.0.dev3.
        let text = text.trim_start_matches(['.', '_']);
        let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let digits = text[letters..].trim_start_matches(['.', '-', '_']);
        let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let before = |word: &str| {
            ReleaseStage::Before(vec![
                PreReleasePart::Word(word.to_owned()),
                PreReleasePart::Number(number),
            ])
        };
        match text[..letters].to_ascii_lowercase().as_str() {
            "a" | "alpha" => Some(before("a")),
            "b" | "beta" => Some(before("b")),
            "c" | "rc" | "pre" | "preview" => Some(before("rc")),
            "dev" => Some(ReleaseStage::Before(vec![
                PreReleasePart::Number(0),
                PreReleasePart::Number(number),
            ])),
            "post" | "rev" | "r" => Some(ReleaseStage::After(number)),
            _ => None,
        }
    }
}

impl PreReleasePart {
    fn parse(text: &str) -> Option<Self> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.is_empty() || !text.chars().all(is_word) {
            None
        } else if text.chars().all(|c| c.is_ascii_digit()) {
            text.parse().ok().map(PreReleasePart::Number)
        } else {
            Some(PreReleasePart::Word(text.to_owned()))
        }
    }
}

impl fmt::Display for PackageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))?;
        match &self.stage {
            ReleaseStage::Release => Ok(()),
            ReleaseStage::After(number) => write!(f, ".post{number}"),
            ReleaseStage::Before(parts) => {
                let text = |part: &PreReleasePart| match part {
                    PreReleasePart::Number(number) => number.to_string(),
                    PreReleasePart::Word(word) => word.clone(),
                };
                write!(f, "-{}", parts.iter().map(text).collect::<Vec<_>>().join("."))
            }
        }
    }
}

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

/// Operators in their notation; longer ones first, since they begin with shorter ones.
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
    /// Splits the operator off the beginning of a text.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        OPERATORS.iter().find_map(|(sign, of)| text.strip_prefix(sign).map(|rest| (*of, rest)))
    }

    fn sign(self) -> &'static str {
        // Searched from the end to find `=` rather than `==`.
        OPERATORS.iter().rev().find(|(_, of)| *of == self).map_or("", |(sign, _)| sign)
    }
}

/// One operator applied to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparator {
    operator: Operator,
    version: PackageVersion,
}

impl Comparator {
    /// `None` for `~=` with fewer than two numbers, since the last number may grow.
    pub(super) fn new(operator: Operator, version: PackageVersion) -> Option<Self> {
        let is_whole = operator != Operator::Compatible || version.numbers.len() >= 2;
        is_whole.then_some(Comparator { operator, version })
    }

    /// Whether `found` satisfies the comparison.
    pub(super) fn admits(&self, found: &PackageVersion) -> bool {
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

    /// Lowest version that the comparison admits, if there is one. `>V` starts at the next version
    /// with at least `numbers_min` numbers.
    fn lowest(&self, numbers_min: usize) -> Option<PackageVersion> {
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

/// Lowest version that all comparisons admit: the highest of their lower bounds, unless one of them
/// excludes it.
pub(super) fn lowest(comparators: &[Comparator], numbers_min: usize) -> Option<PackageVersion> {
    let bounds = comparators.iter().filter_map(|of| of.lowest(numbers_min));
    let lowest = bounds.max_by(PackageVersion::order)?;
    let is_excluded = |of: &Comparator| of.operator == Operator::Unequal && !of.admits(&lowest);
    (!comparators.iter().any(is_excluded)).then_some(lowest)
}
