//! A listing of entries as it travels: which entries to list, and a page of them.

use super::Entry;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which entries to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// At most so many: 1 to 1000, and 50 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Those after this id: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Newest change first, by `updated`, instead of by id.
    #[serde(default)]
    pub recent: bool,
    /// Those of this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Those of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Those of this sub-type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// Those of this memory: `semantic`, `procedural` or `episodic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Those with this tag, or one below it: `auth` covers `auth/jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Those of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Those that stand so here; without it, what was taken back is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only those of which nobody whose word is shown says anything, and somebody else does.
    #[serde(default)]
    pub proposed: bool,
    /// Only those that this node's operator muted or holds to be wrong.
    #[serde(default)]
    pub hidden: bool,
}

/// A page of a listing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct List {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page begins; absent on the last.
    pub next: Option<String>,
}
