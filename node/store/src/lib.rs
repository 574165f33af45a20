//! The store: one redb file with all data the node must not lose.
//!
//! Readers take a [`Snapshot`], an immutable view of one commit that needs no lock. The single
//! writer takes a [`Batch`] and commits it. The store makes no decisions; the engine does.
//! [`tables`] and [`row_types`] define the stored bytes.
//!
//! redb does not check its pages on every read, so the store checks records itself: a record is
//! stored under its digest, its header must hash to that digest, and its payload to the digest in
//! the header. A checksum in its row covers the rest, above all the signature.

mod author_records;
mod backend;
pub mod backup;
mod batch;
pub mod checkouts;
pub mod client_process;
pub mod daily_usage;
pub mod dismissed_insights;
pub mod documents;
mod erase_usage;
mod error;
pub mod findings;
mod frozen_file;
pub mod imports;
mod integrity;
pub mod maintenance_journal;
mod open_file;
mod open_store;
pub mod peers;
mod read_only_store;
pub mod recent_readers;
pub mod row_reencoding;
pub mod row_types;
pub mod same_as_links;
pub mod served_sessions;
mod shared_reads;
mod snapshot;
mod store_copy;
pub mod tables;
pub mod tasks;
pub mod weak_answers;

pub use backend::{Backend, FileMedium, MemoryMedium};
pub use backend::{ROOM_BYTES_MIN, free_bytes};
pub use batch::{Batch, Durability};
pub use batch::{QuarantineResult, WAITING_OF_PEER_MAX};
pub use error::{Error, OpenError};
pub use integrity::IntegrityReport;
pub use open_store::StoreFault;
pub use open_store::{Migration, Options, Store};
pub use read_only_store::{FrozenMedium, ReadOnlyStore};
pub use shared_reads::Damage;
pub use snapshot::{FeedRow, Snapshot, StoreCounts};
pub use store_copy::ProgressWatch;
