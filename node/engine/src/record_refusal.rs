//! The refusal of a record: its stored row, and the reasons that stored rows are compared with.
//!
//! Separate from `peer_commands`, because a full quarantine and the operator refuse records too.

use klnode_crdt::digest;
use klnode_crdt::header::Facet;
use klnode_crdt::record::{RawRecord, Record};
use klnode_store::peers::row_types::RefusalRow;

/// Reason stored for a quarantined record that the operator rejected. Stored refusals are compared
/// with it, so the text must not change.
pub(super) const REJECTED: &str = "the operator rejected it";

/// Reason stored for a record that found the quarantine full. Stored refusals are compared with it,
/// so the text must not change.
pub const TOO_MANY_WAIT: &str = "too many of its kind wait already";

/// Builds the refusal row of a record and the hash of its slot, under which the row is stored. Each
/// edit has a slot of its own: edits do not replace each other.
pub fn refusal(record: &Record, reason: String) -> ([u8; 16], RefusalRow) {
    let at = record.header();
    let mut slot = digest::FieldHasher::new(digest::Context::Slot)
        .field(at.entry.as_bytes())
        .field(at.author.as_bytes())
        .field(&[at.facet.code()])
        .field(&at.place.boot.0.to_be_bytes())
        .field(&at.place.generation.0.to_be_bytes());
    if at.facet == Facet::Edit {
        slot = slot.field(record.digest().as_bytes());
    }
    let RawRecord { header, signature, .. } = record.to_raw();
    let (counter, digest) = (at.counter, record.digest());
    (
        slot.finish_short(),
        RefusalRow { header, signature, counter, digest, reason, is_unknown: false },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::document_edit::DocumentEdit;
    use klnode_crdt::ids::{Boot, EntryId};
    use klnode_crdt::signed_edit::EditPosition;
    use klnode_crdt::signing_key::SecretKey;
    use klnode_crdt::time::Hlc;

    #[test]
    fn each_refused_edit_has_a_slot_of_its_own() {
        let (key, entry, boot) =
            (SecretKey::from_bytes(&[1; 32]), EntryId::from_bytes([2; 16]), Boot(3));
        let slot = |number, change: &[u8]| {
            let at = EditPosition { entry, boot, number, stamp: Hlc::from_bits(1) };
            let edit = DocumentEdit { branch: 0, change: change.to_vec() };
            refusal(&edit.seal(&at, &key).unwrap(), String::new()).0
        };
        assert_eq!(slot(1, b"one"), slot(1, b"one"));
        assert_ne!(slot(1, b"one"), slot(2, b"one"));
        assert_ne!(slot(1, b"one"), slot(1, b"two"));
    }
}
