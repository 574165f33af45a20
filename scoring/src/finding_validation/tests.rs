//! Tests of valid findings, and of the messages for invalid ones.

use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The problem of a finding that is valid except for one change.
fn problem_of(change: impl FnOnce(&mut Owned)) -> Option<(&'static str, String)> {
    let mut owned = Owned {
        text: "The token is logged.".to_owned(),
        severity: "high".to_owned(),
        confidence: 0.8,
        anchors: texts(&["path:src/auth.go"]),
        verify: texts(&["grep for the token"]),
    };
    change(&mut owned);
    let Owned { text, severity, confidence, anchors, verify } = &owned;
    let draft = FindingDraft { text, severity, confidence: *confidence, anchors, verify };
    check(&draft).err().map(|problem| (problem.field, problem.problem))
}

struct Owned {
    text: String,
    severity: String,
    confidence: f64,
    anchors: Vec<String>,
    verify: Vec<String>,
}

#[test]
fn a_finding_needs_1_to_3_sentences_evidence_anchors_and_1_to_3_verify_steps() {
    assert_eq!(problem_of(|_| {}), None);
    let field = |change: fn(&mut Owned)| problem_of(change).map(|(field, _)| field);
    assert_eq!(field(|of| of.text = " \n".into()), Some("text"));
    assert_eq!(field(|of| of.text = "One. Two. Three.".into()), None);
    assert_eq!(field(|of| of.text = "One. Two. Three. Four.".into()), Some("text"));
    assert_eq!(field(|of| of.text = "a".repeat(TEXT_BYTES_MAX)), None);
    assert_eq!(field(|of| of.text = "a".repeat(TEXT_BYTES_MAX + 1)), Some("text"));
    assert_eq!(field(|of| of.severity = "grave".into()), Some("severity"));
    assert_eq!(field(|of| of.anchors.clear()), Some("anchors"));
    assert_eq!(field(|of| of.anchors = vec!["path:a".into(); ANCHORS_MAX]), None);
    assert_eq!(field(|of| of.anchors = vec!["path:a".into(); ANCHORS_MAX + 1]), Some("anchors"));
    assert_eq!(field(|of| of.anchors = vec!["auth.go, line 47".into()]), Some("anchors"));
    assert_eq!(field(|of| of.verify.clear()), Some("verify"));
    assert_eq!(field(|of| of.verify = vec!["look".into(); VERIFY_STEPS_MAX]), None);
    assert_eq!(field(|of| of.verify = vec!["look".into(); VERIFY_STEPS_MAX + 1]), Some("verify"));
    assert_eq!(field(|of| of.verify = vec!["  ".into()]), Some("verify"));
    assert_eq!(field(|of| of.verify = vec!["a".repeat(STEP_BYTES_MAX + 1)]), Some("verify"));
    for (confidence, expected) in
        [(0.0, None), (1.0, None), (-0.01, Some("confidence")), (1.01, Some("confidence"))]
    {
        assert_eq!(problem_of(|of| of.confidence = confidence).map(|problem| problem.0), expected);
    }
    assert_eq!(
        problem_of(|of| of.confidence = f64::NAN).map(|problem| problem.0),
        Some("confidence")
    );
}

#[test]
fn messages_name_the_limit_and_the_fix() {
    let (_, problem) = problem_of(|of| of.text = "A. B. C. D.".into()).unwrap();
    assert_eq!(problem, "has 4 sentences; 1 to 3 are allowed");
    let (_, problem) = problem_of(|of| of.severity = "grave".into()).unwrap();
    assert_eq!(
        problem,
        "is `grave`; it must be one of info, low, medium, high, critical, or a number from 0 to 10"
    );
    let (_, problem) = problem_of(|of| of.anchors = vec!["line 47".into()]).unwrap();
    assert!(
        problem.starts_with("contain `line 47`. The predicate is invalid at byte"),
        "{problem}"
    );
    let (_, problem) = problem_of(|of| of.confidence = 2.0).unwrap();
    assert_eq!(problem, "is 2; it must be from 0 to 1");
}

#[test]
fn sentence_ends_are_recognised() {
    for (text, count) in [
        ("", 0),
        ("…", 0),
        ("no full stop", 1),
        ("Nobody looks at ctx.Err() after http.Do().", 1),
        ("It needs v1.2 (e.g. Tokio) or later. Then it works!", 2),
        ("Really?! Yes. \"Quoted.\" And on.", 4),
        ("Files such as a.go. b.go is another", 1),
        ("One paragraph\n\nAnother", 2),
        ("One line\nand its end", 1),
        ("Trailing blank\n\n", 1),
        ("Ärger. Öl.", 2),
    ] {
        let found = sentences(text);
        assert_eq!(found.len(), count, "{text:?}: {found:?}");
    }
    assert_eq!(sentences("He said \"no.\" Then."), ["He said \"no.\"", "Then."]);
}

#[test]
fn a_headline_is_the_first_sentence_cut_to_its_limit() {
    assert_eq!(headline("The token\nis logged. It must not be.", 200), "The token is logged");
    let long = headline(&"word ".repeat(100), 50);
    assert!(long.chars().count() <= 50 && long.ends_with("word…"), "{long}");
    assert_eq!(headline(&"ä".repeat(60), 50).chars().count(), 50);
    assert_eq!(headline("", 50), "");
}

#[test]
fn every_severity_is_found_by_its_name() {
    for (severity, name) in FindingSeverity::ALL {
        assert_eq!((FindingSeverity::parse(name), severity.name()), (Some(severity), name));
    }
    assert!(FindingSeverity::Critical > FindingSeverity::Info);
}

#[test]
fn a_numeric_severity_puts_the_confidence_on_the_same_scale() {
    for (severity, confidence, expected) in [
        ("9", 8.0, Some((FindingSeverity::Critical, Some(9.0), 0.8))),
        ("8.99", 10.0, Some((FindingSeverity::High, Some(8.99), 1.0))),
        ("0", 0.0, Some((FindingSeverity::Info, Some(0.0), 0.0))),
        ("high", 0.8, Some((FindingSeverity::High, None, 0.8))),
        ("high", 8.0, None),
        ("10.1", 8.0, None),
        ("-1", 8.0, None),
        ("NaN", 8.0, None),
        ("9", 10.1, None),
    ] {
        let found = grade(severity, confidence).ok();
        let found = found.map(|of| (of.severity, of.score, of.confidence));
        assert_eq!(found, expected, "{severity} {confidence}");
    }
    for (severity, _) in FindingSeverity::ALL {
        assert_eq!(FindingSeverity::of_score(severity.score()), severity);
    }
}
