//! Precision and recall on the labelled set, in total and for each rule.

use super::fixtures::{self, Case};
use super::scan;
use crate::content_scan::rule_table;
use std::collections::{BTreeMap, BTreeSet};

/// Documentation page that states the measured values.
const PAGE: &str = include_str!("../../../../docs/reference/content-scan.md");

const RECALL_MIN: f64 = 0.95;
const PRECISION_MIN: f64 = 0.98;
/// Minimum for each rule, so that a weak rule does not hide behind the others.
const RULE_SHARE_MIN: f64 = 0.8;
const POSITIVES_MIN: usize = 150;
const NEGATIVES_MIN: usize = 300;

/// Results of one rule.
#[derive(Clone, Copy, Default)]
struct Count {
    found: usize,
    missed: usize,
    wrong: usize,
    near: usize,
}

impl Count {
    fn precision(self) -> f64 {
        share(self.found, self.wrong)
    }

    fn recall(self) -> f64 {
        share(self.found, self.missed)
    }
}

fn share(right: usize, other: usize) -> f64 {
    if right + other == 0 { 1.0 } else { right as f64 / (right + other) as f64 }
}

/// Counts each case for the rules that matched and for those that should have.
fn count(cases: &[Case], is_positive: bool, counts: &mut BTreeMap<&'static str, Count>) {
    for case in cases {
        let report = scan(&case.text);
        let found: BTreeSet<&str> = report.findings.iter().map(|f| f.rule.name).collect();
        for label in &case.labels {
            let count =
                counts.get_mut(label).unwrap_or_else(|| panic!("no rule is called {label}"));
            match (is_positive, found.contains(label)) {
                (true, true) => count.found += 1,
                (true, false) => count.missed += 1,
                (false, _) => count.near += 1,
            }
        }
        for name in found {
            if !is_positive || !case.labels.contains(&name) {
                counts.get_mut(name).expect("a rule of the table").wrong += 1;
            }
        }
    }
}

#[test]
fn precision_and_recall_hold_on_the_labelled_set() {
    let (positive, negative) = (fixtures::positive(), fixtures::negative());
    assert!(positive.len() >= POSITIVES_MIN && negative.len() >= NEGATIVES_MIN);
    let mut counts: BTreeMap<&str, Count> =
        rule_table::all().map(|rule| (rule.name, Count::default())).collect();
    count(&positive, true, &mut counts);
    count(&negative, false, &mut counts);
    let mut total = Count::default();
    for rule in rule_table::all() {
        let count = counts[rule.name];
        let (precision, recall) = (count.precision(), count.recall());
        let positives = count.found + count.missed;
        let (name, near) = (rule.name, count.near);
        let line = format!("| {name} | {positives} | {near} | {precision:.2} | {recall:.2} |");
        let is_exact = count.missed + count.wrong == 0;
        assert!(
            is_exact || PAGE.contains(&line),
            "docs/reference/content-scan.md lacks the line: {line}"
        );
        assert!(positives > 0 && count.near > 0, "{} lacks a case", rule.name);
        assert!(precision.min(recall) >= RULE_SHARE_MIN, "{} is off", rule.name);
        total.found += count.found;
        total.missed += count.missed;
        total.wrong += count.wrong;
    }
    let (precision, recall) = (total.precision(), total.recall());
    let line = format!("| all rules, on the set as it is | {precision:.3} | {recall:.3} |");
    assert!(PAGE.contains(&line), "docs/reference/content-scan.md lacks the line: {line}");
    assert!(recall >= RECALL_MIN, "recall {recall}");
    assert!(precision >= PRECISION_MIN, "precision {precision}");
}
