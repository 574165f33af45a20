//! Request and response types for edit conflicts (concurrent versions of one field).

use super::ShareFlag;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One of the concurrent versions of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldVersion {
    /// The name of the field, such as `title`.
    pub field: String,
    /// The number within the field, from 1 for the oldest.
    pub number: usize,
    /// The id of this version; the same on every node.
    pub version: String,
    /// The author's key.
    pub author: String,
    /// This node's name for the author: `you`, a peer's name, or the start of the key.
    pub author_name: String,
    /// When the version was written, by its author's clock, in milliseconds since 1970.
    pub at: u64,
    /// True if this version is displayed until the conflict is resolved.
    pub shown: bool,
    /// The text. The command line omits it if `gate` is `shut` and the output is not a terminal.
    pub text: String,
    /// `open` or `shut`: whether the text may be served automatically. It is `shut` if the author's
    /// claims do not count on this node, or if the content scan objects to the text.
    pub gate: String,
}

/// A request to resolve edit conflicts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// The resolution of each field.
    pub settle: Vec<FieldResolution>,
}

/// The resolution of one field: a version to keep, or a new text.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldResolution {
    /// The field; required if several fields have a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The number of the version to keep, from `versions` of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<usize>,
    /// A text that replaces all versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The ids of the versions that the caller has seen. If the node holds other versions by now,
    /// it changes nothing and returns an error. Not checked if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
}

/// The result of resolving edit conflicts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResolveResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The fields that were resolved.
    pub settled: Vec<ResolvedField>,
    /// Fields that still have a conflict.
    pub contested: Vec<String>,
    /// Passages to review before peers receive the entry, if the workspace is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// True if neither peers nor agents get the entry until the operator releases or rephrases it,
    /// because of its flags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// A field whose conflict was resolved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResolvedField {
    /// The name of the field, such as `title`.
    pub field: String,
    /// The number of the version that was kept; absent if a new text replaced all versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<usize>,
    /// This node's name for the author of the version that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    /// The number of versions that the edit replaced.
    pub replaced: usize,
    /// The text that all nodes display after a sync.
    pub text: String,
}
