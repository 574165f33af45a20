//! Request and response types for joining another node and for offers of membership.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to join another node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// A ticket, or an address: `host:port`, `[v6]:port` or a multiaddr, with or without `/p2p/…`.
    pub target: String,
    /// By address only: ask to be another node of the same person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mine: bool,
    /// By address only: ask to be a member of the other node's workspace of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// The state of joining another node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinResponse {
    /// The other node's key.
    pub peer: String,
    /// The name that the other node chose for itself.
    pub name: String,
    /// True if it is another node of the same person.
    pub mine: bool,
    /// The workspace of which this node is now a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Six digits that both operators compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// True if an operator still has to decide.
    pub waiting: bool,
    /// The pending request to join by address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PendingJoin>,
}

/// A pending request to join by address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingJoin {
    /// The side that asks: `there` if the other node asks to join this one, `here` if this node
    /// asks.
    pub from: String,
    /// The requested relation: `peer`, `mine` or `member`.
    pub wants: String,
    /// The workspace, for `member`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Six digits that both machines show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// True if the operator of this node has typed the digits.
    pub confirmed: bool,
    /// True if the other node says that its operator has typed the digits.
    pub confirmed_there: bool,
    /// When the request expires, in milliseconds since 1970.
    pub expires: u64,
}

/// A node asks to join this one. Its code approves it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoiningNode {
    /// The node's key.
    pub peer: String,
    /// The name that the node chose for itself.
    pub name: String,
    /// The request to join, with its state.
    pub request: PendingJoin,
}

/// An offer of a peer to make this node a member of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceOffer {
    /// The peer's name for the workspace.
    pub name: String,
    /// The workspace's id.
    pub id: String,
    /// The peer's key.
    pub peer: String,
    /// The name that the peer chose for itself.
    pub peer_name: String,
    /// When the offer expires, in milliseconds since 1970.
    pub expires: u64,
}

/// A request to accept or decline an offer of membership.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferDecision {
    /// The workspace, by the name or the id in the offer.
    pub workspace: String,
    /// The peer that made the offer; required if several peers offer a workspace of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// True to accept, false to decline.
    pub accept: bool,
}

/// The result of accepting or declining an offer of membership.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OfferDecisionResult {
    /// This node's name for the workspace, or the name in the offer.
    pub workspace: String,
    /// The peer's key.
    pub peer: String,
    /// The name that the peer chose for itself.
    pub peer_name: String,
    /// True if this node is a member now.
    pub accepted: bool,
}
