//! Conflicting versions of a field, and how they are settled, as it travels.

use super::ShareFlag;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One of several versions of a field that concurrent edits left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Of which field.
    pub field: String,
    /// Its number within the field, from 1 for the oldest.
    pub number: usize,
    /// Names this version on every node.
    pub version: String,
    /// The key of its author.
    pub author: String,
    /// What the author is called here: `you`, a peer's name, or the beginning of the key.
    pub author_name: String,
    /// When it was written, by its author's clock, in milliseconds since 1970.
    pub at: u64,
    /// Whether it is the one that is shown until the conflict is settled.
    pub shown: bool,
    /// The text. The command line leaves it out of a pipe where `gate` is `shut`.
    pub text: String,
    /// `open` or `shut`: whether a program may read the text unasked. It is `shut` where the author
    /// is no member whose word counts here, or where the scan objects to the text.
    pub gate: String,
}

/// How to settle conflicting versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// What to do with each field.
    pub settle: Vec<Settle>,
}

/// How to settle one field: by the number of a version, or by a new text.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// Which field; needed where several are contested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The number of the version to keep, as in `versions` of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<usize>,
    /// A text that takes the place of all versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The versions that the caller has seen, each by `version`. Where others are held by now, nothing
    /// is changed and the answer says so. Not checked where it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
}

/// What was settled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Resolved {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The fields that were settled.
    pub settled: Vec<SettledField>,
    /// Fields that are still contested.
    pub contested: Vec<String>,
    /// What to look at before others have it, in a workspace that is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
}

/// A field that was settled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SettledField {
    /// Which.
    pub field: String,
    /// The number of the version that was kept; absent where a new text took the place of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<usize>,
    /// What the author of the version that was kept is called here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    /// How many versions the edit replaced.
    pub replaced: usize,
    /// The text that all nodes show after a sync.
    pub text: String,
}
