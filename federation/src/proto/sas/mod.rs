//! Joining by address with a short authentication string (SAS) of six digits, inside
//! `/klnode/pair/1`.
//!
//! A node that asks to join chooses its own name, so the name proves nothing. Both sides therefore
//! compute six digits from both keys, and an operator reads the digits on one machine and types
//! them on the other. If another node sits between the two (a man in the middle), the digits differ
//! and the typed digits are wrong.
//!
//! # The exchange
//!
//! The transport has proved both static keys. The initiator (the joining node) sends requests, the
//! responder answers; every message carries [`VERSION`] and stays within
//! [`super::limits::PAIR_FRAME_BYTES_MAX`].
//!
//! 1. `begin`: the initiator sends a **commitment** to its nonce, its request ([`RequestedRole`])
//!    and its card. The responder answers `nonce` with a nonce of its own and its name.
//! 2. `reveal`: the initiator sends its nonce. The responder checks it against the commitment. From
//!    now on both sides can compute the digits, and the responder's operator sees the request.
//! 3. `poll`: the initiator asks for the decision. The responder keeps the exchange open for a
//!    while and answers `pending`, `joined` or `ended`. For [`RequestedRole::Mine`] the request
//!    also says whether the initiator's operator has typed the digits; the responder joins only
//!    when both have.
//! 4. `cancel`: the initiator ends the attempt.
//!
//! The commitment is a hash over both keys, the initiator's nonce and the request. The digits are a
//! hash over the same values and the responder's nonce, in another domain.
//!
//! # Why neither side can choose the digits
//!
//! The initiator fixes its nonce before it sees the responder's; the responder fixes its own before
//! it sees the initiator's. So a node in the middle has one guess in a million per attempt, on the
//! side of the operator who types. One wrong code ends the attempt, the next attempt has new
//! digits, and [`Attempts`] limits how many attempts can begin in a window.
//!
//! # Information a stranger gains
//!
//! A stranger learns the responder's name and whether its operator decided. The answers to `begin`,
//! `reveal` and `poll` do not depend on the responder's store: whether a workspace of the requested
//! name exists is looked up only when the operator approves. Attempts are not stored; a restart
//! ends them.
//!
//! | file | content |
//! |---|---|
//! | `message` | the encoding of requests and answers |
//! | `initiator` | the joining side of one attempt |
//! | `attempts` | the answering side: all attempts, their limits and their end |

mod initiator;
mod join_attempts;
mod message;
#[cfg(test)]
mod tests;

pub use initiator::{Initiator, InitiatorStep};
pub use join_attempts::{Attempt, AttemptStep, Attempts, CodeError, JoinStart, Settings};
pub use message::{AttemptEnd, RequestedRole, SasRequest, SasResponse};

use klnode_crdt::ids::AuthorId;
use klnode_crdt::wire;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the exchange that this crate implements.
pub const VERSION: u8 = 1;

/// Random bytes of one side, fresh for each attempt.
pub type Nonce = serde_bytes::ByteArray<32>;

/// The initiator's commitment to its nonce. It also identifies the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Commitment(serde_bytes::ByteArray<32>);

/// The part of an attempt that both sides know from the start: the two nodes and the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The joining node.
    pub initiator: AuthorId,
    /// The node that decides.
    pub responder: AuthorId,
    /// The role the initiator asks for.
    pub want: RequestedRole,
}

impl Parties {
    fn hash(&self, domain: &str, nonces: &[&Nonce]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key(domain);
        let want = wire::encode(&self.want);
        let fixed = [&self.initiator.as_bytes()[..], self.responder.as_bytes(), &want];
        let nonces = nonces.iter().map(|nonce| &nonce[..]);
        for part in fixed.into_iter().chain(nonces) {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }

    /// Computes the commitment to the initiator's nonce.
    #[must_use]
    pub fn commitment(&self, initiator: &Nonce) -> Commitment {
        let hash = self.hash("klnode v1 joining by address, commitment", &[initiator]);
        Commitment(serde_bytes::ByteArray::new(*hash.as_bytes()))
    }

    /// Computes the digits that both operators see.
    #[must_use]
    pub fn code(&self, initiator: &Nonce, responder: &Nonce) -> Code {
        let hash = self.hash("klnode v1 joining by address, digits", &[initiator, responder]);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        Code((u64::from_be_bytes(bytes) % 1_000_000) as u32)
    }
}

/// The six digits that operators compare, as a number below one million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(u32);

impl Code {
    /// Parses six digits, with or without a space between groups.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
        let is_code = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_code).map(Self)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03} {:03}", self.0 / 1_000, self.0 % 1_000)
    }
}
