//! Parses the version ranges of manifests, each in its own dialect.

use super::LowestVersion;
use crate::predicate::version::{Comparator, Operator, PackageVersion, lowest};

/// Notation of ranges in one manifest format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Operator of a version that is written without one.
    pub(super) bare: Operator,
    /// `>V` starts at the next version with at least this many numbers.
    pub(super) numbers_min: usize,
}

impl Dialect {
    /// Lowest version of a range; `None` if it has no lower bound or is invalid.
    ///
    /// For alternatives (`^17 || ^18`) it is the lowest of all, and `None` as soon as one has no
    /// lower bound.
    pub(super) fn lowest(self, range: &str) -> LowestVersion {
        let alternatives = range.split("||").map(|range| {
            let comparators = self.comparators(range.trim())?;
            lowest(&comparators, self.numbers_min)
        });
        let all: Option<Vec<PackageVersion>> = alternatives.collect();
        all?.into_iter().min_by(PackageVersion::order)
    }

    /// Comparisons of one alternative; a lone wildcard gives none.
    fn comparators(self, range: &str) -> Option<Vec<Comparator>> {
        if let Some((from, to)) = range.split_once(" - ") {
            let from = self.comparator(Operator::AtLeast, from.trim())?;
            let to = self.comparator(Operator::AtMost, to.trim())?;
            return Some([from, to].into_iter().flatten().collect());
        }
        let mut found = Vec::new();
        let mut rest = range.trim_start_matches(SEPARATORS);
        while !rest.is_empty() {
            let (operator, after) = Operator::split(rest).unwrap_or((self.bare, rest));
            let after = after.trim_start();
            let end = after.find(|c| is_separator(c) || is_sign(c)).unwrap_or(after.len());
            found.extend(self.comparator(operator, &after[..end])?);
            rest = after[end..].trim_start_matches(SEPARATORS);
        }
        Some(found)
    }

    /// One comparison: none for `*`; `1.*` matches any version that begins with 1.
    fn comparator(self, operator: Operator, version: &str) -> Option<Option<Comparator>> {
        let mut stem = version;
        while let Some(shorter) = WILDCARDS.iter().find_map(|wild| stem.strip_suffix(wild)) {
            if shorter.is_empty() {
                return Some(None);
            }
            // A pre-release name may end in `x` as well.
            let Some(shorter) = shorter.strip_suffix('.') else { break };
            stem = shorter;
        }
        let is_wild = stem != version;
        let operator = if is_wild && operator == self.bare { Operator::Exact } else { operator };
        Some(Some(Comparator::new(operator, PackageVersion::parse(stem)?)?))
    }
}

const WILDCARDS: [&str; 3] = ["*", "x", "X"];

const SEPARATORS: [char; 4] = [' ', ',', '\t', '\n'];

fn is_separator(c: char) -> bool {
    SEPARATORS.contains(&c)
}

fn is_sign(c: char) -> bool {
    matches!(c, '<' | '>' | '=' | '!' | '^' | '~')
}
