//! The pairing exchange `/klnode/pair/1`: the only thing a stranger may say.
//!
//! One question, one answer. The transport has proved both keys; the joiner proves that it knows the
//! ticket's secret by a hash over the secret, both keys and a nonce of its own, and the inviter
//! proves the same in its answer. A ticket is good once, until it expires. Without a ticket a node
//! may only ask to join by address ([`super::sas`]), and waits for the other operator. `knock` is the
//! form of that question without digits, which nodes before version 1 of `sas` send.
//!
//! A peer that is approved already may be offered membership in a workspace: `offer` carries a ticket
//! that is bound to the peer's key ([`Invitation::joiner`]). The peer's operator accepts by joining
//! with it, or declines it.

use super::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX, PAIR_FRAME_BYTES_MAX};
use super::ticket::{Offer, Secret};
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_crdt::record::Refusal;
use klnode_crdt::time::WallTime;
use klnode_crdt::wire::{self, bounded::Bounds};
use serde::{Deserialize, Serialize};

/// Who speaks, beside its key.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Card {
    /// What it calls itself.
    #[serde(rename = "n")]
    pub name: String,
    /// Where it can be reached.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
}

impl Card {
    /// Cut to the limits of the exchange.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.name = self.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        // An operator who decides about a stranger sees them: they are words, and end no line.
        let is_plain = |one: &String| one.chars().all(|c| c.is_ascii_graphic());
        self.addresses.retain(|one| one.len() <= ADDRESS_BYTES_MAX && is_plain(one));
        self.addresses.truncate(ADDRESSES_MAX);
        self
    }
}

/// A proof that the secret is known.
pub type Proof = serde_bytes::ByteArray<32>;

/// What a stranger asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// To join with a ticket: the ticket's name, a nonce, the proof.
    #[serde(rename = "join")]
    Join(serde_bytes::ByteArray<16>, Nonce, Proof, Card),
    /// To be let in by the operator.
    #[serde(rename = "knock")]
    Knock(Card),
    /// A question of joining by address: its version and its bytes ([`super::sas::Ask`]).
    #[serde(rename = "sas")]
    Sas(u8, serde_bytes::ByteBuf),
    /// Offers an approved peer membership: the version and a ticket that only this peer can use.
    #[serde(rename = "offer")]
    Offer(u8, String),
    /// Declines an offer, or withdraws one: the version and the ticket's name.
    #[serde(rename = "decline")]
    Decline(u8, serde_bytes::ByteArray<16>),
}

/// The version of [`Ask::Offer`] and [`Ask::Decline`].
pub const OFFER_VERSION: u8 = 1;

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Paired: the inviter's proof, its card, and whether its operator still has to confirm.
    #[serde(rename = "welcome")]
    Welcome(Proof, Card, bool),
    /// The operator will decide.
    #[serde(rename = "wait")]
    Wait(Card),
    /// No, and why.
    #[serde(rename = "no")]
    No(String),
    /// The answer to [`Ask::Sas`]: the bytes of a [`super::sas::Answer`].
    #[serde(rename = "sas")]
    Sas(serde_bytes::ByteBuf),
    /// An offer, or its end, was heard.
    #[serde(rename = "heard")]
    Heard,
}

const BOUNDS: Bounds = Bounds { bytes_max: PAIR_FRAME_BYTES_MAX, items_max: 256 };

impl Ask {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// From its bytes.
    pub fn decode(frame: &[u8]) -> Result<Self, Refusal> {
        wire::decode(frame, BOUNDS)
    }
}

impl Answer {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// From its bytes.
    pub fn decode(frame: &[u8]) -> Result<Self, Refusal> {
        wire::decode(frame, BOUNDS)
    }
}

/// The two who pair, by what is proved between them.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// What both know.
    pub secret: &'a Secret,
    /// Who invited.
    pub inviter: AuthorId,
    /// Who joins.
    pub joiner: AuthorId,
    /// Drawn by the joiner.
    pub nonce: Nonce,
}

impl Meeting<'_> {
    fn keyed(&self, purpose: &str) -> blake3::Hash {
        let parts = [&self.inviter.as_bytes()[..], self.joiner.as_bytes(), self.nonce.as_bytes()];
        self.secret.keyed(purpose, &parts)
    }

    /// The joiner's proof.
    pub fn joiner_proof(&self) -> Proof {
        Proof::new(*self.keyed("join").as_bytes())
    }

    /// The inviter's proof.
    pub fn inviter_proof(&self) -> Proof {
        Proof::new(*self.keyed("welcome").as_bytes())
    }

    /// Whether the joiner's proof holds; compared in constant time.
    pub fn is_joiner(&self, proof: &Proof) -> bool {
        self.keyed("join") == blake3::Hash::from_bytes(proof.into_array())
    }

    /// Whether the inviter's proof holds.
    pub fn is_inviter(&self, proof: &Proof) -> bool {
        self.keyed("welcome") == blake3::Hash::from_bytes(proof.into_array())
    }

    /// Six digits that both operators see, to compare by eye.
    pub fn code(&self) -> String {
        let hash = self.keyed("code");
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        let digits = u64::from_be_bytes(bytes) % 1_000_000;
        format!("{:03} {:03}", digits / 1_000, digits % 1_000)
    }
}

/// What the inviter remembers of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The secret.
    #[serde(rename = "s")]
    pub secret: Secret,
    /// What the joiner is to be.
    #[serde(rename = "o")]
    pub offer: Offer,
    /// Until when it is good.
    #[serde(rename = "t")]
    pub expires: WallTime,
    /// Whether the operator wants to see who comes before it counts.
    #[serde(rename = "c")]
    pub must_confirm: bool,
    /// Who has used it.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<AuthorId>,
    /// The only node that may use it; any node if none.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub joiner: Option<AuthorId>,
}

/// Why a joiner is turned away. Both sides are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnedAway {
    /// No such ticket was given out, or the secret is not known.
    #[error("the ticket is not one of this node's")]
    Unknown,
    /// Too late.
    #[error("the ticket has expired")]
    Expired,
    /// Good once.
    #[error("the ticket has been used")]
    Used,
}

impl Invitation {
    /// True if it is an offer to this peer that can still be taken.
    pub fn is_offer_to(&self, peer: AuthorId, now: WallTime) -> bool {
        self.joiner == Some(peer) && self.used_by.is_none() && self.expires >= now
    }

    /// Whether a joiner may come in, and what to answer. A joiner whose welcome was lost may ask
    /// again with the same ticket.
    pub fn admit(
        &self,
        meeting: &Meeting<'_>,
        proof: &Proof,
        now: WallTime,
    ) -> Result<Proof, TurnedAway> {
        let is_for_it = self.joiner.is_none_or(|joiner| joiner == meeting.joiner);
        if !is_for_it || !meeting.is_joiner(proof) {
            return Err(TurnedAway::Unknown);
        }
        match self.used_by {
            Some(by) if by == meeting.joiner => Ok(meeting.inviter_proof()),
            Some(_) => Err(TurnedAway::Used),
            None if self.expires < now => Err(TurnedAway::Expired),
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
            offer: Offer::Mine,
            expires: WallTime::from_millis(100),
            must_confirm: false,
            used_by: None,
            joiner: None,
        }
    }

    fn meeting(secret: &Secret, joiner: u8) -> Meeting<'_> {
        let nonce = Nonce::from_bytes([9; 16]);
        Meeting { secret, inviter: author(1), joiner: author(joiner), nonce }
    }

    #[test]
    fn both_sides_prove_the_secret_and_see_one_code() {
        let invitation = invitation();
        let met = meeting(&invitation.secret, 2);
        let now = WallTime::from_millis(50);
        let answer = invitation.admit(&met, &met.joiner_proof(), now).unwrap();
        assert!(met.is_inviter(&answer));
        assert_eq!(met.code().len(), 7);
        assert_ne!(met.code(), meeting(&invitation.secret, 3).code());
        // The proofs are not each other's.
        assert!(!met.is_inviter(&met.joiner_proof()));
    }

    #[test]
    fn wrong_late_stolen_and_used_tickets_are_turned_away() {
        let invitation = invitation();
        let (early, late) = (WallTime::from_millis(50), WallTime::from_millis(101));
        let met = meeting(&invitation.secret, 2);
        let wrong = Secret::from_bytes([8; 16]);
        let forged = meeting(&wrong, 2).joiner_proof();
        assert_eq!(invitation.admit(&met, &forged, early), Err(TurnedAway::Unknown));
        // A proof that was overheard is worth nothing to anyone else.
        let thief = meeting(&invitation.secret, 3);
        assert_eq!(invitation.admit(&thief, &met.joiner_proof(), early), Err(TurnedAway::Unknown));
        assert_eq!(invitation.admit(&met, &met.joiner_proof(), late), Err(TurnedAway::Expired));
        let used = Invitation { used_by: Some(author(2)), ..invitation.clone() };
        assert!(used.admit(&met, &met.joiner_proof(), late).is_ok());
        assert_eq!(used.admit(&thief, &thief.joiner_proof(), early), Err(TurnedAway::Used));
    }

    #[test]
    fn an_offer_to_one_peer_admits_that_peer_alone() {
        let offered = Invitation { joiner: Some(author(2)), ..invitation() };
        let now = WallTime::from_millis(50);
        let admit = |joiner| {
            let met = meeting(&offered.secret, joiner);
            offered.admit(&met, &met.joiner_proof(), now).map(|_| ())
        };
        assert_eq!((admit(2), admit(3)), (Ok(()), Err(TurnedAway::Unknown)));
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
    fn an_address_is_one_word_whatever_a_stranger_says() {
        let words = ["/ip6/fe80::1/tcp/1", "/dns4/xn--gre-6ka8i.example.org/tcp/7700/p2p/12D3Koo"];
        let forged = ["x\nstate  another machine of yours", "a b", "a\u{3164}b", "a\u{202E}b"];
        let addresses = words.iter().chain(&forged).map(|one| (*one).to_owned()).collect();
        assert_eq!(Card { name: String::new(), addresses }.cut().addresses, words);
    }

    #[test]
    fn what_is_said_of_bytes_that_are_no_ask_stays_on_one_line() {
        let said = Ask::decode(b"\xa3x\ny").unwrap_err().to_string();
        assert!(said.contains("x y"), "{said}");
    }
}
