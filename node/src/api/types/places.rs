//! Where entries belong, as it travels: checkouts, promotions, successors, proposals, threads.

use super::{Named, Proposed};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// An entry that was written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Added {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The workspace it went to.
    pub workspace: String,
    /// Whether that is the one to which new entries go by themselves.
    #[serde(default)]
    pub current: bool,
    /// The thread it is scoped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What it cites by itself, because no evidence was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cited: Option<String>,
    /// A workspace that offers itself for the caller's checkout, to which none is mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
    /// The repository that was recorded with its predicates, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// It has predicates and no repository was recorded with them, so that they are checked nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanchored: bool,
    /// What to look at before others have it, in a workspace that is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// An entry in which this person says the same already: same title and content, whatever their case
    /// and spaces, in the same workspace and memory. Not looked for where the memory is episodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same: Option<Named>,
}

/// An entry that was changed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Edited {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// Predicates were added and no repository was recorded with them, so that they are checked
    /// nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanchored: bool,
    /// What to look at before others have it, in a workspace that is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
}

/// Something that an entry names although it should not leave the house, or for which other nodes may
/// not show it. It keeps nothing back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShareFlag {
    /// In which field.
    pub field: String,
    /// What it is about: `home path`, `foreign repository`, `hostname`, `internal endpoint`, `name`,
    /// `weakness`, or `scan`.
    pub topic: String,
    /// What it says there; of `scan` the severity and the rule, as `medium: pipe-to-shell`.
    pub text: String,
}

/// Where the caller is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkspacesQuery {
    /// The absolute path of a git checkout, or of a folder in one: the workspace that it is mapped to
    /// says so. Refused to callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// Maps a checkout to a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MapCheckout {
    /// The absolute path of the checkout, or of a folder in it. Refused to callers over TCP.
    pub checkout: String,
    /// Map it no longer.
    #[serde(default)]
    pub remove: bool,
}

/// A checkout that belongs to a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MappedCheckout {
    /// Root commits; none where they could not be told.
    pub roots: Vec<String>,
    /// The remote that names it, as host and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Where it lay when it was mapped here; absent where it is only offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Since when, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// Makes a new entry of one that is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Promote {
    /// The workspace it is to be in; its own unless given, which takes it out of its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `semantic` or `procedural`; that of the entry unless given, `semantic` for an episodic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Its type; that of the entry unless given, `lesson` for an episodic one.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Evidence beside what the entry cites, each as KIND:REF.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// An entry that was promoted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Promoted {
    /// The new entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The entry it was made of.
    pub source: String,
    /// The workspace it is in.
    pub workspace: String,
    /// Semantic or procedural.
    pub memory: String,
    /// The person's key that signed for it; absent where there was no need, or no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// Whether it was there already: the same was promoted before, and nothing but new evidence was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
}

/// What an entry was promoted from, as this node remembers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromotionOf {
    /// The entry it was made of.
    pub source: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The person's key that signed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// An edge to another entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Linked {
    /// `derived_from`, `supersedes`, `same_as` or `related`; from the other side, `superseded_by`.
    pub relation: String,
    /// The other entry's id.
    pub id: String,
    /// Its citation code; only its digits where the node does not hold it.
    pub code: String,
}

/// Says that another entry takes an entry's place.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Supersede {
    /// What takes its place.
    pub by: String,
    /// Take that back.
    #[serde(default)]
    pub undo: bool,
}

/// That an entry gives way to another.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Superseded {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// What takes its place.
    pub by: String,
    /// Its citation code.
    pub by_code: String,
}

/// Takes what somebody else proposes as this node's own word.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// Whose: a name, or a key. Needed where several propose something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Only for this field, such as `title` or `tags`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// What was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// What this node says now.
    pub accepted: Vec<Proposed>,
}

/// Archives everything of a thread, or brings it back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveThread {
    /// The thread.
    pub thread: String,
    /// Only of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Bring it back.
    #[serde(default)]
    pub undo: bool,
}

/// What became of a thread.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArchivedThread {
    /// The thread.
    pub thread: String,
    /// Entries that were archived, or brought back.
    pub entries: u64,
}
