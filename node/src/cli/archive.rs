//! `klnode archive` and `unarchive`: an entry, or a whole thread.

use super::change::One;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{ArchiveThread, ArchivedThread};
use hyper::Method;

/// What to put away, or to bring back.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["entry", "thread"])))]
pub struct Archive {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: Option<String>,
    /// Every entry of this thread instead.
    #[arg(long)]
    pub thread: Option<String>,
    /// Only of this workspace.
    #[arg(long, requires = "thread", conflicts_with = "entry")]
    pub workspace: Option<String>,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Away,
    Back,
}

impl Archive {
    pub(super) async fn run(self, client: &Client, to: Direction) -> Result<Reply, VerbError> {
        let Self { entry, thread, workspace } = self;
        if let Some(entry) = entry {
            return One { entry }.archive(client, to == Direction::Away).await;
        }
        let (thread, undo) = (thread.unwrap_or_default(), to == Direction::Back);
        let ask = ArchiveThread { thread, workspace, undo };
        let done: ArchivedThread =
            client.send_json(Method::POST, "/v1/threads/archive", &ask).await?;
        let what = if undo { "back from the archive" } else { "archived" };
        let noun = if done.entries == 1 { "entry" } else { "entries" };
        let text = format!("{}  {} {noun} {what}\n", done.thread, done.entries);
        let reply = Reply::new(&done, text);
        Ok(if done.entries == 0 { reply.ending(1) } else { reply })
    }
}
