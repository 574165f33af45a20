//! Requests and answers of joining by address, and the reasons an attempt ends. They are bounded
//! like every frame of the pairing exchange, which carries them as bytes with a version.

use super::super::limits::PAIR_FRAME_BYTES_MAX;
use super::super::pairing::Card;
use super::super::ticket::{JoinOffer, is_workspace_name};
use super::{Commitment, Nonce};
use klnode_crdt::record::RecordError;
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Serialize};

const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: PAIR_FRAME_BYTES_MAX, items_max: 128 };

/// The role the initiator asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestedRole {
    /// A peer without membership in any workspace.
    #[serde(rename = "peer")]
    Peer,
    /// Another node of the same person.
    #[serde(rename = "mine")]
    Mine,
    /// A member of the workspace with this name.
    #[serde(rename = "member")]
    Member(String),
}

impl RequestedRole {
    /// True if the request is valid: a workspace name must be one word within the limits.
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Peer | Self::Mine => true,
            Self::Member(name) => is_workspace_name(name),
        }
    }

    /// True if the offer matches the request. Only the responder knows which workspace has the
    /// requested name.
    pub fn is_met_by(&self, offer: Option<&JoinOffer>) -> bool {
        match self {
            Self::Peer => offer.is_none(),
            Self::Mine => offer == Some(&JoinOffer::Mine),
            Self::Member(_) => matches!(offer, Some(JoinOffer::Member(id, _)) if !id.is_personal()),
        }
    }
}

/// A request of the initiator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SasRequest {
    /// Begins an attempt, with commitment, requested role and card.
    #[serde(rename = "begin")]
    Begin(Commitment, RequestedRole, Card),
    /// Reveals the nonce, which the responder checks against the commitment.
    #[serde(rename = "reveal")]
    Reveal(Commitment, Nonce),
    /// Asks for the decision. The flag says whether the initiator's operator has typed the digits.
    #[serde(rename = "poll")]
    Poll(Commitment, bool),
    /// Ends the attempt, with the reason.
    #[serde(rename = "cancel")]
    Cancel(Commitment, AttemptEnd),
}

/// An answer of the responder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SasResponse {
    /// The responder's nonce and name.
    #[serde(rename = "nonce")]
    Nonce(Nonce, String),
    /// No decision yet. The flag says whether the responder's operator has typed the digits.
    #[serde(rename = "pending")]
    Pending(bool),
    /// Paired: the initiator's new role, and the responder's card.
    #[serde(rename = "joined")]
    Joined(Option<JoinOffer>, Card),
    /// The attempt ended, with the reason.
    #[serde(rename = "ended")]
    Ended(AttemptEnd),
}

/// Why an attempt ended without a pairing. The texts are clauses that callers put after a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AttemptEnd {
    /// An operator typed wrong digits.
    #[serde(rename = "code")]
    #[error("the wrong code was typed, so the attempt is over; the next attempt has new digits")]
    WrongCode,
    /// The responder's operator refused.
    #[serde(rename = "refused")]
    #[error("its operator has refused yours")]
    Refused,
    /// The operators took too long.
    #[serde(rename = "expired")]
    #[error("no operator approved in time")]
    Expired,
    /// The joining side cancelled.
    #[serde(rename = "cancelled")]
    #[error("the joining side cancelled it")]
    Cancelled,
    /// The responder does not know the attempt, for example because it was restarted.
    #[serde(rename = "unknown")]
    #[error("the other node does not know this attempt; it may have been restarted")]
    Unknown,
    /// The revealed nonce does not match the commitment, or a message came out of order.
    #[serde(rename = "mismatch")]
    #[error("the revealed nonce does not match its commitment")]
    Mismatch,
    /// A limit on attempts is reached.
    #[serde(rename = "busy")]
    #[error("too many nodes ask to join it; try again in a few minutes")]
    TooMany,
    /// The requested workspace name is invalid.
    #[serde(rename = "want")]
    #[error("the requested workspace has no valid name")]
    BadWant,
}

macro_rules! bytes {
    ($kind:ty) => {
        impl $kind {
            /// Encodes the message for the `sas` variant of the pairing exchange.
            pub fn encode(&self) -> Vec<u8> {
                wire::encode(self)
            }

            /// Decodes a message under the bounds of the exchange.
            pub fn decode(frame: &[u8]) -> Result<Self, RecordError> {
                wire::decode(frame, BOUNDS)
            }
        }
    };
}

bytes!(SasRequest);
bytes!(SasResponse);
