//! `klnode supersede`: one entry takes another's place.

use super::read::path;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{self, Superseded};
use hyper::Method;

/// What gives way to what.
#[derive(Debug, clap::Args)]
pub struct Supersede {
    /// The old entry's id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// The entry that takes its place.
    #[arg(long, value_name = "ENTRY")]
    pub by: String,
    /// Take that back.
    #[arg(long)]
    pub undo: bool,
}

impl Supersede {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let path = path(&self.entry, "/supersede")?;
        let ask = types::Supersede { by: self.by, undo: self.undo };
        let done: Superseded = client.send_json(Method::POST, &path, &ask).await?;
        let no_more = if self.undo { "no longer " } else { "" };
        let text = format!("{}  {no_more}superseded by {}\n", done.code, done.by_code);
        Ok(Reply::new(&done, text))
    }
}
