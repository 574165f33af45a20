//! `klnode inbox accept`: this node states another author's proposal as its own.

use super::api_path::entry_path;
use super::sanitize::printable;
use super::{Reply, VerbError};
use hyper::Method;
use klnode_api_types::{self, AcceptResult};
use klnode_client::{Client, ClientError};
use std::fmt::Write;

/// The proposals to accept.
#[derive(Debug, clap::Args)]
pub struct Accept {
    /// Each entry's id, its code, or an unambiguous beginning of the code.
    #[arg(required = true, value_name = "ENTRY")]
    pub entries: Vec<String>,
    /// The author of the proposal, by name or key; needed if several authors propose something.
    #[arg(long, value_name = "AUTHOR")]
    pub from: Option<String>,
    /// Accept the proposal for this field only, such as title, tags or evidence.
    #[arg(long)]
    pub field: Option<String>,
}

impl Accept {
    /// Accepts each entry. The JSON form is one object for one entry, and a list for several.
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if let [entry] = &self.entries[..] {
            let done = self.one(client, entry).await?;
            return Ok(Reply::new(&done, lines(&done)));
        }
        let (mut all, mut text, mut notes) = (Vec::new(), String::new(), String::new());
        for entry in &self.entries {
            match self.one(client, entry).await {
                Ok(done) => {
                    text.push_str(&lines(&done));
                    all.push(done);
                }
                // An entry without a proposal does not stop the others.
                Err(VerbError::Client(error @ ClientError::Refused(_))) => {
                    let _ = writeln!(notes, "{error}");
                }
                Err(error) => return Err(error),
            }
        }
        let exit_code = u8::from(!notes.is_empty());
        Ok(Reply::new(&all, text).with_notes(notes).with_exit_code(exit_code))
    }

    async fn one(&self, client: &Client, entry: &str) -> Result<AcceptResult, VerbError> {
        let ask = klnode_api_types::Accept { author: self.from.clone(), what: self.field.clone() };
        Ok(client.send_json(Method::POST, &entry_path(entry, "/accept")?, &ask).await?)
    }
}

fn lines(done: &AcceptResult) -> String {
    let mut text = String::new();
    for one in &done.accepted {
        let line = printable(one.text.lines().next().unwrap_or_default());
        let (field, by) = (&one.register, printable(&one.author_name));
        let _ = writeln!(text, "{}  {field} by {by} accepted: {line}", done.code);
    }
    text
}
