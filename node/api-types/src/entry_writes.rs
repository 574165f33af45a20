//! Request and response types for writing entries and moving them: edits, checkouts, promotion,
//! supersession, accepted proposals and threads.

use super::{EntryIdentity, ProposedClaim};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// An entry that was created.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AddResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The workspace of the entry.
    pub workspace: String,
    /// True if that is the current workspace, the default for new entries.
    #[serde(default)]
    pub current: bool,
    /// The thread to which the entry is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The citation that the node added as `KIND:REF`, because this memory requires evidence and
    /// none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cited: Option<String>,
    /// A workspace whose owner or admin declared the caller's checkout as its own, if the checkout
    /// is not mapped to a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
    /// The repository that was recorded with the predicates, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// True if the entry has predicates without a recorded repository. They are never evaluated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanchored: bool,
    /// Passages to review before peers receive the entry, if the workspace is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// True if neither peers nor agents get the entry until the operator releases or rephrases it,
    /// because of its flags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// A duplicate by this person: an entry with the same title and content, ignoring case and
    /// spaces, in the same workspace and memory. Not searched for episodic entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same: Option<EntryIdentity>,
}

/// An entry that was edited.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EditResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// True if predicates were added without a recorded repository. They are never evaluated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanchored: bool,
    /// Passages to review before peers receive the entry, if the workspace is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ShareFlag>,
    /// True if neither peers nor agents get the entry until the operator releases or rephrases it,
    /// because of its flags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// A passage that should not leave the organisation, or for which other nodes may hide the entry.
/// Unless `scan.disclosure` is `warn`, a passage of any topic but `scan` holds the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShareFlag {
    /// The field that contains the passage.
    pub field: String,
    /// The topic: `home path`, `foreign repository`, `hostname`, `internal endpoint`, `name`,
    /// `weakness`, or `scan`.
    pub topic: String,
    /// The passage; for `scan`, the severity and the rule, such as `medium: pipe-to-shell`.
    pub text: String,
}

/// The caller's location.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkspacesQuery {
    /// The absolute path of a git checkout or of a folder in one. The workspace that it is mapped
    /// to has `here` set. Callers over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A request to map a checkout to a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MapCheckoutRequest {
    /// The absolute path of the checkout or of a folder in it. Callers over TCP may not set it.
    pub checkout: String,
    /// Remove the mapping.
    #[serde(default)]
    pub remove: bool,
}

/// A checkout that belongs to a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MappedCheckout {
    /// The root commits; empty if they are unknown.
    pub roots: Vec<String>,
    /// The remote that identifies the repository, as host and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The path of the checkout when it was mapped; absent for a declared checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When it was mapped, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// A request to promote an entry: to create a new entry from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Promote {
    /// The workspace of the new entry. Default: the workspace of the source; the new entry then
    /// leaves the thread of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `semantic` or `procedural`. Default: the memory of the source, `semantic` for an episodic
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The entry type. Default: the type of the source, `lesson` for an episodic one.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Additional evidence, each item as KIND:REF.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// The reason why the caller approves the promotion. An episodic entry needs it, unless the
    /// person signs the request. The ledger of promotions keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
}

/// An entry that was promoted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromotionResult {
    /// The new entry's id.
    pub id: String,
    /// The new entry's citation code.
    pub code: String,
    /// The id of the source entry.
    pub source: String,
    /// The workspace of the new entry.
    pub workspace: String,
    /// `semantic` or `procedural`.
    pub memory: String,
    /// The person's key that signed the promotion; absent if none was required or no key exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// True if the same promotion was made before; only new evidence was added.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
}

/// The source of a promoted entry, from the records of this node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromotionSource {
    /// The id of the source entry.
    pub source: String,
    /// When it was promoted, in milliseconds since 1970.
    pub at: u64,
    /// The person's key that signed the promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The reason that the approver gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A link to another entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryLink {
    /// `derived_from`, `supersedes`, `same_as` or `related`; from the other side, `superseded_by`.
    pub relation: String,
    /// The other entry's id.
    pub id: String,
    /// The other entry's citation code; only its digits if this node does not hold the entry.
    pub code: String,
}

/// A request to supersede an entry by another one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Supersede {
    /// The entry that replaces it.
    pub by: String,
    /// Undo the supersession.
    #[serde(default)]
    pub undo: bool,
}

/// The result of superseding an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SupersedeResult {
    /// The superseded entry's id.
    pub id: String,
    /// The superseded entry's citation code.
    pub code: String,
    /// The id of the entry that replaces it.
    pub by: String,
    /// The citation code of the entry that replaces it.
    pub by_code: String,
}

/// A request to accept proposals of another author, as claims of this node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The author's name or key; required if several authors make proposals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Only proposals for this field, such as `title` or `tags`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// The result of accepting proposals.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The claims that this node now makes.
    pub accepted: Vec<ProposedClaim>,
}

/// A request to archive all entries of a thread, or to bring them back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveThread {
    /// The name of the thread.
    pub thread: String,
    /// Only entries of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Bring the entries back.
    #[serde(default)]
    pub undo: bool,
}

/// The result of archiving a thread.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArchivedThread {
    /// The name of the thread.
    pub thread: String,
    /// The number of entries that were archived or brought back.
    pub entries: u64,
}

/// Changes to an entry. Absent fields stay as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// New values of registers, by name.
    #[serde(default)]
    pub registers: BTreeMap<String, String>,
    /// Tags to add.
    #[serde(default)]
    pub add_tags: Vec<String>,
    /// Tags to withdraw; a node can withdraw only tags that it added.
    #[serde(default)]
    pub remove_tags: Vec<String>,
    /// Evidence to add, each item as KIND:REF. Evidence is withdrawn only with the whole entry.
    #[serde(default)]
    pub add_evidence: Vec<String>,
    /// Anchors to add.
    #[serde(default)]
    pub add_anchors: Vec<String>,
    /// Anchors to withdraw; a node can withdraw only anchors that it added.
    #[serde(default)]
    pub remove_anchors: Vec<String>,
    /// Verify steps to add.
    #[serde(default)]
    pub add_verify_steps: Vec<String>,
    /// Verify steps to withdraw; a node can withdraw only steps that it added.
    #[serde(default)]
    pub remove_verify_steps: Vec<String>,
    /// Predicates to add.
    #[serde(default)]
    pub add_depends_on: Vec<String>,
    /// Predicates to withdraw; a node can withdraw only predicates that it added.
    #[serde(default)]
    pub remove_depends_on: Vec<String>,
    /// Links to add, each as RELATION:ENTRY with the relation related, part_of, uses, depends_on,
    /// causes, supports or contradicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_links: Vec<String>,
    /// Links to withdraw; a node can withdraw only links that it added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_links: Vec<String>,
    /// Archive the entry (`true`) or bring it back (`false`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// The caller's location: the absolute path of a git checkout or of a folder in one. Added
    /// predicates are recorded with its repository. Callers over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// Confirms a change to an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeResult {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code; without its letter if the entry had been forgotten before.
    pub code: String,
    /// The title the entry had; absent if it had none or if the gate is shut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The newest position in the feed after the change.
    pub head: u64,
    /// True if the entry had been forgotten before, so that this request changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
    /// This node's name for the author whose text is still displayed after this node retracted its
    /// own claims; absent if no text is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remains_by: Option<String>,
}
