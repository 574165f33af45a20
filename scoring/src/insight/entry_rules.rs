//! Rules 1, 2, 4, 5 and 6: entries that decline, contradict, miss their questions or repeat each
//! other.

use super::{
    EntryInsightFacts, EntryPair, Insight, InsightRule, InsightSeverity, Params, SuggestedTask,
    entry_evidence, overlap, per_cent, shortened,
};
use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// Most pairs of entries whose titles are compared.
const COMPARED_PAIRS_MAX: usize = 50_000;
/// The agent of a suggested task.
const RESEARCHER: &str = "researcher";

/// Rule 1: α of an entry fell below its peak by more than a fifth, within the last seven days. The
/// peak is the stored one, or the highest α of these days if the fall is from there.
pub(super) fn confidence_decline(entries: &[EntryInsightFacts], params: &Params) -> Vec<Insight> {
    let mut found: Vec<(f64, Insight)> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_demoted) {
        let left = 1.0 - params.decline_share;
        let has_fallen =
            |peak: &f64| entry.alpha < left * peak && entry.alpha_recent >= left * peak;
        let peaks = [entry.alpha_peak.max(entry.alpha_recent), entry.alpha_recent];
        let Some(peak) = peaks.into_iter().find(has_fallen) else { continue };
        let share = 1.0 - entry.alpha / peak;
        let (code, days) = (&entry.code, params.decline_days);
        let text = format!(
            "The confidence in {code} has declined: within {days} days its α fell below its peak \
             by more than {}.",
            per_cent(params.decline_share)
        );
        let detail = format!("α {:.1}, peak {peak:.1}", entry.alpha);
        let mut evidence = entry_evidence(entry, detail);
        evidence.state = format!("{}, peak {peak:.1}", evidence.state);
        let action =
            format!("Check whether {code} still holds, then confirm it, edit it or archive it.");
        found.push((
            share,
            Insight {
                rule: InsightRule::ConfidenceDecline,
                severity: InsightSeverity::Attention,
                subject: entry.entry.to_string(),
                text,
                evidence: vec![evidence],
                action,
                task: None,
            },
        ));
    }
    found.sort_by(|one, two| {
        two.0.total_cmp(&one.0).then_with(|| one.1.subject.cmp(&two.1.subject))
    });
    found.into_iter().map(|(_, insight)| insight).collect()
}

/// Rule 2: two verified entries about the same subject have opposite polarities and share more than
/// 30 % of their tags.
pub(super) fn contradictions(
    entries: &[EntryInsightFacts],
    related: &BTreeSet<EntryPair>,
    params: &Params,
) -> Vec<Insight> {
    let by_id: BTreeMap<EntryId, &EntryInsightFacts> =
        entries.iter().map(|entry| (entry.entry, entry)).collect();
    let mut found = Vec::new();
    for (one, two) in related {
        let (Some(one), Some(two)) = (by_id.get(one), by_id.get(two)) else { continue };
        let shared = overlap(&one.tags, &two.tags);
        let is_open = one.is_verified && two.is_verified && !one.is_demoted && !two.is_demoted;
        if !is_open || !one.polarity.opposes(two.polarity) || shared <= params.opposed_overlap {
            continue;
        }
        let detail = |entry: &EntryInsightFacts| {
            format!("verified, mean {:.2}, {:.1} observations", entry.mean, entry.observations)
        };
        let (a, b) = (&one.code, &two.code);
        found.push(Insight {
            rule: InsightRule::Contradiction,
            severity: InsightSeverity::ActionRequired,
            subject: format!("{} {}", one.entry, two.entry),
            text: format!(
                "{a} and {b} are verified and contradict each other: opposite polarity, {} of \
                 their tags in common.",
                per_cent(shared)
            ),
            evidence: vec![entry_evidence(one, detail(one)), entry_evidence(two, detail(two))],
            action: "Find out which of the two holds; then edit, supersede or archive the other."
                .to_owned(),
            task: Some(SuggestedTask {
                agent: RESEARCHER,
                goal: format!("Find out whether {a} or {b} holds, and settle the contradiction"),
            }),
        });
    }
    found
}

/// Entries by tag, without demoted ones.
pub(super) fn by_tag(entries: &[EntryInsightFacts]) -> BTreeMap<&str, Vec<&EntryInsightFacts>> {
    let mut tags: BTreeMap<&str, Vec<&EntryInsightFacts>> = BTreeMap::new();
    for entry in entries {
        for tag in &entry.tags {
            tags.entry(tag).or_default().push(entry);
        }
    }
    tags
}

/// Rule 4: at least three entries of a tag have at least three prediction errors each. It needs
/// attention if these are the majority of the tag's entries.
pub(super) fn coverage_gaps(entries: &[EntryInsightFacts], params: &Params) -> Vec<Insight> {
    let mut found: Vec<(usize, Insight)> = Vec::new();
    for (tag, all) in by_tag(entries) {
        let all: Vec<_> = all.into_iter().filter(|entry| !entry.is_demoted).collect();
        let missing: Vec<_> =
            all.iter().filter(|entry| entry.prediction_errors >= params.gap_errors).collect();
        if missing.len() < params.gap_entries {
            continue;
        }
        let name = shortened(tag);
        let errors =
            |entry: &EntryInsightFacts| format!("{} prediction errors", entry.prediction_errors);
        let insight = Insight {
            rule: InsightRule::CoverageGap,
            severity: match missing.len() * 2 > all.len() {
                true => InsightSeverity::Attention,
                false => InsightSeverity::Info,
            },
            subject: tag.to_owned(),
            text: format!(
                "Coverage gap in tag \"{name}\": {} of {} entries have {} or more prediction \
                 errors.",
                missing.len(),
                all.len(),
                params.gap_errors
            ),
            evidence: missing.iter().map(|entry| entry_evidence(entry, errors(entry))).collect(),
            action: format!("Find out what was asked about \"{name}\", and write it down."),
            task: Some(SuggestedTask {
                agent: RESEARCHER,
                goal: format!("Research the tag \"{name}\": the entries do not answer questions"),
            }),
        };
        found.push((missing.len(), insight));
    }
    found.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.subject.cmp(&two.1.subject)));
    found.into_iter().map(|(_, insight)| insight).collect()
}

/// Rule 5: all entries of a co-occurrence cluster have more than three prediction errors.
pub(super) fn stale_clusters(
    entries: &[EntryInsightFacts],
    clusters: &[Vec<EntryId>],
    params: &Params,
) -> Vec<Insight> {
    let by_id: BTreeMap<EntryId, &EntryInsightFacts> =
        entries.iter().map(|entry| (entry.entry, entry)).collect();
    let mut found = Vec::new();
    for cluster in clusters {
        // Entries of other workspaces or threads decide nothing here.
        let mut known: Vec<_> = cluster.iter().filter_map(|entry| by_id.get(entry)).collect();
        known.retain(|entry| !entry.is_demoted);
        known.sort_by_key(|entry| entry.entry);
        let is_stale =
            |entry: &&&EntryInsightFacts| entry.prediction_errors > params.stale_errors_above;
        let Some(first) = known.first().filter(|_| known.len() > 1) else { continue };
        if !known.iter().all(is_stale) {
            continue;
        }
        let codes: Vec<&str> = known.iter().map(|entry| entry.code.as_str()).collect();
        let detail =
            |entry: &EntryInsightFacts| format!("{} prediction errors", entry.prediction_errors);
        found.push(Insight {
            rule: InsightRule::StaleCluster,
            severity: InsightSeverity::Attention,
            subject: first.entry.to_string(),
            text: format!(
                "A cluster of {} entries around {} is served together and answers nothing: each \
                 has more than {} prediction errors.",
                known.len(),
                codes[0],
                params.stale_errors_above
            ),
            evidence: known.iter().map(|entry| entry_evidence(entry, detail(entry))).collect(),
            action: "Check these entries again; then edit or archive them.".to_owned(),
            task: Some(SuggestedTask {
                agent: RESEARCHER,
                goal: format!("Check again whether these entries hold: {}", some(&codes)),
            }),
        });
    }
    found
}

/// Some codes, and the number of the others.
fn some(codes: &[&str]) -> String {
    const NAMED_MAX: usize = 5;
    let named = codes[..codes.len().min(NAMED_MAX)].join(", ");
    match codes.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Rule 6: two entries share more than half of their tags and of the words of their titles.
pub(super) fn merge_opportunities(
    entries: &[EntryInsightFacts],
    different: &BTreeSet<EntryPair>,
    params: &Params,
) -> Vec<Insight> {
    let words: BTreeMap<EntryId, BTreeSet<String>> =
        entries.iter().map(|entry| (entry.entry, title_words(&entry.title))).collect();
    let none = BTreeSet::new();
    let (mut seen, mut found): (BTreeSet<EntryPair>, Vec<(f64, Insight)>) = Default::default();
    for (_, tagged) in by_tag(entries) {
        for (at, one) in tagged.iter().enumerate() {
            for two in &tagged[at + 1..] {
                let pair = (one.entry.min(two.entry), one.entry.max(two.entry));
                if seen.len() >= COMPARED_PAIRS_MAX || !seen.insert(pair) {
                    continue;
                }
                let shared = overlap(&one.tags, &two.tags);
                let of = |entry: EntryId| words.get(&entry).unwrap_or(&none);
                let alike = overlap(of(one.entry), of(two.entry));
                let is_open = !one.is_demoted && !two.is_demoted && !different.contains(&pair);
                let is_near = shared > params.merge_overlap && alike > params.merge_title;
                if is_open && is_near && !one.polarity.opposes(two.polarity) {
                    found.push((alike, merge(one, two, shared, alike)));
                }
            }
        }
    }
    found.sort_by(|one, two| {
        two.0.total_cmp(&one.0).then_with(|| one.1.subject.cmp(&two.1.subject))
    });
    found.into_iter().map(|(_, insight)| insight).collect()
}

fn merge(one: &EntryInsightFacts, two: &EntryInsightFacts, shared: f64, alike: f64) -> Insight {
    let (one, two) = if one.entry < two.entry { (one, two) } else { (two, one) };
    let detail = |entry: &EntryInsightFacts| format!("{:.1} observations", entry.observations);
    Insight {
        rule: InsightRule::MergeOpportunity,
        severity: InsightSeverity::Info,
        subject: format!("{} {}", one.entry, two.entry),
        text: format!(
            "{} and {} may be one entry: they share {} of their tags and {} of the words of their \
             titles.",
            one.code,
            two.code,
            per_cent(shared),
            per_cent(alike)
        ),
        evidence: vec![entry_evidence(one, detail(one)), entry_evidence(two, detail(two))],
        action: "Compare the two; if one says all, let it supersede the other.".to_owned(),
        task: None,
    }
}

/// The words of a title, in lower case.
fn title_words(title: &str) -> BTreeSet<String> {
    let words = title.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
