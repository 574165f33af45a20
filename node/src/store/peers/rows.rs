//! Values of the tables that concern peers.

use super::super::rows::Seq;
use super::super::tables::{key, part};
use klnode_crdt::digest::{Context, Fields};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, WorkspaceId};
use klnode_crdt::key::Signature;
use klnode_crdt::time::{Day, WallTime};
use klnode_federation::proto::filter::Filter;
use klnode_federation::proto::ticket::{Offer, Ticket};
use klnode_federation::proto::{self, Offerer, Outgoing};
use serde::{Deserialize, Serialize};

/// What the operator decided about another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Approval {
    /// Has asked, and waits.
    #[default]
    #[serde(rename = "w")]
    Waiting,
    /// May talk.
    #[serde(rename = "a")]
    Approved,
    /// Was told no, or was sent away again: kept so that what it holds can still be forgotten.
    #[serde(rename = "r")]
    Refused,
}

/// Another node, as this one's operator sees it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PeerRow {
    /// What it calls itself, or what the operator calls it.
    #[serde(rename = "n")]
    pub name: String,
    /// Where it says that it is.
    #[serde(rename = "m")]
    pub addresses: Vec<String>,
    /// Where this node found it when it joined, whatever it says itself: by a name, through a router.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<String>,
    /// Whether it may talk.
    #[serde(rename = "a")]
    pub approval: Approval,
    /// Another node of the same person.
    #[serde(rename = "i", default)]
    pub is_mine: bool,
    /// Its records are refused, but for what takes back.
    #[serde(rename = "b", default)]
    pub is_blocked: bool,
    /// Since when it is known.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// This node asked to join it, and the operator there was still to decide.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_asked: bool,
    /// What it becomes when it is approved.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// Six digits that both operators see.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is sent to it; the configuration's where there is none.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Filter>,
    /// What is taken from it; the configuration's where there is none.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Filter>,
    /// When both last held the same.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub equal_at: Option<WallTime>,
    /// The day on which the operator vouched for it. Local: it never leaves this node.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Day>,
    /// Workspaces in which it offers this node membership.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<OfferedRow>,
}

/// Membership that a peer offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedRow {
    /// The ticket with which it is accepted.
    #[serde(rename = "k")]
    pub ticket: String,
    /// When it came.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// The operator has declined it.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_declined: bool,
}

impl OfferedRow {
    /// The ticket, if it can be read.
    pub fn read(&self) -> Option<Ticket> {
        self.ticket.parse().ok()
    }

    /// The ticket's name.
    pub fn name(&self) -> Option<[u8; 16]> {
        self.read().map(|ticket| ticket.secret.name())
    }

    /// The workspace.
    pub fn workspace(&self) -> Option<WorkspaceId> {
        match self.read()?.offer {
            Offer::Member(id, _) => Some(id),
            Offer::Mine => None,
        }
    }

    /// True until it expires.
    pub fn is_good(&self, now: WallTime) -> bool {
        self.read().is_some_and(|ticket| ticket.expires >= now)
    }
}

impl PeerRow {
    /// Where it is tried.
    pub fn places(&self) -> Vec<String> {
        let said = self.addresses.iter().filter(|one| Some(*one) != self.joined_at.as_ref());
        self.joined_at.iter().chain(said).cloned().collect()
    }

    /// Whether the operator has still to decide about it: whether it may talk or, where it may already,
    /// whether it is what it was offered to be.
    pub fn is_waiting(&self) -> bool {
        match self.approval {
            Approval::Waiting => true,
            Approval::Approved => self.offer.is_some(),
            Approval::Refused => false,
        }
    }

    /// The day on which the operator vouched for it, if that still stands: it may talk, is not blocked,
    /// and is no machine of the same person, which needs none.
    pub fn standing_vouch(&self) -> Option<Day> {
        let stands = self.approval == Approval::Approved && !self.is_blocked && !self.is_mine;
        self.vouched.filter(|_| stands)
    }

    /// Whether it speaks for this node's person: approved as another node of the same person, and
    /// not blocked, as one that was lost is.
    pub fn counts_as_mine(&self) -> bool {
        self.is_mine && self.approval == Approval::Approved && !self.is_blocked
    }
}

/// What a workspace is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRow {
    /// What it is called here.
    #[serde(rename = "n")]
    pub name: String,
    /// Since when it is known.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// New entries go there, unless they say otherwise.
    #[serde(rename = "u", default)]
    pub is_current: bool,
    /// Whom its id proves to own it, once that is known.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AuthorId>,
}

/// How far a release goes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Way {
    /// Nothing of the entry has gone this way.
    #[default]
    #[serde(rename = "n")]
    Never,
    /// All of it may.
    #[serde(rename = "o")]
    Open,
    /// No more of it does, but for what takes back.
    #[serde(rename = "x")]
    Ended,
}

/// What passes of an entry between this node and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReleaseRow {
    /// From here to the peer.
    #[serde(rename = "o")]
    pub out: Way,
    /// From the peer to here.
    #[serde(rename = "i")]
    pub back: Way,
    /// Since when it is so.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// The peer told of its release before anything of the entry was here: such rows are counted.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foretold: bool,
    /// That nothing comes back was gathered from what the peer brought: it has not said so.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_untold: bool,
    /// Where the outbox says that it was opened,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<u64>,
    /// and that it has ended.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
}

impl ReleaseRow {
    /// Whether anything of the entry has ever passed, either way.
    pub fn has_passed(&self) -> bool {
        self.out != Way::Never || self.back != Way::Never
    }

    /// Whether all of the entry passes now, either way.
    pub fn is_open(&self) -> bool {
        self.out == Way::Open || self.back == Way::Open
    }
}

/// A header that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRow {
    /// Its bytes.
    #[serde(rename = "h", with = "serde_bytes")]
    pub header: Vec<u8>,
    /// Its signature.
    #[serde(rename = "s")]
    pub signature: Signature,
    /// Its counter, which decides which refusal of a slot is kept.
    #[serde(rename = "c")]
    pub counter: u64,
    /// Its record's digest, which decides between equal counters.
    #[serde(rename = "d")]
    pub digest: Digest,
    /// Why.
    #[serde(rename = "y")]
    pub reason: String,
    /// Its entry was unknown here, or who has a say there: it is heard once that is known.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// What a text of another author led to here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// When.
    #[serde(rename = "d")]
    pub day: Day,
    /// Whether it helped.
    #[serde(rename = "s")]
    pub is_success: bool,
    /// Which entry's text.
    #[serde(rename = "e")]
    pub entry: EntryId,
    /// In which task.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Which text of it: what was observed of one says nothing about the one that replaces it.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// Others wrote parts of it.
    #[serde(rename = "j", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_joint: bool,
}

impl OutcomeRow {
    /// Whether it says something about the author: that a text of several helped is nobody's credit.
    pub fn is_telling(&self) -> bool {
        !(self.is_success && self.is_joint)
    }
}

/// What is known between this node and a peer about a forgotten entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// The peer brought the tombstone: it is to hear of what was done.
    #[serde(rename = "u", default)]
    pub is_upstream: bool,
    /// There is something the peer has not heard yet.
    #[serde(rename = "x", default)]
    pub is_due: bool,
    /// When the peer said that it has erased the entry.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<WallTime>,
    /// How many others it says it has told.
    #[serde(rename = "n", default)]
    pub told: u32,
    /// How many of these have said that they erased it.
    #[serde(rename = "m", default)]
    pub acknowledged: u32,
}

/// How far a consumer has read a feed, or a peer's outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Whose.
    pub store: StoreId,
    /// In which epoch of it.
    pub epoch: u64,
    /// Everything up to here has been applied.
    pub position: Seq,
}

impl Cursor {
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

impl From<proto::message::Cursor> for Cursor {
    fn from(cursor: proto::message::Cursor) -> Self {
        Self { store: cursor.store, epoch: cursor.epoch.0, position: Seq(cursor.position) }
    }
}

impl From<Cursor> for proto::message::Cursor {
    fn from(cursor: Cursor) -> Self {
        Self { store: cursor.store, epoch: Boot(cursor.epoch), position: cursor.position.0 }
    }
}

/// The key under which stands what was refused from somebody.
pub(super) fn offerer_key(offerer: Offerer) -> [u8; 16] {
    Fields::new(Context::Slot)
        .field(offerer.peer.as_bytes())
        .field(offerer.store.as_bytes())
        .finish_short()
}

/// What is known of one record and one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedRow {
    /// The peer brought it.
    pub(super) is_brought: bool,
    /// Where it stands in the peer's outbox.
    pub(super) position: Option<u64>,
}

/// Set beside the position of what a peer brought.
const BROUGHT: u64 = 1 << 63;

impl QueuedRow {
    /// Zero is what was brought and stands nowhere: positions begin with one.
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

/// The bytes of a row of an outbox.
pub(super) fn outgoing_bytes(row: Outgoing) -> [u8; 33] {
    let (kind, name): (u8, &[u8]) = match &row {
        Outgoing::Record(digest) => (0, digest.as_bytes()),
        Outgoing::Opened(entry) => (1, entry.as_bytes()),
        Outgoing::Ended(entry) => (2, entry.as_bytes()),
        Outgoing::Proof(author) => (3, author.as_bytes()),
        Outgoing::Returned(digest) => (4, digest.as_bytes()),
    };
    let mut bytes = [0; 33];
    bytes[0] = kind;
    bytes[1..=name.len()].copy_from_slice(name);
    bytes
}

/// A row of an outbox from its bytes; none if a later version wrote it.
pub(super) fn outgoing(bytes: &[u8; 33]) -> Option<Outgoing> {
    Some(match bytes[0] {
        0 => Outgoing::Record(Digest::from_bytes(part(bytes, 1))),
        1 => Outgoing::Opened(EntryId::from_bytes(part(bytes, 1))),
        2 => Outgoing::Ended(EntryId::from_bytes(part(bytes, 1))),
        3 => Outgoing::Proof(AuthorId::from_bytes(part(bytes, 1))),
        4 => Outgoing::Returned(Digest::from_bytes(part(bytes, 1))),
        _ => return None,
    })
}
