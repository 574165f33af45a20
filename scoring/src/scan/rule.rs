//! What a rule of the scan is: where it may begin, what must follow, and what the value must be.
//!
//! A rule is data. It never runs anything: the matcher reads it, so a rule can be printed, listed in
//! the documentation and counted in a measurement.

use super::{Axis, Severity};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// A stable name, in kebab-case. Stored findings refer to it, so it is never used again for
    /// something else.
    pub name: &'static str,
    /// What it looks for.
    pub axis: Axis,
    /// How grave a finding is, alone.
    pub severity: Severity,
    /// What a finding is, for people.
    pub what: &'static str,
    pub(super) pattern: Pattern,
}

/// Where and how a rule matches.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Which form of the text it reads.
    pub(super) reading: Reading,
    /// A match begins with one of these, whatever their case.
    pub(super) hints: &'static [&'static str],
    /// A regular expression, anchored where a hint begins, without unbounded repetition: that keeps
    /// the scan linear. A group, where there is one, is the value; otherwise the match is.
    pub(super) expression: &'static str,
    /// What the value must be.
    pub(super) check: Check,
}

/// The form of the text a pattern reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As it was written.
    Raw,
    /// Its words alone, as `fold` gives them. A space in the expression may be missing in the text.
    Words,
}

/// What the value of a match must be for the match to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Anything.
    Any,
    /// A token whose issuer gives it a prefix: varied, and not a placeholder.
    Token,
    /// A token without a prefix: also mixed of letters and digits.
    Opaque,
    /// Three parts of base64url, the first of which is a JSON object with `alg`.
    Jwt,
    /// A PEM block with something in it.
    Pem,
    /// `user:password` in base64.
    Basic,
    /// A password in a URL.
    UrlPassword,
    /// What is assigned to a name that sounds secret.
    Assigned,
    /// A password named in a sentence.
    ProsePassword,
    /// A token named in a sentence.
    ProseToken,
}
