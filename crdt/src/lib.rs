//! What klnode replicates: records, the lattices they carry, and the bytes they are made of.
//!
//! An **entry** is one piece of knowledge. What one **author** says about it in one **facet**, from
//! one process start, is a **record**: a signed header and a payload. Records of all authors,
//! joined, give the [`entry::Entry`]; read at a moment, for a reader, it is a [`view::View`].
//!
//! ```text
//! RawRecord --verify--> Record --merge--> Holding    which records are live
//!                                            |
//!                                            +--> Entry    what they say, joined
//!                                                   |
//!                                                   +--view(now, entitlement)--> View
//! ```
//!
//! The crate is pure: no clock, no randomness, no files, no logs. Time, keys and nonces come in as
//! arguments. It knows nothing of scores: judgements are made by each reader and never replicate.

pub mod charter;
pub mod claims;
pub mod dates;
pub mod digest;
pub mod entry;
pub mod equivocation;
pub mod gcounter;
pub mod gset;
pub mod header;
pub mod holding;
pub mod ids;
pub mod key;
pub mod kind;
pub mod lattice;
pub mod limits;
pub mod lww;
pub mod origin;
pub mod payload;
pub mod person;
pub mod record;
pub mod retraction;
pub mod tally;
pub mod time;
pub mod tombstone;
pub mod version;
pub mod view;
pub mod wire;
pub mod writer;

#[cfg(feature = "testing")]
pub mod testing;
