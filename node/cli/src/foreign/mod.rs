//! Import from and export to the files of other tools.
//!
//! The command line reads and writes the files, and exchanges lines of JSON with the node. So the
//! node never opens a file that a caller names, and knows nothing of the formats.

pub(super) mod export;
pub(super) mod import;
pub(super) mod line;
mod report;
mod settle;
