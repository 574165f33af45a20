//! `klnode friction`: what got in the way, recorded raw, and where it comes again and again.
//!
//! Raw observations never answer a question. What is learned from them is promoted, by hand and with
//! evidence.

use super::harmless::printable;
use super::read::escape;
use super::when::moment;
use super::{Reply, VerbError, anchors};
use crate::api::Client;
use crate::api::types::{Added, Entry, List, NewEntry, Status};
use crate::query::count::counted;
use crate::query::cut;
use hyper::Method;
use klnode_crdt::kind::Kind;
use klnode_crdt::limits::TITLE_CHARS_MAX;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A day.
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// What is told one by one; `--json` has it all.
const TOLD_MAX: usize = 20;
/// Characters of a title on one line.
const SHOWN_CHARACTERS_MAX: usize = 42;

/// What to do about friction.
#[derive(Debug, clap::Subcommand)]
pub enum FrictionVerb {
    /// Record what got in the way. It is kept raw: no question is answered with it.
    ///
    /// Example: klnode friction record "cargo test hangs without a terminal" --kind tool_error
    Record(Record),
    /// Tell what came again and again, the most frequent first.
    ///
    /// Example: klnode friction report --days 30
    Report(Report),
}

/// What got in the way.
#[derive(Debug, clap::Args)]
pub struct Record {
    /// In a sentence or more; the first line is its title.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// tool_error, redo or validation_fail.
    #[arg(long, value_parser = kinds())]
    pub kind: Option<String>,
    /// The task it happened in.
    #[arg(long)]
    pub task: Option<String>,
    /// A tag, hierarchical with `/`; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// A workspace; local never leaves this node [default: that of the checkout, else the one set by
    /// `workspace use`, else main].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// Over what time, and where.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Of so many days.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub days: u32,
    /// Only this workspace, by name or id [default: all].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// What `friction report` answers.
#[derive(Debug, Serialize)]
struct Reported {
    days: u32,
    recorded: u64,
    groups: Vec<Group>,
}

/// The same friction, however often.
#[derive(Debug, Serialize)]
struct Group {
    count: u64,
    /// The newest kind that was given.
    kind: Option<String>,
    title: String,
    /// The newest of them.
    id: String,
    code: String,
    /// When that was first seen here, in milliseconds since 1970.
    last: u64,
}

fn kinds() -> Vec<&'static str> {
    Kind::Friction.sub_types().to_vec()
}

impl FrictionVerb {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::Record(record) => record.run(client).await,
            Self::Report(report) => report.run(client).await,
        }
    }
}

impl Record {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let text = self.text.trim();
        if text.is_empty() {
            let told = "record friction without a word: say what got in the way";
            return Err(VerbError::Input(told.to_owned()));
        }
        let first = text.lines().next().unwrap_or_default();
        let title = cut(first, TITLE_CHARS_MAX - 1);
        let new = NewEntry {
            title,
            content: text.to_owned(),
            kind: Some(Kind::Friction.name().to_owned()),
            sub_type: self.kind,
            tags: self.tags,
            task: self.task,
            workspace: self.workspace,
            checkout: anchors::here(),
            ..NewEntry::default()
        };
        let added: Added = client.send_json(Method::POST, "/v1/entries", &new).await?;
        let place = match added.current && added.workspace == "main" {
            true => String::new(),
            false => format!("  (in {})", added.workspace),
        };
        let text = format!("{}  {}{place}\n", added.code, printable(&new.title));
        Ok(Reply::new(&added, text))
    }
}

impl Report {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let workspace = self.workspace.as_deref();
        let workspace = workspace.map(|name| format!("&workspace={}", escape(name)));
        let path = format!("/v1/entries?type=friction&limit=1000{}", workspace.unwrap_or_default());
        let mut list: List = client.get(&path).await?;
        let mut all = list.entries;
        while let Some(after) = list.next.take() {
            list = client.get(&format!("{path}&after={after}")).await?;
            all.append(&mut list.entries);
        }
        let status: Status = client.get("/v1/status").await?;
        let since = status.as_of.saturating_sub(u64::from(self.days).saturating_mul(DAY_MILLIS));
        let reported = reported(&all, since, self.days);
        let text = told(&reported);
        Ok(Reply::new(&reported, text))
    }
}

/// Puts together what says the same. What others brought is theirs to deal with; what was put away is
/// dealt with.
fn reported(all: &[Entry], since: u64, days: u32) -> Reported {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut recorded = 0;
    let is_told = |entry: &&Entry| {
        let is_settled = entry.status == "archived" || entry.muted || entry.invalidated;
        !entry.foreign && !is_settled && entry.first_seen >= since
    };
    for entry in all.iter().filter(is_told) {
        recorded += 1;
        let words = entry.title.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let group = groups.entry(words).or_insert_with(|| Group {
            count: 0,
            kind: None,
            title: entry.title.clone(),
            id: entry.id.clone(),
            code: entry.code.clone(),
            last: entry.first_seen,
        });
        group.count += 1;
        let kind = entry.registers.get("sub_type").filter(|kind| kinds().contains(&kind.as_str()));
        let kind = kind.cloned();
        if group.kind.is_none() || (kind.is_some() && entry.first_seen >= group.last) {
            group.kind = kind;
        }
        if entry.first_seen > group.last {
            group.last = entry.first_seen;
            (group.id, group.code) = (entry.id.clone(), entry.code.clone());
            group.title.clone_from(&entry.title);
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by(|one, two| {
        two.count.cmp(&one.count).then(two.last.cmp(&one.last)).then(one.id.cmp(&two.id))
    });
    Reported { days, recorded, groups }
}

fn told(reported: &Reported) -> String {
    let Reported { days, recorded, groups } = reported;
    let span = counted(u64::from(*days), "day", "days");
    let Some(most) = groups.first() else {
        return format!(
            "No friction in {span}. `klnode friction record TEXT` records what gets in the way.\n"
        );
    };
    let count = counted(groups.len() as u64, "group", "groups");
    let mut text = format!("Friction of {span}: {recorded}, in {count}.\n");
    for group in groups.iter().take(TOLD_MAX) {
        let Group { count, kind, title, code, last, .. } = group;
        let kind = printable(kind.as_deref().unwrap_or("-"));
        let day = moment(*last);
        let day = day.split(' ').next().unwrap_or_default();
        let title = printable(&cut(title, SHOWN_CHARACTERS_MAX));
        let _ = writeln!(text, "{count:>5}  {kind:<15}  {day}  {code}  {title}");
    }
    if groups.len() > TOLD_MAX {
        let _ = writeln!(text, "And {} more: `--json` has them all.", groups.len() - TOLD_MAX);
    }
    if most.count > 1 {
        let code = &most.code;
        let _ = writeln!(
            text,
            "What comes again is worth a lesson: klnode promote {code} --evidence KIND:REF; then \
             archive it."
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(number: u64, title: &str, foreign: bool) -> Entry {
        serde_json::from_value(json!({
            "id": format!("{number:032x}"), "code": format!("X-{number:08}"), "title": title,
            "content": title, "type": "friction", "memory": "episodic", "workspace": "main",
            "registers": {"sub_type": "redo"}, "tags": [], "citations": [], "sets": {},
            "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0, "status": "candidate",
            "status_reason": "", "author": "", "hop": 0, "trust": 1.0, "foreign": foreign,
            "contested": [], "proposals": 0, "pinned": false, "muted": false,
            "invalidated": false, "note": null, "first_seen": number * DAY_MILLIS,
        }))
        .unwrap()
    }

    #[test]
    fn the_same_words_are_one_group_by_the_newest_and_old_and_foreign_ones_are_left_out() {
        let all = [
            entry(9, "Tests hang", false),
            entry(11, "tests  hang", false),
            entry(12, "Another", false),
            entry(13, "Theirs", true),
            entry(1, "Tests hang", false),
            Entry { status: "archived".into(), ..entry(14, "Dealt with", false) },
        ];
        let reported = reported(&all, 9 * DAY_MILLIS, 30);
        assert_eq!(reported.recorded, 3);
        let told: Vec<_> =
            reported.groups.iter().map(|one| (one.count, one.code.as_str())).collect();
        assert_eq!(told, [(2, "X-00000011"), (1, "X-00000012")]);
        assert_eq!(
            super::told(&reported),
            "Friction of 30 days: 3, in 2 groups.\n    \
             2  redo             1970-01-12  X-00000011  tests  hang\n    \
             1  redo             1970-01-13  X-00000012  Another\n\
             What comes again is worth a lesson: klnode promote X-00000011 --evidence KIND:REF; then \
             archive it.\n"
        );
    }
}
