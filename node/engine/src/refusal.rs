//! The refusal of a record: its stored row, and the reasons that stored rows are compared with.
//!
//! Separate from `peer_commands`, because a full quarantine and the operator refuse records too.

use klnode_crdt::digest;
use klnode_crdt::record::{RawRecord, Record};
use klnode_store::peers::row_types::RefusalRow;

/// Reason stored for a quarantined record that the operator rejected. Stored refusals are compared
/// with it, so the text must not change.
pub(super) const REJECTED: &str = "the operator rejected it";

/// Reason stored for a record that found the quarantine full. Stored refusals are compared with it,
/// so the text must not change.
pub const TOO_MANY_WAIT: &str = "too many of its kind wait already";

/// Builds the refusal row of a record and the hash of its slot, under which the row is stored.
pub fn refusal(record: &Record, reason: String) -> ([u8; 16], RefusalRow) {
    let at = record.header();
    let slot = digest::FieldHasher::new(digest::Context::Slot)
        .field(at.entry.as_bytes())
        .field(at.author.as_bytes())
        .field(&[at.facet.code()])
        .field(&at.place.boot.0.to_be_bytes())
        .field(&at.place.generation.0.to_be_bytes())
        .finish_short();
    let RawRecord { header, signature, .. } = record.to_raw();
    let (counter, digest) = (at.counter, record.digest());
    (slot, RefusalRow { header, signature, counter, digest, reason, is_unknown: false })
}
