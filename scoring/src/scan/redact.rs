//! Takes the secrets out of a text.
//!
//! Separate from the scan because the result is a promise: a second scan finds no secret in it.

use super::{Report, Scanner};

/// A text is gone through so often before all of it is given up.
const ROUNDS_MAX: usize = 4;

/// What remains of a text from which secrets cannot be told apart.
const GIVEN_UP: &str = "[redacted]";

impl Scanner {
    /// The text with `[redacted: RULE]` in place of each secret of its report. A scan of the result
    /// finds no secret, and redacting it again changes nothing.
    #[must_use]
    pub fn redact(&self, text: &str, report: &Report) -> String {
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

/// The text without the secrets of a report. What a report of another text points at is passed
/// over when it is not a part of this one.
fn replaced(text: &str, report: &Report) -> String {
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
