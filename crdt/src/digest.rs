//! Hashes under named contexts.
//!
//! Each use of a hash has its own blake3 context, so that bytes made for one purpose mean nothing
//! for another. Fields are fed with their length before them: no two lists of fields hash alike.

use crate::ids::Digest;
use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use std::sync::LazyLock;

/// What a hash is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A record's header bytes, without the signature.
    Record,
    /// A record's payload bytes.
    Payload,
    /// One value of one register.
    Value,
    /// The origin of an entry: its id is the first 16 bytes.
    Origin,
    /// A workspace's owner and nonce: its id is the first 16 bytes.
    Workspace,
    /// One act of retraction: its id is the first 16 bytes.
    Mark,
    /// A slot: where a refused record stands.
    Slot,
    /// The texts of an entry that a reader is shown together. Never part of a record.
    Text,
    /// A record as a store keeps it. Never part of a record.
    Row,
}

/// What each context's text hashes to, in the order of [`Context::ALL`]: half of the work of hashing
/// something short.
static KEYS: LazyLock<[ContextKey; Context::ALL.len()]> =
    LazyLock::new(|| Context::ALL.map(|context| hash_derive_key_context(context.text())));

impl Context {
    /// All of them, in the order in which they are declared.
    const ALL: [Self; 9] = [
        Self::Record,
        Self::Payload,
        Self::Value,
        Self::Origin,
        Self::Workspace,
        Self::Mark,
        Self::Slot,
        Self::Text,
        Self::Row,
    ];

    /// Begins a hash.
    fn hasher(self) -> Hasher {
        Hasher::new_from_context_key(&KEYS[self as usize])
    }

    /// The text is part of the format: changing one changes every id made with it.
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
        }
    }
}

/// Hashes one run of bytes.
pub fn of(context: Context, bytes: &[u8]) -> Digest {
    let mut hasher = context.hasher();
    hasher.update(bytes);
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

/// Hashes a list of fields, each after its length.
pub struct Fields(Hasher);

impl Fields {
    /// Starts a list under a context.
    pub fn new(context: Context) -> Self {
        Self(context.hasher())
    }

    /// Adds one field.
    #[must_use]
    pub fn field(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a list: its length, then each element as a field.
    #[must_use]
    pub fn list<'a>(mut self, items: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        self.0.update(&(items.len() as u64).to_be_bytes());
        items.fold(self, Self::field)
    }

    /// The hash of all fields.
    pub fn finish(self) -> Digest {
        Digest::from_bytes(*self.0.finalize().as_bytes())
    }

    /// The first 16 bytes of the hash.
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
        let one = Fields::new(Context::Origin).field(b"ab").field(b"c").finish();
        let two = Fields::new(Context::Origin).field(b"a").field(b"bc").finish();
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
