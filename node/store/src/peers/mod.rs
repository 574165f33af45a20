//! Data about other nodes: their identity, releases, outboxes, refusals, and the outcomes of their
//! entries.
//!
//! None of it is sent. The outbox of a peer lists the records that the peer may have. It is filled
//! in the same transaction as the commit, so every released record in the feed is in the outbox of
//! that peer.
//!
//! `queries` is for readers, `charters` and `removals` are for both sides; `announced_releases`, `directory`,
//! `inbound_state`, `outbox`, `receipts` and `releases` are for the writer.

mod announced_releases;
mod charters;
mod directory;
mod entry_releases;
mod erasure_receipts;
mod inbound_state;
mod member_removals;
mod membership;
mod outbox;
mod queries;
pub mod row_types;

pub(super) use member_removals::cut_digests;
pub use member_removals::{Cut, RemovalRow};
pub use membership::{Membership, SharedWorkspace};
