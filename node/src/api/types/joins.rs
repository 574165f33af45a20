//! Joining another node, by a ticket or by address, and offers of membership between peers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Joins another node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// A ticket, or an address: `host:port`, `[v6]:port` or a multiaddr, with or without `/p2p/…`.
    pub target: String,
    /// By address: asks to be another node of the same person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mine: bool,
    /// By address: asks to be a member of the other node's workspace of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// How joining went.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Joined {
    /// The other node's key.
    pub peer: String,
    /// What it calls itself.
    pub name: String,
    /// Whether it is another node of the same person.
    pub mine: bool,
    /// The workspace this node belongs to now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Six digits that both operators see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether an operator still has to decide.
    pub waiting: bool,
    /// What is asked for, while an attempt to join by address waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<JoinRequest>,
}

/// A request to join by address that waits for an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinRequest {
    /// Which side asks: `there` if the other node asks to join this one, `here` if this node asks.
    pub from: String,
    /// What is asked for: `peer`, `mine` or `member`.
    pub wants: String,
    /// The workspace, for `member`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Six digits that both machines show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether the operator here has typed the digits.
    pub confirmed: bool,
    /// Whether the other node says that its operator has.
    pub confirmed_there: bool,
    /// When the attempt ends by itself, in milliseconds since 1970.
    pub expires: u64,
}

/// A node asks to join this one. It can be approved with its code.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinRequested {
    /// Its key.
    pub peer: String,
    /// What it calls itself.
    pub name: String,
    /// What it asks for.
    pub request: JoinRequest,
}

/// Membership in a workspace that a peer offers this node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceOffer {
    /// What the peer calls the workspace.
    pub name: String,
    /// Its id.
    pub id: String,
    /// The peer's key.
    pub peer: String,
    /// What the peer calls itself.
    pub peer_name: String,
    /// Until when it can be accepted, in milliseconds since 1970.
    pub expires: u64,
}

/// Accepts or declines an offer of membership.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideOffer {
    /// The workspace, by the name or the id that the offer gives.
    pub workspace: String,
    /// The peer that offers it; needed where several offer one of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether to accept it.
    pub accept: bool,
}

/// What an offer of membership has come to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DecidedOffer {
    /// What the workspace is called here, or in the offer.
    pub workspace: String,
    /// The peer's key.
    pub peer: String,
    /// What the peer calls itself.
    pub peer_name: String,
    /// Whether this node is a member now.
    pub accepted: bool,
}
