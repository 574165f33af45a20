//! BLAKE3 hashes with domain separation.
//!
//! Each use of a hash has its own BLAKE3 context, so a hash for one use never equals a hash for
//! another. [`FieldHasher`] hashes each field after its length, so two different lists of fields never
//! have the same encoding.

use crate::ids::Digest;
use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use std::sync::LazyLock;

/// The domain of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The encoded header of a record, without the signature.
    Record,
    /// The encoded payload of a record.
    Payload,
    /// One value of one register.
    Value,
    /// The origin of an entry. The entry id is the first 16 bytes.
    Origin,
    /// Owner and nonce of a workspace. The workspace id is the first 16 bytes.
    Workspace,
    /// One retraction. The mark id is the first 16 bytes.
    Mark,
    /// The slot of a refused record, and hashed keys of the peer tables. Never part of a record.
    Slot,
    /// The texts of an entry that a reader sees together. Never part of a record.
    Text,
    /// A stored record, as a checksum of its row. Never part of a record.
    Row,
    /// Author, boot and branch of an edit. The actor of a document's change is the first 16 bytes.
    Actor,
}

/// The derived key of each context, in the order of [`Context::ALL`]. Cached, because deriving it
/// is half of the work of hashing a short input.
static KEYS: LazyLock<[ContextKey; Context::ALL.len()]> =
    LazyLock::new(|| Context::ALL.map(|context| hash_derive_key_context(context.text())));

impl Context {
    /// All contexts, in the order of declaration, so that `self as usize` is an index.
    const ALL: [Self; 10] = [
        Self::Record,
        Self::Payload,
        Self::Value,
        Self::Origin,
        Self::Workspace,
        Self::Mark,
        Self::Slot,
        Self::Text,
        Self::Row,
        Self::Actor,
    ];

    /// Starts a hash in this context.
    fn hasher(self) -> Hasher {
        Hasher::new_from_context_key(&KEYS[self as usize])
    }

    /// The BLAKE3 context string. It is part of the format: a changed string changes every id.
    const fn text(self) -> &'static str {
        match self {
            Self::Record => "klnode v1 record header",
            Self::Payload => "klnode v1 record payload",
            Self::Value => "klnode v1 register value",
            Self::Origin => "klnode v1 entry origin",
            Self::Workspace => "klnode v1 workspace id",
            Self::Mark => "klnode v1 retraction mark",
            Self::Slot => "klnode v1 slot",
            Self::Text => "klnode v1 shown text",
            Self::Row => "klnode v1 stored record",
            Self::Actor => "klnode v1 document actor",
        }
    }
}

/// Hashes a byte string.
pub fn of(context: Context, bytes: &[u8]) -> Digest {
    let mut hasher = context.hasher();
    hasher.update(bytes);
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

/// Hashes a list of fields, each preceded by its length.
pub struct FieldHasher(Hasher);

impl FieldHasher {
    /// Starts an empty list in a context.
    pub fn new(context: Context) -> Self {
        Self(context.hasher())
    }

    /// Adds one field: its length as 8 bytes, then the bytes.
    #[must_use]
    pub fn field(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a list: the number of its items, then each item as a field.
    #[must_use]
    pub fn list<'a>(mut self, items: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        self.0.update(&(items.len() as u64).to_be_bytes());
        items.fold(self, Self::field)
    }

    /// The hash of all fields.
    pub fn finish(self) -> Digest {
        Digest::from_bytes(*self.0.finalize().as_bytes())
    }

    /// The first 16 bytes of the hash, for ids.
    pub fn finish_short(self) -> [u8; 16] {
        let mut short = [0; 16];
        short.copy_from_slice(&self.finish().as_bytes()[..16]);
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_byte_between_fields_changes_the_hash() {
        let one = FieldHasher::new(Context::Origin).field(b"ab").field(b"c").finish();
        let two = FieldHasher::new(Context::Origin).field(b"a").field(b"bc").finish();
        assert_ne!(one, two);
    }

    #[test]
    fn contexts_do_not_share_hashes() {
        assert_ne!(of(Context::Record, b"x"), of(Context::Payload, b"x"));
    }

    #[test]
    fn each_context_hashes_under_its_own_text() {
        for context in Context::ALL {
            let derived = blake3::derive_key(context.text(), b"x");
            assert_eq!(of(context, b"x"), Digest::from_bytes(derived), "{context:?}");
        }
    }
}
