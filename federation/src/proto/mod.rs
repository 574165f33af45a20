//! The protocol `/klnode/sync/1`: how two nodes bring each other what each may have.
//!
//! # Who is who
//!
//! A node is its ed25519 key ([`klnode_crdt::ids::AuthorId`]), which is also its name on the
//! network; the transport proves it. What is said here is said to a peer whose key is known. A node
//! answers nobody whom its operator has not approved; how that happens is in [`pairing`] and, by
//! address, in [`sas`].
//!
//! # What travels
//!
//! Records ([`klnode_crdt::record::RawRecord`]): signed by their authors, passed on byte by byte.
//! For every peer a node keeps an **outbox**: numbered rows, each a record the peer may have, or the
//! word that an entry is released to it from here on, or no longer. Numbers are the peer's own, so
//! they say nothing about what it may not see. The outbox only grows; a row whose record was
//! replaced is skipped.
//!
//! An entry is **released** to a peer when the [`filter`] lets it pass. From then on all records of
//! that entry, of every author and facet, go into the peer's outbox. When a release ends, no more of
//! it does, except retractions and tombstones, which follow wherever the entry has been.
//!
//! # Asking and answering
//!
//! Every message is an [`message::Ask`] or its [`message::Answer`]: one frame each, at most
//! [`limits::FRAME_BYTES_MAX`] bytes of MessagePack. Both sides ask; nothing is pushed.
//!
//! 1. On connecting, both send `hello` with version, store, epoch, outbox head and clock.
//! 2. A reader asks `changes` after its cursor. The answer is a `page`: what its rows hold, in
//!    order, the cursor after them, and whether more follow. Small records are in it; of larger ones
//!    the digest, for which the reader asks with `fetch` unless it has them. With each record goes
//!    the sender's distance to its author: 0 for the sender itself. A record of the kind `f` says as
//!    well that its entry is released from here on.
//! 3. A cursor is (store, epoch, position). The epoch is the process start of the sender that wrote
//!    the row at that position. A sender that never wrote that position in that epoch, because its
//!    store is an older copy or another one, answers `unknown`, and the reader begins at the start:
//!    what it was told of releases before holds no longer, and what it had from that peer it offers
//!    back.
//!    A reader moves its cursor only over what it has durably taken in, put aside, or refused for a
//!    reason that it keeps.
//! 4. After a commit the sender says `notify` with its new head, a moment later, and the reader
//!    reads on.
//! 5. When both have read everything, one of them asks `compare`: range-based set reconciliation
//!    ([negentropy](https://github.com/hoytech/negentropy) version 1) over (stamp, digest) of the
//!    records that both should hold. These are: all records of entries that each has released to
//!    the other; of entries that only one has released, the records which that one wrote; of
//!    forgotten entries that were released either way, the tombstone. An empty answer says
//!    "equal". The side that began fetches what it lacks, and puts what the other lacks at the
//!    end of the other's outbox. After a comparison that took long, what is read is compared a
//!    while later, half a minute at most.
//! 6. Who erased an entry on a tombstone's word says so with `ack`, and again when more of those it
//!    has told have said so.
//!
//! `later` asks for patience, `no` says why not, of which one line of
//! [`limits::REASON_CHARS_MAX`] characters is kept. A fetch for what a peer may not have is answered
//! like one for what does not exist.
//!
//! # What a peer may cost
//!
//! Frames, bytes, records, new entries, faults and rows that are gone through for its sake, a large
//! one as several, are counted per peer and window ([`budget::Budget`]), whatever the connection;
//! whether an entry is new is found here, when its first record is taken. Over it a peer is told `later`, and asked for
//! nothing more; with twice as much that nobody asked for, or with too many faults, it is sent away
//! for a while that doubles, until it has behaved for as long as it can be sent away. Records with
//! a wrong signature, pages that do not follow their cursor, answers to something else and bytes
//! that do not decode are faults. A newer format is not: such a record is kept by its header and
//! asked for again after an upgrade. Whoever has its outbox read from the start more than once
//! waits longer each time, half a minute at most; a comparison that has begun goes on over budget,
//! for as many round trips as one takes at most.
//!
//! # The machine
//!
//! [`Replicator::handle`] is the whole protocol as a pure function of what happened, what the store
//! holds ([`View`]) and the time. `net` and `sim` drive the same machine.

pub mod budget;
mod compare;
pub mod filter;
#[cfg(test)]
mod golden;
pub mod limits;
pub mod message;
pub mod pairing;
mod reading;
mod replicator;
pub mod sas;
mod scrub;
mod serve;
mod session;
#[cfg(test)]
mod tests;
pub mod ticket;
mod view;

pub use replicator::{Input, Outcome, Output, Replicator, Settings};
pub use session::{Arrived, Delivery, SyncState};
pub use view::{Comparable, Offerer, Outgoing, Unreadable, View};
