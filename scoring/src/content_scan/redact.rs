//! Redacts secrets from a text.
//!
//! Separate from the scan because the result is a guarantee: a second scan finds no secret in it.

use super::{ScanReport, Scanner};

/// Maximum number of redaction passes before the whole text is replaced.
const ROUNDS_MAX: usize = 4;

/// Replacement for a text whose secrets remain after the last pass.
const GIVEN_UP: &str = "[redacted]";

impl Scanner {
    /// Replaces each secret of the report with `[redacted: RULE]`. A scan of the result finds no
    /// secret, and redacting it again changes nothing.
    #[must_use]
    pub fn redact(&self, text: &str, report: &ScanReport) -> String {
        let mut text = replaced(text, report);
        for _ in 0..ROUNDS_MAX {
            let report = self.scan(&text);
            if !report.has_secret() {
                return text;
            }
            text = replaced(&text, &report);
        }
        GIVEN_UP.to_owned()
    }
}

/// Replaces the secrets of a report. Findings whose span does not fit the text are ignored, for a
/// report that belongs to another text.
fn replaced(text: &str, report: &ScanReport) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for finding in report.findings.iter().filter(|finding| finding.rule.axis.is_secret()) {
        let span = finding.span.clone();
        if span.start < done || text.get(span.clone()).is_none() {
            continue;
        }
        result.push_str(&text[done..span.start]);
        result.push_str("[redacted: ");
        result.push_str(finding.rule.name);
        result.push(']');
        done = span.end;
    }
    result.push_str(&text[done..]);
    result
}
