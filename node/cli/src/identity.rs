//! `klnode identity`: the key of the person behind the node, and a new node key after a loss.
//!
//! The store remembers the author of the home. Only the operator may replace it.

use super::{ConfirmPrompt, Reply, VerbError};
use klnode_crdt::ids::AuthorId;
use serde::Serialize;

/// The action on a key.
#[derive(Debug, clap::Subcommand)]
pub enum IdentityVerb {
    /// Create a key that only you can use, under a passphrase. A running node asks for it at once.
    ///
    /// Example: klnode identity new
    New,
    /// Print the public half of the person's key.
    ///
    /// Example: klnode identity show
    Show,
    /// Continue with the node key in the home, or with a new one, as another author.
    ///
    /// Use it when a node key is lost and no backup has it. No node may be running. Entries of the
    /// earlier key stay, but belong to another author: this node can no longer change or retract
    /// them, and you must pair with peers again.
    ///
    /// Example: klnode identity adopt --yes
    Adopt(Adopt),
}

/// The confirmation of a new author.
#[derive(Debug, clap::Args)]
pub struct Adopt {
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Serialize)]
struct AdoptionSummary {
    before: Option<String>,
    author: String,
}

impl Adopt {
    /// Asks for confirmation if the author changes. `before` is the author in the store, `found`
    /// the author of the key.
    pub fn confirm(
        &self,
        (before, found): (Option<AuthorId>, Option<AuthorId>),
        ask: ConfirmPrompt<'_>,
    ) -> Result<(), VerbError> {
        let Some(before) = before.filter(|before| Some(*before) != found) else { return Ok(()) };
        let new = found.map_or("a new author".to_owned(), |found| format!("author {found}"));
        let change =
            format!("This node would continue as {new}, but its store belongs to author {before}.");
        match ask {
            _ if self.yes => Ok(()),
            None => Err(VerbError::NeedsConfirmation(change)),
            Some(ask) => match ask(&format!("{change} Continue?")) {
                true => Ok(()),
                false => Err(VerbError::Declined("Nothing was changed.")),
            },
        }
    }
}

/// The reply after the author was replaced.
pub fn adopted(before: Option<AuthorId>, now: AuthorId) -> Reply {
    let text = match before.filter(|before| *before != now) {
        Some(before) => format!("This home is now node {now}. It was node {before}.\n"),
        None => format!("This home is node {now}.\n"),
    };
    let before = before.map(|before| before.to_string());
    Reply::new(&AdoptionSummary { before, author: now.to_string() }, text)
}
