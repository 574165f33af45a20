//! Rule 12: recommends another decay class for the entries of a tag. It is never applied by itself.

use super::entry_rules::by_tag;
use super::{
    EntryInsightFacts, Insight, InsightRule, InsightSeverity, Params, entry_evidence, shortened,
};
use crate::decay::DecayClass;

/// The numbers of one tag.
struct TagNumbers {
    errors: f64,
    mean: f64,
    demoted: f64,
}

/// Rule 12: for a mostly stable or permanent tag one step faster decay if the mean of the prediction
/// errors is at least 3, or at least 40 % of the entries are demoted, or the mean confidence of at
/// least five entries is below 0.4; for a mostly ephemeral tag of at least five entries one step
/// slower if errors are below 1, the confidence is at least 0.7 and fewer than 10 % are demoted.
pub(super) fn adaptive_evaporation(entries: &[EntryInsightFacts], params: &Params) -> Vec<Insight> {
    let of = &params.evaporation;
    let mut found = Vec::new();
    for (tag, all) in by_tag(entries) {
        if all.len() < of.entries_min {
            continue;
        }
        let numbers = numbers(&all);
        let count = |class: DecayClass| all.iter().filter(|entry| entry.class == class).count();
        let lasting = count(DecayClass::Stable) + count(DecayClass::Permanent);
        let is_sure = all.len() >= of.entries_sure;
        let is_bad = numbers.errors >= of.errors_high
            || numbers.demoted >= of.demoted_high
            || (numbers.mean < of.mean_low && is_sure);
        let is_good = numbers.errors < of.errors_low
            && numbers.mean >= of.mean_high
            && numbers.demoted < of.demoted_low
            && is_sure;
        let is_lasting = lasting * 2 > all.len();
        let is_brief = count(DecayClass::Ephemeral) * 2 > all.len();
        let permanent = count(DecayClass::Permanent);
        let (from, to, pace) = match () {
            () if is_lasting && is_bad && permanent * 2 > lasting => {
                (DecayClass::Permanent, DecayClass::Stable, "faster")
            }
            () if is_lasting && is_bad => (DecayClass::Stable, DecayClass::Ephemeral, "faster"),
            () if is_brief && is_good => (DecayClass::Ephemeral, DecayClass::Stable, "slower"),
            () => continue,
        };
        found.push(recommendation(tag, &all, &numbers, (from, to, pace)));
    }
    found
}

fn numbers(entries: &[&EntryInsightFacts]) -> TagNumbers {
    let count = entries.len().max(1) as f64;
    let errors: f64 = entries.iter().map(|entry| f64::from(entry.prediction_errors)).sum();
    let mean: f64 = entries.iter().map(|entry| entry.mean).sum();
    let demoted = entries.iter().filter(|entry| entry.is_demoted).count() as f64;
    TagNumbers { errors: errors / count, mean: mean / count, demoted: demoted / count }
}

fn recommendation(
    tag: &str,
    all: &[&EntryInsightFacts],
    numbers: &TagNumbers,
    (from, to, pace): (DecayClass, DecayClass, &str),
) -> Insight {
    let (name, from, to) = (shortened(tag), from.name(), to.name());
    let detail = |entry: &EntryInsightFacts| {
        let demoted = if entry.is_demoted { ", demoted" } else { "" };
        format!(
            "{}, mean {:.2}, {} prediction errors{demoted}",
            entry.class.name(),
            entry.mean,
            entry.prediction_errors
        )
    };
    Insight {
        rule: InsightRule::AdaptiveEvaporation,
        severity: InsightSeverity::Info,
        subject: tag.to_owned(),
        text: format!(
            "Entries with tag \"{name}\" should decay {pace}: mean confidence {:.2}, {:.1} \
             prediction errors on average, {:.0} % demoted.",
            numbers.mean,
            numbers.errors,
            numbers.demoted * 100.0
        ),
        evidence: all.iter().map(|entry| entry_evidence(entry, detail(entry))).collect(),
        action: format!(
            "Change the decay class of these entries from {from} to {to} with `klnode edit`."
        ),
        task: None,
    }
}
