//! The hash that names a change.
//!
//! It is a type of its own so that callers of this crate need not know automerge.

use std::fmt;

/// The SHA-256 hash that automerge gives a change. It identifies the change everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeHash([u8; Self::LEN]);

impl ChangeHash {
    /// Length of a hash in bytes.
    pub const LEN: usize = 32;

    /// Makes a hash of these bytes without checking them.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, as they are in the dependencies of a change.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Parses the hex form that `Display` prints.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn to_automerge(self) -> automerge::ChangeHash {
        automerge::ChangeHash(self.0)
    }
}

impl fmt::Display for ChangeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ChangeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangeHash({})", data_encoding::HEXLOWER.encode(&self.0[..4]))
    }
}
