//! All limits of the document format.
//!
//! These are constants of the format, not settings: two nodes with different limits would apply
//! different changes and never show the same text. The quota of an author is a parameter of
//! [`crate::document::TextDocument`] only so that tests can use small numbers; every node passes
//! [`AuthorQuota::FORMAT`].

/// Maximum length of the text that an edit may produce, in bytes of UTF-8. Playbooks are expected to
/// stay below 200 KB. The merge of concurrent edits may exceed the limit; the next edit must then
/// shorten the text.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum length of one encoded change, in bytes. One record holds one change.
pub const CHANGE_BYTES_MAX: usize = klnode_crdt::limits::EDIT_BYTES_MAX;
/// Maximum number of operations of one change. One operation inserts or deletes one code point.
pub const CHANGE_OPERATIONS_MAX: u32 = 64 * 1024;
/// Maximum number of changes that one change may name as dependencies.
pub const DEPENDENCIES_MAX: usize = 1_024;
/// Maximum number of other actors whose operations one change may name.
pub const OTHER_ACTORS_MAX: usize = 2_048;
/// Maximum operation counter. Automerge panics near 2^32; no honest document comes near 2^31.
pub const OPERATION_COUNTER_MAX: u32 = (1 << 31) - 1;
/// Maximum time of a change, in milliseconds since 1970: the last time that fits into 48 bits.
pub const TIME_MILLIS_MAX: u64 = (1 << 48) - 1;

/// How much one author may add to one document.
///
/// The selection of changes counts an author's changes in the order of their edit numbers and
/// applies none beyond a limit. The result therefore depends on the set of changes, and not on the
/// order in which they arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorQuota {
    /// Greatest edit number, and maximum number of edits.
    pub edits_max: u32,
    /// Maximum sum of the lengths of the encoded changes, in bytes.
    pub bytes_max: u64,
    /// Maximum sum of the operations of the changes.
    pub operations_max: u64,
}

impl AuthorQuota {
    /// The quota of the format. An edit of a playbook takes about 300 bytes, so an author reaches the
    /// number of edits before the number of bytes.
    pub const FORMAT: Self = Self {
        edits_max: klnode_crdt::limits::EDITS_MAX,
        bytes_max: 16 << 20,
        operations_max: 8_000_000,
    };
}
