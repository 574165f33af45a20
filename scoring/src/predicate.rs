//! Predicates over a checkout: a small language that says whether an entry's anchors still hold.
//!
//! `path:src/lib.rs AND dep:cargo:tokio>=1.40` is checked against the caller's checkout whenever
//! the entry is read. `docs/reference/predicates.md` documents the syntax for users; this module parses and
//! evaluates it. There are three results, since a file that cannot be read proves nothing either
//! way.
//!
//! Predicates come from other authors, so everything about them is bounded: length, depth, the
//! files they read and the work of reading them. They cannot name a path outside the checkout, see
//! only files that git tracks, run nothing, and their results name atoms, never file contents. The
//! caller decides whose predicates are evaluated at all.

mod atom_reason;
mod bounded_regex;
mod checkout;
mod evaluate;
mod glob;
mod manifest;
mod parse;
mod predicate_check;
mod read_cache;
mod version;

use std::fmt;
use std::str::FromStr;

pub use atom_reason::{AtomReason, AtomResult};
pub use checkout::{Checkout, ReadFailure};
pub use evaluate::{PredicateOutcome, evaluate, evaluate_all};
pub use parse::{ATOMS_MAX, DEPTH_MAX, ParseError, TEXT_BYTES_MAX};
pub use predicate_check::{AnchorState, BrokenPredicate, PredicateCheck, check};
pub use read_cache::Params;

use bounded_regex::BoundedRegex;
use glob::Glob;
use manifest::Ecosystem;
use parse::Patterns;
use version::Comparator;

/// A condition on a checkout.
///
/// Its `Display` form parses back to the same predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    root: Expression,
}

impl Predicate {
    /// Parses a predicate and compiles its patterns to validate them.
    ///
    /// # Errors
    /// If the text is not a predicate: the byte offset, the expected syntax and an example.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text, Patterns::Tried).map(|root| Predicate { root })
    }

    /// Parses a predicate that another author wrote, without compiling its patterns: an invalid
    /// pattern shows up at evaluation, where the work limits apply.
    ///
    /// # Errors
    /// As [`Predicate::parse`], except for invalid patterns.
    pub fn read(text: &str) -> Result<Self, ParseError> {
        parse::parse(text, Patterns::Taken).map(|root| Predicate { root })
    }

    /// Builds a `hash:` predicate for the current content of a file, for the whole file or a range
    /// of lines. `None` if the file has fewer lines or the path is not allowed in predicates.
    #[must_use]
    pub fn of_content(
        path: &str,
        lines: Option<(u32, u32)>,
        content: &[u8],
        digest: impl Fn(&[u8]) -> [u8; 32],
    ) -> Option<Self> {
        let lines = match lines {
            Some((first, last)) => Some(LineRange::new(first, last)?),
            None => None,
        };
        let file = Glob::new(path).ok().filter(Glob::is_plain)?;
        let digest = hex(&digest(&evaluate::span(content, lines)?));
        Some(Predicate { root: Expression::Atom(Atom::Hash { file, lines, digest }) })
    }
}

impl FromStr for Predicate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Predicate::parse(text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Atom(Atom),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

/// Smallest unit of a predicate. An atom holds as soon as one file makes it hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    /// A matching file exists.
    Path(Glob),
    /// The file, or a range of its lines, has this digest.
    Hash { file: Glob, lines: Option<LineRange>, digest: String },
    /// A matching file contains text that matches the pattern.
    Text { files: Glob, pattern: BoundedRegex },
    /// A manifest declares the package with a matching lowest version.
    Dependency(Dependency),
}

/// Range of lines, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineRange {
    first: u32,
    last: u32,
}

impl LineRange {
    fn new(first: u32, last: u32) -> Option<Self> {
        (1 <= first && first <= last).then_some(LineRange { first, last })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dependency {
    ecosystem: Ecosystem,
    package: String,
    /// Comparisons that must all hold; if empty, a declaration of the package is enough.
    comparators: Vec<Comparator>,
    /// Manifests to read; `None` means all manifests of the ecosystem.
    manifests: Option<Glob>,
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Atom(atom) => atom.fmt(f),
            Expression::Not(inner) => {
                f.write_str("NOT ")?;
                inner.fmt_inside(f, matches!(**inner, Expression::All(_) | Expression::Any(_)))
            }
            Expression::All(parts) => {
                let is_looser =
                    |part: &Expression| matches!(part, Expression::All(_) | Expression::Any(_));
                fmt_joined(f, parts, " AND ", is_looser)
            }
            Expression::Any(parts) => {
                fmt_joined(f, parts, " OR ", |part| matches!(part, Expression::Any(_)))
            }
        }
    }
}

impl Expression {
    fn fmt_inside(&self, f: &mut fmt::Formatter<'_>, needs_parentheses: bool) -> fmt::Result {
        if needs_parentheses { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

fn fmt_joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expression],
    word: &str,
    is_looser: impl Fn(&Expression) -> bool,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        part.fmt_inside(f, is_looser(part))?;
    }
    Ok(())
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Path(files) => write!(f, "path:{files}"),
            Atom::Hash { file, lines: None, digest } => write!(f, "hash:{file}=blake3:{digest}"),
            Atom::Hash { file, lines: Some(lines), digest } => {
                write!(f, "hash:{file}#{lines}=blake3:{digest}")
            }
            Atom::Text { files, pattern } => write!(f, "text:{files}~\"{}\"", pattern.as_str()),
            Atom::Dependency(dependency) => dependency.fmt(f),
        }
    }
}

impl fmt::Display for LineRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineRange { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dep:{}:{}", self.ecosystem.name(), self.package)?;
        for (at, comparator) in self.comparators.iter().enumerate() {
            write!(f, "{}{comparator}", if at > 0 { "," } else { "" })?;
        }
        match &self.manifests {
            Some(manifests) => write!(f, " in {manifests}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.as_str();
        if text.contains(parse::ends_bare_path) {
            write!(f, "\"{text}\"")
        } else {
            f.write_str(text)
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
