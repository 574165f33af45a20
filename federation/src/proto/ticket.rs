//! A ticket: what one operator hands to another so that two nodes may pair.
//!
//! It names the inviting node, where it can be reached, what the joiner is to be, until when, and a
//! secret that is good once. The secret is proved to the inviter, never sent. A ticket is text that
//! survives mail and chat: one word of lower-case letters and digits, with a checksum.

use super::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, NAME_CHARS_MAX};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_crdt::wire::{self, bounded::Bounds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the joiner is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Offer {
    /// Another node of the same person.
    #[serde(rename = "mine")]
    Mine,
    /// A member of a workspace: its id and what the inviter calls it.
    #[serde(rename = "member")]
    Member(WorkspaceId, String),
}

/// The secret of a ticket; good once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(serde_bytes::ByteArray<16>);

impl Secret {
    /// From random bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes.into())
    }

    /// What the ticket is called without giving the secret away.
    pub fn name(&self) -> [u8; 16] {
        let mut name = [0; 16];
        name.copy_from_slice(&self.keyed("name", &[]).as_bytes()[..16]);
        name
    }

    /// What only the two who know the secret can say about these parts, for one purpose.
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

/// An invitation, as it is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    #[serde(rename = "v")]
    version: u8,
    /// The inviting node.
    #[serde(rename = "a")]
    pub inviter: AuthorId,
    /// Where it can be reached.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
    /// What the joiner is to be.
    #[serde(rename = "o")]
    pub offer: Offer,
    /// Until when it is good.
    #[serde(rename = "t")]
    pub expires: WallTime,
    /// Good once.
    #[serde(rename = "s")]
    pub secret: Secret,
}

/// Why a text is no ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTicket {
    /// Something else.
    #[error("read the ticket: it does not begin with `{PREFIX}`")]
    NotATicket,
    /// A letter was lost or changed on the way.
    #[error("read the ticket: it is damaged; copy it again, whole")]
    Damaged,
    /// A later version wrote it.
    #[error("read the ticket: it was made by a newer klnode (version {0})")]
    Newer(u8),
}

const PREFIX: &str = "klnode1";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
const BOUNDS: Bounds = Bounds { bytes_max: 8 * 1024, items_max: 256 };

impl Ticket {
    /// A ticket of this version. Addresses beyond the limit are left out.
    pub fn new(
        inviter: AuthorId,
        addresses: &[String],
        offer: Offer,
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

/// Whether a workspace may be called so: a word that is shown and typed as it is, and is no id of
/// another.
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
                Offer::Mine => true,
                Offer::Member(_, name) => is_workspace_name(name),
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
            Offer::Member(WorkspaceId::from_bytes([2; 16]), "team".into()),
            WallTime::from_millis(1_000),
            Secret::from_bytes([3; 16]),
        )
    }

    #[test]
    fn a_ticket_reads_back_also_from_upper_case_and_broken_lines() {
        let text = ticket().to_string();
        assert_eq!(text.parse(), Ok(ticket()));
        let (one, two) = text.split_at(30);
        assert_eq!(format!("  {}\n{two} ", one.to_uppercase()).parse(), Ok(ticket()));
    }

    #[test]
    fn every_changed_letter_is_noticed() {
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
    fn a_workspace_is_called_by_a_word_that_begins_with_a_letter_or_digit() {
        for right in ["team", "2nd-team", "Größe", "a.b_c-"] {
            assert!(is_workspace_name(right), "{right}");
        }
        let (long, id) = ("x".repeat(NAME_CHARS_MAX + 1), "ab".repeat(16));
        for wrong in ["", "-x", "--help", "_x", ".x", "a b", "a/b", &long, &id] {
            assert!(!is_workspace_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn printing_a_ticket_for_a_log_shows_no_secret() {
        let secret = data_encoding::HEXLOWER.encode(&[3; 16]);
        let shown = format!("{:?}", ticket());
        assert!(!shown.contains(&secret) && !shown.contains("[3, 3"));
    }
}
