//! Every limit of record format 1, in one place.
//!
//! These are constants of the format, not settings: two nodes that disagree about one of them
//! would hold different records and never become equal.

/// The format this code writes, and the newest it can judge.
pub const FORMAT: u8 = 1;

/// Content register, bytes of UTF-8.
pub const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// Title register, characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Any other register, bytes of UTF-8.
pub const REGISTER_BYTES_MAX: usize = 4 * 1024;
/// One element of a set, bytes of UTF-8 over all its text.
pub const ELEMENT_BYTES_MAX: usize = 2 * 1024;
/// Elements of one set by one author, withdrawn ones included.
pub const SET_ELEMENTS_MAX: usize = 64;
/// Elements of one set that a view shows.
pub const VIEW_ELEMENTS_MAX: usize = 256;
/// Values that one author holds in one register (more than one only after clones met).
pub const REGISTER_VALUES_MAX: usize = 64;
/// Digests that one value may name as replaced; the newest are kept.
pub const REPLACES_MAX: usize = 256;
/// Retractions of one author that a claim may name; [`LIVE_SLOTS_MAX`] is how many there can be.
pub const MARKS_MAX: usize = 64;
/// Cells and folded totals of one counter, over all boots and days. A home that is started five
/// times a day and counts on the same entry each time gets there in four and a half years.
pub const COUNTER_CELLS_MAX: usize = 8_192;
/// One cell of a counter, in thousandths.
pub const CELL_MAX: u64 = 1 << 32;
/// Boots that one author's resets may name.
pub const RESET_BOOTS_MAX: usize = 8_192;
/// Older slots that one header may name as absorbed; also the window of generations in which
/// they are named one by one.
pub const ABSORBS_MAX: usize = 1_024;
/// Live records of one (entry, author, facet); more put the peer that brings them over quota.
pub const LIVE_SLOTS_MAX: usize = 64;
/// A header's bytes: the fixed part and 1,024 absorbed slots.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// A claims, tally, retraction or tombstone payload, bytes.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Source format and source key of an imported entry, bytes each.
pub const IMPORT_KEY_BYTES_MAX: usize = 1_024;
/// Arrays and maps inside each other.
pub const NESTING_MAX: usize = 8;
/// Values of any kind in one header.
pub const HEADER_ITEMS_MAX: usize = 16 + 4 * ABSORBS_MAX;
/// Values of any kind in one payload.
pub const PAYLOAD_ITEMS_MAX: usize = 128 * 1024;
