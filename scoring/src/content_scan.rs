//! Content scan: finds text that must not be believed, run or passed on, and rates its severity.
//!
//! A scan covers five axes with rules that are data ([`rule_table`]), and gives one verdict, which
//! [`admission`](crate::admission) and [`status`](crate::status) act on. A report names rules and
//! positions, never the text itself, so it can be shown and logged. [`Scanner::redact`] removes the
//! secrets; [`disclosure`] flags content that is no secret but should not leave an organisation.
//!
//! The verdict is the highest severity of all findings. A single secret or prompt injection is
//! *high*; high findings of two different kinds (a secret, an injection, an exfiltration, harmful
//! code) make it *critical*, because together they are an attack rather than an accident. Secrets
//! detected by shape and by sentence count as one kind.

use matcher::Matcher;
use rule_definition::ScanPattern;
use std::ops::Range;
use std::sync::LazyLock;

pub mod disclosure;
mod matcher;
mod normalize;
mod redact;
mod rule_definition;
pub mod rule_table;
mod string_shape;
mod validators;

pub use rule_definition::ScanRule;

/// Severity of a finding or a whole scan, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No rule matched.
    Safe,
    /// Worth a label, without further effect.
    Low,
    /// Must be outweighed by other merit in the admission rule.
    Medium,
    /// A single credential or prompt injection.
    High,
    /// High findings of several kinds together.
    Critical,
}

impl Severity {
    /// Whether the severity alone keeps an entry out of every answer, regardless of its other merit.
    #[must_use]
    pub fn disqualifies(self) -> bool {
        self >= Severity::High
    }

    /// Name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Safe => "safe",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// Category of the content that a rule detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScanAxis {
    /// Instructions to the reader of the text.
    Injection,
    /// Ways to send data out.
    Exfiltration,
    /// Credentials stated in a sentence.
    Leakage,
    /// Code that does harm when run.
    Code,
    /// Credentials detected by their shape.
    Credential,
}

impl ScanAxis {
    /// All five axes.
    pub const ALL: [ScanAxis; 5] = [
        ScanAxis::Injection,
        ScanAxis::Exfiltration,
        ScanAxis::Leakage,
        ScanAxis::Code,
        ScanAxis::Credential,
    ];

    /// Name shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ScanAxis::Injection => "prompt injection",
            ScanAxis::Exfiltration => "exfiltration",
            ScanAxis::Leakage => "credential leakage in prose",
            ScanAxis::Code => "code safety",
            ScanAxis::Credential => "credential detection",
        }
    }

    /// Whether the findings are secrets, whose text must not be stored.
    #[must_use]
    pub fn is_secret(self) -> bool {
        matches!(self, ScanAxis::Leakage | ScanAxis::Credential)
    }
}

/// One match of one rule.
#[derive(Clone, Debug)]
pub struct ScanMatch {
    /// The rule that matched.
    pub rule: &'static ScanRule,
    /// Byte range in the text, on character boundaries. It covers the whole of a secret.
    pub span: Range<usize>,
}

impl PartialEq for ScanMatch {
    fn eq(&self, other: &Self) -> bool {
        self.rule.name == other.rule.name && self.span == other.span
    }
}

/// Result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanReport {
    /// Findings, sorted by position.
    pub findings: Vec<ScanMatch>,
    /// Severity of all findings together.
    pub verdict: Severity,
}

impl ScanReport {
    fn new(mut findings: Vec<ScanMatch>) -> Self {
        findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
        let verdict = verdict(&findings);
        Self { findings, verdict }
    }

    /// Whether any finding is a secret.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.findings.iter().any(|finding| finding.rule.axis.is_secret())
    }
}

fn verdict(findings: &[ScanMatch]) -> Severity {
    let worst = findings.iter().map(|f| f.rule.severity).max().unwrap_or(Severity::Safe);
    let mut natures: Vec<ScanAxis> = findings
        .iter()
        .filter(|finding| finding.rule.severity.disqualifies())
        .map(|finding| finding.rule.axis)
        .map(|axis| if axis.is_secret() { ScanAxis::Credential } else { axis })
        .collect();
    natures.sort_unstable();
    natures.dedup();
    if natures.len() >= 2 { Severity::Critical } else { worst }
}

/// Compiled rules. Building it is expensive: build it once and keep it.
#[derive(Debug)]
pub struct Scanner {
    rules: Vec<&'static ScanRule>,
    matcher: Matcher,
}

/// The scanner of this process, built on first use.
static SHARED: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// The scanner that all callers of this process share.
#[must_use]
pub fn scanner() -> &'static Scanner {
    &SHARED
}

/// Replaces secrets in a text that goes to a log, a message or a stored question.
#[must_use]
pub fn redact_secrets(text: &str) -> String {
    let report = scanner().scan(text);
    if report.has_secret() { scanner().redact(text, &report) } else { text.to_owned() }
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner with every rule.
    #[must_use]
    pub fn new() -> Self {
        let rules: Vec<&'static ScanRule> = rule_table::all().collect();
        let patterns: Vec<&'static ScanPattern> = rules.iter().map(|rule| &rule.pattern).collect();
        Self { matcher: Matcher::new(&patterns), rules }
    }

    /// Scans a text, in time linear in its length.
    #[must_use]
    pub fn scan(&self, text: &str) -> ScanReport {
        let mut found = self.matcher.find(text);
        found.sort_by_key(|found| (found.span.start, found.pattern));
        let (mut secrets, mut findings) = (Vec::new(), Vec::new());
        for found in found {
            let is_secret = self.rules[found.pattern].axis.is_secret();
            if is_secret { &mut secrets } else { &mut findings }.push(found);
        }
        findings.extend(merged(secrets));
        let rule = |pattern: usize| self.rules[pattern];
        let findings = findings
            .into_iter()
            .map(|found| ScanMatch { rule: rule(found.pattern), span: found.span });
        ScanReport::new(findings.collect())
    }
}

/// Merges overlapping secrets into one finding: the first rule of the table names it, and it spans
/// all of them.
fn merged(secrets: Vec<matcher::PatternMatch>) -> Vec<matcher::PatternMatch> {
    let mut merged: Vec<matcher::PatternMatch> = Vec::new();
    for next in secrets {
        match merged.last_mut() {
            Some(last) if next.span.start < last.span.end => {
                last.pattern = last.pattern.min(next.pattern);
                last.span.end = last.span.end.max(next.span.end);
            }
            _ => merged.push(next),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
