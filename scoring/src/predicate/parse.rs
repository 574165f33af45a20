//! Parser of predicates, with limits that are checked before anything is stored.

use std::error::Error;
use std::fmt;

use super::bounded_regex::BoundedRegex;
use super::glob::Glob;
use super::manifest::Ecosystem;
use super::version::{Comparator, Operator, PackageVersion};
use super::{Atom, Dependency, Expression, LineRange};

/// Maximum length of a predicate in bytes.
pub const TEXT_BYTES_MAX: usize = 1024;

/// Maximum nesting depth of `NOT` and parentheses.
pub const DEPTH_MAX: usize = 8;

/// Maximum number of atoms in one predicate.
pub const ATOMS_MAX: usize = 32;

/// Maximum length of a package name in bytes.
const PACKAGE_BYTES_MAX: usize = 214;

/// Allowed number of hexadecimal digits in a digest.
const DIGEST_DIGITS: std::ops::RangeInclusive<usize> = 16..=64;

const PATH: &str = "path:src/lib.rs";
const HASH: &str = "hash:src/lib.rs#10-24=blake3:9f86d081884c7d65";
const TEXT: &str = r#"text:src/auth.rs~"fn verify\(""#;
const DEP: &str = "dep:cargo:tokio>=1.40,<2";
const JOINED: &str = "path:src/lib.rs AND NOT dep:npm:react<18";

/// Reason why a text is not a predicate. The `Display` form is a whole sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset at which parsing stopped.
    pub at: usize,
    /// Expected syntax at that offset.
    pub expected: &'static str,
    /// A valid predicate to show as an example.
    pub example: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { at, expected, example } = self;
        write!(f, "The predicate is invalid at byte {at}: expected {expected}, as in `{example}`.")
    }
}

impl Error for ParseError {}

type Parsed<T> = Result<T, ParseError>;

/// Parses a predicate; `patterns` says whether its patterns are compiled as well.
pub(super) fn parse(text: &str, patterns: Patterns) -> Parsed<Expression> {
    let mut parser = Parser { text, at: 0, atoms: 0, patterns };
    if text.len() > TEXT_BYTES_MAX {
        parser.at = TEXT_BYTES_MAX;
        return parser.fail("at most 1024 bytes", PATH);
    }
    let root = parser.any(0)?;
    parser.skip_space();
    if parser.rest().is_empty() { Ok(root) } else { parser.fail("`AND`, `OR` or the end", JOINED) }
}

/// Whether an unquoted path ends before this character.
pub(super) fn ends_bare_path(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '(' | ')' | '~' | '#' | '=')
}

/// Whether the parser compiles patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patterns {
    /// Patterns must compile.
    Tried,
    /// Patterns are compiled at evaluation only.
    Taken,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    atoms: usize,
    patterns: Patterns,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, expected: &'static str, example: &'static str) -> Parsed<T> {
        Err(ParseError { at: self.at, expected, example })
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Consumes `wanted` if the rest of the text starts with it.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.rest().starts_with(wanted);
        self.at += if is_next { wanted.len() } else { 0 };
        is_next
    }

    /// Consumes the text up to a character for which `ends` holds.
    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Consumes the keyword `wanted`, ignoring case, if it comes next.
    fn word(&mut self, wanted: &str) -> bool {
        let before = self.at;
        self.skip_space();
        let given = self.take_until(|c| c.is_whitespace() || matches!(c, '(' | ')'));
        let is_next = given.eq_ignore_ascii_case(wanted);
        if !is_next {
            self.at = before;
        }
        is_next
    }

    fn any(&mut self, depth: usize) -> Parsed<Expression> {
        let mut parts = vec![self.all(depth)?];
        while self.word("OR") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Parsed<Expression> {
        let mut parts = vec![self.single(depth)?];
        while self.word("AND") {
            parts.push(self.single(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn single(&mut self, depth: usize) -> Parsed<Expression> {
        self.skip_space();
        let is_not = self.word("NOT");
        if !is_not && !self.take("(") {
            return self.atom().map(Expression::Atom);
        }
        if depth == DEPTH_MAX {
            return self.fail("at most 8 levels of `NOT` and parentheses", JOINED);
        }
        if is_not {
            return self.single(depth + 1).map(|inner| Expression::Not(Box::new(inner)));
        }
        let inner = self.any(depth + 1)?;
        self.skip_space();
        if self.take(")") { Ok(inner) } else { self.fail("`AND`, `OR` or `)`", JOINED) }
    }

    fn atom(&mut self) -> Parsed<Atom> {
        if self.atoms == ATOMS_MAX {
            return self.fail("at most 32 atoms", JOINED);
        }
        self.atoms += 1;
        if self.take("path:") {
            self.path(PATH).map(Atom::Path)
        } else if self.take("hash:") {
            self.hash()
        } else if self.take("text:") {
            self.pattern()
        } else if self.take("dep:") {
            self.dependency().map(Atom::Dependency)
        } else {
            self.fail("`path:`, `hash:`, `text:`, `dep:`, `NOT` or `(`", JOINED)
        }
    }

    fn path(&mut self, example: &'static str) -> Parsed<Glob> {
        let start = self.at;
        let text = if self.take("\"") {
            let text = self.take_until(|c| c == '"');
            if !self.take("\"") {
                return self.fail("`\"` at the end of the path", "path:\"docs/a page.md\"");
            }
            text
        } else {
            self.take_until(ends_bare_path)
        };
        Glob::new(text).map_err(|expected| ParseError { at: start, expected, example })
    }

    fn hash(&mut self) -> Parsed<Atom> {
        let start = self.at;
        let file = self.path(HASH)?;
        if !file.is_plain() {
            return Err(ParseError {
                at: start,
                expected: "a path without wildcards",
                example: HASH,
            });
        }
        let lines = if self.take("#") { Some(self.lines()?) } else { None };
        if !self.take("=blake3:") {
            return self.fail("`#`, two line numbers, and `=blake3:`", HASH);
        }
        let start = self.at;
        let digest = self.take_until(|c| !c.is_ascii_hexdigit());
        if !DIGEST_DIGITS.contains(&digest.len()) {
            self.at = start;
            return self.fail("16 to 64 hexadecimal digits", HASH);
        }
        Ok(Atom::Hash { file, lines, digest: digest.to_ascii_lowercase() })
    }

    fn lines(&mut self) -> Parsed<LineRange> {
        let start = self.at;
        let first = self.take_until(|c| !c.is_ascii_digit());
        let last = if self.take("-") { self.take_until(|c| !c.is_ascii_digit()) } else { first };
        let lines = first.parse().ok().zip(last.parse().ok());
        let lines = lines.and_then(|(first, last)| LineRange::new(first, last));
        let expected = "line numbers from 1 on, the first not after the last";
        lines.ok_or(ParseError { at: start, expected, example: HASH })
    }

    fn pattern(&mut self) -> Parsed<Atom> {
        let files = self.path(TEXT)?;
        if !self.take("~\"") {
            return self.fail("`~` and a pattern in quotation marks", TEXT);
        }
        let start = self.at;
        loop {
            self.take_until(|c| matches!(c, '"' | '\\'));
            if !self.take("\\") {
                break;
            }
            // A character after a backslash belongs to the pattern, even a quotation mark.
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
        let text = &self.text[start..self.at];
        if !self.take("\"") {
            return self.fail("`\"` at the end of the pattern", TEXT);
        }
        let wrong = |expected| ParseError { at: start, expected, example: TEXT };
        let pattern = BoundedRegex::new(text).map_err(wrong)?;
        if self.patterns == Patterns::Tried {
            pattern.compile().map_err(wrong)?;
        }
        Ok(Atom::Text { files, pattern })
    }

    fn dependency(&mut self) -> Parsed<Dependency> {
        let start = self.at;
        let name = self.take_until(|c| !c.is_ascii_alphanumeric());
        let ecosystem = Ecosystem::ALL.into_iter().find(|of| of.name() == name);
        let Some(ecosystem) = ecosystem.filter(|_| self.take(":")) else {
            self.at = start;
            return self.fail("`cargo:`, `npm:`, `pypi:` or `go:`", DEP);
        };
        let package = self.package(ecosystem)?;
        let mut comparators = Vec::new();
        if Operator::split(self.rest()).is_some() {
            comparators.push(self.comparator()?);
            while self.take(",") {
                comparators.push(self.comparator()?);
            }
        }
        let manifests = if self.word("in") { Some(self.manifests(ecosystem)?) } else { None };
        Ok(Dependency { ecosystem, package, comparators, manifests })
    }

    fn package(&mut self, ecosystem: Ecosystem) -> Parsed<String> {
        let start = self.at;
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@');
        self.take_until(|c| !is_part(c));
        // Go module paths contain `~` before a word; as an operator it precedes a version.
        while self.rest().starts_with('~')
            && self.text[..self.at].ends_with('/')
            && self.rest()[1..].starts_with(is_part)
        {
            self.at += 1;
            self.take_until(|c| !is_part(c));
        }
        let name = &self.text[start..self.at];
        let begins =
            name.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '_'));
        // A name made of separators only normalises to an empty string.
        let normal = ecosystem.normal(name);
        if !begins || normal.is_empty() || name.len() > PACKAGE_BYTES_MAX {
            self.at = start;
            return self.fail("the name of a package", DEP);
        }
        Ok(normal)
    }

    fn comparator(&mut self) -> Parsed<Comparator> {
        let Some((operator, rest)) = Operator::split(self.rest()) else {
            return self.fail("`=`, `!=`, `<`, `<=`, `>`, `>=`, `^`, `~` or `~=`", DEP);
        };
        self.at = self.text.len() - rest.len();
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
        let version = PackageVersion::parse(self.take_until(|c| !is_part(c)));
        let comparator = version.and_then(|version| Comparator::new(operator, version));
        let expected = "a version (two numbers or more after `~=`)";
        comparator.ok_or(ParseError { at: start, expected, example: DEP })
    }

    fn manifests(&mut self, ecosystem: Ecosystem) -> Parsed<Glob> {
        const EXAMPLE: &str = "dep:cargo:tokio>=1.40 in node/Cargo.toml";
        self.skip_space();
        let start = self.at;
        let manifests = self.path(EXAMPLE)?;
        if manifests.file_name() == ecosystem.file_name() {
            return Ok(manifests);
        }
        let expected = match ecosystem {
            Ecosystem::Cargo => "a path to Cargo.toml",
            Ecosystem::Npm => "a path to package.json",
            Ecosystem::Pypi => "a path to pyproject.toml",
            Ecosystem::Go => "a path to go.mod",
        };
        Err(ParseError { at: start, expected, example: EXAMPLE })
    }
}
