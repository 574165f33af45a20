//! Request and response types for quarantine.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects records in quarantine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct QuarantineQuery {
    /// Only records received from this node: its name, its key, or the start of its key; `you` for
    /// records imported from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Records that wait for the operator's decision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Quarantine {
    /// The number of waiting records; those of the selected node if one was named.
    pub total: u64,
    /// The first of the records, oldest first.
    pub records: Vec<QuarantinedRecord>,
}

/// A record in quarantine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedRecord {
    /// The record's digest. Any unambiguous prefix of it names the record.
    pub digest: String,
    /// The id of the entry that the record belongs to.
    pub entry: String,
    /// The key that signed the record.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// The key of the node that sent the record; this node's own key if it was imported from a
    /// file.
    pub peer: String,
    /// This node's name for that node.
    pub peer_name: String,
    /// When the record was quarantined, in milliseconds since 1970.
    pub since: u64,
    /// The scan rules that matched, and the fields in which they matched.
    pub reason: String,
    /// The texts of the record, without secrets and without instructions to a reader. Only if one
    /// record is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<QuarantinedText>,
}

/// A text of a record in quarantine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedText {
    /// The name of the field that holds the text.
    pub field: String,
    /// The text, with placeholders for the parts that were removed.
    pub text: String,
}

/// The result of a decision about a record in quarantine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QuarantineDecision {
    /// The record's digest.
    pub digest: String,
    /// The id of the entry that the record belongs to.
    pub entry: String,
    /// `merged`, `known` (covered by stored records), `forgotten` (its entry was forgotten) or
    /// `rejected`.
    pub outcome: String,
}

/// A request to reject records of one node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectRequest {
    /// The node that sent the records: its name, its key, or the start of its key; `you` for
    /// records imported from a file.
    pub from: String,
    /// The largest number of records to reject, oldest first; at most 100 per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The result of rejecting records of one node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RejectResult {
    /// The key of the node that sent the records.
    pub peer: String,
    /// This node's name for that node.
    pub peer_name: String,
    /// The number of records that were rejected.
    pub rejected: u64,
    /// The number of its records that still wait.
    pub left: u64,
}
