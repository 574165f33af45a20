//! `klnode backup`: the running node writes a backup file. `verify` and `restore` need no node; the
//! application runs them.

use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::transfer::{BackupContents, BackupOrder};
use klnode_client::Client;
use klnode_crdt::time::WallTime;
use klnode_text::plural::{counted, entries, records};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The action on a backup file.
#[derive(Debug, clap::Subcommand)]
pub enum BackupVerb {
    /// Have the running node write its whole store and its key to one file.
    ///
    /// The node keeps serving meanwhile. Only you can read the file. With the key in it, a copy of
    /// the file can act as this node.
    ///
    /// Example: klnode backup create /mnt/backup/klnode.backup
    Create(Create),
    /// Verify a backup: every byte, every signature, every table. Needs no node.
    ///
    /// Example: klnode backup verify /mnt/backup/klnode.backup
    Verify {
        /// The backup file to verify.
        file: PathBuf,
    },
    /// Replace the store of this home with a backup. No node may be running on it.
    ///
    /// The command verifies the backup first. Entries that were forgotten here after the backup was
    /// made stay forgotten. The home keeps its key; a home without a key takes the key of the
    /// backup.
    ///
    /// Example: klnode backup restore /mnt/backup/klnode.backup
    Restore(RestoreArgs),
}

/// The file to write.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The file to write.
    pub file: PathBuf,
    /// Leave the node's key out, so that the file alone cannot act as this node.
    #[arg(long)]
    pub without_key: bool,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// The backup to restore.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// The backup file to restore from.
    pub file: PathBuf,
    /// Do not ask before records are lost that only the current store holds.
    #[arg(long)]
    pub yes: bool,
    /// Accept the backup of another node: this home keeps its key, and the entries of the backup
    /// belong to another author.
    #[arg(long)]
    pub as_this_node: bool,
}

/// The JSON form of the answer.
#[derive(Serialize)]
struct BackupSummary<'a> {
    file: &'a Path,
    #[serde(flatten)]
    backup: &'a BackupContents,
}

impl Create {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        let wrong =
            |why: &str| VerbError::Input(format!("Cannot write {}: {why}.", self.file.display()));
        let file = std::path::absolute(&self.file).map_err(|error| wrong(&error.to_string()))?;
        let path = file.to_str().ok_or_else(|| wrong("its name is not UTF-8"))?;
        let order =
            BackupOrder { path: path.into(), without_key: self.without_key, replace: self.force };
        let done = client.follow(Method::POST, "/v1/backup", &order, |news| {
            progress.tell("backing up", news.done, Some(news.total));
        });
        let backup: BackupContents = tokio::select! {
            done = done => done?,
            _ = tokio::signal::ctrl_c() => {
                return Err(VerbError::Interrupted("No backup was written.".into()));
            }
        };
        let key = match backup.has_key {
            true => "It contains the node's key: a copy of the file can act as this node.",
            false => "It does not contain the node's key: keep a copy of node.key elsewhere.",
        };
        let text = format!("{} backed up to {}\n{key}\n", held(&backup), file.display());
        Ok(Reply::new(&BackupSummary { file: &file, backup: &backup }, text))
    }
}

/// The contents of a backup. Forgotten entries are counted separately, as `export` and `status` do.
pub fn held(backup: &BackupContents) -> String {
    let forgotten = match backup.forgotten {
        0 => String::new(),
        count => format!(" and {count} forgotten"),
    };
    let live = entries(backup.entries.saturating_sub(backup.forgotten));
    format!("{live}{forgotten} in {}", records(backup.records))
}

/// The reply after a backup was verified.
pub fn verified(file: &Path, backup: &BackupContents, now: WallTime) -> Reply {
    let key = if backup.has_key { "with the node's key" } else { "without the node's key" };
    let text = format!(
        "{} is whole.\n  node     {}, {key}\n  made     {} by klnode {}\n  holds    {}\n",
        file.display(),
        backup.node,
        age(backup.created, now),
        backup.klnode,
        held(backup),
    );
    Reply::new(&BackupSummary { file, backup }, text)
}

/// The time and the age of a backup.
fn age(created: u64, now: WallTime) -> String {
    let at = i64::try_from(created).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map_or_else(|| "at an unknown time".into(), |at| format!("{at:.0}"));
    let hours = now.as_millis().saturating_sub(created) / 3_600_000;
    let ago = match hours {
        0 => "less than an hour ago".into(),
        1..48 => format!("{} ago", counted(hours, "hour", "hours")),
        _ => format!("{} days ago", hours / 24),
    };
    format!("{at}, {ago},")
}
