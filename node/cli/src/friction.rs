//! `klnode task friction`: records an obstacle in the work, and reports obstacles that recur.
//!
//! A raw record never answers a question. A lesson from it is copied into its own entry, by hand
//! and with evidence.

use super::api_path::escape;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{Reply, VerbError, anchors};
use hyper::Method;
use klnode_api_types::{AddResult, Entry, EntryPage, NewEntry, NodeStatus};
use klnode_client::Client;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::limits::TITLE_CHARS_MAX;
use klnode_text::plural::counted;
use klnode_text::truncate::truncate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Milliseconds of one day.
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// The most groups listed one by one; `--json` has them all.
const LISTED_MAX: usize = 20;
/// The most characters of a title on one line.
const SHOWN_CHARACTERS_MAX: usize = 42;

/// Record friction, or report it.
#[derive(Debug, clap::Subcommand)]
pub enum FrictionVerb {
    /// Record an obstacle in the work. The record is kept raw and never answers a question.
    ///
    /// Example: klnode task friction record "cargo test hangs without a terminal" --kind tool_error
    Record(FrictionArgs),
    /// Group equal records and list them, the most frequent first.
    ///
    /// Example: klnode task friction report --days 30
    Report(FrictionReportArgs),
}

/// An obstacle in the work.
#[derive(Debug, clap::Args)]
pub struct FrictionArgs {
    /// A sentence or more; the first line is the title [default: the kind, if --context is given].
    #[arg(allow_hyphen_values = true, required_unless_present = "context")]
    pub text: Option<String>,
    /// tool_error, redo or validation_fail.
    #[arg(long, visible_alias = "type", value_parser = kinds())]
    pub kind: Option<String>,
    /// The output of the tool, as a JSON value. It is kept below the text.
    #[arg(long, value_name = "JSON")]
    pub context: Option<String>,
    /// The task it happened in.
    #[arg(long)]
    pub task: Option<String>,
    /// A tag, hierarchical with `/`; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// The workspace; local is never sent to a peer [default: the one mapped to the checkout, else
    /// the one set by `workspace use`, else main].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// The time and the workspace of a report.
#[derive(Debug, clap::Args)]
pub struct FrictionReportArgs {
    /// The number of days up to now.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub days: u32,
    /// Only this workspace, by name or id [default: all].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// The JSON form of a report.
#[derive(Debug, Serialize)]
struct FrictionReport {
    days: u32,
    recorded: u64,
    groups: Vec<FrictionGroup>,
}

/// Records with the same title, ignoring case and spaces.
#[derive(Debug, Serialize)]
struct FrictionGroup {
    count: u64,
    /// The kind of the newest record that has one.
    kind: Option<String>,
    title: String,
    /// The newest record.
    id: String,
    code: String,
    /// When this node first saw the newest record, in milliseconds since 1970.
    last: u64,
}

fn kinds() -> Vec<&'static str> {
    EntryType::Friction.sub_types().to_vec()
}

impl FrictionVerb {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::Record(record) => record.run(client).await,
            Self::Report(report) => report.run(client).await,
        }
    }
}

impl FrictionArgs {
    /// The text, and the context below it.
    fn content(&self) -> Result<String, VerbError> {
        let kind = self.kind.as_deref().unwrap_or("friction");
        let text = self.text.as_deref().unwrap_or(kind).trim();
        if text.is_empty() {
            let message = "Cannot record friction without a text. Describe the obstacle.";
            return Err(VerbError::Input(message.to_owned()));
        }
        let Some(context) = &self.context else { return Ok(text.to_owned()) };
        let context: serde_json::Value = serde_json::from_str(context).map_err(|error| {
            VerbError::Input(format!("Cannot record friction: --context is no JSON: {error}."))
        })?;
        Ok(format!("{text}\n\n{context}"))
    }

    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let text = self.content()?;
        let first = text.lines().next().unwrap_or_default();
        let title = truncate(first, TITLE_CHARS_MAX - 1);
        let new = NewEntry {
            title,
            content: text.clone(),
            kind: Some(EntryType::Friction.name().to_owned()),
            sub_type: self.kind,
            tags: self.tags,
            task: self.task,
            workspace: self.workspace,
            checkout: anchors::here(),
            ..NewEntry::default()
        };
        let added: AddResult = client.send_json(Method::POST, "/v1/entries", &new).await?;
        let place = match added.current && added.workspace == "main" {
            true => String::new(),
            false => format!("  (in {})", added.workspace),
        };
        let text = format!("{}  {}{place}\n", added.code, printable(&new.title));
        Ok(Reply::new(&added, text))
    }
}

impl FrictionReportArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let workspace = self.workspace.as_deref();
        let workspace = workspace.map(|name| format!("&workspace={}", escape(name)));
        let path = format!("/v1/entries?type=friction&limit=1000{}", workspace.unwrap_or_default());
        let mut list: EntryPage = client.get(&path).await?;
        let mut all = list.entries;
        while let Some(after) = list.next.take() {
            list = client.get(&format!("{path}&after={after}")).await?;
            all.append(&mut list.entries);
        }
        let status: NodeStatus = client.get("/v1/status").await?;
        let since = status.as_of.saturating_sub(u64::from(self.days).saturating_mul(DAY_MILLIS));
        let reported = reported(&all, since, self.days);
        let text = text(&reported);
        Ok(Reply::new(&reported, text))
    }
}

/// Groups records by title. Records of peers are left out, and so are archived, muted and
/// invalidated ones, which have been dealt with.
fn reported(all: &[Entry], since: u64, days: u32) -> FrictionReport {
    let mut groups: BTreeMap<String, FrictionGroup> = BTreeMap::new();
    let mut recorded = 0;
    let is_open = |entry: &&Entry| {
        let is_settled = entry.status == "archived" || entry.muted || entry.invalidated;
        !entry.foreign && !is_settled && entry.first_seen >= since
    };
    for entry in all.iter().filter(is_open) {
        recorded += 1;
        let words = entry.title.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let group = groups.entry(words).or_insert_with(|| FrictionGroup {
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
    let mut groups: Vec<FrictionGroup> = groups.into_values().collect();
    groups.sort_by(|one, two| {
        two.count.cmp(&one.count).then(two.last.cmp(&one.last)).then(one.id.cmp(&two.id))
    });
    FrictionReport { days, recorded, groups }
}

fn text(reported: &FrictionReport) -> String {
    let FrictionReport { days, recorded, groups } = reported;
    let span = counted(u64::from(*days), "day", "days");
    let Some(most) = groups.first() else {
        return format!(
            "No friction in {span}. `klnode task friction record TEXT` records an obstacle.\n"
        );
    };
    let count = counted(groups.len() as u64, "group", "groups");
    let mut text = format!("Friction of {span}: {recorded}, in {count}.\n");
    for group in groups.iter().take(LISTED_MAX) {
        let FrictionGroup { count, kind, title, code, last, .. } = group;
        let kind = printable(kind.as_deref().unwrap_or("-"));
        let day = moment(*last);
        let day = day.split(' ').next().unwrap_or_default();
        let title = printable(&truncate(title, SHOWN_CHARACTERS_MAX));
        let _ = writeln!(text, "{count:>5}  {kind:<15}  {day}  {code}  {title}");
    }
    if groups.len() > LISTED_MAX {
        let _ = writeln!(text, "And {} more; use --json to list all.", groups.len() - LISTED_MAX);
    }
    if most.count > 1 {
        let code = &most.code;
        let _ = writeln!(
            text,
            "Write a lesson about recurring friction: klnode add --from {code} --evidence \
             KIND:REF; then archive it."
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
    fn equal_titles_form_a_group_without_old_and_foreign_records() {
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
            super::text(&reported),
            "Friction of 30 days: 3, in 2 groups.\n    \
             2  redo             1970-01-12  X-00000011  tests  hang\n    \
             1  redo             1970-01-13  X-00000012  Another\n\
             Write a lesson about recurring friction: klnode add --from X-00000011 --evidence \
             KIND:REF; then archive it.\n"
        );
    }
}
