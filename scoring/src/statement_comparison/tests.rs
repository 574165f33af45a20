//! Test vectors for the rules, and their results on the labelled pairs.

use super::*;

const PAIRS: &str = include_str!("../../../tests/fixtures/statement_pairs.tsv");

fn contradiction(one: &str, two: &str) -> Option<ContradictionReason> {
    let reason = |found| match found {
        StatementRelation::Contradiction(reason) => Some(reason),
        _ => None,
    };
    let (there, back) = (reason(compare(one, two)), reason(compare(two, one)));
    assert_eq!(there.is_some(), back.is_some(), "{one} | {two}");
    there
}

#[test]
fn equality_ignores_normal_form_spaces_and_final_punctuation() {
    for (one, two, is_equal) in [
        ("Use  tabs.", "Use tabs", true),
        ("Caf\u{e9} closed!", "Cafe\u{301}\n closed", true),
        ("Use tabs", "use tabs", false),
        ("tar -x", "tar -X", false),
        ("a < b", "a > b", false),
        ("wait 5 s", "wait 50 s", false),
    ] {
        assert_eq!(compare(one, two) == StatementRelation::Equal, is_equal, "{one} | {two}");
    }
}

#[test]
fn a_contradiction_names_its_reason() {
    for (one, two, reason) in [
        ("Always squash commits", "Never squash commits", "differs in negation"),
        ("Start the agent on boot", "Stop the agent on boot", "opposites: start against stop"),
        (
            "Wait 5 s for the lock",
            "Wait 30 seconds for the lock",
            "differs in value: 5 s against 30 seconds",
        ),
        ("Merge main into release", "Merge release into main", "opposite direction"),
        ("Build before you test", "Test before you build", "opposite order"),
        ("Read 5 s, connect 30 s", "Read 30 s, connect 5 s", "opposite direction"),
        (
            "Do not enable the flag, clear the flag",
            "Enable the flag, do not clear the flag",
            "differs in negation",
        ),
        (
            "After a crash do not enable the cache, clear the cache",
            "After a crash enable the cache, do not clear the cache",
            "differs in negation",
        ),
    ] {
        let found = contradiction(one, two).map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some(reason), "{one} | {two}");
    }
}

#[test]
fn a_reworded_statement_is_no_contradiction() {
    for (one, two) in [
        ("Build before you test", "Test after you have built"),
        ("Never disable the firewall", "Keep the firewall enabled"),
        ("The gateway calls the ledger", "The ledger is called by the gateway"),
        ("Do not merge until CI is green", "Merge only after CI is green"),
        ("Install git, curl and jq", "Install jq, curl and git"),
        ("Use pnpm instead of npm", "Use pnpm, not npm"),
        ("Wait 60 s for the lock", "Wait one minute for the lock"),
        ("In Python 3.11 the patch is needed", "In Python 3.12 the patch is not needed"),
        ("On Linux use epoll", "On macOS do not use epoll"),
    ] {
        assert_eq!(contradiction(one, two), None, "{one} | {two}");
    }
}

/// For one label: the number of contradictions, of possible duplicates, and of all pairs.
fn counted(part: &str, labels: &[&str]) -> (usize, usize, usize, Vec<&'static str>) {
    let (mut opposed, mut alike, mut all, mut lines) = (0, 0, 0, Vec::new());
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let [of, label, one, two] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        if of != part || !labels.contains(&label) {
            continue;
        }
        all += 1;
        let found = compare(one, two);
        let is_opposed = matches!(found, StatementRelation::Contradiction(_));
        let is_alike = matches!(found, StatementRelation::Compatible { overlap } if overlap >= 0.5);
        opposed += usize::from(is_opposed);
        alike += usize::from(is_alike);
        let is_right = match label {
            "opposite" => is_opposed,
            "same" => is_alike,
            _ => !is_opposed,
        };
        if !is_right {
            lines.push(line);
        }
    }
    (opposed, alike, all, lines)
}

#[test]
fn the_rules_meet_the_limits_on_the_labelled_pairs() {
    for part in ["dev", "held"] {
        let (opposed, alike, all, lines) = counted(part, &["opposite"]);
        assert!(10 * opposed >= 8 * all && alike == 0, "{opposed}, {alike} of {all}: {lines:#?}");
        let (_, alike, all, lines) = counted(part, &["same"]);
        assert!(10 * alike >= 6 * all, "{alike} of {all}: {lines:#?}");
        let (opposed, _, all, lines) = counted(part, &["same", "near"]);
        assert!(20 * opposed <= all, "{opposed} of {all}: {lines:#?}");
    }
}
