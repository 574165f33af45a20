//! Whether what an entry depends on still holds in a checkout: a small language of predicates.
//!
//! `path:src/lib.rs AND dep:cargo:tokio>=1.40` is checked against the caller's checkout whenever the
//! entry is read. What people write is in `docs/predicates.md`; this is how it is read and judged.
//! There are three answers, since a file that cannot be read proves nothing either way.
//!
//! Predicates come from others, so everything about them is bounded: their length, their depth, the
//! files they look at and the work of looking. They cannot name anything outside of the checkout,
//! see only what git tracks, run nothing, and their answers name atoms, never what a file says.
//! Whose predicates are evaluated at all is the caller's to decide.

mod checkout;
mod evaluate;
mod freshness;
mod glob;
mod manifest;
mod parse;
mod pattern;
mod reason;
mod session;
mod version;

use std::fmt;
use std::str::FromStr;

pub use checkout::{Checkout, Unreadable};
pub use evaluate::{Outcome, evaluate, evaluate_all};
pub use freshness::{Checked, Flag, check};
pub use parse::{ATOMS_MAX, DEPTH_MAX, ParseError, TEXT_BYTES_MAX};
pub use reason::{Finding, Reason};
pub use session::Params;

use glob::Glob;
use manifest::Ecosystem;
use parse::Patterns;
use pattern::Pattern;
use version::Comparator;

/// Something that may be so in a checkout, or not.
///
/// Shown as text, it is the same predicate again when parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    root: Expression,
}

impl Predicate {
    /// Reads a predicate.
    ///
    /// # Errors
    /// Where the text is no predicate: at which byte, what was expected there, and an example.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text, Patterns::Tried).map(|root| Predicate { root })
    }

    /// The same of a text that somebody else wrote: a pattern that cannot be compiled is found out
    /// where it is looked for, which costs what a look may cost.
    ///
    /// # Errors
    /// As above, but for patterns.
    pub fn read(text: &str) -> Result<Self, ParseError> {
        parse::parse(text, Patterns::Taken).map(|root| Predicate { root })
    }

    /// The text of a `hash:` atom for a file as it is now, whole or from one line to another; none
    /// where the file has fewer lines or the path may not be written.
    #[must_use]
    pub fn of_content(
        path: &str,
        lines: Option<(u32, u32)>,
        content: &[u8],
        digest: impl Fn(&[u8]) -> [u8; 32],
    ) -> Option<Self> {
        let lines = match lines {
            Some((first, last)) => Some(Lines::new(first, last)?),
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

/// What is asked of a checkout. Each holds as soon as one file makes it hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    /// There is such a file.
    Path(Glob),
    /// A file, or some lines of it, have that digest.
    Hash { file: Glob, lines: Option<Lines>, digest: String },
    /// Such a file has a text of that pattern.
    Text { files: Glob, pattern: Pattern },
    /// A manifest declares a package with such a lowest version.
    Dependency(Dependency),
}

/// Lines of a file, counted from 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    first: u32,
    last: u32,
}

impl Lines {
    fn new(first: u32, last: u32) -> Option<Self> {
        (1 <= first && first <= last).then_some(Lines { first, last })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dependency {
    ecosystem: Ecosystem,
    package: String,
    /// All of these must hold; where there are none, being declared is enough.
    comparators: Vec<Comparator>,
    /// Which manifests are asked; all of that kind where none is named.
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

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lines { first, last } = self;
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

/// Bytes as lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
