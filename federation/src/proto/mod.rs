//! The protocol `/klnode/sync/1`, which exchanges records between two nodes.
//!
//! # Identity
//!
//! A node is its ed25519 key ([`klnode_crdt::ids::AuthorId`]), which is also its name on the
//! network; the transport proves it. So every peer here has a proven key. A node answers only peers
//! that its operator has approved; approval is described in [`pairing`] and, for joining by
//! address, in [`sas`].
//!
//! # Records and outboxes
//!
//! Nodes exchange records ([`klnode_crdt::record::RawRecord`]), which are signed by their authors
//! and forwarded unchanged. For every peer a node keeps an **outbox** of numbered rows. Each row is
//! a record that the peer may have, or a notice that an entry is released to it or no longer
//! released. Each peer has its own numbering, so the numbers reveal nothing about records it may
//! not see. The outbox only grows; a row whose record was replaced is skipped.
//!
//! An entry is **released** to a peer when the [`entry_filter`] lets it pass. From then on all records of
//! that entry, from every author and facet, go into the peer's outbox. When a release ends, no more
//! of them do, except retractions and tombstones, which follow the entry to every peer that
//! received it.
//!
//! # Requests and answers
//!
//! Every message is a [`message::SyncRequest`] or its [`message::SyncResponse`]: one frame each, at
//! most [`limits::FRAME_BYTES_MAX`] bytes of MessagePack. Both sides send requests; no data is pushed.
//!
//! 1. On connecting, both sides send `hello` with version, store, epoch, outbox head and clock.
//! 2. A reader requests `changes` after its cursor. The answer is a `page`: the content of the rows
//!    in order, the cursor after them, and whether more follow. Small records are included. Larger
//!    ones are named by digest, and the reader requests them with `fetch` unless it has them. Each
//!    record comes with the sender's distance to its author, which is 0 for the sender itself. An
//!    item of kind `f` also says that its entry is released from here on.
//! 3. A cursor is (store, epoch, position). The epoch is the process start of the sender that wrote
//!    the row at that position. A sender that never wrote that position in that epoch, because its
//!    store is an older copy or another store, answers `unknown`. The reader then starts from the
//!    beginning: earlier notices of releases no longer hold, and the reader offers back the records
//!    that it had received from that peer. A reader moves its cursor only past rows that it has
//!    durably applied, quarantined, or refused for a recorded reason.
//! 4. Shortly after a commit the sender sends `notify` with its new head, and the reader reads on.
//! 5. When both have read everything, one of them requests `compare`: range-based set
//!    reconciliation ([negentropy](https://github.com/hoytech/negentropy) version 1) over (stamp,
//!    digest) of the records that both should hold. These are: all records of entries that each has
//!    released to the other; for entries that only one has released, the records which that node
//!    wrote; for forgotten entries that were released in either direction, the tombstone. An empty
//!    answer means "equal". The side that began fetches the records it lacks, and appends the
//!    records the other lacks to the other's outbox. After a slow comparison, newly read records
//!    are compared later, after half a minute at most.
//! 6. A node that erased an entry because of a tombstone reports it with `ack`, and again when more
//!    of the peers it told have confirmed.
//!
//! `later` asks the peer to wait. `no` gives the reason for a refusal, of which one line of
//! [`limits::REASON_CHARS_MAX`] characters is kept. A fetch for a record that a peer may not have
//! is answered like a fetch for a record that does not exist.
//!
//! # Budgets
//!
//! Frames, bytes, records, new entries, faults, and store rows read on a peer's behalf are counted
//! per peer and window ([`peer_budget::Budget`]), across connections; a large row counts as
//! several. Whether an entry is new is decided here, when its first record is accepted. A peer over
//! its budget is answered `later` and asked for nothing more. A peer that sends twice its budget
//! unrequested, or causes too many faults, is banned. The ban doubles each time, until the peer has
//! behaved for as long as the maximum ban. Records with a wrong signature, pages that do not follow
//! their cursor, answers of the wrong type and bytes that do not decode are faults. A newer format
//! is not: such a record is kept by its header and requested again after an upgrade. A peer whose
//! outbox has to be read from the start more than once waits longer each time, half a minute at
//! most. A comparison that has begun continues over budget, for the maximum number of round trips.
//!
//! # The state machine
//!
//! [`Replicator::handle`] implements the whole protocol as a pure function of the input, the store
//! ([`StoreAccess`]) and the time. `net` and `sim` drive the same state machine.

mod anti_entropy;
pub mod entry_filter;
#[cfg(test)]
mod golden_tests;
pub mod limits;
pub mod message;
mod outbox_reader;
mod outbox_server;
pub mod pairing;
pub mod peer_budget;
mod peer_session;
mod reconciliation;
mod replicator;
pub mod sas;
mod store_view;
#[cfg(test)]
mod tests;
pub mod ticket;

pub use peer_session::{Delivery, ReceivedRecord, SyncState};
pub use replicator::{Output, ProtocolInput, RecordOutcome, Replicator, Settings};
pub use store_view::{ComparedRecord, Offerer, OutboxTarget, StoreAccess, StoreUnavailable};
