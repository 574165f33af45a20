//! The limits of the readers, so that a hostile or huge file costs bounded memory.

/// Longest line in bytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Longest front matter in bytes.
pub const FRONT_MATTER_BYTES_MAX: usize = 64 * 1024;
/// Longest content of one entry in bytes; the node has the same limit.
pub const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// Largest element of a JSON array in bytes.
pub const ELEMENT_BYTES_MAX: usize = 1024 * 1024;
/// Longest title in characters; the node has the same limit.
pub const TITLE_CHARS_MAX: usize = 200;
/// Most tags, anchors, steps or conditions of one entry; the node has the same limit.
pub const SET_ELEMENTS_MAX: usize = 64;
/// Longest tag, anchor, step or condition in bytes.
pub const ELEMENT_TEXT_BYTES_MAX: usize = 2 * 1024;
/// Most bytes of unknown fields that are kept for one entry.
pub const EXTRA_BYTES_MAX: usize = 32 * 1024;
/// Most files of one corpus.
pub const FILES_MAX: usize = 1_000_000;
/// Deepest folder that is visited.
pub const DEPTH_MAX: usize = 32;
/// A note up to this size is one entry; a larger one is split at its headings.
pub const WHOLE_NOTE_BYTES_MAX: u64 = 4_000;
/// A section of a split note up to this size is one entry; a larger one continues in further
/// entries, split between paragraphs.
pub const SECTION_BYTES_MAX: usize = 16_000;
