//! `klnode maintain`: runs maintenance now; lists, undoes and decides its changes and proposals.

use super::sanitize::printable;
use super::timestamp::moment;
use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::{
    JournalItem, MainProposal, MaintenanceDecision, MaintenancePosition, MaintenanceResult,
    MaintenanceRun, MaintenanceStatus,
};
use klnode_client::Client;
use klnode_text::plural::records;
use klnode_text::truncate::truncate;
use serde::Serialize;
use std::fmt::Write;

/// All services, in the order in which they run.
const SERVICES: [&str; 4] = ["duplicates", "contradictions", "pairs", "stale"];
/// The lists of `maintain list`.
const LISTS: [&str; 4] = ["changes", "proposals", "contradictions", "stale"];
/// The most results listed one by one; `maintain list` has the others.
const LISTED_MAX: usize = 50;
/// The most characters of a title: two titles share a line.
const TITLE_CHARACTERS_MAX: usize = 44;

/// The services to run.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// List, undo, accept or dismiss instead.
    #[command(subcommand)]
    pub verb: Option<MaintainVerb>,
    /// Only this service: duplicates, contradictions, pairs or stale.
    #[arg(value_parser = SERVICES)]
    pub service: Option<String>,
    /// Show the changes without making them.
    #[arg(long)]
    pub dry_run: bool,
    /// Examine all entries, not only changed ones.
    #[arg(long)]
    pub all: bool,
}

/// The action on results of maintenance.
#[derive(Debug, clap::Subcommand)]
pub enum MaintainVerb {
    /// List changes, proposals, contradictions and stale entries.
    ///
    /// Example: klnode maintain list stale -n 20
    List(ListingArgs),
    /// Undo a change. Maintenance will not repeat it.
    ///
    /// Example: klnode maintain undo 12
    Undo(RowNumber),
    /// Carry out a proposal.
    ///
    /// Example: klnode maintain accept 12
    Accept(RowNumber),
    /// Dismiss a proposal or a contradiction. Maintenance will not report it again.
    ///
    /// Example: klnode maintain dismiss 12
    Dismiss(RowNumber),
}

/// The lists to print.
#[derive(Debug, Default, clap::Args)]
pub struct ListingArgs {
    /// Only this list: changes, proposals, contradictions or stale [default: all].
    #[arg(value_parser = LISTS)]
    pub only: Option<String>,
    /// The most rows of each list, from 1 to 1000 [default: 500].
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Only rows with smaller numbers, which are older.
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
}

/// One row of the list.
#[derive(Debug, clap::Args)]
pub struct RowNumber {
    /// Its number in `maintain list`.
    pub number: u64,
}

/// The result of one service, over all passes.
#[derive(Debug, Serialize)]
struct ServiceSummary {
    service: String,
    examined: u64,
    merged: usize,
    proposed: usize,
    contradicting: usize,
    stale: usize,
    over: u64,
    faded: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
}

#[derive(Debug, Serialize)]
struct MaintainSummary {
    dry_run: bool,
    services: Vec<ServiceSummary>,
    noted: Vec<JournalItem>,
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        match self.verb {
            None => self.keep(client, progress).await,
            Some(MaintainVerb::List(listing)) => {
                let status: MaintenanceStatus = client.get(&listing.path()).await?;
                let text = listing.listed(&status);
                Ok(Reply::new(&status, text).with_notes(listing.more(&status)))
            }
            Some(MaintainVerb::Undo(one)) => decide(client, one.number, "undo").await,
            Some(MaintainVerb::Accept(one)) => decide(client, one.number, "accept").await,
            Some(MaintainVerb::Dismiss(one)) => decide(client, one.number, "dismiss").await,
        }
    }

    async fn keep(
        &self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        let wanted = |name: &&&str| self.service.as_deref().is_none_or(|one| one == **name);
        let (mut services, mut noted) = (Vec::new(), Vec::new());
        let total = SERVICES.iter().filter(wanted).count() as u64 * 1_000;
        for (at, name) in (0_u64..).zip(SERVICES.iter().filter(wanted)) {
            let mut kept = ServiceSummary::new(name);
            let mut from = self.all.then(MaintenancePosition::default);
            loop {
                let order = MaintenanceRun {
                    service: (*name).into(),
                    dry_run: self.dry_run,
                    from: from.take(),
                };
                let ran: MaintenanceResult =
                    client.send_json(Method::POST, "/v1/maintenance/run", &order).await?;
                let share = ran.done.saturating_mul(1_000) / ran.total.max(1);
                progress.tell("running maintenance", at * 1_000 + share, Some(total));
                kept.add(&ran);
                noted.extend(ran.noted);
                if ran.through {
                    break;
                }
                from = Some(ran.next);
            }
            services.push(kept);
        }
        let summary = MaintainSummary { dry_run: self.dry_run, services, noted };
        let text = summed(&summary);
        Ok(Reply::new(&summary, text))
    }
}

impl ServiceSummary {
    fn new(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            examined: 0,
            merged: 0,
            proposed: 0,
            contradicting: 0,
            stale: 0,
            over: 0,
            faded: 0,
            waits_for: None,
        }
    }

    fn add(&mut self, ran: &MaintenanceResult) {
        let count = |matter: &str, stage: &str| {
            ran.noted.iter().filter(|one| one.matter == matter && one.stage == stage).count()
        };
        self.examined += ran.examined;
        self.merged += count("sameness", "made");
        self.proposed += count("sameness", "proposed");
        self.contradicting += count("contradiction", "open");
        self.stale += count("staleness", "open");
        self.over += ran.over;
        self.faded += ran.faded;
        self.waits_for.clone_from(&ran.waits_for);
    }
}

async fn decide(client: &Client, number: u64, verb: &str) -> Result<Reply, VerbError> {
    let path = format!("/v1/maintenance/{number}/{verb}");
    let decided: MaintenanceDecision = client.send_json(Method::POST, &path, &()).await?;
    let text = format!("{}\n", line(&decided.noted));
    Ok(Reply::new(&decided, text))
}

fn summed(summary: &MaintainSummary) -> String {
    let mut text = format!(
        "{:<15} {:>9} {:>7} {:>9} {:>12} {:>6} {:>5} {:>6}\n",
        "SERVICE", "EXAMINED", "MERGED", "PROPOSED", "CONTRADICTED", "STALE", "OVER", "FADED"
    );
    for of in &summary.services {
        let _ = writeln!(
            text,
            "{:<15} {:>9} {:>7} {:>9} {:>12} {:>6} {:>5} {:>6}",
            of.service,
            of.examined,
            of.merged,
            of.proposed,
            of.contradicting,
            of.stale,
            of.over,
            of.faded
        );
        if let Some(waits_for) = &of.waits_for {
            let _ = writeln!(text, "  {} waits for {waits_for}; try again later", of.service);
        }
    }
    for noted in summary.noted.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "{}", line(noted));
    }
    if let Some(more) = summary.noted.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        // A dry run stores no results that could be listed.
        let way =
            if summary.dry_run { "--json lists all" } else { "`klnode maintain list` shows them" };
        let _ = writeln!(text, "{more} more; {way}");
    }
    if summary.dry_run {
        text.push_str("A dry run: nothing was changed.\n");
    } else if summary.noted.iter().any(|one| one.stage == "made") {
        text.push_str("`klnode maintain undo NUMBER` undoes a change.\n");
    }
    text
}

fn line(noted: &JournalItem) -> String {
    let codes: Vec<&str> = noted.entries.iter().map(|entry| entry.code.as_str()).collect();
    let between = match noted.matter.as_str() {
        "sameness" => " = ",
        "contradiction" => " against ",
        _ => ", ",
    };
    let number = noted.number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let foreign = if noted.foreign { "  (not only yours)" } else { "" };
    let mut text = format!(
        "{number:>6}  {}  {:<9}  {}: {}{foreign}",
        moment(noted.at),
        noted.stage,
        codes.join(between),
        noted.why
    );
    // An untrusted entry is named by its code.
    let titles = noted.titles.iter().zip(&codes).map(|(title, code)| match title.is_empty() {
        true => (*code).to_owned(),
        false => truncate(&printable(title), TITLE_CHARACTERS_MAX),
    });
    let titles: Vec<String> = titles.collect();
    if noted.titles.iter().any(|title| !title.is_empty()) {
        let _ = write!(text, "\n{:>8}{}", "", titles.join(between));
    }
    text
}

impl ListingArgs {
    fn path(&self) -> String {
        let given = [
            ("only", self.only.clone()),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("before", self.before.map(|before| before.to_string())),
        ];
        let given =
            given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        format!("/v1/maintenance?{}", given.collect::<Vec<_>>().join("&"))
    }

    fn listed(&self, status: &MaintenanceStatus) -> String {
        let parts = [
            ("Changes", &status.changes, "`klnode maintain undo NUMBER` undoes one"),
            ("Proposals", &status.proposals, "`klnode maintain accept NUMBER`, or `dismiss`"),
            (
                "Contradictions",
                &status.contradictions,
                "`klnode maintain dismiss NUMBER` hides one",
            ),
            ("Stale", &status.stale, "`klnode feedback CODE --success` brings one back"),
        ];
        let mut text = String::new();
        for (name, rows, way) in parts.iter().filter(|(_, rows, _)| !rows.is_empty()) {
            let _ = writeln!(text, "{name} ({way})");
            for row in *rows {
                let _ = writeln!(text, "{}", line(row));
            }
        }
        // A single list omits the state of the services.
        if self.only.is_some() || self.before.is_some() {
            return if text.is_empty() { "The list is empty.\n".to_owned() } else { text };
        }
        if text.is_empty() {
            text.push_str("Maintenance has changed nothing and proposes nothing. ");
            text.push_str("`klnode maintain` runs it now.\n");
        }
        for cluster in &status.clusters {
            let codes: Vec<&str> =
                cluster.entries.iter().map(|entry| entry.code.as_str()).collect();
            let dense = if cluster.dense { ", dense: one entry could replace them" } else { "" };
            let codes = codes.join(", ");
            let _ = writeln!(
                text,
                "Served together: {codes}  (mean weight {:.1}{dense})",
                cluster.mean_weight
            );
        }
        for MainProposal { code, title, projects, .. } in &status.for_main {
            let title = truncate(&printable(title), TITLE_CHARACTERS_MAX);
            let _ = writeln!(
                text,
                "For main: {code}  {title}  (found in {}): `klnode add --from {code} --workspace \
                 main`",
                printable(&projects.join(" and "))
            );
        }
        for of in &status.services {
            let due = if of.due { "due" } else { "not due" };
            let through = of.through.map_or_else(|| "never".to_owned(), moment);
            let _ = writeln!(
                text,
                "{:<15} {due}; {} behind; last completed: {through}",
                of.name,
                records(of.behind)
            );
        }
        text
    }

    /// The command for the next page of each list that has one.
    fn more(&self, status: &MaintenanceStatus) -> String {
        let limit = self.limit.map(|limit| format!(" -n {limit}")).unwrap_or_default();
        let lists = [&status.changes, &status.proposals, &status.contradictions, &status.stale];
        let mut notes = String::new();
        for (name, rows) in LISTS.iter().zip(lists) {
            let is_cut = status.more_of.iter().any(|of| of == name);
            let last = rows.last().and_then(|row| row.number).filter(|_| is_cut);
            if let Some(last) = last {
                let _ = writeln!(
                    notes,
                    "For more, run: klnode maintain list {name}{limit} --before {last}"
                );
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_api_types::EntryIdentity;

    fn noted(number: Option<u64>, stage: &str) -> JournalItem {
        let named = |id: &str, code: &str| EntryIdentity { id: id.into(), code: code.into() };
        JournalItem {
            number,
            service: "duplicates".into(),
            matter: "sameness".into(),
            stage: stage.into(),
            at: 1_790_000_000_000,
            entries: vec![named("01", "L-AAAA"), named("02", "L-BBBB")],
            titles: Vec::new(),
            why: "nearness 0.991, and nothing differs".into(),
            foreign: false,
            decided: None,
        }
    }

    #[test]
    fn a_summary_lists_results_and_the_undo_command() {
        let mut kept = ServiceSummary::new("duplicates");
        (kept.examined, kept.merged) = (7, 1);
        let noted = vec![noted(Some(12), "made")];
        let text = summed(&MaintainSummary { dry_run: false, services: vec![kept], noted });
        assert!(
            text.contains("    12  2026-09-21 14:13:20  made       L-AAAA = L-BBBB: "),
            "{text}"
        );
        assert!(text.ends_with("undoes a change.\n"), "{text}");
    }

    #[test]
    fn related_entries_are_named_by_titles_on_one_line() {
        let long = format!("Bound\u{1b} the queue {}", "x".repeat(80));
        let text_with = |titles: [&str; 2]| {
            let titles = titles.map(str::to_owned).to_vec();
            line(&JournalItem { titles, ..noted(Some(12), "made") })
        };
        let text = text_with([long.as_str(), "Drop what is late"]);
        let titles = text.lines().nth(1).unwrap_or_default();
        assert!(titles.starts_with("        Bound\u{FFFD} the queue x"), "{text}");
        assert!(titles.ends_with("… = Drop what is late"), "{text}");
        assert!(titles.chars().count() < 100, "{text}");
        assert!(text_with(["", "Drop it"]).ends_with("\n        L-AAAA = Drop it"));
        assert_eq!(text_with(["", ""]).lines().count(), 1);
    }

    #[test]
    fn results_beyond_the_limit_are_counted_with_a_way_to_list_them() {
        let text = |dry_run: bool| {
            let noted = vec![noted(None, "made"); LISTED_MAX + 3];
            summed(&MaintainSummary { dry_run, services: Vec::new(), noted })
        };
        let done = text(false);
        assert!(done.contains("\n3 more; `klnode maintain list` shows them\n"), "{done}");
        let rehearsed = text(true);
        assert!(rehearsed.contains("\n3 more; --json lists all\n"), "{rehearsed}");
        assert!(!rehearsed.contains("maintain list"), "{rehearsed}");
    }

    #[test]
    fn a_cut_list_names_the_command_for_the_next_page() {
        let mut status = MaintenanceStatus {
            services: Vec::new(),
            changes: vec![noted(Some(12), "made"), noted(Some(9), "made")],
            proposals: vec![noted(Some(7), "proposed")],
            contradictions: Vec::new(),
            stale: Vec::new(),
            clusters: Vec::new(),
            for_main: Vec::new(),
            more: true,
            more_of: vec!["changes".into()],
        };
        let all = ListingArgs::default();
        assert_eq!(all.path(), "/v1/maintenance?");
        assert_eq!(all.more(&status), "For more, run: klnode maintain list changes --before 9\n");
        let part = ListingArgs { only: Some("changes".into()), limit: Some(2), before: Some(20) };
        assert_eq!(part.path(), "/v1/maintenance?only=changes&limit=2&before=20");
        assert_eq!(
            part.more(&status),
            "For more, run: klnode maintain list changes -n 2 --before 9\n"
        );
        (status.changes, status.proposals) = (Vec::new(), Vec::new());
        assert_eq!(part.listed(&status), "The list is empty.\n");
        assert!(all.listed(&status).ends_with("runs it now.\n"));
    }

    #[test]
    fn a_dry_run_has_no_numbers_and_changes_nothing() {
        let noted = vec![noted(None, "made")];
        let summary = MaintainSummary { dry_run: true, services: Vec::new(), noted };
        let text = summed(&summary);
        assert!(text.contains("     -  2026"), "{text}");
        assert!(text.ends_with("nothing was changed.\n"), "{text}");
    }
}
