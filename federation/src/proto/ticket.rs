//! A ticket, which one operator gives to another so that two nodes can pair.
//!
//! It contains the inviting node, its addresses, the role of the joiner, an expiry time and a
//! single-use secret. The joiner proves knowledge of the secret to the inviter and never sends it.
//! A ticket is text that survives mail and chat: one word of lower-case letters and digits with a
//! checksum.

use super::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The role the joiner gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinOffer {
    /// Another node of the same person.
    #[serde(rename = "mine")]
    Mine,
    /// A member of a workspace: its id and the inviter's name for it.
    #[serde(rename = "member")]
    Member(WorkspaceId, String),
}

/// The single-use secret of a ticket.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(serde_bytes::ByteArray<16>);

impl Secret {
    /// Wraps 16 random bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes.into())
    }

    /// The ticket's name, a hash that does not reveal the secret.
    pub fn name(&self) -> [u8; 16] {
        let mut name = [0; 16];
        name.copy_from_slice(&self.keyed("name", &[]).as_bytes()[..16]);
        name
    }

    /// A keyed hash of these parts for one purpose, which only the holders of the secret can
    /// compute.
    pub(super) fn keyed(&self, purpose: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key("klnode v1 pairing");
        hasher.update(&self.0[..]);
        for part in [&[purpose.as_bytes()], parts].concat() {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An invitation as it is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    #[serde(rename = "v")]
    version: u8,
    /// The inviting node.
    #[serde(rename = "a")]
    pub inviter: AuthorId,
    /// Addresses at which the inviter can be reached.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
    /// The role the joiner gets.
    #[serde(rename = "o")]
    pub offer: JoinOffer,
    /// The ticket cannot be used after this time.
    #[serde(rename = "t")]
    pub expires: WallTime,
    /// Single-use secret that the joiner proves to know.
    #[serde(rename = "s")]
    pub secret: Secret,
}

/// Why a text is not a valid ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTicket {
    /// The text does not start like a ticket.
    #[error("This is not a ticket: it does not begin with `{PREFIX}`.")]
    NotATicket,
    /// The checksum is wrong: a character was lost or changed.
    #[error("The ticket is damaged. Copy it again in full.")]
    Damaged,
    /// A later version of klnode issued the ticket.
    #[error("The ticket was made by a newer klnode (version {0}). Upgrade this node.")]
    Newer(u8),
}

const PREFIX: &str = "klnode1";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: 8 * 1024, items_max: 256 };

impl Ticket {
    /// Creates a ticket of the current version. Addresses beyond the limit are dropped.
    pub fn new(
        inviter: AuthorId,
        addresses: &[String],
        offer: JoinOffer,
        expires: WallTime,
        secret: Secret,
    ) -> Self {
        let fit = addresses.iter().filter(|address| address.len() <= ADDRESS_BYTES_MAX);
        let addresses = fit.take(ADDRESSES_MAX).cloned().collect();
        Self { version: VERSION, inviter, addresses, offer, expires, secret }
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM_BYTES]);
    sum
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = wire::encode(self);
        bytes.extend(checksum(&bytes));
        let text = data_encoding::BASE32_NOPAD.encode(&bytes).to_lowercase();
        write!(f, "{PREFIX}{text}")
    }
}

/// True if a workspace may have this name: one plain word that is not another workspace's id.
pub fn is_workspace_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let characters = name.chars().count();
    (1..=NAME_CHARS_MAX).contains(&characters)
        && name.starts_with(char::is_alphanumeric)
        && name.chars().all(fits)
        && WorkspaceId::from_hex(name).is_none()
}

impl FromStr for Ticket {
    type Err = BadTicket;

    fn from_str(text: &str) -> Result<Self, BadTicket> {
        let text: String = text.split_whitespace().collect::<String>().to_lowercase();
        let body = text.strip_prefix(PREFIX).ok_or(BadTicket::NotATicket)?.to_uppercase();
        let bytes = data_encoding::BASE32_NOPAD.decode(body.as_bytes());
        let bytes = bytes.map_err(|_| BadTicket::Damaged)?;
        let at = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(BadTicket::Damaged)?;
        let (body, sum) = bytes.split_at(at);
        if checksum(body) != *sum {
            return Err(BadTicket::Damaged);
        }
        let ticket: Self = wire::decode(body, BOUNDS).map_err(|_| BadTicket::Damaged)?;
        let fits = |address: &String| address.len() <= ADDRESS_BYTES_MAX;
        let is_sound = ticket.addresses.len() <= ADDRESSES_MAX
            && ticket.addresses.iter().all(fits)
            && match &ticket.offer {
                JoinOffer::Mine => true,
                JoinOffer::Member(_, name) => is_workspace_name(name),
            };
        match (ticket.version, is_sound) {
            (VERSION, true) => Ok(ticket),
            (VERSION, false) => Err(BadTicket::Damaged),
            (newer, _) => Err(BadTicket::Newer(newer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket::new(
            AuthorId::from_bytes([1; 32]),
            &["/ip4/192.0.2.1/tcp/4001".to_owned()],
            JoinOffer::Member(WorkspaceId::from_bytes([2; 16]), "team".into()),
            WallTime::from_millis(1_000),
            Secret::from_bytes([3; 16]),
        )
    }

    #[test]
    fn a_ticket_parses_from_upper_case_and_broken_lines() {
        let text = ticket().to_string();
        assert_eq!(text.parse(), Ok(ticket()));
        let (one, two) = text.split_at(30);
        assert_eq!(format!("  {}\n{two} ", one.to_uppercase()).parse(), Ok(ticket()));
    }

    #[test]
    fn every_changed_letter_is_detected() {
        let text = ticket().to_string();
        for at in PREFIX.len()..text.len() {
            let mut letters: Vec<char> = text.chars().collect();
            letters[at] = if letters[at] == 'a' { 'b' } else { 'a' };
            let changed: String = letters.into_iter().collect();
            assert!(changed.parse::<Ticket>().is_err(), "{at}");
        }
        assert_eq!("hello".parse::<Ticket>(), Err(BadTicket::NotATicket));
        assert_eq!(PREFIX.parse::<Ticket>(), Err(BadTicket::Damaged));
    }

    #[test]
    fn a_workspace_name_is_one_word_that_starts_with_a_letter_or_digit() {
        for right in ["team", "2nd-team", "Größe", "a.b_c-"] {
            assert!(is_workspace_name(right), "{right}");
        }
        let (long, id) = ("x".repeat(NAME_CHARS_MAX + 1), "ab".repeat(16));
        for wrong in ["", "-x", "--help", "_x", ".x", "a b", "a/b", &long, &id] {
            assert!(!is_workspace_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn debug_output_of_a_ticket_hides_the_secret() {
        let secret = data_encoding::HEXLOWER.encode(&[3; 16]);
        let shown = format!("{:?}", ticket());
        assert!(!shown.contains(&secret) && !shown.contains("[3, 3"));
    }
}
