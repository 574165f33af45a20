//! Request and response types for peers, workspaces, filters and syncs.

use super::MappedCheckout;
use super::joins::{PendingJoin, WorkspaceOffer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A request for a ticket.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteRequest {
    /// The ticket is for another node of the same person.
    #[serde(default)]
    pub mine: bool,
    /// The ticket makes the joiner a member of this workspace. The node creates the workspace if it
    /// does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The joiner waits until the operator of this node approves it.
    #[serde(default)]
    pub confirm: bool,
}

/// A ticket that lets another node join.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct IssuedTicket {
    /// The ticket text, to be given to the operator of the other node.
    pub ticket: String,
    /// When the ticket expires, in milliseconds since 1970.
    pub expires: u64,
    /// The workspace of which the joiner becomes a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Existing entries that the joiner would receive.
    pub entries: u64,
    /// True if no person's key exists, so that only the user account protects this node.
    pub is_unprotected: bool,
}

/// Another node that is paired, waits to be paired, or was blocked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// The peer's public key.
    pub peer: String,
    /// The name that the peer chose for itself.
    pub name: String,
    /// `approved`, `waiting` or `refused`.
    pub state: String,
    /// True if this node asked to join the peer and has not heard of an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// True if the peer is another node of the same person.
    pub mine: bool,
    /// True if this node rejects records signed by the peer.
    pub blocked: bool,
    /// True if the peer is connected now.
    pub connected: bool,
    /// Addresses at which the peer was last reached.
    pub addresses: Vec<String>,
    /// Workspaces of which both nodes are members.
    pub workspaces: Vec<String>,
    /// Result of the last comparison of both record sets: `equal`, `differs`, `reading` (records
    /// are being transferred in either direction), `refused`, `unknown`, or `unanswered` (equal
    /// earlier and not compared again). In the response to a sync, `equal` means equal since the
    /// sync began.
    pub sync: String,
    /// When `sync` was determined, or when both sets were last equal, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<u64>,
    /// Number of records known to differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<u64>,
    /// The reason the peer gave when it refused to talk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Records that this node rejected from the peer, for reasons that still apply.
    pub refused: u64,
    /// The reasons for those rejections, most frequent first. Only if one peer is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_for: Vec<RejectionCount>,
    /// Entries that this node releases to the peer.
    pub released: u64,
    /// Entries that the peer releases to this node.
    pub offered: u64,
    /// Six digits that both operators compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The pending request to join by address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PendingJoin>,
    /// Workspaces in which the peer offers membership to this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<WorkspaceOffer>,
    /// How far the peer's clock was ahead of this node's clock at the handshake, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<i64>,
    /// When this node first knew the peer, in milliseconds since 1970.
    pub since: u64,
    /// The filters for this peer. Only if one peer is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
    /// Trust in the peer, and its evidence. Only if one peer is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// One reason for which records of a peer are rejected.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RejectionCount {
    /// The reason, as a text for people.
    pub reason: String,
    /// Number of records rejected for it.
    pub records: u64,
}

/// Trust in an author, with the numbers behind it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// The trust: the lower of the two bounds below, in [0, 1].
    pub value: f64,
    /// Weight of the author's claims and observations, in [0, 1].
    pub weight: f64,
    /// Hops from this node; absent if no author nearby leads to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<u8>,
    /// Observations on this node in which the author's texts helped.
    pub successes: u32,
    /// Observations on this node in which the author's texts misled.
    pub failures: u32,
    /// Successes that were not counted because the daily limit was reached.
    pub successes_ignored: u32,
    /// α of all evidence, prior included, after decay.
    pub alpha: f64,
    /// β of all evidence, prior included, after decay.
    pub beta: f64,
    /// Lower bound computed from all evidence.
    pub of_all: f64,
    /// Lower bound computed from the most recent outcomes only.
    pub of_recent: f64,
    /// Number of outcomes in that recent window.
    pub recent_outcomes: u64,
    /// Fraction of the evidence that is left after decay, in [0, 1].
    pub left: f64,
    /// Trust without the operator's vouch. Gates use this value.
    #[serde(default)]
    pub earned: f64,
    /// The operator's vouch for the author, if there is one. It is never sent to peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<VouchState>,
    /// Trust at the end of each recent day, oldest first, today last.
    pub series: Vec<f64>,
}

/// The operator's vouch for an author.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VouchState {
    /// The day on which the operator vouched, in milliseconds since 1970.
    pub since: u64,
    /// Number of successes it counts as today: at most three, decaying over time.
    pub successes: f64,
}

/// All other nodes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Peers {
    /// Addresses at which peers can reach this node.
    pub addresses: Vec<String>,
    /// The nodes that are paired or wait for approval.
    pub peers: Vec<Peer>,
    /// Recent nodes whose connection was rejected, each with time and reason.
    pub turned_away: Vec<RefusedNode>,
}

/// A node whose connection was rejected.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedNode {
    /// When it was rejected, in milliseconds since 1970.
    pub at: u64,
    /// The public key of the node.
    pub peer: String,
    /// The reason for the rejection.
    pub reason: String,
}

/// The operator's decision about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeerDecision {
    /// Pair with the node.
    Approve,
    /// Reject the pending request; a node that is paired already stays paired, without the offered
    /// membership.
    Refuse,
    /// Reject all records that the node signs.
    Block,
    /// Accept records that the node signs again.
    Unblock,
    /// End the pairing.
    Remove,
    /// Vouch for the node: on this node that counts as at most three successes, which decay.
    Vouch,
    /// Withdraw the vouch.
    Unvouch,
}

/// A decision about a node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerDecisionRequest {
    /// What the operator decides.
    pub decision: PeerDecision,
    /// The six digits that the other machine shows; required to approve a request to join by
    /// address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A filter for entries in one direction. Absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Workspaces by name. An empty list admits all workspaces shared with the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<String>>,
    /// An entry needs one of these tags. An empty list admits all entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags_allow: Option<Vec<String>>,
    /// An entry with one of these tags does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags_deny: Option<Vec<String>>,
    /// The lowest decayed mean at which an entry is released. For sent entries only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_min: Option<f64>,
    /// Entry types that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Memories that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories: Option<Vec<String>>,
    /// Threads whose entries do not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_exclude: Option<Vec<String>>,
    /// `created_here` or `also_relayed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// Statuses at which an entry is released. For sent entries only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statuses: Option<Vec<String>>,
}

/// The filters of both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// The filter for entries sent to the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Filter>,
    /// The filter for entries accepted from the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Filter>,
}

/// A change to the filters of a peer, or a question about its effect.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterUpdate {
    /// The filter for entries sent to the peer; absent fields stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Filter>,
    /// The filter for entries accepted from the peer; absent fields stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Filter>,
    /// Parts that take the configured default again before the new values are set: `egress` or
    /// `ingress`, or `types`, `memories` or `statuses` of one of them, as in `egress.types`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
}

/// The entries that a filter preview examines.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// Only this entry, by its id, its code or a beginning of the code. Default: all entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// The effect of a filter on the entries sent to a peer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// The current or proposed filters.
    pub filters: Filters,
    /// Entries that are released already; the peer has them or fetches them.
    pub released: Vec<PreviewedEntry>,
    /// Entries that are not released yet and will be.
    pub would_be: Vec<PreviewedEntry>,
    /// Entries that are released and will be withdrawn.
    pub would_end: Vec<PreviewedEntry>,
    /// Entries that are held back, each with the rule.
    pub held: Vec<PreviewedEntry>,
}

/// An entry in a filter preview.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PreviewedEntry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The entry's title.
    pub title: String,
    /// The name of the rule that holds the entry back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rule as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request to sync now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncOrder {
    /// The peer to sync with. Default: all connected peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// The result of a sync.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SyncResult {
    /// The peers in their state after the sync: all paired peers, or the named one.
    pub peers: Vec<Peer>,
    /// Records that were received from the connected peers meanwhile and are stored.
    pub received: u64,
    /// Records that were sent to the connected peers meanwhile.
    #[serde(default)]
    pub sent: u64,
}

/// A workspace of this node, with its members.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// The workspace's id.
    pub id: String,
    /// This node's name for the workspace.
    pub name: String,
    /// True if new entries go to this workspace, unless they are written in a checkout that is
    /// mapped to another one.
    pub current: bool,
    /// True if the caller's checkout is mapped to this workspace, so that entries written there go
    /// to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub here: bool,
    /// The owner's key; absent while the charter has not arrived, and for personal workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The members of the workspace.
    pub members: Vec<Member>,
    /// Removed keys whose removal stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<RemovedMember>,
    /// True if this node was removed from the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed_here: bool,
    /// The settings that the owner or an admin set, as TOML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// The weight of each search signal in this workspace.
    pub weights: BTreeMap<String, f64>,
    /// The source of the weights.
    pub weights_from: String,
    /// Entries held in this workspace.
    pub entries: u64,
    /// True if a record of the charter is damaged. The member list is then uncertain until a peer
    /// sends the record again or a backup is restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Checkouts that this node maps to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkouts: Vec<MappedCheckout>,
    /// Checkouts that the owner or an admin declares to belong to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<MappedCheckout>,
    /// Peers that this node invited and that have not answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invited: Vec<Member>,
}

/// A member of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// The member's public key.
    pub key: String,
    /// The name that the member chose for itself; empty if unknown.
    pub name: String,
    /// `owner`, `admin` or `member`; `invited` if the peer has not accepted yet.
    pub role: String,
    /// When this node and the member last held the same records; absent if they are not paired or
    /// never compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_at: Option<u64>,
}

/// A key that was removed from a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RemovedMember {
    /// The removed public key.
    pub key: String,
    /// The name that the node had as a member; empty if unknown.
    pub name: String,
    /// Names of the owner and admins whose removal stands.
    pub by: Vec<String>,
    /// Number of its records that still count.
    pub records: u64,
    /// When this node learned of the removal.
    pub since: u64,
}

/// All workspaces that this node knows.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workspaces {
    /// The workspaces, sorted by name.
    pub workspaces: Vec<Workspace>,
    /// Workspaces in which peers offer membership to this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<WorkspaceOffer>,
}

/// A request to create a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// The name of the new workspace.
    pub name: String,
}

/// A change to a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceUpdate {
    /// Offer membership to this paired peer. It becomes a member when its operator accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<String>,
    /// Remove this member or admin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<String>,
    /// With `remove`: whether members that only the removed admin lists stay members. Required if
    /// there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_members: Option<bool>,
    /// Take back this node's removal of this member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reinstate: Option<String>,
    /// Replace the settings, as TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Declare to all members that the checkout at this absolute path belongs to the workspace, by
    /// its root commits and its remote. The members' nodes suggest the mapping; entries go to the
    /// workspace only after an operator accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_checkout: Option<String>,
    /// Withdraw that declaration for the checkout at this absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdraw_checkout: Option<String>,
}

/// The progress of erasing a forgotten entry on peers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipts {
    /// The entry's id.
    pub id: String,
    /// The peers that held the entry or may have held it.
    pub peers: Vec<PeerReceipt>,
}

/// The receipt of one peer for a forgotten entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PeerReceipt {
    /// The peer's key.
    pub peer: String,
    /// The name that the peer chose for itself.
    pub name: String,
    /// When the peer reported that it erased the entry, in milliseconds since 1970. For the peer
    /// that sent the tombstone to this node, the time at which the entry was forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<u64>,
    /// Number of other peers to which it forwarded the tombstone.
    pub told: u32,
    /// Number of those peers that reported the erasure.
    pub acknowledged: u32,
}
