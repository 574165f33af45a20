//! Names of things: authors, entries, workspaces, stores, tasks, digests, boots.
//!
//! Every id is a fixed number of bytes with its own type, so that an author can never stand
//! where an entry is meant. Ids travel as MessagePack byte strings and print as hex. Nothing here
//! draws an id: random bytes come in as arguments, derived ids from [`crate::digest`].

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

macro_rules! byte_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name([u8; $len]);

        impl $name {
            /// How many bytes the id takes.
            pub const LEN: usize = $len;

            /// Wraps the bytes.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// The bytes themselves.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Reads an id from a slice of exactly the right length.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// Reads an id as it prints: hex, either case.
            pub fn from_hex(text: &str) -> Option<Self> {
                let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
                Self::from_slice(&bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), data_encoding::HEXLOWER.encode(&self.0[..4]))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_bytes(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_bytes(FixedBytes::<$len>).map(Self)
            }
        }
    };
}

byte_id! {
    /// An ed25519 public key: a node's, which signs records, or a person's, which signs requests.
    AuthorId, 32
}
byte_id! {
    /// One piece of knowledge: a hash of its [`crate::origin::Origin`].
    EntryId, 16
}
byte_id! {
    /// A workspace: a hash of its owner's key and a nonce, or one of the two built-in ones.
    WorkspaceId, 16
}
byte_id! {
    /// One store file; a restored copy keeps it, a new home draws another.
    StoreId, 16
}
byte_id! {
    /// A blake3 hash under one of the contexts of [`crate::digest`].
    Digest, 32
}
byte_id! {
    /// One act of retraction; values written after it name it.
    MarkId, 16
}
byte_id! {
    /// Sixteen random bytes that make an id unique.
    Nonce, 16
}
byte_id! {
    /// A task of one node: 48 bits of the moment it began, then random ones. Never in a record.
    TaskId, 16
}

impl WorkspaceId {
    /// Never leaves the node.
    pub const LOCAL: Self = Self([0; 16]);
    /// The person's own: reaches only the person's other nodes.
    pub const MAIN: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// Whether this is `local` or `main`, which belong to one person and have no owner's key.
    pub fn is_personal(&self) -> bool {
        *self == Self::LOCAL || *self == Self::MAIN
    }
}

/// Reads a byte string of exactly `N` bytes.
struct FixedBytes<const N: usize>;

impl<const N: usize> de::Visitor<'_> for FixedBytes<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<[u8; N], E> {
        bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}

/// One process start of one author: 64 random bits, drawn anew at every start and whenever the
/// process finds that it was cloned or resumed. What one boot writes never collides with another.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Boot(pub u64);

/// How many times an author has opened a slot for one entry and facet: 1 + the highest it held.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl Generation {
    /// The generation of a slot opened while this one is the highest held.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_hex() {
        let id = EntryId::from_bytes([0xAB; 16]);
        assert_eq!(EntryId::from_hex(&id.to_string()), Some(id));
        assert_eq!(EntryId::from_hex(&id.to_string().to_uppercase()), Some(id));
        assert_eq!(EntryId::from_hex("ab"), None);
        assert_eq!(EntryId::from_hex("zz"), None);
    }

    #[test]
    fn an_id_of_the_wrong_length_does_not_decode() {
        let short = rmp_serde::to_vec(&serde_bytes::Bytes::new(&[1, 2, 3])).unwrap();
        assert!(rmp_serde::from_slice::<EntryId>(&short).is_err());
    }
}
