//! The change that every document begins with.
//!
//! It creates the one text. If each author created it, two authors who start at the same time would
//! write into two texts. The change is therefore a constant: every node has it, and no record
//! contains it. It has an actor of its own, which no author can have except by a collision of hashes.

use crate::change_hash::ChangeHash;
use crate::edit_identity::Actor;
use automerge::{Automerge, ObjId, TextEncoding};

/// The actor of the root change.
pub(crate) const ROOT_ACTOR: Actor = Actor::from_bytes(*b"klnode/document1");

/// Counter of the operation that creates the text, and of the last operation of the root change.
pub(crate) const TEXT_COUNTER: u32 = 1;

/// How positions in the text are counted. One element is one code point, whatever its width.
pub(crate) const TEXT_ENCODING: TextEncoding = TextEncoding::UnicodeCodePoint;

/// The hash of the root change: the heads of an empty document.
pub const ROOT_HASH: ChangeHash = ChangeHash::from_bytes([
    0xa3, 0x7e, 0x3c, 0x89, 0xe7, 0x0e, 0x6a, 0x3b, 0x6c, 0x70, 0x20, 0xf9, 0xa1, 0xce, 0x9e, 0x88,
    0x08, 0x9b, 0x0b, 0x46, 0xc3, 0x81, 0x03, 0xfc, 0x95, 0x0d, 0xc7, 0x0d, 0x21, 0x40, 0xd9, 0xfa,
]);

/// The encoded root change. No record contains it.
pub const ROOT_BYTES: &[u8] = &[
    0x85, 0x6f, 0x4a, 0x83, 0xa3, 0x7e, 0x3c, 0x89, 0x01, 0x2f, 0x00, 0x10, 0x6b, 0x6c, 0x6e, 0x6f,
    0x64, 0x65, 0x2f, 0x64, 0x6f, 0x63, 0x75, 0x6d, 0x65, 0x6e, 0x74, 0x31, 0x01, 0x01, 0x00, 0x00,
    0x00, 0x05, 0x15, 0x06, 0x34, 0x01, 0x42, 0x02, 0x56, 0x02, 0x70, 0x02, 0x7f, 0x04, 0x74, 0x65,
    0x78, 0x74, 0x01, 0x7f, 0x04, 0x7f, 0x00, 0x7f, 0x00,
];

/// A document with the empty text and without any edit.
///
/// Automerge draws a random actor for a new document. No change is written under it.
pub(crate) fn empty_document() -> Automerge {
    let mut document = Automerge::new_with_encoding(TEXT_ENCODING);
    let root = automerge::Change::try_from(ROOT_BYTES)
        .expect("the root change is a constant that automerge encoded");
    document.apply_changes([root]).expect("the root change depends on nothing");
    document
}

/// The id of the text in every document.
pub(crate) fn text_id() -> ObjId {
    // The last field is a hint for the position of the actor; automerge corrects it.
    ObjId::Id(u64::from(TEXT_COUNTER), ROOT_ACTOR.to_automerge(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use automerge::transaction::{CommitOptions, Transactable};
    use automerge::{ObjType, ROOT, ReadDoc};

    #[test]
    fn the_root_change_creates_one_empty_text() {
        let mut document =
            Automerge::new_with_encoding(TEXT_ENCODING).with_actor(ROOT_ACTOR.to_automerge());
        let mut transaction = document.transaction();
        transaction.put_object(ROOT, "text", ObjType::Text).unwrap();
        transaction.commit_with(CommitOptions::default().with_time(0));
        let change = document.get_last_local_change().unwrap();
        assert_eq!(
            data_encoding::HEXLOWER.encode(change.raw_bytes()),
            data_encoding::HEXLOWER.encode(ROOT_BYTES)
        );
        assert_eq!(ChangeHash::from_bytes(change.hash().0), ROOT_HASH);
        assert_eq!(empty_document().text(text_id()).unwrap(), "");
    }
}
