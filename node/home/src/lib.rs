//! The home folder of a node: the names of its files, and how a file is replaced without a torn state.
//!
//! Programs that talk to a node (command line, hooks) need these without the store, so they stand in a
//! crate below it. The label that a caller gives itself is here for the same reason.

mod atomic_file;
mod caller_label;
mod layout;

pub use atomic_file::{AtomicFile, Existing, sync_folder, write_private};
pub use caller_label::CallerLabel;
pub use layout::Layout;
