//! `klnode accept`: what somebody else proposes becomes this node's own word.

use super::harmless::printable;
use super::read::path;
use super::{Reply, VerbError};
use crate::api::types::{self, Accepted};
use crate::api::{Client, ClientError};
use hyper::Method;
use std::fmt::Write;

/// What to accept.
#[derive(Debug, clap::Args)]
pub struct Accept {
    /// Each entry's id, its code, or an unambiguous beginning of the code.
    #[arg(required = true, value_name = "ENTRY")]
    pub entries: Vec<String>,
    /// Whose proposal, by name or key; needed where several propose something.
    #[arg(long, value_name = "AUTHOR")]
    pub from: Option<String>,
    /// Only for this field, such as title, tags or evidence.
    #[arg(long, value_name = "FIELD")]
    pub what: Option<String>,
}

impl Accept {
    /// One entry is answered as itself, several as a list.
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if let [entry] = &self.entries[..] {
            let done = self.one(client, entry).await?;
            return Ok(Reply::new(&done, told(&done)));
        }
        let (mut all, mut text, mut notes) = (Vec::new(), String::new(), String::new());
        for entry in &self.entries {
            match self.one(client, entry).await {
                Ok(done) => {
                    text.push_str(&told(&done));
                    all.push(done);
                }
                // One of which nothing can be taken holds up no other.
                Err(VerbError::Client(error @ ClientError::Refused(_))) => {
                    let _ = writeln!(notes, "cannot {error}");
                }
                Err(error) => return Err(error),
            }
        }
        let exit_code = u8::from(!notes.is_empty());
        Ok(Reply::new(&all, text).noting(notes).ending(exit_code))
    }

    async fn one(&self, client: &Client, entry: &str) -> Result<Accepted, VerbError> {
        let ask = types::Accept { author: self.from.clone(), what: self.what.clone() };
        Ok(client.send_json(Method::POST, &path(entry, "/accept")?, &ask).await?)
    }
}

fn told(done: &Accepted) -> String {
    let mut text = String::new();
    for one in &done.accepted {
        let line = printable(one.text.lines().next().unwrap_or_default());
        let (field, by) = (&one.register, printable(&one.author_name));
        let _ = writeln!(text, "{}  {field} by {by} accepted: {line}", done.code);
    }
    text
}
