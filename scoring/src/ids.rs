//! The two names that judgement handles: who said something, and about which entry.
//!
//! Separate because reasons refer to authors and entries by these names alone. Nothing here makes
//! or checks an id.

/// An author: the bytes of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorId(pub [u8; 32]);

/// An entry: the 16 bytes of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub [u8; 16]);
