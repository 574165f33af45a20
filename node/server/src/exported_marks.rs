//! The operator's marks in an exported file, and their seal, so that only the exporting node accepts
//! them.
//!
//! Anyone can write a file whose head names any node. Therefore marks carry a hash keyed with a key
//! derived from the node's own key. A writer without that key cannot make marks for this node.

use klnode_crdt::ids::EntryId;
use klnode_crdt::signing_key::SecretKey;
use klnode_engine::MarkChange;
use klnode_store::row_types::MarksRow;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The operator's marks on an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportedMarks {
    /// The entry is ranked higher.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The entry is hidden.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
    /// The entry is marked as wrong.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidated: bool,
    /// The operator's note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A keyed hash which proves that the importing node set the marks itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

impl ExportedMarks {
    /// The marks of a row; `None` if there are none.
    pub fn of(row: MarksRow) -> Option<Self> {
        let MarksRow { is_pinned, is_muted, is_invalidated, note, .. } = row;
        let (pinned, muted, invalidated) = (is_pinned, is_muted, is_invalidated);
        let overlay = Self { pinned, muted, invalidated, note, proof: None };
        Some(overlay).filter(|overlay| *overlay != Self::default())
    }

    /// The change that sets these marks. It does not carry over a release from quarantine: the
    /// operator of this node decides about that.
    pub fn to_marks(&self) -> MarkChange {
        let on = |mark: bool| mark.then_some(true);
        MarkChange {
            pinned: on(self.pinned),
            muted: on(self.muted),
            invalidated: on(self.invalidated),
            note: self.note.clone(),
        }
    }
}

/// The context of the key derivation; part of the format of exported files.
const CONTEXT: &str = "klnode v1 exported marks";

/// The key that seals a node's marks. It signs nothing and reveals nothing about the node's key.
pub struct MarksKey(Zeroizing<[u8; 32]>);

impl MarksKey {
    /// Derives the key from a node's key.
    pub fn of(node: &SecretKey) -> Self {
        Self(Zeroizing::new(blake3::derive_key(CONTEXT, &node.to_bytes()[..])))
    }

    /// Adds the proof that this node set the marks on the entry.
    pub(super) fn sealed(&self, entry: EntryId, marks: ExportedMarks) -> ExportedMarks {
        let proof = Some(self.hash(entry, &marks).to_hex().to_string());
        ExportedMarks { proof, ..marks }
    }

    /// True if this node exported these marks of the entry.
    pub(super) fn has_sealed(&self, entry: EntryId, marks: &ExportedMarks) -> bool {
        let given = marks.proof.as_ref().and_then(|proof| blake3::Hash::from_hex(proof).ok());
        // `blake3::Hash` compares in constant time.
        given.is_some_and(|given| given == self.hash(entry, marks))
    }

    /// The hash over all marks. Everything before the note has a fixed length, so it is
    /// unambiguous.
    fn hash(&self, entry: EntryId, marks: &ExportedMarks) -> blake3::Hash {
        let ExportedMarks { pinned, muted, invalidated, note, proof: _ } = marks;
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
    fn a_proof_is_valid_for_one_node_one_entry_and_its_marks() {
        let [one, other] = [1, 2].map(|id| EntryId::from_bytes([id; 16]));
        let marks =
            ExportedMarks { pinned: true, note: Some("mine".into()), ..ExportedMarks::default() };
        let sealed = key(1).sealed(one, marks.clone());
        assert!(key(1).has_sealed(one, &sealed));
        assert!(!key(2).has_sealed(one, &sealed), "another node");
        assert!(!key(1).has_sealed(other, &sealed), "another entry");
        assert!(!key(1).has_sealed(one, &marks), "no proof");
        let changed = [
            ExportedMarks { pinned: false, ..sealed.clone() },
            ExportedMarks { muted: true, ..sealed.clone() },
            ExportedMarks { invalidated: true, ..sealed.clone() },
            ExportedMarks { note: None, ..sealed.clone() },
            ExportedMarks { note: Some("mine!".into()), ..sealed.clone() },
            ExportedMarks { proof: Some("none".into()), ..sealed },
        ];
        for marks in changed {
            assert!(!key(1).has_sealed(one, &marks), "{marks:?}");
        }
    }
}
