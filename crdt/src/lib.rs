//! Data model of klnode: signed records, the CRDTs inside them, and their wire format.
//!
//! An **entry** is one piece of knowledge. A **record** is a signed header and a payload. It holds
//! the state of one **author** on one entry in one **facet** (claims, tally, retraction or
//! tombstone), as written after one process start. The join of the records of all authors is the
//! [`entry::Entry`]. A [`entry_view::EntryView`] is the entry as one reader sees it at one moment.
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
//! | [`register::MvRegister`] | multi-value register | a tie-break by stamp picks the value to show |
//! | [`lww_set::LwwSet`] | LWW element set | one instance per author; readers take the union |
//! | [`gcounter::GCounter`] | G-counter | one cell per boot and day |
//! | [`version_vector::VersionVector`] | version vector | names slots, with a limit on its length |
//! | [`retraction::RetractionSet`] | G-set | suppresses claims that do not name all of its elements |
//!
//! The crate is pure: it uses no clock, no randomness, no files and no logs. Callers pass in time,
//! keys and nonces. It computes no scores: each reader judges entries for itself, and judgements
//! never replicate.

#![warn(missing_docs)]

mod charter_origin;
pub mod claims;
pub mod digest;
pub mod document_edit;
pub mod encrypted_key;
pub mod entry;
pub mod entry_dates;
pub mod entry_origin;
pub mod entry_ref;
pub mod entry_type;
pub mod entry_view;
pub mod equivocation;
pub mod gcounter;
pub mod header;
pub mod ids;
pub mod lattice;
pub mod limits;
pub mod live_records;
pub mod lww_set;
pub mod member_removal;
pub mod payload;
pub mod record;
pub mod record_builder;
mod record_error;
pub mod register;
pub mod removal_page_origin;
pub mod retraction;
pub mod signed_edit;
pub mod signing_key;
pub mod tally;
pub mod time;
pub mod tombstone;
pub mod version_vector;
pub mod wire;
pub mod workspace_charter;

#[cfg(feature = "testing")]
pub mod testing;
