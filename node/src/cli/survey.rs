//! `klnode verify`, `drift` and `health`: three questions about one survey of everything held.
//!
//! The node tells what is wrong entry by entry, a page at a time; what follows from all pages together
//! is told here, by the rules of `scoring::survey` and the node's own numbers.

use super::harmless::printable;
use super::read::escape;
use super::{Progress, Reply, VerbError, anchors};
use crate::api::Client;
use crate::api::types::{Marked, Status, SurveyCounts, SurveyLimits, SurveyPage};
use crate::query::count::{counted, entries};
use crate::query::{cut, shell};
use klnode_scoring::survey::{self, Aspect, Mark, Measure, Params, Tally};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Entries that are told one by one; `--json` has them all.
const TOLD_MAX: usize = 50;
/// Characters of a title: with its code, 80 columns.
const TITLE_CHARACTERS_MAX: usize = 68;
/// How far a survey is, of this: ids are spread evenly.
const PROGRESS_TOTAL: u64 = u16::MAX as u64;

/// Of what.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this workspace, by name or id [default: all].
    pub workspace: Option<String>,
}

/// Everything a survey tells.
struct Surveyed {
    /// Where what entries depend on was to be looked at ...
    checkout: Option<String>,
    /// ... and why it was not.
    unlooked: Option<String>,
    counts: SurveyCounts,
    tags: BTreeMap<String, u64>,
    marked: Vec<Marked>,
    limits: SurveyLimits,
}

/// What `verify` answers.
#[derive(Serialize)]
struct Verified<'a> {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    blocking: usize,
    warnings: usize,
    marked: Vec<&'a Marked>,
}

/// What `drift` answers.
#[derive(Serialize)]
struct Drifted<'a> {
    entries: u64,
    /// Where what entries depend on was looked at; null where there is no checkout, and nothing was.
    checkout: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    /// `needs_review` and `needs_pruning`, as far as they are.
    recommendations: Vec<&'static str>,
    bloated: Vec<Bloated<'a>>,
    marked: Vec<&'a Marked>,
}

/// A tag with more entries than anybody looks through.
#[derive(Serialize)]
struct Bloated<'a> {
    tag: &'a str,
    entries: u64,
    limit: u64,
}

/// What `health` answers.
#[derive(Serialize)]
struct Health<'a> {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlooked: &'a Option<String>,
    well: bool,
    /// The command that closes `node.key`, where other users can get at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    close_key: Option<&'a str>,
    measures: Vec<Measured>,
}

/// One number and its limit.
#[derive(Serialize)]
struct Measured {
    name: &'static str,
    value: Option<f64>,
    limit: f64,
    over: bool,
}

impl Args {
    /// Whether every entry keeps the rules. What blocks is for whoever gates a release.
    pub(super) async fn verify(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let surveyed = self.survey(client, progress).await?;
        let marked = surveyed.with(Mark::is_rule);
        let blocking = marked.iter().filter(|one| one.blocks).count();
        let warnings = marked.len() - blocking;
        let mut text = told(&marked, |one| if one.blocks { "blocks" } else { "warns" });
        let looked = entries(surveyed.counts.entries);
        let _ = match (blocking, warnings) {
            (0, 0) => writeln!(text, "Verified {looked}: every rule is kept."),
            _ => writeln!(text, "Verified {looked}: {blocking} block, {warnings} warn."),
        };
        let (entries, unlooked) = (surveyed.counts.entries, &surveyed.unlooked);
        let verified = Verified { entries, unlooked, blocking, warnings, marked };
        Ok(surveyed.ending(Reply::new(&verified, text), blocking > 0))
    }

    /// Whether what is held has drifted from what it speaks of.
    pub(super) async fn drift(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let surveyed = self.survey(client, progress).await?;
        let (marked, bloated) = (surveyed.with(Mark::is_drift), surveyed.bloated());
        let mut text = told(&marked, |one| &one.mark);
        for Bloated { tag, entries, limit } in &bloated {
            let (tag, word) = (printable(tag), printable(&shell::word(tag)));
            let _ = writeln!(
                text,
                "Tag {tag} has {entries} entries, more than {limit}: `klnode list --tag {word}`."
            );
        }
        let has = |mark: Mark| marked.iter().any(|one| one.mark == mark.name());
        let mut recommendations = Vec::new();
        if has(Mark::Contradiction) || has(Mark::Orphaned) {
            recommendations.push("needs_review");
            text.push_str(
                "Needs review: `klnode show CODE`, then `edit`, `supersede` or `archive` it.\n",
            );
        }
        if let Some(checkout) = surveyed.checkout.as_ref().filter(|_| has(Mark::Orphaned)) {
            let _ = writeln!(
                text,
                "Looked in {}; predicates of other repositories are not checked there.",
                printable(checkout)
            );
        }
        if has(Mark::Stale) || !bloated.is_empty() {
            recommendations.push("needs_pruning");
            let confirm = if has(Mark::Stale) { ", or `confirm` what still holds" } else { "" };
            let _ = writeln!(text, "Needs pruning: `klnode archive CODE`{confirm}.");
        }
        if recommendations.is_empty() {
            let looked = entries(surveyed.counts.entries);
            let _ = writeln!(text, "Nothing of {looked} has drifted.");
        }
        let is_drifted = !recommendations.is_empty();
        let Surveyed { checkout, unlooked, .. } = &surveyed;
        let entries = surveyed.counts.entries;
        let drifted = Drifted { entries, checkout, unlooked, recommendations, bloated, marked };
        let reply = surveyed.ending(Reply::new(&drifted, text), is_drifted);
        Ok(match (&surveyed.checkout, &surveyed.unlooked) {
            // A gate that could not look says neither yes nor no.
            (_, Some(_)) => reply.ending(2),
            (None, None) => reply.remarking(
                "There is no checkout here: what entries depend on was not looked at.\n".to_owned(),
            ),
            (Some(_), None) => reply,
        })
    }

    /// Whether anything wants somebody's attention.
    pub(super) async fn health(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let surveyed = self.survey(client, progress).await?;
        let bloated = surveyed.bloated().len() as u64;
        let measures = survey::measures(&surveyed.tally(), bloated, &surveyed.params());
        let mut text = measured(&measures, &surveyed);
        let Status { close_key, .. } = client.get("/v1/status").await?;
        if let Some(command) = &close_key {
            let command = printable(command);
            let _ = writeln!(text, "Other users can get at the node's key: run `{command}`.");
        }
        let is_well = close_key.is_none() && !measures.iter().any(Measure::is_over);
        let measures = measures.iter().map(|measure| Measured {
            name: measure.aspect.name(),
            value: measure.value,
            limit: measure.limit,
            over: measure.is_over(),
        });
        let health = Health {
            entries: surveyed.counts.entries,
            unlooked: &surveyed.unlooked,
            well: is_well,
            close_key: close_key.as_deref(),
            measures: measures.collect(),
        };
        Ok(surveyed.ending(Reply::new(&health, text), !is_well))
    }

    async fn survey(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Surveyed, VerbError> {
        let checkout = anchors::here();
        let given = [("workspace", self.workspace), ("checkout", checkout.clone())];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escape(&value))));
        let query = given.collect::<Vec<_>>().join("&");
        let first: SurveyPage = client.get(&format!("/v1/survey?{query}")).await?;
        let SurveyPage { counts, tags, marked, limits, unlooked, mut next } = first;
        let mut surveyed = Surveyed { checkout, unlooked, counts, tags, marked, limits };
        while let Some(after) = next {
            let done = after.get(..4).and_then(|digits| u64::from_str_radix(digits, 16).ok());
            progress.tell("looking at what is held", done.unwrap_or(0), Some(PROGRESS_TOTAL));
            let page: SurveyPage = client.get(&format!("/v1/survey?{query}&after={after}")).await?;
            surveyed.add(page.counts, page.tags, page.marked);
            next = page.next;
        }
        Ok(surveyed)
    }
}

impl Surveyed {
    /// An answer, with what could not be looked at, and whether it is a no.
    fn ending(&self, reply: Reply, is_no: bool) -> Reply {
        let why = self.unlooked.as_deref().map(printable);
        let note =
            why.map(|why| format!("What entries depend on was not looked at: cannot {why}.\n"));
        let reply = reply.noting(note.unwrap_or_default());
        if is_no { reply.ending(1) } else { reply }
    }

    fn add(&mut self, counts: SurveyCounts, tags: BTreeMap<String, u64>, marked: Vec<Marked>) {
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
        self.marked.extend(marked);
    }

    fn with(&self, is_wanted: fn(Mark) -> bool) -> Vec<&Marked> {
        let is_wanted = |one: &&Marked| Mark::parse(&one.mark).is_some_and(is_wanted);
        self.marked.iter().filter(is_wanted).collect()
    }

    fn bloated(&self) -> Vec<Bloated<'_>> {
        let limit = self.limits.tag_entries;
        let bloated = self.tags.iter().filter(|(_, entries)| **entries > limit);
        bloated.map(|(tag, entries)| Bloated { tag, entries: *entries, limit }).collect()
    }

    fn tally(&self) -> Tally {
        let SurveyCounts { entries, stale, disputed, friction, waiting, tasks, failed } =
            self.counts;
        Tally { entries, stale, disputed, friction, waiting, tasks, failed }
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

/// What is wrong, entry by entry: what blocks first.
fn told<'a>(marked: &[&'a Marked], word: impl Fn(&'a Marked) -> &'a str) -> String {
    let mut by_entry: BTreeMap<(bool, &str), Vec<&Marked>> = BTreeMap::new();
    let blocking = marked.iter().filter(|one| one.blocks).map(|one| one.id.as_str());
    let blocking: BTreeSet<&str> = blocking.collect();
    for one in marked {
        let is_free = !blocking.contains(one.id.as_str());
        by_entry.entry((is_free, &one.id)).or_default().push(one);
    }
    let mut text = String::new();
    for marks in by_entry.values().take(TOLD_MAX) {
        for (at, one) in marks.iter().enumerate() {
            if at == 0 {
                let title = printable(&cut(&one.title, TITLE_CHARACTERS_MAX));
                let _ = writeln!(text, "{}  {}{title}", one.code, label(one));
            }
            let _ = writeln!(text, "{:12}{}: {}", "", word(one), printable(&one.why));
        }
    }
    if let Some(more) = by_entry.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        let more = counted(more as u64, "more entry", "more entries");
        let _ = writeln!(text, "And {more}: `--json` has them all.");
    }
    text
}

/// Whose an entry is, unless it is one's own.
fn label(one: &Marked) -> String {
    match (&one.by, one.corroborated) {
        (None, _) => String::new(),
        (Some(by), true) => format!("[by {}]  ", printable(by)),
        (Some(by), false) => format!("[by {}, untried]  ", printable(by)),
    }
}

/// Every number beside its limit, and what to look at.
fn measured(measures: &[Measure], surveyed: &Surveyed) -> String {
    let mut text = format!("{:<10}{:>8}{:>10}\n", "MEASURE", "NOW", "AT MOST");
    for Measure { aspect, value, limit } in measures {
        let number = |value: f64| match aspect.is_fraction() {
            true => format!("{:.0} %", value * 100.0),
            false => format!("{value:.0}"),
        };
        let now = value.map_or_else(|| "-".to_owned(), number);
        let _ = writeln!(text, "{:<10}{now:>8}{:>10}", aspect.name(), number(*limit));
    }
    let untold = |of: &Measure| of.value.is_none();
    let is_part = measures.iter().any(|of| untold(of) && of.aspect == Aspect::Waiting);
    if is_part {
        text.push_str("What waits and how tasks went is told of the whole node alone.\n");
    }
    let is_few = |of: &Measure| {
        of.aspect.is_fraction() && untold(of) && !(is_part && of.aspect == Aspect::Failed)
    };
    if measures.iter().any(is_few) {
        let few = surveyed.limits.sample_min;
        let _ = writeln!(text, "A part of fewer than {few} is not told (survey.sample_min).");
    }
    let over: Vec<&Measure> = measures.iter().filter(|measure| measure.is_over()).collect();
    for measure in &over {
        let days = surveyed.limits.recent_days;
        let _ = match measure.aspect {
            Aspect::Stale => writeln!(text, "Too much is stale: `klnode drift` names it."),
            Aspect::Disputed => {
                writeln!(text, "Too much is disputed: `klnode drift` and `briefing` name it.")
            }
            Aspect::Bloated => {
                writeln!(text, "Some tags have too many entries: `klnode drift` names them.")
            }
            Aspect::Friction => writeln!(
                text,
                "Friction has built up: `klnode friction report --days {days}` tells where."
            ),
            Aspect::Waiting => writeln!(
                text,
                "Much waits for you: `klnode quarantine list`, `maintain list` and `peer list`."
            ),
            Aspect::Failed => writeln!(
                text,
                "Many tasks of the last {days} days failed: `klnode task list` shows them."
            ),
        };
    }
    if over.is_empty() {
        let looked = entries(surveyed.counts.entries);
        let _ = writeln!(text, "Nothing among {looked} wants your attention.");
    }
    text
}
