//! Row types of the tables about peers.

use super::super::row_types::Seq;
use super::super::tables::{key, part};
use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, WorkspaceId};
use klnode_crdt::signing_key::Signature;
use klnode_crdt::time::{Day, WallTime};
use klnode_federation::proto::entry_filter::PeerFilter;
use klnode_federation::proto::ticket::{JoinOffer, Ticket};
use klnode_federation::proto::{self, Offerer, OutboxTarget};
use serde::{Deserialize, Serialize};

/// The operator's decision about another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PeerApproval {
    /// The node has asked and waits for a decision.
    #[default]
    #[serde(rename = "w")]
    Waiting,
    /// The node may connect and exchange records.
    #[serde(rename = "a")]
    Approved,
    /// The node was refused or removed. The row is kept so that entries it holds can still be
    /// forgotten.
    #[serde(rename = "r")]
    Refused,
}

/// Another node, with this operator's settings for it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PeerRow {
    /// The name it chose, or the one the operator gave it.
    #[serde(rename = "n")]
    pub name: String,
    /// The addresses it announces.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
    /// The address at which this node reached it when joining, such as a host name or a router.
    /// Used in addition to the announced ones.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<String>,
    /// Whether it may exchange records.
    #[serde(rename = "a")]
    pub approval: PeerApproval,
    /// Whether it is another node of the same person.
    #[serde(rename = "i", default)]
    pub is_mine: bool,
    /// Whether its records are refused, except for retractions and tombstones.
    #[serde(rename = "b", default)]
    pub is_blocked: bool,
    /// When it became known.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// Whether this node asked to join it and the operator there had not decided yet.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_asked: bool,
    /// The role it gets when it is approved.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<JoinOffer>,
    /// The six-digit code that both operators compare.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The filter for outgoing records; `None` means the one from the configuration.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<PeerFilter>,
    /// The filter for incoming records; `None` means the one from the configuration.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<PeerFilter>,
    /// When both nodes last held the same records.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub equal_at: Option<WallTime>,
    /// The day on which the operator vouched for it. Local: never sent.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Day>,
    /// Workspaces in which it offers this node membership.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<OfferedRow>,
}

/// Membership in a workspace that a peer offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedRow {
    /// The ticket with which the offer is accepted.
    #[serde(rename = "k")]
    pub ticket: String,
    /// When the offer arrived.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// Whether the operator declined it.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_declined: bool,
}

impl OfferedRow {
    /// The decoded ticket; `None` if it is invalid.
    pub fn read(&self) -> Option<Ticket> {
        self.ticket.parse().ok()
    }

    /// The name of the ticket.
    pub fn name(&self) -> Option<[u8; 16]> {
        self.read().map(|ticket| ticket.secret.name())
    }

    /// The workspace of the offer.
    pub fn workspace(&self) -> Option<WorkspaceId> {
        match self.read()?.offer {
            JoinOffer::Member(id, _) => Some(id),
            JoinOffer::Mine => None,
        }
    }

    /// Whether the offer has not expired.
    pub fn is_good(&self, now: WallTime) -> bool {
        self.read().is_some_and(|ticket| ticket.expires >= now)
    }
}

impl PeerRow {
    /// The addresses to try, the one used for joining first.
    pub fn places(&self) -> Vec<String> {
        let said = self.addresses.iter().filter(|one| Some(*one) != self.joined_at.as_ref());
        self.joined_at.iter().chain(said).cloned().collect()
    }

    /// Whether the operator still has to decide: about its approval or, if it is approved, about
    /// the role it was offered.
    pub fn is_waiting(&self) -> bool {
        match self.approval {
            PeerApproval::Waiting => true,
            PeerApproval::Approved => self.offer.is_some(),
            PeerApproval::Refused => false,
        }
    }

    /// The day on which the operator vouched for it, if the vouch is still valid: the node is
    /// approved, not blocked, and not of the same person, whose nodes need none.
    pub fn standing_vouch(&self) -> Option<Day> {
        let stands = self.approval == PeerApproval::Approved && !self.is_blocked && !self.is_mine;
        self.vouched.filter(|_| stands)
    }

    /// Whether it counts as this person: approved as another node of the same person, and not
    /// blocked, as a lost one would be.
    pub fn counts_as_mine(&self) -> bool {
        self.is_mine && self.approval == PeerApproval::Approved && !self.is_blocked
    }
}

/// A shared workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRow {
    /// The local name.
    #[serde(rename = "n")]
    pub name: String,
    /// When it became known.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// Whether new entries go there by default.
    #[serde(rename = "u", default)]
    pub is_current: bool,
    /// The owner that the workspace id proves, once known.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AuthorId>,
}

/// The state of a release in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReleaseState {
    /// No record of the entry has gone this way.
    #[default]
    #[serde(rename = "n")]
    Never,
    /// All records of the entry may pass.
    #[serde(rename = "o")]
    Open,
    /// Only retractions and tombstones of the entry pass.
    #[serde(rename = "x")]
    Ended,
}

/// The release of an entry between this node and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReleaseRow {
    /// From this node to the peer.
    #[serde(rename = "o")]
    pub out: ReleaseState,
    /// From the peer to this node.
    #[serde(rename = "i")]
    pub back: ReleaseState,
    /// Since when this state holds.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// Whether the peer announced its release before this node held any record of the entry. Such
    /// rows are counted.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foretold: bool,
    /// Whether the inbound state is inferred from deliveries, without a statement of the peer.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_untold: bool,
    /// Position of the opening notice in the outbox.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<u64>,
    /// Position of the ending notice in the outbox.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
}

impl ReleaseRow {
    /// Whether any record of the entry has ever passed, in either direction.
    pub fn has_passed(&self) -> bool {
        self.out != ReleaseState::Never || self.back != ReleaseState::Never
    }

    /// Whether the release is open in either direction.
    pub fn is_open(&self) -> bool {
        self.out == ReleaseState::Open || self.back == ReleaseState::Open
    }
}

/// A refused header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRow {
    /// The encoded header.
    #[serde(rename = "h", with = "serde_bytes")]
    pub header: Vec<u8>,
    /// The signature of the header.
    #[serde(rename = "s")]
    pub signature: Signature,
    /// The header's counter; the highest refusal of a slot is kept.
    #[serde(rename = "c")]
    pub counter: u64,
    /// The record's digest, the tie-break between equal counters.
    #[serde(rename = "d")]
    pub digest: Digest,
    /// The reason of the refusal.
    #[serde(rename = "y")]
    pub reason: String,
    /// Whether the refusal is provisional, because the entry or its authors were unknown here; the
    /// record is accepted once they are known.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// An outcome of another author's text on this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// The day of the outcome.
    #[serde(rename = "d")]
    pub day: Day,
    /// Whether the text helped.
    #[serde(rename = "s")]
    pub is_success: bool,
    /// The entry with the text.
    #[serde(rename = "e")]
    pub entry: EntryId,
    /// The task in which it was observed, if any.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Digest of the text. An outcome of one text says nothing about its replacement.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// Whether other authors wrote parts of the text.
    #[serde(rename = "j", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_joint: bool,
}

impl OutcomeRow {
    /// Whether the outcome counts for the author: the success of a text of several authors credits
    /// none of them.
    pub fn is_telling(&self) -> bool {
        !(self.is_success && self.is_joint)
    }
}

/// The exchange with a peer about the erasure of a forgotten entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// Whether the peer delivered the tombstone and is owed a receipt.
    #[serde(rename = "u", default)]
    pub is_upstream: bool,
    /// Whether a receipt is due that the peer has not received yet.
    #[serde(rename = "x", default)]
    pub is_due: bool,
    /// When the peer stated that it has erased the entry.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<WallTime>,
    /// How many other nodes it says it has notified.
    #[serde(rename = "n", default)]
    pub told: u32,
    /// How many of those have stated that they erased it.
    #[serde(rename = "m", default)]
    pub acknowledged: u32,
}

/// How far a consumer has read a feed or a peer's outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedCursor {
    /// The store that was read.
    pub store: StoreId,
    /// The epoch of that store.
    pub epoch: u64,
    /// All rows up to this position have been applied.
    pub position: Seq,
}

impl FeedCursor {
    pub(super) fn to_bytes(self) -> [u8; 32] {
        let (epoch, position) = (self.epoch.to_be_bytes(), self.position.0.to_be_bytes());
        key(&[self.store.as_bytes(), &epoch, &position])
    }

    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self {
            store: StoreId::from_bytes(part(bytes, 0)),
            epoch: u64::from_be_bytes(part(bytes, 16)),
            position: Seq(u64::from_be_bytes(part(bytes, 24))),
        }
    }
}

impl From<proto::message::OutboxCursor> for FeedCursor {
    fn from(cursor: proto::message::OutboxCursor) -> Self {
        Self { store: cursor.store, epoch: cursor.epoch.0, position: Seq(cursor.position) }
    }
}

impl From<FeedCursor> for proto::message::OutboxCursor {
    fn from(cursor: FeedCursor) -> Self {
        Self { store: cursor.store, epoch: Boot(cursor.epoch), position: cursor.position.0 }
    }
}

/// The key under which refusals of an offer are stored.
pub(super) fn offerer_key(offerer: Offerer) -> [u8; 16] {
    FieldHasher::new(Context::Slot)
        .field(offerer.peer.as_bytes())
        .field(offerer.store.as_bytes())
        .finish_short()
}

/// The state of one record for one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedRow {
    /// Whether the peer delivered the record.
    pub(super) is_brought: bool,
    /// The record's position in the peer's outbox.
    pub(super) position: Option<u64>,
}

/// Bit set in the stored position of a delivered record.
const BROUGHT: u64 = 1 << 63;

impl QueuedRow {
    /// Zero means delivered and in no outbox, since positions begin with one.
    pub(super) fn to_bytes(self) -> [u8; 8] {
        let value = match (self.is_brought, self.position) {
            (_, None) => 0,
            (false, Some(position)) => position,
            (true, Some(position)) => position | BROUGHT,
        };
        value.to_be_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; 8]) -> Self {
        let value = u64::from_be_bytes(bytes);
        let position = Some(value & !BROUGHT).filter(|position| *position > 0);
        Self { is_brought: value == 0 || value & BROUGHT != 0, position }
    }
}

/// Encodes an outbox row.
pub(super) fn outgoing_bytes(row: OutboxTarget) -> [u8; 33] {
    let (kind, name): (u8, &[u8]) = match &row {
        OutboxTarget::Record(digest) => (0, digest.as_bytes()),
        OutboxTarget::Opened(entry) => (1, entry.as_bytes()),
        OutboxTarget::Ended(entry) => (2, entry.as_bytes()),
        OutboxTarget::Proof(author) => (3, author.as_bytes()),
        OutboxTarget::Returned(digest) => (4, digest.as_bytes()),
    };
    let mut bytes = [0; 33];
    bytes[0] = kind;
    bytes[1..=name.len()].copy_from_slice(name);
    bytes
}

/// Decodes an outbox row; `None` if a later version wrote it.
pub(super) fn outgoing(bytes: &[u8; 33]) -> Option<OutboxTarget> {
    Some(match bytes[0] {
        0 => OutboxTarget::Record(Digest::from_bytes(part(bytes, 1))),
        1 => OutboxTarget::Opened(EntryId::from_bytes(part(bytes, 1))),
        2 => OutboxTarget::Ended(EntryId::from_bytes(part(bytes, 1))),
        3 => OutboxTarget::Proof(AuthorId::from_bytes(part(bytes, 1))),
        4 => OutboxTarget::Returned(Digest::from_bytes(part(bytes, 1))),
        _ => return None,
    })
}
