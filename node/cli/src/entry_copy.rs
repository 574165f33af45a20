//! `klnode add --from`: copies an entry out of its thread or into another workspace.

use super::api_path::entry_path;
use super::{Reply, VerbError};
use hyper::Method;
use klnode_api_types::{self, PromotionResult};
use klnode_client::Client;

/// The entry to copy, and the fields that the copy has of its own.
pub(super) struct EntryCopy {
    /// The entry: id, code or unambiguous prefix of the code.
    pub(super) entry: String,
    /// The workspace of the copy; by default that of the entry, outside its thread.
    pub(super) workspace: Option<String>,
    /// semantic or procedural; by default that of the entry, or semantic for an episodic entry.
    pub(super) memory: Option<String>,
    /// By default the type of the entry, or lesson for an episodic entry.
    pub(super) kind: Option<String>,
    /// Evidence beside the citations of the entry.
    pub(super) evidence: Vec<String>,
    /// The reason of the approval, which an episodic entry needs.
    pub(super) approve: Option<String>,
}

impl EntryCopy {
    /// Writing procedural memory, and an approval, need the person's key if there is one.
    pub(super) fn needs_person(memory: Option<&str>, approve: Option<&str>) -> bool {
        memory == Some("procedural") || approve.is_some()
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = match (self.memory.as_deref(), &self.approve) {
            (Some("procedural"), _) => "/promote/procedural",
            (_, Some(_)) => "/promote/approved",
            _ => "/promote",
        };
        let path = entry_path(&self.entry, rest)?;
        let Self { entry, workspace, memory, kind, evidence, approve } = self;
        let ask = klnode_api_types::Promote { to: workspace, memory, kind, evidence, approve };
        let promoted: PromotionResult = client.send_json(Method::POST, &path, &ask).await?;
        let PromotionResult { code, workspace, memory, known, .. } = &promoted;
        let made = if *known { "already copied" } else { "copied" };
        let cited = match *known && !ask.evidence.is_empty() {
            true => format!(", and now cites {}", ask.evidence.join(", ")),
            false => String::new(),
        };
        let text = format!("{code}  {made} from {entry}, in {workspace} ({memory}){cited}\n");
        Ok(Reply::new(&promoted, text))
    }
}
