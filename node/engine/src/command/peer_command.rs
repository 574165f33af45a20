//! Commands about peers.
//!
//! Separate from `peer_commands`, which carries them out.

use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::Offerer;
use klnode_federation::proto::message::ErasureReceipt as Erased;
use klnode_federation::proto::pairing::Invitation;
use klnode_store::peers::row_types::{FeedCursor, PeerRow, RefusalRow, WorkspaceRow};
use std::collections::BTreeSet;

/// A change of the data about peers.
#[derive(Clone, Debug)]
pub enum PeerCommand {
    /// Stores a peer's row after an operator's decision or a change of its details.
    Put(AuthorId, Box<PeerRow>),
    /// Notes when a peer and this node last held the same records.
    Equal(AuthorId, WallTime),
    /// Stores the local name of a workspace.
    NameWorkspace(WorkspaceId, WorkspaceRow),
    /// Stores an invitation ticket.
    Invite(Box<Invitation>),
    /// Stores how far a consumer has read the feed or a peer's outbox.
    Advance(AuthorId, FeedCursor),
    /// Makes a consumer read from the start again.
    Rewind(AuthorId),
    /// Opens (true) or ends (false) the release of an entry to a peer.
    Release(AuthorId, EntryId, bool),
    /// Notes a peer's statement about its release of an entry to this node.
    Released(AuthorId, EntryId, bool),
    /// Queues records again that a peer may lack.
    Requeue(AuthorId, Vec<Digest>),
    /// Rebuilds the outbox of a peer that reads from the start: it may lack records it once
    /// delivered.
    Restart(AuthorId),
    /// Reads a peer's outbox from the start, because its store is an older copy or another store.
    Reread(AuthorId),
    /// Stores the header of a refused record under the offer it came with, keyed by a hash of its
    /// slot.
    Refuse(Offerer, [u8; 16], Box<RefusalRow>),
    /// Drops refusals of records that the peer's store no longer holds, or that are acceptable now.
    Withdrawn(Offerer, BTreeSet<Digest>),
    /// Drops all refusals of an offer, except those by the operator, so that its records are
    /// requested again.
    Readmit(Offerer),
    /// Drops the refusals of an offer that were due to a full quarantine.
    ReadmitWaiting(Offerer),
    /// Stores an author's distance from a peer, as that peer states it.
    Distance(AuthorId, AuthorId, u8),
    /// Stores a checked equivocation proof; the first key is the peer that delivered it.
    Convict(AuthorId, Box<EquivocationProof>),
    /// Stores a peer's receipts for erased entries.
    Received(AuthorId, Vec<Erased>),
    /// Records that a peer has received these erasure receipts.
    Told(AuthorId, Vec<Erased>),
}

impl PeerCommand {
    /// Whether losing the command in a power cut only repeats some work.
    pub(super) fn is_incidental(&self) -> bool {
        matches!(self, Self::Advance(..) | Self::Distance(..) | Self::Told(..) | Self::Equal(..))
    }
}
