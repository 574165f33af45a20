//! Data type of a scan rule: hints, expression, and the validation of the value.
//!
//! A rule is data. It never runs anything: the matcher reads it, so a rule can be printed, listed
//! in the documentation and counted in a measurement.

use super::{ScanAxis, Severity};

/// One rule of the content scan.
#[derive(Debug)]
pub struct ScanRule {
    /// Stable name in kebab-case. Stored findings refer to it, so a name is never reused for
    /// another rule.
    pub name: &'static str,
    /// Category of the content that the rule detects.
    pub axis: ScanAxis,
    /// Severity of a single finding.
    pub severity: Severity,
    /// Description of a finding, for people.
    pub what: &'static str,
    pub(super) pattern: ScanPattern,
}

/// Where and how a rule matches.
#[derive(Debug)]
pub(super) struct ScanPattern {
    /// Form of the text that the pattern is matched against.
    pub(super) reading: TextForm,
    /// Strings with which a match begins, ignoring case.
    pub(super) hints: &'static [&'static str],
    /// Regular expression, anchored at the start of a hint, without unbounded repetition: that
    /// keeps the scan linear. The value is the first group, or the whole match if there is none.
    pub(super) expression: &'static str,
    /// Validation of the value.
    pub(super) check: ValueCheck,
}

/// Form of the text that a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    /// The text as it was written.
    Raw,
    /// The normalised words, as `fold` returns them. A space in the expression may be missing in
    /// the text.
    Words,
}

/// Validation that the value of a match must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// Any value passes.
    Any,
    /// A token with an issuer's prefix: varied, and not a placeholder.
    Token,
    /// A token without a prefix: also a mix of letters and digits.
    Opaque,
    /// Three parts of base64url, the first of which is a JSON object with `alg`.
    Jwt,
    /// A PEM block that is not empty.
    Pem,
    /// `user:password` in base64.
    Basic,
    /// A password in a URL.
    UrlPassword,
    /// A value assigned to a name that suggests a secret.
    Assigned,
    /// A password stated in a sentence.
    ProsePassword,
    /// A token stated in a sentence.
    ProseToken,
}
