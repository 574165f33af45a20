//! `klnode identity`: whose node a home is. Only the store remembers, and only the operator may
//! decide otherwise.

use super::{Ask, Reply, VerbError};
use klnode_crdt::ids::AuthorId;
use serde::Serialize;

/// What to do about it.
#[derive(Debug, clap::Subcommand)]
pub enum IdentityVerb {
    /// Go on with the key that is in the home, as another author; one that has none gets a new key.
    ///
    /// For a key that is lost, when no backup has it. No node may be running. What the earlier key
    /// wrote stays, as another author's: this node can no longer change it nor take it back, and
    /// peers must be paired with anew.
    ///
    /// Example: klnode identity adopt --yes
    Adopt(Adopt),
}

/// Going on as another author.
#[derive(Debug, clap::Args)]
pub struct Adopt {
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Serialize)]
struct Adopted {
    before: Option<String>,
    author: String,
}

impl Adopt {
    /// Has somebody say yes, unless nothing changes. Given are the store's author and the key's.
    pub fn confirm(
        &self,
        (before, found): (Option<AuthorId>, Option<AuthorId>),
        ask: Ask<'_>,
    ) -> Result<(), VerbError> {
        let Some(before) = before.filter(|before| Some(*before) != found) else { return Ok(()) };
        let new = found.map_or("a new author".to_owned(), |found| format!("author {found}"));
        let change = format!("go on as {new}: the store here is author {before}'s");
        match ask {
            _ if self.yes => Ok(()),
            None => Err(VerbError::Unsaid(change)),
            Some(ask) => match ask(&format!("This node would {change}. Do it?")) {
                true => Ok(()),
                false => Err(VerbError::Declined("Nothing was changed.")),
            },
        }
    }
}

/// What is said afterwards.
pub fn adopted(before: Option<AuthorId>, now: AuthorId) -> Reply {
    let text = match before.filter(|before| *before != now) {
        Some(before) => format!("This home is now node {now}. It was node {before}.\n"),
        None => format!("This home is node {now}.\n"),
    };
    let before = before.map(|before| before.to_string());
    Reply::new(&Adopted { before, author: now.to_string() }, text)
}
