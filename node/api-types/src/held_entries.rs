//! Response types of held entries.

use super::ShareFlag;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Own entries of shared workspaces that wait for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldEntries {
    /// The entries, by id.
    pub entries: Vec<HeldEntry>,
    /// True if there are more than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more: bool,
}

/// An entry that neither peers nor agents get until the operator releases or rephrases it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldEntry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The title of the entry.
    pub title: String,
    /// The workspace of the entry.
    pub workspace: String,
    /// When this node first stored it, in milliseconds since 1970.
    pub since: u64,
    /// The passages to review.
    pub flags: Vec<ShareFlag>,
}

/// An entry that was released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldDecision {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The passages that are released with it.
    pub flags: Vec<ShareFlag>,
}
