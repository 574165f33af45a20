//! The request that changes the operator's marks on an entry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The operator's marks on an entry, on this node only. Absent fields stay as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkUpdate {
    /// Rank the entry higher in answers of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Hide the entry in answers of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<bool>,
    /// Mark the entry as wrong on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<bool>,
    /// A note; an empty text removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
