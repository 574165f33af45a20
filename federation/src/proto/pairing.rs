//! The pairing exchange `/klnode/pair/1`, the only protocol open to strangers.
//!
//! It is one request and one answer. The transport has proved both keys. The joiner proves that it
//! knows the ticket's secret by a hash over the secret, both keys and a nonce of its own; the
//! inviter proves the same in its answer. A ticket can be used once, until it expires. Without a
//! ticket a node may only ask to join by address ([`super::sas`]) and waits for the other operator.
//! `knock` is the form of that request without digits, which nodes before version 1 of `sas` send.
//!
//! An approved peer may be offered membership in a workspace: `offer` carries a ticket that is
//! bound to the peer's key ([`Invitation::joiner`]). The peer's operator accepts by joining with
//! the ticket, or declines it.

use super::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX, PAIR_FRAME_BYTES_MAX};
use super::ticket::{JoinOffer, Secret};
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_crdt::record::RecordError;
use klnode_crdt::time::WallTime;
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Serialize};

/// A node's self-description. It proves nothing beyond the key.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Card {
    /// The name the node chose for itself.
    #[serde(rename = "n")]
    pub name: String,
    /// Addresses at which the node can be reached.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
}

impl Card {
    /// Cuts the card to the limits of the exchange.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.name = self.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        // The operator sees the addresses when deciding about a stranger, so each must be one
        // visible word.
        let is_plain = |one: &String| one.chars().all(|c| c.is_ascii_graphic());
        self.addresses.retain(|one| one.len() <= ADDRESS_BYTES_MAX && is_plain(one));
        self.addresses.truncate(ADDRESSES_MAX);
        self
    }
}

/// Proves knowledge of a ticket's secret.
pub type SecretProof = serde_bytes::ByteArray<32>;

/// A pairing request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PairRequest {
    /// Joins with a ticket: the ticket's name, a nonce, the proof and the joiner's card.
    #[serde(rename = "join")]
    Join(serde_bytes::ByteArray<16>, Nonce, SecretProof, Card),
    /// Asks to be admitted by the operator, without digits.
    #[serde(rename = "knock")]
    Knock(Card),
    /// A request of joining by address: its version and its bytes ([`super::sas::SasRequest`]).
    #[serde(rename = "sas")]
    Sas(u8, serde_bytes::ByteBuf),
    /// Offers an approved peer membership: the version and a ticket that only this peer can use.
    #[serde(rename = "offer")]
    Offer(u8, String),
    /// Declines or withdraws an offer: the version and the ticket's name.
    #[serde(rename = "decline")]
    Decline(u8, serde_bytes::ByteArray<16>),
}

/// Version of [`PairRequest::Offer`] and [`PairRequest::Decline`].
pub const OFFER_VERSION: u8 = 1;

/// An answer to a pairing request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PairResponse {
    /// Paired: the inviter's proof, its card, and whether its operator still has to confirm.
    #[serde(rename = "welcome")]
    Welcome(SecretProof, Card, bool),
    /// The operator has yet to decide.
    #[serde(rename = "wait")]
    Wait(Card),
    /// The request was refused, with a reason for people.
    #[serde(rename = "no")]
    No(String),
    /// The answer to [`PairRequest::Sas`]: the bytes of a [`super::sas::SasResponse`].
    #[serde(rename = "sas")]
    Sas(serde_bytes::ByteBuf),
    /// An offer, or the end of one, was received.
    #[serde(rename = "heard")]
    Heard,
}

const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: PAIR_FRAME_BYTES_MAX, items_max: 256 };

impl PairRequest {
    /// Encodes the request as one frame.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes a frame under the bounds of the exchange.
    pub fn decode(frame: &[u8]) -> Result<Self, RecordError> {
        wire::decode(frame, BOUNDS)
    }
}

impl PairResponse {
    /// Encodes the answer as one frame.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes a frame under the bounds of the exchange.
    pub fn decode(frame: &[u8]) -> Result<Self, RecordError> {
        wire::decode(frame, BOUNDS)
    }
}

/// The values that the proofs of a pairing cover.
#[derive(Clone, Copy, Debug)]
pub struct PairingContext<'a> {
    /// The ticket's secret, known to both nodes.
    pub secret: &'a Secret,
    /// The node that issued the ticket.
    pub inviter: AuthorId,
    /// The node that uses the ticket.
    pub joiner: AuthorId,
    /// Random bytes chosen by the joiner.
    pub nonce: Nonce,
}

impl PairingContext<'_> {
    fn keyed(&self, purpose: &str) -> blake3::Hash {
        let parts = [&self.inviter.as_bytes()[..], self.joiner.as_bytes(), self.nonce.as_bytes()];
        self.secret.keyed(purpose, &parts)
    }

    /// The proof the joiner sends with its request.
    pub fn joiner_proof(&self) -> SecretProof {
        SecretProof::new(*self.keyed("join").as_bytes())
    }

    /// The proof the inviter sends in its answer.
    pub fn inviter_proof(&self) -> SecretProof {
        SecretProof::new(*self.keyed("welcome").as_bytes())
    }

    /// Verifies the joiner's proof, in constant time.
    pub fn is_joiner(&self, proof: &SecretProof) -> bool {
        self.keyed("join") == blake3::Hash::from_bytes(proof.into_array())
    }

    /// Verifies the inviter's proof, in constant time.
    pub fn is_inviter(&self, proof: &SecretProof) -> bool {
        self.keyed("welcome") == blake3::Hash::from_bytes(proof.into_array())
    }

    /// Six digits shown to both operators, for comparison by eye.
    pub fn code(&self) -> String {
        let hash = self.keyed("code");
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        let digits = u64::from_be_bytes(bytes) % 1_000_000;
        format!("{:03} {:03}", digits / 1_000, digits % 1_000)
    }
}

/// The inviter's record of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The ticket's secret, against which the joiner's proof is checked.
    #[serde(rename = "s")]
    pub secret: Secret,
    /// The role the joiner gets.
    #[serde(rename = "o")]
    pub offer: JoinOffer,
    /// The ticket cannot be used after this time.
    #[serde(rename = "t")]
    pub expires: WallTime,
    /// True if the operator must confirm the joiner before the pairing takes effect.
    #[serde(rename = "c")]
    pub must_confirm: bool,
    /// The node that has used the ticket.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<AuthorId>,
    /// The only node that may use the ticket; `None` allows any node.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub joiner: Option<AuthorId>,
}

/// Why a joiner was refused. The text is sent to the joiner and shown on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingRefusal {
    /// No such ticket was issued, or the proof is wrong.
    #[error("the ticket is not one of this node's")]
    Unknown,
    /// The ticket's time is over.
    #[error("the ticket has expired")]
    Expired,
    /// Another node has already used the ticket.
    #[error("the ticket has been used")]
    Used,
}

impl Invitation {
    /// True if this is an offer to the peer that can still be accepted.
    pub fn is_offer_to(&self, peer: AuthorId, now: WallTime) -> bool {
        self.joiner == Some(peer) && self.used_by.is_none() && self.expires >= now
    }

    /// Checks whether a joiner is admitted and returns the inviter's proof. A joiner whose answer
    /// was lost may ask again with the same ticket.
    pub fn admit(
        &self,
        meeting: &PairingContext<'_>,
        proof: &SecretProof,
        now: WallTime,
    ) -> Result<SecretProof, PairingRefusal> {
        let is_for_it = self.joiner.is_none_or(|joiner| joiner == meeting.joiner);
        if !is_for_it || !meeting.is_joiner(proof) {
            return Err(PairingRefusal::Unknown);
        }
        match self.used_by {
            Some(by) if by == meeting.joiner => Ok(meeting.inviter_proof()),
            Some(_) => Err(PairingRefusal::Used),
            None if self.expires < now => Err(PairingRefusal::Expired),
            None => Ok(meeting.inviter_proof()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn invitation() -> Invitation {
        Invitation {
            secret: Secret::from_bytes([7; 16]),
            offer: JoinOffer::Mine,
            expires: WallTime::from_millis(100),
            must_confirm: false,
            used_by: None,
            joiner: None,
        }
    }

    fn meeting(secret: &Secret, joiner: u8) -> PairingContext<'_> {
        let nonce = Nonce::from_bytes([9; 16]);
        PairingContext { secret, inviter: author(1), joiner: author(joiner), nonce }
    }

    #[test]
    fn both_sides_prove_the_secret_and_see_the_same_code() {
        let invitation = invitation();
        let met = meeting(&invitation.secret, 2);
        let now = WallTime::from_millis(50);
        let answer = invitation.admit(&met, &met.joiner_proof(), now).unwrap();
        assert!(met.is_inviter(&answer));
        assert_eq!(met.code().len(), 7);
        assert_ne!(met.code(), meeting(&invitation.secret, 3).code());
        // A joiner's proof is not valid as an inviter's.
        assert!(!met.is_inviter(&met.joiner_proof()));
    }

    #[test]
    fn wrong_late_stolen_and_used_tickets_are_refused() {
        let invitation = invitation();
        let (early, late) = (WallTime::from_millis(50), WallTime::from_millis(101));
        let met = meeting(&invitation.secret, 2);
        let wrong = Secret::from_bytes([8; 16]);
        let forged = meeting(&wrong, 2).joiner_proof();
        assert_eq!(invitation.admit(&met, &forged, early), Err(PairingRefusal::Unknown));
        // An intercepted proof is useless to another node.
        let thief = meeting(&invitation.secret, 3);
        assert_eq!(
            invitation.admit(&thief, &met.joiner_proof(), early),
            Err(PairingRefusal::Unknown)
        );
        assert_eq!(invitation.admit(&met, &met.joiner_proof(), late), Err(PairingRefusal::Expired));
        let used = Invitation { used_by: Some(author(2)), ..invitation.clone() };
        assert!(used.admit(&met, &met.joiner_proof(), late).is_ok());
        assert_eq!(used.admit(&thief, &thief.joiner_proof(), early), Err(PairingRefusal::Used));
    }

    #[test]
    fn an_offer_admits_only_its_peer() {
        let offered = Invitation { joiner: Some(author(2)), ..invitation() };
        let now = WallTime::from_millis(50);
        let admit = |joiner| {
            let met = meeting(&offered.secret, joiner);
            offered.admit(&met, &met.joiner_proof(), now).map(|_| ())
        };
        assert_eq!((admit(2), admit(3)), (Ok(()), Err(PairingRefusal::Unknown)));
    }

    #[test]
    fn a_card_is_cut_to_its_limits() {
        let card = Card { name: "a\nb".repeat(99), addresses: vec!["x".repeat(300), "y".into()] };
        let cut = card.cut();
        assert_eq!(cut.name.chars().count(), NAME_CHARS_MAX);
        assert!(!cut.name.contains('\n'));
        assert_eq!(cut.addresses, ["y"]);
    }

    #[test]
    fn addresses_that_are_not_one_visible_word_are_dropped() {
        let words = ["/ip6/fe80::1/tcp/1", "/dns4/xn--gre-6ka8i.example.org/tcp/7700/p2p/12D3Koo"];
        let forged = ["x\nstate  another machine of yours", "a b", "a\u{3164}b", "a\u{202E}b"];
        let addresses = words.iter().chain(&forged).map(|one| (*one).to_owned()).collect();
        assert_eq!(Card { name: String::new(), addresses }.cut().addresses, words);
    }

    #[test]
    fn a_decoding_error_stays_on_one_line() {
        let said = PairRequest::decode(b"\xa3x\ny").unwrap_err().to_string();
        assert!(said.contains("x y"), "{said}");
    }
}
