//! `klnode backup`: the running node writes one file; `verify` looks at one without a node.

use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::portable::types::BackupOrder;
use crate::query::count::{counted, entries, records};
use crate::store::backup::{Backup, Manifest};
use hyper::Method;
use klnode_crdt::time::WallTime;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What to back up, and where to.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Something else than to make one.
    #[command(subcommand)]
    pub verb: Option<BackupVerb>,
    /// The file to write.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Leave the node's key out: the file alone is then not this node.
    #[arg(long)]
    pub without_key: bool,
    /// Replace the file if there is one.
    #[arg(long)]
    pub force: bool,
}

/// What else can be done with a backup.
#[derive(Debug, clap::Subcommand)]
pub enum BackupVerb {
    /// Check a backup: every byte, every signature, every table. Needs no node.
    ///
    /// Example: klnode backup verify /mnt/backup/klnode.backup
    Verify {
        /// The backup.
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Told<'a> {
    file: &'a Path,
    #[serde(flatten)]
    manifest: &'a Manifest,
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let file = self.file.unwrap_or_default();
        let file = std::path::absolute(&file)
            .map_err(|error| VerbError::Input(format!("write {}: {error}", file.display())))?;
        let path = file.to_str().ok_or_else(|| {
            VerbError::Input(format!("write {}: the name is no text", file.display()))
        })?;
        let order =
            BackupOrder { path: path.into(), without_key: self.without_key, replace: self.force };
        let done = client.follow(Method::POST, "/v1/backup", &order, |news| {
            progress.tell("backing up", news.done, Some(news.total));
        });
        let manifest: Manifest = tokio::select! {
            done = done => done?,
            _ = tokio::signal::ctrl_c() => {
                return Err(VerbError::Interrupted("nothing was written".into()));
            }
        };
        let key = match manifest.has_key {
            true => "The node's key is in it: whoever has the file can be this node.",
            false => "The node's key is not in it: keep node.key of the home elsewhere.",
        };
        let text = format!("{} backed up to {}\n{key}\n", held(&manifest), file.display());
        Ok(Reply::new(&Told { file: &file, manifest: &manifest }, text))
    }
}

/// What a backup holds. What is forgotten is counted apart, as `export` and `status` do.
pub(super) fn held(manifest: &Manifest) -> String {
    let forgotten = match manifest.forgotten {
        0 => String::new(),
        count => format!(" and {count} forgotten"),
    };
    let live = entries(manifest.entries.saturating_sub(manifest.forgotten));
    format!("{live}{forgotten} in {}", records(manifest.records))
}

/// Checks a backup and says what it holds.
pub fn verify(file: &Path, now: WallTime, progress: &mut dyn Progress) -> Result<Reply, VerbError> {
    let backup = Backup::open(file)?;
    check(&backup, progress)?;
    let manifest = backup.manifest();
    let key = if manifest.has_key { "with the node's key" } else { "without the node's key" };
    let text = format!(
        "{} is whole.\n  node     {}, {key}\n  made     {} by klnode {}\n  holds    {}\n",
        file.display(),
        manifest.node,
        age(manifest.created, now),
        manifest.klnode,
        held(manifest),
    );
    Ok(Reply::new(&Told { file, manifest }, text))
}

/// Every byte, then every record.
pub(super) fn check(backup: &Backup, progress: &mut dyn Progress) -> Result<(), VerbError> {
    backup.check_bytes(&mut |done, total| {
        progress.tell("reading", done, Some(total));
        ControlFlow::Continue(())
    })?;
    backup.check_records(&mut |done, total| {
        progress.tell("verifying", done, Some(total));
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// When it was made, for people.
fn age(created: u64, now: WallTime) -> String {
    let at = i64::try_from(created).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map_or_else(|| "at some time".into(), |at| format!("{at:.0}"));
    let hours = now.as_millis().saturating_sub(created) / 3_600_000;
    let ago = match hours {
        0 => "less than an hour ago".into(),
        1..48 => format!("{} ago", counted(hours, "hour", "hours")),
        _ => format!("{} days ago", hours / 24),
    };
    format!("{at}, {ago},")
}
