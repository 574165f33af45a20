//! `klnode archive`: takes an entry, a whole thread, or old and stale entries out of answers or back into
//! them.

use super::api_path::{entry_path, escape};
use super::{Reply, VerbError};
use hyper::Method;
use klnode_api_types::{
    ArchiveThread, ArchivedThread, AuditReportPage, Edit, Entry, EntryIdentity, EntryPage,
    NodeStatus,
};
use klnode_client::Client;
use klnode_scoring::audit::AuditRule;
use klnode_text::plural::entries;
use serde::Serialize;

/// Milliseconds of one day.
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The entry, the thread or the age to archive.
#[derive(Debug, Default, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["entry", "thread", "older_than", "stale"])))]
pub struct Archive {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: Option<String>,
    /// Every entry of this thread instead.
    #[arg(long)]
    pub thread: Option<String>,
    /// Every own entry that has not changed for this many days instead. Evidence and records stay.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub older_than: Option<u32>,
    /// Every own stale entry instead, as `klnode check drift` lists them.
    #[arg(long)]
    pub stale: bool,
    /// Only the entries of this workspace.
    #[arg(long, conflicts_with = "entry")]
    pub workspace: Option<String>,
    /// With --older-than or --stale: list the entries without archiving them.
    #[arg(long, conflicts_with_all = ["entry", "thread"])]
    pub dry_run: bool,
    /// Bring the entry, or the entries of the thread, back from the archive.
    #[arg(long, conflicts_with_all = ["older_than", "stale"])]
    pub undo: bool,
}

/// The JSON form of `archive --older-than` and `archive --stale`.
#[derive(Serialize)]
struct ArchivedEntries {
    dry_run: bool,
    entries: Vec<EntryIdentity>,
}

impl Archive {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { entry, thread, older_than, stale, workspace, dry_run, undo } = self;
        if older_than.is_some() || stale {
            return archive_many(older_than, workspace.as_deref(), dry_run, client).await;
        }
        let what = if undo { "back from the archive" } else { "archived" };
        if let Some(entry) = entry {
            let edit = Edit { archived: Some(!undo), ..Edit::default() };
            let named: EntryIdentity =
                client.send_json(Method::PATCH, &entry_path(&entry, "")?, &edit).await?;
            let text = format!("{}  {what}\n", named.code);
            return Ok(Reply::new(&named, text));
        }
        let ask = ArchiveThread { thread: thread.unwrap_or_default(), workspace, undo };
        let done: ArchivedThread =
            client.send_json(Method::POST, "/v1/threads/archive", &ask).await?;
        let text = format!("{}  {} {what}\n", done.thread, entries(done.entries as u64));
        let reply = Reply::new(&done, text);
        Ok(if done.entries == 0 { reply.with_exit_code(1) } else { reply })
    }
}

/// Archives the own entries that have not changed for some days, or without days those that are stale.
/// Exit code 1 if there are none.
async fn archive_many(
    days: Option<u32>,
    workspace: Option<&str>,
    dry_run: bool,
    client: &Client,
) -> Result<Reply, VerbError> {
    let NodeStatus { as_of, .. } = client.get("/v1/status").await?;
    let before = days.map(|days| as_of.saturating_sub(u64::from(days).saturating_mul(DAY_MILLIS)));
    let workspace = workspace.map(|name| format!("&workspace={}", escape(name)));
    let workspace = workspace.unwrap_or_default();
    let found = match before {
        Some(before) => unchanged(before, &workspace, client).await?,
        None => stale_entries(&workspace, client).await?,
    };
    let mut text = String::new();
    for EntryIdentity { id, code } in &found {
        if !dry_run {
            let edit = Edit { archived: Some(true), ..Edit::default() };
            let path = entry_path(id, "")?;
            let _: EntryIdentity = client.send_json(Method::PATCH, &path, &edit).await?;
        }
        text.push_str(&format!("{code}\n"));
    }
    let (count, what) = (found.len(), if dry_run { "would be archived" } else { "archived" });
    text.push_str(&format!("{} {what}\n", entries(count as u64)));
    let reply = Reply::new(&ArchivedEntries { dry_run, entries: found }, text);
    Ok(if count == 0 { reply.with_exit_code(1) } else { reply })
}

/// The own entries in use that have not changed since a moment.
async fn unchanged(
    before: u64,
    workspace: &str,
    client: &Client,
) -> Result<Vec<EntryIdentity>, VerbError> {
    let path = format!("/v1/entries?limit=1000{workspace}");
    let mut page: EntryPage = client.get(&path).await?;
    let mut found = Vec::new();
    loop {
        found.extend(page.entries.iter().filter(|entry| is_meant(entry, before)).map(identity));
        let Some(after) = page.next.take() else { break };
        page = client.get(&format!("{path}&after={after}")).await?;
    }
    Ok(found)
}

/// The own entries that `klnode check drift` lists as stale.
async fn stale_entries(workspace: &str, client: &Client) -> Result<Vec<EntryIdentity>, VerbError> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page: AuditReportPage = client.get(&format!("/v1/audit?{after}{workspace}")).await?;
        let stale = page.marked.into_iter().filter(|one| one.mark == AuditRule::Stale.name());
        let own = stale.filter(|one| one.by.is_none());
        found.extend(own.map(|one| EntryIdentity { id: one.id, code: one.code }));
        let Some(next) = page.next else { break };
        after = format!("after={next}");
    }
    Ok(found)
}

/// Whether an entry is by this person and in use, and unchanged since `before`.
fn is_meant(entry: &Entry, before: u64) -> bool {
    let is_away = matches!(entry.status.as_str(), "archived" | "retracted");
    !entry.foreign && !is_away && entry.updated.is_some_and(|updated| updated < before)
}

fn identity(entry: &Entry) -> EntryIdentity {
    EntryIdentity { id: entry.id.clone(), code: entry.code.clone() }
}
