//! `klnode check --gate NAME`: single rules by name, with one exit code each, for a build.
//!
//! All gates but `knowledge.schema` read the audit of `check rules`. The schema gate reads the
//! entries themselves: the node validates every write, so a violation is an entry of a later version
//! or of a damaged store.

use super::VerbError;
use clap::ValueEnum;
use klnode_api_types::{AuditItem, Entry, EntryPage};
use klnode_client::Client;
use klnode_crdt::entry_type::EntryType;
use klnode_scoring::audit::AuditRule;

/// A rule that a build can check by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RuleGate {
    /// Type, sub-type, outcome, title and content of every entry are valid.
    #[value(name = "knowledge.schema")]
    Schema,
    /// Every entry cites evidence.
    #[value(name = "knowledge.provenance")]
    Provenance,
    /// Every link leads to an entry of this node (warns only).
    #[value(name = "knowledge.links")]
    Links,
    /// Every norm was confirmed lately (warns only).
    #[value(name = "knowledge.staleness")]
    Staleness,
    /// No norm contradicts another one.
    #[value(name = "knowledge.contradictions")]
    Contradictions,
    /// No entry comes from episodic memory without a promotion.
    #[value(name = "episodic.no_backflow")]
    NoBackflow,
}

impl RuleGate {
    /// The name on the command line, which is also the key in the JSON form.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Schema => "knowledge.schema",
            Self::Provenance => "knowledge.provenance",
            Self::Links => "knowledge.links",
            Self::Staleness => "knowledge.staleness",
            Self::Contradictions => "knowledge.contradictions",
            Self::NoBackflow => "episodic.no_backflow",
        }
    }

    /// The rule of the audit; `None` for the schema, which the audit does not cover.
    pub(super) fn rule(self) -> Option<AuditRule> {
        match self {
            Self::Schema => None,
            Self::Provenance => Some(AuditRule::Evidence),
            Self::Links => Some(AuditRule::Links),
            Self::Staleness => Some(AuditRule::Outdated),
            Self::Contradictions => Some(AuditRule::Contradiction),
            Self::NoBackflow => Some(AuditRule::Backflow),
        }
    }
}

/// The entries that break the schema, from all pages of the list.
pub(super) async fn schema_violations(client: &Client) -> Result<Vec<AuditItem>, VerbError> {
    const PATH: &str = "/v1/entries?limit=1000";
    let mut page: EntryPage = client.get(PATH).await?;
    let mut found = Vec::new();
    loop {
        found.extend(page.entries.iter().filter_map(violation));
        let Some(after) = page.next.take() else { return Ok(found) };
        page = client.get(&format!("{PATH}&after={after}")).await?;
    }
}

/// The first rule of the schema that an own entry breaks.
fn violation(entry: &Entry) -> Option<AuditItem> {
    if entry.foreign || entry.status == "retracted" {
        return None;
    }
    let kind = EntryType::parse(&entry.kind);
    let register = |name: &str| entry.registers.get(name).map(String::as_str).unwrap_or_default();
    let sub_type = register("sub_type");
    let is_sub_type = |kind: EntryType| sub_type.is_empty() || kind.sub_types().contains(&sub_type);
    let why = match kind {
        None => format!("the type `{}` is unknown", entry.kind),
        Some(_) if entry.title.trim().is_empty() => "the title is empty".to_owned(),
        Some(_) if entry.content.trim().is_empty() => "the content is empty".to_owned(),
        Some(kind) if !is_sub_type(kind) => format!("the sub-type `{sub_type}` is unknown"),
        Some(kind) if kind != EntryType::Spike && !register("outcome").is_empty() => {
            "only a spike has an outcome".to_owned()
        }
        Some(_) => return None,
    };
    Some(AuditItem {
        id: entry.id.clone(),
        code: entry.code.clone(),
        title: entry.title.clone(),
        by: None,
        corroborated: true,
        mark: "schema".to_owned(),
        blocks: true,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(change: (&str, serde_json::Value)) -> Entry {
        let mut entry = json!({
            "id": "ab", "code": "L-AB", "title": "t", "content": "c", "type": "lesson",
            "memory": "semantic", "workspace": "main", "registers": {}, "tags": [],
            "citations": [], "sets": {}, "alpha": 5.0, "beta": 5.0, "mean": 0.5,
            "observations": 0.0, "status": "candidate", "status_reason": "", "author": "",
            "contested": [], "proposals": 0, "pinned": false, "muted": false,
            "invalidated": false, "note": null,
        });
        entry[change.0] = change.1;
        serde_json::from_value(entry).expect("an entry")
    }

    #[test]
    fn each_part_of_the_schema_is_checked() {
        assert!(violation(&entry(("title", json!("t")))).is_none());
        for (change, why) in [
            (("type", json!("poem")), "the type `poem` is unknown"),
            (("title", json!(" ")), "the title is empty"),
            (("content", json!("")), "the content is empty"),
            (("registers", json!({"sub_type": "bug"})), "the sub-type `bug` is unknown"),
            (("registers", json!({"outcome": "partial"})), "only a spike has an outcome"),
        ] {
            let found = violation(&entry(change)).expect("a violation");
            assert_eq!((found.why.as_str(), found.blocks), (why, true));
        }
        assert!(violation(&entry(("foreign", json!(true)))).is_none());
    }
}
