//! Request and response types for listing entries.

use super::Entry;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects entries to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// The page size: 1 to 1000. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The cursor: `next` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Sort by `updated`, newest first, instead of by id.
    #[serde(default)]
    pub recent: bool,
    /// Only entries of this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Only entries of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only entries of this sub-type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// Only entries of this memory: `semantic`, `procedural` or `episodic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Only entries with this tag or one below it: `auth` covers `auth/jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only entries of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Only entries with this status on this node. Default: all except retracted entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only entries for which all claims come from authors whose claims are not displayed.
    #[serde(default)]
    pub proposed: bool,
    /// Only entries that this node's operator muted or marked as wrong.
    #[serde(default)]
    pub hidden: bool,
}

/// A page of a listing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryPage {
    /// The entries of this page, in the requested order.
    pub entries: Vec<Entry>,
    /// The cursor of the next page; absent on the last page.
    pub next: Option<String>,
}
