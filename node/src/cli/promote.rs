//! `klnode promote`: a new entry made of one that is there.

use super::read::path;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{self, Promoted};
use hyper::Method;

/// What to promote, and to where.
#[derive(Debug, clap::Args)]
pub struct Promote {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// The workspace it is to be in [default: its own, out of its thread].
    #[arg(long, value_name = "WORKSPACE")]
    pub to: Option<String>,
    /// semantic or procedural [default: that of the entry; semantic for an episodic one].
    ///
    /// Where there is a person's key, procedural needs its passphrase.
    #[arg(long)]
    pub memory: Option<String>,
    /// Its type [default: that of the entry; lesson for an episodic one].
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Evidence beside what the entry cites.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
}

impl Promote {
    pub(super) fn needs_person(&self) -> bool {
        self.memory.as_deref() == Some("procedural")
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = if self.needs_person() { "/promote/procedural" } else { "/promote" };
        let path = path(&self.entry, rest)?;
        let Self { to, memory, kind, evidence, .. } = self;
        let ask = types::Promote { to, memory, kind, evidence };
        let promoted: Promoted = client.send_json(Method::POST, &path, &ask).await?;
        let Promoted { code, workspace, memory, known, .. } = &promoted;
        let made = if *known { "is there already, made" } else { "made" };
        let cited = match *known && !ask.evidence.is_empty() {
            true => format!(", and cites {}", ask.evidence.join(", ")),
            false => String::new(),
        };
        let text = format!("{code}  {made} of {}, in {workspace} ({memory}){cited}\n", self.entry);
        Ok(Reply::new(&promoted, text))
    }
}
