//! What the store keeps about other nodes: who they are, what they may have, what they were sent,
//! what was refused of theirs, and what became of what they brought.
//!
//! Nothing here is ever sent. What a peer may have is in its outbox, which is filled in the same
//! transaction as the commit that concerns it: a record that is in the feed and released to a peer
//! is in that peer's outbox.
//!
//! `read` is for readers, `charters` for both; `foretold`, `known`, `offers`, `outbox`,
//! `receipts` and `releases` are for the writer.

mod charters;
mod foretold;
mod known;
mod offers;
mod outbox;
mod read;
mod receipts;
mod releases;
pub mod rows;
mod society;

pub use society::{Society, Workspace};
