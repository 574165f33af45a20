//! `klnode check rules`, `drift` and `limits`: three reports from one audit of all entries.
//!
//! The node reports problems entry by entry, a page at a time. The totals over all pages are
//! computed here, by the rules of `scoring::audit` and the limits of the node.

use super::api_path::escape;
use super::sanitize::printable;
use super::{ProgressSink, Reply, VerbError, limits_review};
use klnode_api_types::{AuditCounts, AuditItem, AuditLimits, AuditReportPage, NodeStatus};
use klnode_client::Client;
use klnode_scoring::audit::{self, Aspect, AuditRule, AuditTally, Measure, Params};
use klnode_text::plural::{counted, entries};
use klnode_text::shell_quote;
use klnode_text::truncate::truncate;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The most entries listed one by one; `--json` has them all.
const LISTED_MAX: usize = 50;
/// The most characters of a title: with its code, 80 columns.
const TITLE_CHARACTERS_MAX: usize = 68;
/// The end of the progress bar. Ids are spread evenly, so the first four digits are the progress.
const PROGRESS_TOTAL: u64 = u16::MAX as u64;

/// The sum of all pages of an audit.
pub(super) struct AuditTotals {
    /// The checkout to check predicates in; `None` outside a checkout.
    checkout: Option<String>,
    /// The reason why predicates were not checked in it.
    unlooked: Option<String>,
    counts: AuditCounts,
    tags: BTreeMap<String, u64>,
    reviewers: BTreeMap<String, u64>,
    marked: Vec<AuditItem>,
    limits: AuditLimits,
}

/// The JSON form of `check rules`.
#[derive(Serialize)]
struct RulesReport<'a> {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    blocking: usize,
    warnings: usize,
    marked: Vec<&'a AuditItem>,
}

/// The JSON form of `check drift`.
#[derive(Serialize)]
struct DriftReport<'a> {
    entries: u64,
    /// The checkout in which predicates were checked; null outside a checkout.
    checkout: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    /// `needs_review`, `needs_pruning`, both or none.
    recommendations: Vec<&'static str>,
    bloated: Vec<CrowdedTag<'a>>,
    marked: Vec<&'a AuditItem>,
}

/// A tag with more entries than `tuning.audit.tag_entries_max`, or for the tag of a reviewer
/// `review_entries_max`.
#[derive(Serialize)]
struct CrowdedTag<'a> {
    tag: Cow<'a, str>,
    entries: u64,
    limit: u64,
}

/// The JSON form of `check limits`.
#[derive(Serialize)]
struct Health<'a> {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    well: bool,
    /// The command that makes `node.key` private, if other users can read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    close_key: Option<&'a str>,
    measures: Vec<HealthNumber>,
}

/// The JSON form of one gate.
#[derive(Serialize)]
struct GateReport<'a> {
    passed: bool,
    blocking: usize,
    warnings: usize,
    marked: &'a [&'a AuditItem],
}

/// One number and its limit.
#[derive(Serialize)]
struct HealthNumber {
    name: &'static str,
    value: Option<f64>,
    limit: f64,
    over: bool,
}

/// Audits every entry of a workspace, or of all. `checkout` is the root to check predicates in.
pub(super) async fn totals(
    workspace: Option<String>,
    checkout: Option<String>,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<AuditTotals, VerbError> {
    let given = [("workspace", workspace), ("checkout", checkout.clone())];
    let given = given
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escape(&value))));
    let query = given.collect::<Vec<_>>().join("&");
    let first: AuditReportPage = client.get(&format!("/v1/audit?{query}")).await?;
    let AuditReportPage { counts, tags, reviewers, marked, limits, unlooked, mut next } = first;
    let mut totals = AuditTotals { checkout, unlooked, counts, tags, reviewers, marked, limits };
    while let Some(after) = next {
        let done = after.get(..4).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        progress.tell("reading entries", done.unwrap_or(0), Some(PROGRESS_TOTAL));
        let page: AuditReportPage = client.get(&format!("/v1/audit?{query}&after={after}")).await?;
        totals.add(page.counts, (page.tags, page.reviewers), page.marked);
        next = page.next;
    }
    Ok(totals)
}

impl AuditTotals {
    /// Whether every entry keeps the rules. Exit code 1 if a blocking rule is broken.
    pub(super) fn rules(&self) -> Reply {
        let marked = self.with(AuditRule::is_rule);
        let blocking = marked.iter().filter(|one| one.blocks).count();
        let warnings = marked.len() - blocking;
        let mut text = listed(&marked, |one| if one.blocks { "blocks" } else { "warns" });
        let looked = entries(self.counts.entries);
        let _ = match (blocking, warnings) {
            (0, 0) => writeln!(text, "Verified {looked}: every rule is kept."),
            _ => writeln!(text, "Verified {looked}: {blocking} block, {warnings} warn."),
        };
        let (entries, unlooked) = (self.counts.entries, &self.unlooked);
        let verified = RulesReport { entries, unlooked, blocking, warnings, marked };
        self.with_verdict(Reply::new(&verified, text), blocking > 0)
    }

    /// Whether every entry keeps one rule. Exit code 1 if a violation blocks.
    pub(super) fn gate(&self, name: &str, rule: AuditRule) -> Reply {
        let marked: Vec<&AuditItem> =
            self.marked.iter().filter(|one| one.mark == rule.name()).collect();
        gate_reply(name, &marked)
    }

    /// Whether entries have drifted from the code they describe. Exit code 1 if some have, and 2 if
    /// the predicates could not be checked.
    pub(super) fn drift(&self) -> Reply {
        let (marked, bloated) = (self.with(AuditRule::is_drift), self.bloated());
        let mut text = listed(&marked, |one| &one.mark);
        for CrowdedTag { tag, entries, limit } in &bloated {
            let (tag, word) = (printable(tag), printable(&shell_quote::word(tag)));
            let _ = writeln!(
                text,
                "Tag {tag} has {entries} entries, more than {limit}: `klnode list --tag {word}`."
            );
        }
        let recommendations = self.recommendations(&marked, &bloated, &mut text);
        let is_drifted = !recommendations.is_empty();
        if !is_drifted {
            let _ = writeln!(text, "None of {} has drifted.", entries(self.counts.entries));
        }
        let Self { checkout, unlooked, .. } = self;
        let entries = self.counts.entries;
        let drifted = DriftReport { entries, checkout, unlooked, recommendations, bloated, marked };
        let reply = self.with_verdict(Reply::new(&drifted, text), is_drifted);
        match (checkout, unlooked) {
            // A gate that could not check the predicates must neither pass nor fail.
            (_, Some(_)) => reply.with_exit_code(2),
            (None, None) => reply.with_remark(
                "There is no checkout here, so no predicate was checked.\n".to_owned(),
            ),
            (Some(_), None) => reply,
        }
    }

    /// Adds a line for each recommended action, and returns their names.
    fn recommendations(
        &self,
        marked: &[&AuditItem],
        bloated: &[CrowdedTag<'_>],
        text: &mut String,
    ) -> Vec<&'static str> {
        let has = |mark: AuditRule| marked.iter().any(|one| one.mark == mark.name());
        let mut names = Vec::new();
        if has(AuditRule::Contradiction) || has(AuditRule::Orphaned) {
            names.push("needs_review");
            text.push_str("Needs review: `klnode show CODE`, then `edit` or `archive` it.\n");
        }
        if let Some(checkout) = self.checkout.as_ref().filter(|_| has(AuditRule::Orphaned)) {
            let _ = writeln!(
                text,
                "Predicates were checked in {}; those of other repositories were not.",
                printable(checkout)
            );
        }
        if has(AuditRule::Stale) || !bloated.is_empty() {
            names.push("needs_pruning");
            let confirm = match has(AuditRule::Stale) {
                true => ", or `klnode feedback CODE --confirm` if it still holds",
                false => "",
            };
            let all = if has(AuditRule::Stale) { " (all: `klnode archive --stale`)" } else { "" };
            let _ = writeln!(text, "Needs pruning: `klnode archive CODE`{all}{confirm}.");
        }
        names
    }

    /// Whether a number exceeds its limit. Exit code 1 if one does, or if other users can read the
    /// key. Writes a proposal for a review and a report to files, if they are given.
    pub(super) async fn health(
        &self,
        client: &Client,
        (proposal, report): (Option<&Path>, Option<&Path>),
    ) -> Result<Reply, VerbError> {
        let bloated = self.bloated().len() as u64;
        let measures = audit::measures(&self.tally(), bloated, &self.params());
        let mut text = measured(&measures, self);
        let NodeStatus { close_key, .. } = client.get("/v1/status").await?;
        if let Some(command) = &close_key {
            let command = printable(command);
            let _ = writeln!(text, "Other users can read the node's key: run `{command}`.");
        }
        let is_well = close_key.is_none() && !measures.iter().any(Measure::is_over);
        if let Some(file) = proposal {
            text.push_str(&limits_review::write(file, &measures)?);
        }
        let measures = measures.iter().map(|measure| HealthNumber {
            name: measure.aspect.name(),
            value: measure.value,
            limit: measure.limit,
            over: measure.is_over(),
        });
        let health = Health {
            entries: self.counts.entries,
            unlooked: &self.unlooked,
            well: is_well,
            close_key: close_key.as_deref(),
            measures: measures.collect(),
        };
        if let Some(file) = report {
            limits_review::write_json(file, "the report", &health)?;
            let _ = writeln!(text, "The numbers are in {}.", file.display());
        }
        Ok(self.with_verdict(Reply::new(&health, text), !is_well))
    }

    /// Adds the reason why predicates were not checked, and the exit code.
    fn with_verdict(&self, reply: Reply, has_failed: bool) -> Reply {
        let why = self.unlooked.as_deref().map(printable);
        let note =
            why.map(|why| format!("No predicate was checked: {}.\n", why.trim_end_matches('.')));
        let reply = reply.with_notes(note.unwrap_or_default());
        if has_failed { reply.with_exit_code(1) } else { reply }
    }

    fn add(
        &mut self,
        counts: AuditCounts,
        (tags, reviewers): (BTreeMap<String, u64>, BTreeMap<String, u64>),
        marked: Vec<AuditItem>,
    ) {
        let all = &mut self.counts;
        for (sum, more) in [
            (&mut all.entries, counts.entries),
            (&mut all.stale, counts.stale),
            (&mut all.disputed, counts.disputed),
            (&mut all.friction, counts.friction),
            (&mut all.tasks, counts.tasks),
            (&mut all.failed, counts.failed),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (tag, count) in tags {
            *self.tags.entry(tag).or_default() += count;
        }
        for (name, count) in reviewers {
            *self.reviewers.entry(name).or_default() += count;
        }
        self.marked.extend(marked);
    }

    fn with(&self, is_wanted: fn(AuditRule) -> bool) -> Vec<&AuditItem> {
        let is_wanted = |one: &&AuditItem| AuditRule::parse(&one.mark).is_some_and(is_wanted);
        self.marked.iter().filter(is_wanted).collect()
    }

    fn bloated(&self) -> Vec<CrowdedTag<'_>> {
        let limit = self.limits.tag_entries;
        let bloated = self.tags.iter().filter(|(_, entries)| **entries > limit);
        let bloated = bloated.map(|(tag, entries)| (Cow::Borrowed(tag.as_str()), *entries, limit));
        // A node of an earlier version sends no limit.
        let of_reviewer = self.limits.reviewer_entries;
        let crowded =
            self.reviewers.iter().filter(|(_, entries)| of_reviewer > 0 && **entries > of_reviewer);
        let crowded = crowded
            .map(|(name, entries)| (Cow::Owned(format!("review/{name}")), *entries, of_reviewer));
        let all = bloated.chain(crowded);
        all.map(|(tag, entries, limit)| CrowdedTag { tag, entries, limit }).collect()
    }

    fn tally(&self) -> AuditTally {
        let AuditCounts { entries, stale, disputed, friction, waiting, tasks, failed } =
            self.counts;
        AuditTally { entries, stale, disputed, friction, waiting, tasks, failed }
    }

    fn params(&self) -> Params {
        let limits = &self.limits;
        Params {
            tag_entries_max: limits.tag_entries,
            recent_days: limits.recent_days,
            sample_min: limits.sample_min,
            stale_fraction_max: limits.stale,
            disputed_fraction_max: limits.disputed,
            friction_max: limits.friction,
            waiting_max: limits.waiting,
            failed_fraction_max: limits.failed,
            ..Params::default()
        }
    }
}

/// The answer of one gate, from the violations of its rule.
pub(super) fn gate_reply(name: &str, marked: &[&AuditItem]) -> Reply {
    let blocking = marked.iter().filter(|one| one.blocks).count();
    let (passed, warnings) = (blocking == 0, marked.len() - blocking);
    let mut text = listed(marked, |one| if one.blocks { "blocks" } else { "warns" });
    let word = if passed { "passed" } else { "failed" };
    let _ = writeln!(text, "{name}  {word}: {blocking} block, {warnings} warn");
    let reply = Reply::new(&GateReport { passed, blocking, warnings, marked }, text);
    if passed { reply } else { reply.with_exit_code(1) }
}

/// The problems of each entry, entries with blocking problems first.
fn listed<'a>(marked: &[&'a AuditItem], word: impl Fn(&'a AuditItem) -> &'a str) -> String {
    let mut by_entry: BTreeMap<(bool, &str), Vec<&AuditItem>> = BTreeMap::new();
    let blocking = marked.iter().filter(|one| one.blocks).map(|one| one.id.as_str());
    let blocking: BTreeSet<&str> = blocking.collect();
    for one in marked {
        let is_free = !blocking.contains(one.id.as_str());
        by_entry.entry((is_free, &one.id)).or_default().push(one);
    }
    let mut text = String::new();
    for marks in by_entry.values().take(LISTED_MAX) {
        for (at, one) in marks.iter().enumerate() {
            if at == 0 {
                let title = printable(&truncate(&one.title, TITLE_CHARACTERS_MAX));
                let _ = writeln!(text, "{}  {}{title}", one.code, label(one));
            }
            let _ = writeln!(text, "{:12}{}: {}", "", word(one), printable(&one.why));
        }
    }
    if let Some(more) = by_entry.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let more = counted(more as u64, "more entry", "more entries");
        let _ = writeln!(text, "And {more}; use --json to list all.");
    }
    text
}

/// A label with the author of an entry; empty for an entry of this node.
fn label(one: &AuditItem) -> String {
    match (&one.by, one.corroborated) {
        (None, _) => String::new(),
        (Some(by), true) => format!("[by {}]  ", printable(by)),
        (Some(by), false) => format!("[by {}, untried]  ", printable(by)),
    }
}

/// A table of numbers and limits, and a command for each number over its limit.
fn measured(measures: &[Measure], totals: &AuditTotals) -> String {
    let mut text = format!("{:<10}{:>8}{:>10}\n", "MEASURE", "NOW", "AT MOST");
    for Measure { aspect, value, limit } in measures {
        let number = |value: f64| match aspect.is_fraction() {
            true => format!("{:.0} %", value * 100.0),
            false => format!("{value:.0}"),
        };
        let now = value.map_or_else(|| "-".to_owned(), number);
        let _ = writeln!(text, "{:<10}{now:>8}{:>10}", aspect.name(), number(*limit));
    }
    let is_unknown = |of: &Measure| of.value.is_none();
    let is_part = measures.iter().any(|of| is_unknown(of) && of.aspect == Aspect::Waiting);
    if is_part {
        text.push_str("Waiting decisions and failed tasks are counted for the whole node only.\n");
    }
    let is_few = |of: &Measure| {
        of.aspect.is_fraction() && is_unknown(of) && !(is_part && of.aspect == Aspect::Failed)
    };
    if measures.iter().any(is_few) {
        let few = totals.limits.sample_min;
        let _ = writeln!(
            text,
            "Fractions of fewer than {few} are not shown (tuning.audit.sample_size_min)."
        );
    }
    let over: Vec<&Measure> = measures.iter().filter(|measure| measure.is_over()).collect();
    for measure in &over {
        let days = totals.limits.recent_days;
        let _ = match measure.aspect {
            Aspect::Stale => {
                writeln!(text, "Too many entries are stale: `klnode check drift` lists them.")
            }
            Aspect::Disputed => {
                writeln!(
                    text,
                    "Too many entries are contradicted or have an edit conflict: `klnode check drift` lists them."
                )
            }
            Aspect::Bloated => {
                writeln!(text, "Some tags have too many entries: `klnode check drift` lists them.")
            }
            Aspect::Friction => writeln!(
                text,
                "Friction has built up: `klnode task friction report --days {days}` lists it."
            ),
            Aspect::Waiting => writeln!(
                text,
                "Many decisions wait: `klnode inbox list`, `klnode maintain list`, `klnode peer \
                 list`."
            ),
            Aspect::Failed => writeln!(
                text,
                "Many tasks of the last {days} days failed: `klnode task list` shows them."
            ),
        };
    }
    if over.is_empty() {
        let looked = entries(totals.counts.entries);
        let _ = writeln!(text, "All limits are kept ({looked}).");
    }
    text
}
