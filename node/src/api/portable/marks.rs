//! The operator's marks in an exported file: only the node that wrote them can say that it did.
//!
//! A file is anybody's to write, and its head may name any node. So marks come with a hash under a key
//! that follows from the node's own: whoever does not have that key makes no marks for this node.

use super::line::Overlay;
use klnode_crdt::ids::EntryId;
use klnode_crdt::key::SecretKey;
use zeroize::Zeroizing;

/// What the key is for; part of the format of exported files.
const CONTEXT: &str = "klnode v1 exported marks";

/// What a node's marks are sealed with. Signs nothing, and tells nothing of the key it follows from.
pub struct MarksKey(Zeroizing<[u8; 32]>);

impl MarksKey {
    /// That of a node.
    pub fn of(node: &SecretKey) -> Self {
        Self(Zeroizing::new(blake3::derive_key(CONTEXT, &node.to_bytes()[..])))
    }

    /// Marks with the proof that this node set them on the entry.
    pub(super) fn sealed(&self, entry: EntryId, marks: Overlay) -> Overlay {
        let proof = Some(self.hash(entry, &marks).to_hex().to_string());
        Overlay { proof, ..marks }
    }

    /// Whether this node exported these marks of the entry.
    pub(super) fn has_sealed(&self, entry: EntryId, marks: &Overlay) -> bool {
        let given = marks.proof.as_ref().and_then(|proof| blake3::Hash::from_hex(proof).ok());
        // Hashes are compared in constant time.
        given.is_some_and(|given| given == self.hash(entry, marks))
    }

    /// Over all that is set: everything before the note has a fixed length.
    fn hash(&self, entry: EntryId, marks: &Overlay) -> blake3::Hash {
        let Overlay { pinned, muted, invalidated, note, proof: _ } = marks;
        let set = [*pinned, *muted, *invalidated, note.is_some()].map(u8::from);
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(entry.as_bytes()).update(&set);
        hasher.update(note.as_deref().unwrap_or_default().as_bytes());
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> MarksKey {
        MarksKey::of(&SecretKey::from_bytes(&[seed; 32]))
    }

    #[test]
    fn a_proof_holds_for_one_node_one_entry_and_these_marks() {
        let [one, other] = [1, 2].map(|id| EntryId::from_bytes([id; 16]));
        let marks = Overlay { pinned: true, note: Some("mine".into()), ..Overlay::default() };
        let sealed = key(1).sealed(one, marks.clone());
        assert!(key(1).has_sealed(one, &sealed));
        assert!(!key(2).has_sealed(one, &sealed), "another node");
        assert!(!key(1).has_sealed(other, &sealed), "another entry");
        assert!(!key(1).has_sealed(one, &marks), "no proof");
        let changed = [
            Overlay { pinned: false, ..sealed.clone() },
            Overlay { muted: true, ..sealed.clone() },
            Overlay { invalidated: true, ..sealed.clone() },
            Overlay { note: None, ..sealed.clone() },
            Overlay { note: Some("mine!".into()), ..sealed.clone() },
            Overlay { proof: Some("none".into()), ..sealed },
        ];
        for marks in changed {
            assert!(!key(1).has_sealed(one, &marks), "{marks:?}");
        }
    }
}
