//! The questions and answers of joining by address, and how they end. Bounded like every frame of the
//! pairing exchange, which carries them as bytes beside their version.

use super::super::limits::PAIR_FRAME_BYTES_MAX;
use super::super::pairing::Card;
use super::super::ticket::{Offer, is_workspace_name};
use super::{Commitment, Nonce};
use klnode_crdt::record::Refusal;
use klnode_crdt::wire::{self, bounded::Bounds};
use serde::{Deserialize, Serialize};

const BOUNDS: Bounds = Bounds { bytes_max: PAIR_FRAME_BYTES_MAX, items_max: 128 };

/// What the initiator asks to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// A peer that is a member of nothing.
    #[serde(rename = "peer")]
    Peer,
    /// Another node of the same person.
    #[serde(rename = "mine")]
    Mine,
    /// A member of the workspace of this name.
    #[serde(rename = "member")]
    Member(String),
}

impl Want {
    /// True if it can be asked for: a workspace's name is one word within the limits.
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Peer | Self::Mine => true,
            Self::Member(name) => is_workspace_name(name),
        }
    }

    /// True if this offer is what was asked for. Which workspace has the requested name is known only
    /// to the responder.
    pub fn is_met_by(&self, offer: Option<&Offer>) -> bool {
        match self {
            Self::Peer => offer.is_none(),
            Self::Mine => offer == Some(&Offer::Mine),
            Self::Member(_) => matches!(offer, Some(Offer::Member(id, _)) if !id.is_personal()),
        }
    }
}

/// What the initiator asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// To begin an attempt.
    #[serde(rename = "begin")]
    Begin(Commitment, Want, Card),
    /// To check the nonce against the commitment.
    #[serde(rename = "reveal")]
    Reveal(Commitment, Nonce),
    /// For the decision; says whether the initiator's operator has typed the digits.
    #[serde(rename = "poll")]
    Poll(Commitment, bool),
    /// To end the attempt.
    #[serde(rename = "cancel")]
    Cancel(Commitment, End),
}

/// What the responder answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The responder's nonce and name.
    #[serde(rename = "nonce")]
    Nonce(Nonce, String),
    /// Undecided; says whether the responder's operator has typed the digits.
    #[serde(rename = "pending")]
    Pending(bool),
    /// Paired: what the initiator is now, and the responder's card.
    #[serde(rename = "joined")]
    Joined(Option<Offer>, Card),
    /// The attempt is over.
    #[serde(rename = "ended")]
    Ended(End),
}

/// Why an attempt is over without a pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum End {
    /// An operator typed other digits.
    #[serde(rename = "code")]
    #[error("the wrong code was typed, so the attempt is over; the next attempt has new digits")]
    WrongCode,
    /// An operator said no.
    #[serde(rename = "refused")]
    #[error("its operator has refused yours")]
    Refused,
    /// The operators took too long.
    #[serde(rename = "expired")]
    #[error("no operator approved in time")]
    Expired,
    /// The joining side gave up.
    #[serde(rename = "cancelled")]
    #[error("the joining side cancelled it")]
    Cancelled,
    /// The responder knows no such attempt, for example because it was restarted.
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
    /// What was asked for has no valid name.
    #[serde(rename = "want")]
    #[error("the requested workspace has no valid name")]
    BadWant,
}

macro_rules! bytes {
    ($kind:ty) => {
        impl $kind {
            /// Its bytes.
            pub fn encode(&self) -> Vec<u8> {
                wire::encode(self)
            }

            /// From its bytes.
            pub fn decode(frame: &[u8]) -> Result<Self, Refusal> {
                wire::decode(frame, BOUNDS)
            }
        }
    };
}

bytes!(Ask);
bytes!(Answer);
