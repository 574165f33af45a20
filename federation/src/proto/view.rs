//! What the replicator reads: the node's store, as far as the protocol concerns it.
//!
//! Reads are arguments. The node implements [`View`] over a snapshot of its store; a simulation
//! does the same, since it runs whole nodes.

use super::message::{Cursor, Receipt};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;

/// The store could not be read, or not yet for this peer. What was being done is left and taken up again
/// later; a read that fails is never taken for one that finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store cannot be read")]
pub struct Unreadable;

/// What a row of an outbox names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A record.
    Record(Digest),
    /// A record that the peer itself once brought. It is named alone: the peer lacks it only if its
    /// store has become an older one since.
    Returned(Digest),
    /// The entry is released from here on.
    Opened(EntryId),
    /// The entry is released no longer.
    Ended(EntryId),
    /// The proof that an author equivocated.
    Proof(AuthorId),
}

/// A record in a comparison: sorted by stamp, so that recent changes are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Comparable {
    /// Its header's stamp.
    pub stamp: u64,
    /// Its digest.
    pub digest: Digest,
}

/// Where a record is offered. A store is called what its peer says: one that takes another's name for
/// its own must not speak for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offerer {
    /// By whom.
    pub peer: AuthorId,
    /// Out of which store.
    pub store: StoreId,
}

/// The node's side of the protocol, to read from.
pub trait View {
    /// This node's store.
    fn store(&self) -> StoreId;
    /// This node's epoch.
    fn epoch(&self) -> Boot;
    /// This node's clock.
    fn now(&self) -> WallTime;
    /// Whether the operator has approved the peer.
    fn is_approved(&self, peer: AuthorId) -> bool;
    /// Whether the peer is another node of the same person: no budget applies.
    fn is_mine(&self, peer: AuthorId) -> bool;
    /// The last position of the peer's outbox.
    fn outbox_head(&self, peer: AuthorId) -> Result<u64, Unreadable>;
    /// Rows of the peer's outbox after a position, in order.
    fn outbox(
        &self,
        peer: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, Outgoing)>, Unreadable>;
    /// The cursor that stands for a position of the peer's outbox; none if that was never reached
    /// in a life this store remembers.
    fn cursor_at(&self, peer: AuthorId, position: u64) -> Result<Option<Cursor>, Unreadable>;
    /// A record that the peer may have, and how far its author is from here.
    fn record(&self, peer: AuthorId, digest: Digest)
    -> Result<Option<(u8, RawRecord)>, Unreadable>;
    /// The records of a list that the peer may have, whole.
    fn records_for(&self, peer: AuthorId, digests: &[Digest])
    -> Result<Vec<RawRecord>, Unreadable>;
    /// A proof of equivocation that the peer may have: it names an entry.
    fn proof(&self, peer: AuthorId, author: AuthorId) -> Result<Option<RawProof>, Unreadable>;
    /// Whether a record is held whole, was brought by the peer before and waits in quarantine, or was
    /// refused where it is offered, for a reason that still stands.
    fn knows(&self, digest: Digest, offer: Offerer) -> Result<bool, Unreadable>;
    /// Whether a record was refused where it is offered, for a reason that still stands.
    fn is_refused(&self, digest: Digest, offer: Offerer) -> Result<bool, Unreadable>;
    /// How far this node has read the peer's outbox.
    fn cursor(&self, peer: AuthorId) -> Result<Option<Cursor>, Unreadable>;
    /// The records that both sides should hold, by what each has released to the other; and how many
    /// rows were gone through to find them, a large one counted as several.
    fn comparable(&self, with: Offerer) -> Result<(Vec<Comparable>, u64), Unreadable>;
    /// What is to be told to the peer about erased entries.
    fn receipts(&self, peer: AuthorId) -> Result<Vec<Receipt>, Unreadable>;
}
