//! All limits of record format 1.
//!
//! These are constants of the format, not settings. Two nodes with different limits would accept
//! different records and never converge.

/// The record format this code writes, and the newest one it can decode.
pub const FORMAT: u8 = 1;

/// Maximum length of the content register, in bytes of UTF-8.
pub const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of the title register, in characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Maximum length of any other register, in bytes of UTF-8.
pub const REGISTER_BYTES_MAX: usize = 4 * 1024;
/// Maximum size of one set element, in bytes of UTF-8, summed over its text fields.
pub const ELEMENT_BYTES_MAX: usize = 2 * 1024;
/// Maximum number of elements of one set of one author, including withdrawn elements.
pub const SET_ELEMENTS_MAX: usize = 64;
/// Maximum number of elements of one set in a view. A view keeps the most recently written ones.
pub const VIEW_ELEMENTS_MAX: usize = 256;
/// Maximum number of values of one author in one register. An author has more than one only after
/// two clones of its home wrote concurrently.
pub const REGISTER_VALUES_MAX: usize = 64;
/// Maximum number of digests in `Value::replaces`. A writer keeps the newest.
pub const REPLACES_MAX: usize = 256;
/// Maximum number of retractions that one claim may name. Equal to [`LIVE_SLOTS_MAX`], the number
/// of retractions that one author may have on one entry.
pub const MARKS_MAX: usize = 64;
/// Maximum number of cells and folded totals of one counter, over all boots and days. A home that
/// starts five times a day and counts on the same entry each time reaches it after four and a half
/// years.
pub const COUNTER_CELLS_MAX: usize = 8_192;
/// Maximum value of one counter cell, in thousandths of an observation.
pub const CELL_MAX: u64 = 1 << 32;
/// Maximum number of boots in the reset list of one tally.
pub const RESET_BOOTS_MAX: usize = 8_192;
/// Maximum number of older slots that one header may list as absorbed. Slots more than this many
/// generations back are not listed: the record covers them by age.
pub const ABSORBS_MAX: usize = 1_024;
/// Maximum number of live records of one author in one facet of one entry. A peer that sends more
/// is over quota.
pub const LIVE_SLOTS_MAX: usize = 64;
/// Maximum length of the change in one edit record, in bytes.
pub const EDIT_BYTES_MAX: usize = 64 * 1024;
/// Greatest number of an edit of one author in one document.
pub const EDITS_MAX: u32 = 20_000;
/// Maximum number of edits of one author with the same number. There is more than one only after
/// copies of a home wrote concurrently.
pub const EDIT_COPIES_MAX: usize = 4;
/// Maximum size of a header, in bytes: the fixed part and 1,024 absorbed slots fit.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Maximum size of a payload of any facet, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of the source format and of the source key of an imported entry, in bytes each.
pub const IMPORT_KEY_BYTES_MAX: usize = 1_024;
/// Maximum nesting depth of arrays and maps in a message.
pub const NESTING_MAX: usize = 8;
/// Maximum number of MessagePack values in one header.
pub const HEADER_ITEMS_MAX: usize = 16 + 4 * ABSORBS_MAX;
/// Maximum number of MessagePack values in one payload.
pub const PAYLOAD_ITEMS_MAX: usize = 128 * 1024;
