//! What a text holds that must not be believed, run or passed on: findings, and how grave they are.
//!
//! A scan looks along five axes with rules that are data ([`rules`]), and gives one verdict, which
//! [`admission`](crate::admission) and [`status`](crate::status) act on. A report names rules and
//! places, never the text itself, so it can be shown and logged. [`Scanner::redact`] takes the
//! secrets out; [`share`] notes what should not leave a house although it is no secret.
//!
//! The verdict is that of the gravest finding. A secret or a prompt injection, alone, is *high*; high
//! findings of two different natures (a secret, an injection, an exfiltration, harmful code) make it
//! *critical*, because together they are an attack rather than an accident. A secret counts once,
//! whether its shape or a sentence gives it away.

use matcher::Matcher;
use rule::Pattern;
use std::ops::Range;

mod check;
mod fold;
mod matcher;
mod redact;
mod rule;
pub mod rules;
pub mod share;
mod value;

pub use rule::Rule;

/// The worst finding of a scan. The order is the order of gravity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No rule matched.
    Safe,
    /// Something worth a label.
    Low,
    /// Something that needs merit elsewhere to be outweighed.
    Medium,
    /// A credential or a prompt injection, alone, is this grave.
    High,
    /// Worse than high: several natures of high findings together.
    Critical,
}

impl Severity {
    /// Whether the finding alone keeps an entry out of every answer, whatever speaks for it.
    #[must_use]
    pub fn disqualifies(self) -> bool {
        self >= Severity::High
    }

    /// Its name, in lower case.
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

/// What a rule looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// Commands to whoever reads the text.
    Injection,
    /// Ways to carry data out.
    Exfiltration,
    /// Credentials that a sentence gives away.
    Leakage,
    /// Code that does harm when run.
    Code,
    /// Credentials by their shape.
    Credential,
}

impl Axis {
    /// All five.
    pub const ALL: [Axis; 5] =
        [Axis::Injection, Axis::Exfiltration, Axis::Leakage, Axis::Code, Axis::Credential];

    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Axis::Injection => "prompt injection",
            Axis::Exfiltration => "exfiltration",
            Axis::Leakage => "credential leakage in prose",
            Axis::Code => "code safety",
            Axis::Credential => "credential detection",
        }
    }

    /// Whether its findings are secrets, whose text must not be kept.
    #[must_use]
    pub fn is_secret(self) -> bool {
        matches!(self, Axis::Leakage | Axis::Credential)
    }
}

/// One match of one rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Where, in bytes of the text, at boundaries of characters. Of a secret, all of it.
    pub span: Range<usize>,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        self.rule.name == other.rule.name && self.span == other.span
    }
}

/// What a scan found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The findings, by place.
    pub findings: Vec<Finding>,
    /// How grave they are together.
    pub verdict: Severity,
}

impl Report {
    fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
        let verdict = verdict(&findings);
        Self { findings, verdict }
    }

    /// Whether a secret was found.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.findings.iter().any(|finding| finding.rule.axis.is_secret())
    }
}

fn verdict(findings: &[Finding]) -> Severity {
    let worst = findings.iter().map(|f| f.rule.severity).max().unwrap_or(Severity::Safe);
    let mut natures: Vec<Axis> = findings
        .iter()
        .filter(|finding| finding.rule.severity.disqualifies())
        .map(|finding| finding.rule.axis)
        .map(|axis| if axis.is_secret() { Axis::Credential } else { axis })
        .collect();
    natures.sort_unstable();
    natures.dedup();
    if natures.len() >= 2 { Severity::Critical } else { worst }
}

/// The rules, compiled. Build it once and keep it.
#[derive(Debug)]
pub struct Scanner {
    rules: Vec<&'static Rule>,
    matcher: Matcher,
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
        let rules: Vec<&'static Rule> = rules::all().collect();
        let patterns: Vec<&'static Pattern> = rules.iter().map(|rule| &rule.pattern).collect();
        Self { matcher: Matcher::new(&patterns), rules }
    }

    /// Scans a text, in time linear in its length.
    #[must_use]
    pub fn scan(&self, text: &str) -> Report {
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
            .map(|found| Finding { rule: rule(found.pattern), span: found.span });
        Report::new(findings.collect())
    }
}

/// Secrets that overlap are one: the first rule of the table names it, and it is as long as all.
fn merged(secrets: Vec<matcher::Match>) -> Vec<matcher::Match> {
    let mut merged: Vec<matcher::Match> = Vec::new();
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
