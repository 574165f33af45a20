//! The parts of an exported file that both the node and its clients read: the first line, the limits
//! of a line, and the texts by which a client recognises special lines.
//!
//! The fields of the other lines are known to the node alone.

use serde::{Deserialize, Serialize};

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// The format name in the first line of an exported file.
pub const FORMAT: &str = "export";
/// Longest line in bytes. An entry with more records continues in further lines.
pub const LINE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Lines in one request, which are committed in one transaction.
pub const LINES_MAX: usize = 500;
/// Bytes of lines in one request, unless a single line is longer.
pub const LINES_BYTES_MAX: usize = 1024 * 1024;
/// Text in the line of an entry that could not be read; the line contains nothing else of it.
pub const DAMAGED: &str = r#""state":"damaged""#;
/// Text in the line of a forgotten entry.
pub const FORGOTTEN: &str = r#""state":"forgotten""#;
/// Text in a further line of an entry.
pub const FURTHER: &str = r#","part":"#;

/// The first line of an exported file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportHeader {
    /// The name of the format, always [`FORMAT`].
    pub klnode: String,
    /// The version of the format.
    pub version: u32,
    /// The key of the exporting node.
    pub node: String,
    /// Entries that follow, forgotten ones included.
    pub entries: u64,
}
