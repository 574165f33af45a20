//! Data model of klnode: signed records, the CRDTs inside them, and their wire format.
//!
//! An **entry** is one piece of knowledge. A **record** is a signed header and a payload. It holds
//! the state of one **author** on one entry in one **facet** (claims, tally, retraction or
//! tombstone), as written after one process start. The join of the records of all authors is the
//! [`entry::Entry`]. A [`view::View`] is the entry as one reader sees it at one moment.
//!
//! ```text
//! RawRecord --verify--> Record --merge--> Holding    the live records of one author
//!                                            |
//!                                            +--> Entry    the join of all live records
//!                                                   |
//!                                                   +--view(now, entitlement)--> View
//! ```
//!
//! The CRDTs and their usual names:
//!
//! | type | in the literature | difference |
//! |---|---|---|
//! | [`lww::Lww`] | multi-value register | a tie-break by stamp picks the value to show |
//! | [`gset::GSet`] | LWW element set | one instance per author; readers take the union |
//! | [`gcounter::GCounter`] | G-counter | one cell per boot and day |
//! | [`version::Version`] | version vector | names slots, with a limit on its length |
//! | [`retraction::Marks`] | G-set | suppresses claims that do not name all of its elements |
//!
//! The crate is pure: it uses no clock, no randomness, no files and no logs. Callers pass in time,
//! keys and nonces. It computes no scores: each reader judges entries for itself, and judgements
//! never replicate.

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
