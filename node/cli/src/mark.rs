//! `klnode mark`: a pin, mute, "wrong" or note that this node alone keeps and never sends.

use super::api_path::entry_path;
use super::{Reply, VerbError};
use clap::ArgGroup;
use hyper::Method;
use klnode_api_types::{EntryIdentity, MarkUpdate};
use klnode_client::Client;

/// An entry, and the mark to set or remove.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("mark").required(true).args(["pin", "mute", "wrong", "note"])))]
pub struct Mark {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: String,
    /// Rank it higher.
    #[arg(long)]
    pub pin: bool,
    /// Leave it out of answers.
    #[arg(long)]
    pub mute: bool,
    /// Treat it as wrong: it is left out of answers, and its status says so.
    #[arg(long)]
    pub wrong: bool,
    /// Attach this note; an empty text removes the note.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "undo")]
    pub note: Option<String>,
    /// Remove the mark.
    #[arg(long)]
    pub undo: bool,
}

impl Mark {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { entry, pin, mute, wrong: _, note, undo } = self;
        let on = Some(!undo);
        let (overlay, done) = match note {
            Some(note) => {
                let done = if note.is_empty() { "note removed here" } else { "note saved here" };
                (MarkUpdate { note: Some(note), ..MarkUpdate::default() }, done.to_owned())
            }
            None => {
                let (overlay, name) = match (pin, mute) {
                    (true, _) => (MarkUpdate { pinned: on, ..MarkUpdate::default() }, "pinned"),
                    (_, true) => (MarkUpdate { muted: on, ..MarkUpdate::default() }, "muted"),
                    _ => (MarkUpdate { invalidated: on, ..MarkUpdate::default() }, "marked wrong"),
                };
                (overlay, format!("{}{name} here", if undo { "no longer " } else { "" }))
            }
        };
        let path = entry_path(&entry, "/overlay")?;
        let named: EntryIdentity = client.send_json(Method::PUT, &path, &overlay).await?;
        let text = format!("{}  {done}\n", named.code);
        Ok(Reply::new(&named, text))
    }
}
