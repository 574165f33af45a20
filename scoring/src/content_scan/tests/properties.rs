//! Properties for every text: no panic, correct positions, a repeatable report, and clean
//! redaction.

use super::SCANNER;
use super::fixtures::{self, Case};
use crate::content_scan::disclosure::Border;
use crate::content_scan::{ScanReport, Scanner};
use quickcheck::{Arbitrary, Gen, QuickCheck};
use std::sync::LazyLock;

/// A text that is likely to trigger rules: fragments of cases, cut and joined at random.
#[derive(Clone, Debug)]
struct Hostile(String);

impl Arbitrary for Hostile {
    fn arbitrary(g: &mut Gen) -> Self {
        static CASES: LazyLock<Vec<Case>> = LazyLock::new(fixtures::positive);
        let cases = &*CASES;
        let glue =
            ["", " ", "\n", "\"", "'", "=", ": ", ".", "/", "é", "\u{200B}", "\u{E0061}", "日"];
        let mut text = String::new();
        for _ in 0..usize::arbitrary(g) % 6 {
            let case = &cases[usize::arbitrary(g) % cases.len()].text;
            let cut = |at: usize| case.floor_char_boundary(at % (case.len() + 1));
            let (from, to) = (cut(usize::arbitrary(g)), cut(usize::arbitrary(g)));
            let piece = if bool::arbitrary(g) { case } else { &case[from.min(to)..from.max(to)] };
            text.push_str(piece);
            text.push_str(g.choose(&glue).expect("some glue"));
            if bool::arbitrary(g) {
                text.push_str(&String::arbitrary(g));
            }
        }
        Hostile(text)
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new(self.0.shrink().map(Hostile))
    }
}

fn assert_sound(scanner: &Scanner, text: &str) {
    let report = scanner.scan(text);
    assert_eq!(report, scanner.scan(text), "the same text, the same report");
    let mut end_of_secret = 0;
    for finding in &report.findings {
        assert!(!finding.span.is_empty() && text.get(finding.span.clone()).is_some());
        if finding.rule.axis.is_secret() {
            assert!(finding.span.start >= end_of_secret, "secrets do not overlap");
            end_of_secret = finding.span.end;
        }
    }
    let worst = report.findings.iter().map(|finding| finding.rule.severity).max();
    assert!(worst.is_none_or(|worst| report.verdict >= worst));
    assert_redacts(scanner, text, &report);
}

fn assert_redacts(scanner: &Scanner, text: &str, report: &ScanReport) {
    let redacted = scanner.redact(text, report);
    let again = scanner.scan(&redacted);
    assert!(!again.has_secret(), "{redacted}");
    assert_eq!(scanner.redact(&redacted, &again), redacted, "redacting again changes nothing");
    if !report.has_secret() {
        assert_eq!(redacted, text, "a text without a secret is unchanged");
    }
}

#[test]
fn every_text_is_scanned_and_redacted_soundly() {
    let scanner = &*SCANNER;
    for case in fixtures::positive().iter().chain(&fixtures::negative()) {
        assert_sound(scanner, &case.text);
    }
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn hostile(text: Hostile) -> bool {
        assert_sound(&SCANNER, &text.0);
        true
    }
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn any(text: String) -> bool {
        assert_sound(&SCANNER, &text);
        true
    }
    QuickCheck::new().tests(2_000).quickcheck(hostile as fn(Hostile) -> bool);
    QuickCheck::new().tests(500).quickcheck(any as fn(String) -> bool);
}

#[test]
fn flags_point_at_the_text() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(text: Hostile, name: String) -> bool {
        let text = format!("{} {name} /home/ada/x 10.0.0.1 {}", text.0, name.to_uppercase());
        let flags = Border::new(&[&name, "Acme"], &[&name]).flags(&text);
        flags.iter().all(|flag| !flag.span.is_empty() && text.get(flag.span.clone()).is_some())
    }
    QuickCheck::new().tests(200).quickcheck(holds as fn(Hostile, String) -> bool);
}

/// A scan that reads the surroundings of every hint again would take minutes here.
#[test]
fn repeated_hints_are_scanned_in_linear_time() {
    let scanner = &*SCANNER;
    for piece in ["password=", "eyJ", "eyJhbGciOiJIUzI1NiJ9.", "sk-", "a ", "://a:", "-----BEGIN "]
    {
        let text = piece.repeat(400_000 / piece.len());
        assert!(scanner.scan(&text).findings.len() <= text.len());
    }
}
