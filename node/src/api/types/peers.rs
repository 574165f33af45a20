//! Other nodes, workspaces, and what passes between them.

use super::MappedCheckout;
use super::joins::{JoinRequest, WorkspaceOffer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Asks for a ticket.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    /// For another node of the same person.
    #[serde(default)]
    pub mine: bool,
    /// For a member of this workspace; it is made if there is none of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether the operator here confirms who came before it counts.
    #[serde(default)]
    pub confirm: bool,
}

/// A ticket.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Invited {
    /// To be handed over.
    pub ticket: String,
    /// Until when it is good, in milliseconds since 1970.
    pub expires: u64,
    /// The workspace it lets into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Existing entries that the joiner would see.
    pub entries: u64,
    /// Whether nothing but the user's account protects this node: no person's key exists.
    pub is_unprotected: bool,
}

/// Another node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// Its key.
    pub peer: String,
    /// What it calls itself.
    pub name: String,
    /// `approved`, `waiting` or `refused`.
    pub state: String,
    /// Whether this node asked to join it, and nothing is known of a yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Whether it is another node of the same person.
    pub mine: bool,
    /// Whether what it signs is refused.
    pub blocked: bool,
    /// Whether it is connected now.
    pub connected: bool,
    /// Where it was last reached.
    pub addresses: Vec<String>,
    /// Workspaces of which both are members.
    pub workspaces: Vec<String>,
    /// What is known of both sets: `equal`, `differs`, `reading` (records are on their way, to here or
    /// there), `refused` or `unknown`. After a sync, `equal` means since it began; what was equal before,
    /// and was not compared since, is `unanswered`.
    pub sync: String,
    /// When it was so, or when both were last equal, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<u64>,
    /// How many records are known to differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<u64>,
    /// What the peer said when it refused to talk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Records refused from it, for a reason that still stands.
    pub refused: u64,
    /// For which reasons, the most frequent first, where one peer is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_for: Vec<RefusedFor>,
    /// Entries released to it.
    pub released: u64,
    /// Entries it releases to this node.
    pub offered: u64,
    /// Six digits that both operators see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The request to join by address that waits for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<JoinRequest>,
    /// Workspaces in which it offers this node membership.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<WorkspaceOffer>,
    /// How far its clock was ahead of this one's when it greeted, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<i64>,
    /// Since when it is known, in milliseconds since 1970.
    pub since: u64,
    /// What passes, where one peer is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
    /// How far it is trusted and why, where one peer is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// Why records of a peer are refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedFor {
    /// The reason.
    pub reason: String,
    /// How many records.
    pub records: u64,
}

/// How far an author is trusted, and why.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// The lower of the two bounds, in [0, 1].
    pub value: f64,
    /// What its word weighs, in [0, 1].
    pub weight: f64,
    /// Steps from this node; absent where nobody near says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<u8>,
    /// Outcomes of its texts here that helped.
    pub successes: u32,
    /// Outcomes that misled.
    pub failures: u32,
    /// Successes that did not count because their day already had enough.
    pub successes_ignored: u32,
    /// α of all evidence, prior included, faded.
    pub alpha: f64,
    /// β of all evidence, prior included, faded.
    pub beta: f64,
    /// The lower bound that all evidence gives.
    pub of_all: f64,
    /// The lower bound that the last outcomes alone give.
    pub of_recent: f64,
    /// How many of the last outcomes that is.
    pub recent_outcomes: u64,
    /// The share of the evidence that time has left, in [0, 1].
    pub left: f64,
    /// The trust without the operator's vouch; gates look at this one.
    #[serde(default)]
    pub earned: f64,
    /// The operator's vouch for it, if one stands. It is known to this node alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Vouched>,
    /// Trust at the end of each of the last days, oldest first, today last.
    pub series: Vec<f64>,
}

/// A vouch of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vouched {
    /// The day on which the operator vouched, in milliseconds since 1970.
    pub since: u64,
    /// How many successes it counts as today: at most three, fewer as it fades.
    pub successes: f64,
}

/// All other nodes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Peers {
    /// Where this node can be reached.
    pub addresses: Vec<String>,
    /// The nodes.
    pub peers: Vec<Peer>,
    /// Nodes that were turned away lately: when, who, why.
    pub turned_away: Vec<TurnedAway>,
}

/// A node that was turned away.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TurnedAway {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Who.
    pub peer: String,
    /// Why.
    pub reason: String,
}

/// What the operator decides about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may talk.
    Approve,
    /// It waits, and may not; one that may talk already goes on without what it was offered.
    Refuse,
    /// What it signs is refused.
    Block,
    /// What it signs is taken again.
    Unblock,
    /// It may not talk any more.
    Remove,
    /// The operator vouches for it: that counts as at most three successes here, which fade.
    Vouch,
    /// The operator vouches for it no longer.
    Unvouch,
}

/// Decides about a node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// What.
    pub decision: Decision,
    /// The six digits that the other machine shows: needed to approve a request to join by address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What passes. Absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Workspaces by name; none means all that are shared with the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<String>>,
    /// Tags of which an entry needs one; none asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags_allow: Option<Vec<String>>,
    /// Tags with which an entry does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags_deny: Option<Vec<String>>,
    /// The least decayed mean that opens a release; of what is sent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_min: Option<f64>,
    /// Types that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Memories that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories: Option<Vec<String>>,
    /// Threads of which nothing passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_exclude: Option<Vec<String>>,
    /// `created_here` or `also_relayed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// Statuses that open a release; of what is sent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statuses: Option<Vec<String>>,
}

/// What passes, both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// What is sent to the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Filter>,
    /// What is taken from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Filter>,
}

/// Changes what passes, or asks what would change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetFilters {
    /// What is sent to the peer; absent fields stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Filter>,
    /// What is taken from it; absent fields stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Filter>,
    /// What is the configuration's again before anything is set: `egress` or `ingress`, or `types`,
    /// `memories` or `statuses` of one, as in `egress.types`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
}

/// What a filter lets out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// The filters in force, or asked about.
    pub filters: Filters,
    /// Released already: the peer has these, or fetches them.
    pub released: Vec<Previewed>,
    /// Not released yet, and will be.
    pub would_be: Vec<Previewed>,
    /// Released, and will not be any more.
    pub would_end: Vec<Previewed>,
    /// Held back, with the rule.
    pub held: Vec<Previewed>,
}

/// An entry in a preview.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Previewed {
    /// Its id.
    pub id: String,
    /// Its code.
    pub code: String,
    /// Its title.
    pub title: String,
    /// The rule that holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The same, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Asks to replicate now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    /// With this peer; with all that are connected, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// What replicating now came to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Synced {
    /// The peers, as they stand now: all that may talk, or the one that was named.
    pub peers: Vec<Peer>,
    /// Records that came from the connected ones meanwhile, and are held here since.
    pub received: u64,
    /// Records that were handed to them meanwhile.
    #[serde(default)]
    pub sent: u64,
}

/// A workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// What it is called here.
    pub name: String,
    /// Whether new entries go there, unless they are written in a checkout that is mapped elsewhere.
    pub current: bool,
    /// Whether the caller's checkout is mapped to it: what is written there goes to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub here: bool,
    /// The owner's key; absent while the charter has not arrived, and for personal ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Who belongs to it.
    pub members: Vec<Member>,
    /// Its settings, as owner or admins set them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// What each signal of an answer weighs here.
    pub weights: BTreeMap<String, f64>,
    /// Who decided that.
    pub weights_from: String,
    /// Entries held.
    pub entries: u64,
    /// A record of its charter is damaged: who belongs to it is not known for certain until a peer
    /// has brought the record back, or a backup was restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Checkouts that are mapped to it here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkouts: Vec<MappedCheckout>,
    /// Checkouts that owner or admins say belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<MappedCheckout>,
    /// Peers that were offered membership from here and have not answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invited: Vec<Member>,
}

/// Who belongs to a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// The key.
    pub key: String,
    /// What it calls itself, as far as it is known.
    pub name: String,
    /// `owner`, `admin` or `member`; `invited` if the peer has not accepted yet.
    pub role: String,
}

/// All workspaces.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workspaces {
    /// By name.
    pub workspaces: Vec<Workspace>,
    /// Workspaces in which peers offer this node membership.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<WorkspaceOffer>,
}

/// Makes a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// What to call it.
    pub name: String,
}

/// Changes a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeWorkspace {
    /// Offers this paired peer membership; it is a member once its operator accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<String>,
    /// Takes this member or admin out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<String>,
    /// Sets the settings, as TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Says to all members that the checkout at this absolute path belongs to it: its root commits
    /// and its remote. Their nodes offer it; nobody's entries go there by that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_checkout: Option<String>,
    /// Says so no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdraw_checkout: Option<String>,
}

/// How far a forgotten entry is erased.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipts {
    /// Its id.
    pub id: String,
    /// The peers that held it, or may have.
    pub peers: Vec<ReceiptOf>,
}

/// What one peer has said about a forgotten entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptOf {
    /// The peer's key.
    pub peer: String,
    /// What it calls itself.
    pub name: String,
    /// When it said that it has erased the entry, in milliseconds since 1970; of who brought the word
    /// of it, when the entry was forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<u64>,
    /// How many others it has told.
    pub told: u32,
    /// How many of these have erased it.
    pub acknowledged: u32,
}
