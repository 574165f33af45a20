//! Identifiers of authors, entries, workspaces, stores, tasks, digests and boots.
//!
//! Each id has a fixed number of bytes and its own type, so the compiler rejects an author id in
//! the place of an entry id. Ids are MessagePack byte strings on the wire and print as hex. This
//! module generates no ids: callers pass in random bytes, and [`crate::digest`] computes derived
//! ids.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

macro_rules! byte_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name([u8; $len]);

        impl $name {
            /// Length of the id in bytes.
            pub const LEN: usize = $len;

            /// Makes an id of these bytes without checking them.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// The raw bytes, as they are on the wire.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Makes an id of a slice; `None` unless the slice has exactly [`Self::LEN`] bytes.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// Parses the hex form that `Display` prints, in upper or lower case.
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
    /// An ed25519 public key. A node's key signs records; a person's key signs requests to a node.
    AuthorId, 32
}
byte_id! {
    /// Id of an entry: a hash of its [`crate::entry_origin::Origin`].
    EntryId, 16
}
byte_id! {
    /// Id of a workspace: a hash of its owner's key and a nonce, or one of the two built-in ids.
    WorkspaceId, 16
}
byte_id! {
    /// Id of a store file. A restored copy keeps it; a new home generates a new one.
    StoreId, 16
}
byte_id! {
    /// A BLAKE3 hash under one of the contexts of [`crate::digest`].
    Digest, 32
}
byte_id! {
    /// Id of one retraction. Claims that the author writes afterwards name it.
    RetractionId, 16
}
byte_id! {
    /// Sixteen random bytes that make an id unique.
    Nonce, 16
}
byte_id! {
    /// Id of a task on one node: the start time in 48 bits, then random bits. Never part of a
    /// record.
    TaskId, 16
}

impl WorkspaceId {
    /// The built-in workspace `local`. Its entries never leave the node.
    pub const LOCAL: Self = Self([0; 16]);
    /// The built-in workspace `main`. Its entries reach only nodes of the same person.
    pub const MAIN: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// True for `local` and `main`, which belong to one person and have no owner key.
    pub fn is_personal(&self) -> bool {
        *self == Self::LOCAL || *self == Self::MAIN
    }
}

/// Serde visitor for a byte string of exactly `N` bytes.
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

/// One process start of one author: 64 random bits. A node draws a new boot at every start, and
/// again when it detects that it was cloned or resumed from a snapshot. Two boots therefore never
/// write into the same slot or the same counter cell.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Boot(pub u64);

/// Number of a slot among an author's slots on one entry and facet: one more than the highest
/// generation the author held when it opened the slot.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl Generation {
    /// The generation for a new slot, if `self` is the highest generation the author holds.
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
