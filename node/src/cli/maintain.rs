//! `klnode maintain`: look after the store now; list, undo and decide what upkeep did and found.

use super::harmless::printable;
use super::when::moment;
use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::types::{Noted, UpkeepDecided, UpkeepPlace, UpkeepRan, UpkeepRun, UpkeepStatus};
use crate::query::count::records;
use crate::query::cut;
use hyper::Method;
use serde::Serialize;
use std::fmt::Write;

/// All services, in the order in which they are run.
const SERVICES: [&str; 4] = ["duplicates", "contradictions", "pairs", "stale"];
/// What is listed.
const LISTS: [&str; 4] = ["changes", "proposals", "contradictions", "stale"];
/// Found things that are told one by one; the rest is counted, and what was noted is listed by `maintain
/// list`.
const TOLD_MAX: usize = 50;
/// Characters of a title beside the other's: both stand in one line.
const TITLE_CHARACTERS_MAX: usize = 44;

/// What to look after.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Something else than to look after the store.
    #[command(subcommand)]
    pub verb: Option<MaintainVerb>,
    /// Only this: duplicates, contradictions, pairs or stale.
    #[arg(value_parser = SERVICES)]
    pub service: Option<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Look at everything again, not only at what has changed.
    #[arg(long)]
    pub all: bool,
}

/// What else can be done about upkeep.
#[derive(Debug, clap::Subcommand)]
pub enum MaintainVerb {
    /// List what was done, what waits for a word, what contradicts and what is stale.
    ///
    /// Example: klnode maintain list stale -n 20
    List(Listing),
    /// Undo what was done. The same is not done again.
    ///
    /// Example: klnode maintain undo 12
    Undo(Numbered),
    /// Do what was proposed.
    ///
    /// Example: klnode maintain accept 12
    Accept(Numbered),
    /// Drop what was proposed or found. It does not come again.
    ///
    /// Example: klnode maintain dismiss 12
    Dismiss(Numbered),
}

/// What to list.
#[derive(Debug, Default, clap::Args)]
pub struct Listing {
    /// Only this: changes, proposals, contradictions or stale [default: each of them].
    #[arg(value_parser = LISTS)]
    pub only: Option<String>,
    /// At most so many of each, from 1 to 1000 [default: 500].
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Those with smaller numbers, which are older.
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
}

/// One row of the list.
#[derive(Debug, clap::Args)]
pub struct Numbered {
    /// Its number, as `maintain list` shows it.
    pub number: u64,
}

/// What one service did, all passes together.
#[derive(Debug, Serialize)]
struct Kept {
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
struct Summary {
    dry_run: bool,
    services: Vec<Kept>,
    noted: Vec<Noted>,
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        match self.verb {
            None => self.keep(client, progress).await,
            Some(MaintainVerb::List(listing)) => {
                let status: UpkeepStatus = client.get(&listing.path()).await?;
                let text = listing.listed(&status);
                Ok(Reply::new(&status, text).noting(listing.more(&status)))
            }
            Some(MaintainVerb::Undo(one)) => decide(client, one.number, "undo").await,
            Some(MaintainVerb::Accept(one)) => decide(client, one.number, "accept").await,
            Some(MaintainVerb::Dismiss(one)) => decide(client, one.number, "dismiss").await,
        }
    }

    async fn keep(&self, client: &Client, progress: &mut dyn Progress) -> Result<Reply, VerbError> {
        let wanted = |name: &&&str| self.service.as_deref().is_none_or(|one| one == **name);
        let (mut services, mut noted) = (Vec::new(), Vec::new());
        let total = SERVICES.iter().filter(wanted).count() as u64 * 1_000;
        for (at, name) in (0_u64..).zip(SERVICES.iter().filter(wanted)) {
            let mut kept = Kept::new(name);
            let mut from = self.all.then(UpkeepPlace::default);
            loop {
                let order =
                    UpkeepRun { service: (*name).into(), dry_run: self.dry_run, from: from.take() };
                let ran: UpkeepRan =
                    client.send_json(Method::POST, "/v1/upkeep/run", &order).await?;
                let share = ran.done.saturating_mul(1_000) / ran.total.max(1);
                progress.tell("looking after the store", at * 1_000 + share, Some(total));
                kept.add(&ran);
                noted.extend(ran.noted);
                if ran.through {
                    break;
                }
                from = Some(ran.next);
            }
            services.push(kept);
        }
        let summary = Summary { dry_run: self.dry_run, services, noted };
        let text = summed(&summary);
        Ok(Reply::new(&summary, text))
    }
}

impl Kept {
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

    fn add(&mut self, ran: &UpkeepRan) {
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
    let path = format!("/v1/upkeep/{number}/{verb}");
    let decided: UpkeepDecided = client.send_json(Method::POST, &path, &()).await?;
    let text = format!("{}\n", line(&decided.noted));
    Ok(Reply::new(&decided, text))
}

fn summed(summary: &Summary) -> String {
    let mut text = format!(
        "{:<15} {:>9} {:>7} {:>9} {:>12} {:>6} {:>5} {:>6}\n",
        "SERVICE", "LOOKED AT", "MERGED", "PROPOSED", "CONTRADICTED", "STALE", "OVER", "FADED"
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
    for noted in summary.noted.iter().take(TOLD_MAX) {
        let _ = writeln!(text, "{}", line(noted));
    }
    if let Some(more) = summary.noted.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        // A dry run notes nothing that could be listed.
        let way =
            if summary.dry_run { "--json has all" } else { "`klnode maintain list` shows them" };
        let _ = writeln!(text, "{more} more; {way}");
    }
    if summary.dry_run {
        text.push_str("A dry run: nothing was changed.\n");
    } else if summary.noted.iter().any(|one| one.stage == "made") {
        text.push_str("`klnode maintain undo NUMBER` takes a change back.\n");
    }
    text
}

fn line(noted: &Noted) -> String {
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
    // What may not speak unasked goes by its code here, too.
    let titles = noted.titles.iter().zip(&codes).map(|(title, code)| match title.is_empty() {
        true => (*code).to_owned(),
        false => cut(&printable(title), TITLE_CHARACTERS_MAX),
    });
    let titles: Vec<String> = titles.collect();
    if noted.titles.iter().any(|title| !title.is_empty()) {
        let _ = write!(text, "\n{:>8}{}", "", titles.join(between));
    }
    text
}

impl Listing {
    fn path(&self) -> String {
        let given = [
            ("only", self.only.clone()),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("before", self.before.map(|before| before.to_string())),
        ];
        let given =
            given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        format!("/v1/upkeep?{}", given.collect::<Vec<_>>().join("&"))
    }

    fn listed(&self, status: &UpkeepStatus) -> String {
        let parts = [
            ("Changes", &status.changes, "`klnode maintain undo NUMBER` takes one back"),
            ("Proposals", &status.proposals, "`klnode maintain accept NUMBER`, or `dismiss`"),
            (
                "Contradictions",
                &status.contradictions,
                "`klnode maintain dismiss NUMBER` hides one",
            ),
            ("Stale", &status.stale, "`klnode observe CODE --success` brings one back"),
        ];
        let mut text = String::new();
        for (name, rows, way) in parts.iter().filter(|(_, rows, _)| !rows.is_empty()) {
            let _ = writeln!(text, "{name} ({way})");
            for row in *rows {
                let _ = writeln!(text, "{}", line(row));
            }
        }
        // Whoever wants a part does not ask how upkeep is.
        if self.only.is_some() || self.before.is_some() {
            return if text.is_empty() { "Nothing of that is noted.\n".to_owned() } else { text };
        }
        if text.is_empty() {
            text.push_str("Nothing was done yet, and nothing waits for a word. ");
            text.push_str("`klnode maintain` looks now.\n");
        }
        for cluster in &status.clusters {
            let codes: Vec<&str> =
                cluster.entries.iter().map(|entry| entry.code.as_str()).collect();
            let _ = writeln!(text, "Served together: {}", codes.join(", "));
        }
        for of in &status.services {
            let due = if of.due { "due" } else { "not due" };
            let through = of.through.map_or_else(|| "never".to_owned(), moment);
            let _ = writeln!(
                text,
                "{:<15} {due}; {} behind; last through: {through}",
                of.name,
                records(of.behind)
            );
        }
        text
    }

    /// How to go on with each list that goes on.
    fn more(&self, status: &UpkeepStatus) -> String {
        let limit = self.limit.map(|limit| format!(" -n {limit}")).unwrap_or_default();
        let lists = [&status.changes, &status.proposals, &status.contradictions, &status.stale];
        let mut notes = String::new();
        for (name, rows) in LISTS.iter().zip(lists) {
            let is_cut = status.more_of.iter().any(|of| of == name);
            let last = rows.last().and_then(|row| row.number).filter(|_| is_cut);
            if let Some(last) = last {
                let _ = writeln!(
                    notes,
                    "More with: klnode maintain list {name}{limit} --before {last}"
                );
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::types::Named;

    fn noted(number: Option<u64>, stage: &str) -> Noted {
        let named = |id: &str, code: &str| Named { id: id.into(), code: code.into() };
        Noted {
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
    fn a_summary_counts_tells_and_says_how_to_undo() {
        let mut kept = Kept::new("duplicates");
        (kept.examined, kept.merged) = (7, 1);
        let noted = vec![noted(Some(12), "made")];
        let text = summed(&Summary { dry_run: false, services: vec![kept], noted });
        assert!(
            text.contains("    12  2026-09-21 14:13:20  made       L-AAAA = L-BBBB: "),
            "{text}"
        );
        assert!(text.ends_with("takes a change back.\n"), "{text}");
    }

    #[test]
    fn what_belongs_together_is_named_by_its_titles_cut_to_one_line() {
        let long = format!("Bound\u{1b} the queue {}", "x".repeat(80));
        let told = |titles: [&str; 2]| {
            let titles = titles.map(str::to_owned).to_vec();
            line(&Noted { titles, ..noted(Some(12), "made") })
        };
        let text = told([long.as_str(), "Drop what is late"]);
        let titles = text.lines().nth(1).unwrap_or_default();
        assert!(titles.starts_with("        Bound\u{FFFD} the queue x"), "{text}");
        assert!(titles.ends_with("… = Drop what is late"), "{text}");
        assert!(titles.chars().count() < 100, "{text}");
        assert!(told(["", "Drop it"]).ends_with("\n        L-AAAA = Drop it"));
        assert_eq!(told(["", ""]).lines().count(), 1);
    }

    #[test]
    fn what_is_not_told_is_where_it_can_be_found_and_a_dry_run_notes_nothing() {
        let told = |dry_run: bool| {
            let noted = vec![noted(None, "made"); TOLD_MAX + 3];
            summed(&Summary { dry_run, services: Vec::new(), noted })
        };
        let done = told(false);
        assert!(done.contains("\n3 more; `klnode maintain list` shows them\n"), "{done}");
        let rehearsed = told(true);
        assert!(rehearsed.contains("\n3 more; --json has all\n"), "{rehearsed}");
        assert!(!rehearsed.contains("maintain list"), "{rehearsed}");
    }

    #[test]
    fn a_list_that_goes_on_says_how_and_a_part_of_it_is_told_alone() {
        let mut status = UpkeepStatus {
            services: Vec::new(),
            changes: vec![noted(Some(12), "made"), noted(Some(9), "made")],
            proposals: vec![noted(Some(7), "proposed")],
            contradictions: Vec::new(),
            stale: Vec::new(),
            clusters: Vec::new(),
            more: true,
            more_of: vec!["changes".into()],
        };
        let all = Listing::default();
        assert_eq!(all.path(), "/v1/upkeep?");
        assert_eq!(all.more(&status), "More with: klnode maintain list changes --before 9\n");
        let part = Listing { only: Some("changes".into()), limit: Some(2), before: Some(20) };
        assert_eq!(part.path(), "/v1/upkeep?only=changes&limit=2&before=20");
        assert_eq!(part.more(&status), "More with: klnode maintain list changes -n 2 --before 9\n");
        (status.changes, status.proposals) = (Vec::new(), Vec::new());
        assert_eq!(part.listed(&status), "Nothing of that is noted.\n");
        assert!(all.listed(&status).ends_with("looks now.\n"));
    }

    #[test]
    fn a_dry_run_has_no_numbers_and_says_that_nothing_was_changed() {
        let noted = vec![noted(None, "made")];
        let summary = Summary { dry_run: true, services: Vec::new(), noted };
        let text = summed(&summary);
        assert!(text.contains("     -  2026"), "{text}");
        assert!(text.ends_with("nothing was changed.\n"), "{text}");
    }
}
