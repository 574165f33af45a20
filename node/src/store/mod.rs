//! The store: one redb file that holds everything the node must not lose.
//!
//! Readers take a [`Snapshot`]: an immutable view of one commit, without locks. The one writer
//! takes a [`Batch`] and commits it. Nothing here decides anything: the engine does. The bytes are
//! in [`tables`] and [`rows`].
//!
//! redb does not check its pages on every read, so records are checked here: a record is found
//! under its digest, its header must hash to it, and its payload to what the header says; a check
//! in its row covers the rest, the signature above all.

pub mod backup;
mod batch;
mod beside;
mod check;
pub mod client_process;
mod copy;
mod error;
pub mod findings;
mod forget;
mod frozen;
mod label;
mod layout;
mod medium;
mod open;
mod opened;
pub mod peers;
pub mod places;
mod read;
pub mod readers;
pub mod rows;
pub mod same;
pub mod sessions;
mod snapshot;
pub mod tables;
pub mod tasks;
mod unfinished;
pub mod upkeep;
pub mod usage;
pub mod weak_answers;

pub use batch::{Batch, Durability};
pub(crate) use batch::{WAITING_OF_PEER_MAX, Waiting};
pub use check::Examined;
pub use copy::Watch;
pub use error::{Error, OpenError};
pub use frozen::{FrozenMedium, Seen};
pub use label::Label;
pub use layout::Layout;
pub use medium::{FileMedium, Medium, MemoryMedium};
pub(crate) use medium::{ROOM_BYTES_MIN, free_bytes};
pub(crate) use open::Fault;
pub use open::{Migration, Options, Store};
pub(crate) use read::Damage;
pub use snapshot::{Change, Counts, Snapshot};
pub use unfinished::{Existing, Unfinished, write_private};
