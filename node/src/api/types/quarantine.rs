//! What waits for the operator, as it travels.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which of what waits to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct QuarantineQuery {
    /// Only what this node has brought: by its name, its key, or the beginning of its key; `you` for
    /// what came out of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What waits for the operator's decision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Quarantine {
    /// How many records wait; of what one node has brought, if one was named.
    pub total: u64,
    /// The first of them, oldest first.
    pub records: Vec<Quarantined>,
}

/// A record that waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Quarantined {
    /// Its digest; any unambiguous beginning of it names it.
    pub digest: String,
    /// The entry it is about.
    pub entry: String,
    /// Who signed it.
    pub author: String,
    /// What the author is called here.
    pub author_name: String,
    /// The node that brought it; this node's own key if it came out of a file.
    pub peer: String,
    /// What that node is called here.
    pub peer_name: String,
    /// Since when it waits, in milliseconds since 1970.
    pub since: u64,
    /// Which rules found something, and in which fields.
    pub reason: String,
    /// What it says, where one record is shown: without secrets, and without what would instruct a
    /// reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<QuarantinedText>,
}

/// A text of a record that waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedText {
    /// The field.
    pub field: String,
    /// The text, with marks in place of what was taken out.
    pub text: String,
}

/// What became of a record that waited.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Decided {
    /// Its digest.
    pub digest: String,
    /// The entry it is about.
    pub entry: String,
    /// `merged`, `known` (covered by what is held), `forgotten` (its entry was) or `rejected`.
    pub outcome: String,
}

/// Whose records to throw away.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectFrom {
    /// The node that has brought them: its name, its key, or the beginning of its key; `you` for what
    /// came out of a file.
    pub from: String,
    /// At most so many, the oldest first; never more than 100 with one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What was thrown away of what one node has brought.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RejectedFrom {
    /// The node that has brought it.
    pub peer: String,
    /// What that node is called here.
    pub peer_name: String,
    /// How many records were thrown away.
    pub rejected: u64,
    /// How many more of it wait.
    pub left: u64,
}
