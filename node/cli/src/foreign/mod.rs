//! Import from and export to the files of other tools.
//!
//! The command line reads and writes the files, and exchanges lines of JSON with the node. So the
//! node never opens a file that a caller names, and knows nothing of the formats.

pub(super) mod entry_line_conversion;
pub(super) mod export;
mod gone_entries_and_links;
pub(super) mod import;
mod import_report;
