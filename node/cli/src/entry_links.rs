//! `klnode show --links` and `klnode links`: the typed links around an entry, in both directions.

use super::api_path::{entry_path, escape};
use super::sanitize::printable;
use super::{Reply, VerbError};
use klnode_api_types::EntryLinks;
use klnode_client::Client;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The entry whose links are listed.
#[derive(Debug, clap::Args)]
pub struct LinksArgs {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// The most steps from the entry, from 1 to 8 [default: 1].
    #[arg(long, value_name = "STEPS")]
    pub depth: Option<usize>,
    /// Only links of this relation, such as uses.
    #[arg(long, value_name = "NAME")]
    pub relation: Option<String>,
}

impl LinksArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        run(&self.entry, self.depth, self.relation.as_deref(), client).await
    }
}

/// Prints the links within some steps of an entry.
pub(super) async fn run(
    entry: &str,
    depth: Option<usize>,
    relation: Option<&str>,
    client: &Client,
) -> Result<Reply, VerbError> {
    let mut query = format!("?depth={}", depth.unwrap_or(1));
    if let Some(relation) = relation {
        let _ = write!(query, "&relation={}", escape(relation));
    }
    let found: EntryLinks = client.get(&entry_path(entry, &format!("/links{query}"))?).await?;
    let names: BTreeMap<&str, &str> =
        found.entries.iter().map(|one| (one.id.as_str(), one.code.as_str())).collect();
    let name = |id: &str| names.get(id).copied().unwrap_or_default().to_owned();
    let mut text = String::new();
    for link in &found.links {
        let relation = link.relation.replace('_', " ");
        let _ = writeln!(text, "{}  {relation}  {}", name(&link.from), name(&link.to));
    }
    if found.links.is_empty() {
        let code = &found.entry.code;
        let _ = writeln!(
            text,
            "Entry {code} has no links. `klnode edit {code} --link uses:ENTRY` states one."
        );
    } else {
        text.push('\n');
        for one in &found.entries {
            let _ = writeln!(text, "{}  {}", one.code, printable(&one.title));
        }
    }
    if found.cut {
        text.push_str("There are more links; use a smaller --depth or --relation.\n");
    }
    Ok(Reply::new(&found, text))
}
