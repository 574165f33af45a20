//! The store as the state machine reads it.
//!
//! Reads are arguments of the machine. The node implements [`View`] over a snapshot of its store; a
//! simulation does the same, because it runs whole nodes.

use super::message::{ErasureReceipt, OutboxCursor};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;

/// The store could not be read, or not yet for this peer. The machine abandons the current work and
/// retries later; it never treats a failed read as an empty result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The store cannot be read.")]
pub struct StoreUnavailable;

/// The content of an outbox row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxTarget {
    /// A record to send.
    Record(Digest),
    /// A record that the peer itself once sent. Only its name is sent, because the peer lacks it
    /// only if its store has since been replaced by an older copy.
    Returned(Digest),
    /// The entry is released from here on.
    Opened(EntryId),
    /// The entry is no longer released.
    Ended(EntryId),
    /// The proof that this author equivocated.
    Proof(AuthorId),
}

/// A record in a comparison. Comparisons sort by stamp, so that recent changes are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedRecord {
    /// The stamp in the record's header.
    pub stamp: u64,
    /// Identifies the record.
    pub digest: Digest,
}

/// The origin of an offered record. A peer chooses its store id itself, so the peer is part of the
/// key: a peer that claims another's store id must not speak for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offerer {
    /// The peer that offers it.
    pub peer: AuthorId,
    /// The peer's store it comes from.
    pub store: StoreId,
}

/// Read access to the node's store.
pub trait StoreAccess {
    /// Id of this node's store.
    fn store(&self) -> StoreId;
    /// This node's current epoch.
    fn epoch(&self) -> Boot;
    /// This node's wall clock.
    fn now(&self) -> WallTime;
    /// True if the operator has approved the peer.
    fn is_approved(&self, peer: AuthorId) -> bool;
    /// True if the peer is another node of the same person; no budget applies to it.
    fn is_mine(&self, peer: AuthorId) -> bool;
    /// Last position of the peer's outbox.
    fn outbox_head(&self, peer: AuthorId) -> Result<u64, StoreUnavailable>;
    /// Rows of the peer's outbox after a position, in order.
    fn outbox(
        &self,
        peer: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, OutboxTarget)>, StoreUnavailable>;
    /// The cursor for a position of the peer's outbox; `None` if no epoch known to this store
    /// reached that position.
    fn cursor_at(
        &self,
        peer: AuthorId,
        position: u64,
    ) -> Result<Option<OutboxCursor>, StoreUnavailable>;
    /// A record, and the distance of its author from this node; `None` if the peer may not have it.
    fn record(
        &self,
        peer: AuthorId,
        digest: Digest,
    ) -> Result<Option<(u8, RawRecord)>, StoreUnavailable>;
    /// The records of a list that the peer may have, in full.
    fn records_for(
        &self,
        peer: AuthorId,
        digests: &[Digest],
    ) -> Result<Vec<RawRecord>, StoreUnavailable>;
    /// A proof of equivocation, if the peer may have the entry that it names.
    fn proof(&self, peer: AuthorId, author: AuthorId)
    -> Result<Option<RawProof>, StoreUnavailable>;
    /// True if a record is held in full, waits in quarantine after the same peer sent it, or was
    /// refused for this offerer for a reason that still holds.
    fn knows(&self, digest: Digest, offer: Offerer) -> Result<bool, StoreUnavailable>;
    /// True if a record was refused for this offerer for a reason that still holds.
    fn is_refused(&self, digest: Digest, offer: Offerer) -> Result<bool, StoreUnavailable>;
    /// This node's position in the peer's outbox.
    fn cursor(&self, peer: AuthorId) -> Result<Option<OutboxCursor>, StoreUnavailable>;
    /// The records that both sides should hold, given the entries each has released to the other,
    /// and the number of rows read to find them; a large row counts as several.
    fn comparable(&self, with: Offerer) -> Result<(Vec<ComparedRecord>, u64), StoreUnavailable>;
    /// The receipts about erased entries that the peer has yet to receive.
    fn receipts(&self, peer: AuthorId) -> Result<Vec<ErasureReceipt>, StoreUnavailable>;
}
