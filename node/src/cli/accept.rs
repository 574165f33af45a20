//! `klnode accept`: what somebody else proposes becomes this node's own word.

use super::harmless::printable;
use super::read::path;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{self, Accepted};
use hyper::Method;
use std::fmt::Write;

/// What to accept.
#[derive(Debug, clap::Args)]
pub struct Accept {
    /// The entry's id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Whose proposal, by name or key; needed where several propose something.
    #[arg(long, value_name = "AUTHOR")]
    pub from: Option<String>,
    /// Only for this field, such as title or tags.
    #[arg(long, value_name = "FIELD")]
    pub what: Option<String>,
}

impl Accept {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let path = path(&self.entry, "/accept")?;
        let ask = types::Accept { author: self.from, what: self.what };
        let done: Accepted = client.send_json(Method::POST, &path, &ask).await?;
        let mut text = String::new();
        for one in &done.accepted {
            let line = printable(one.text.lines().next().unwrap_or_default());
            let (field, by) = (&one.register, printable(&one.author_name));
            let _ = writeln!(text, "{}  {field} by {by} accepted: {line}", done.code);
        }
        Ok(Reply::new(&done, text))
    }
}
