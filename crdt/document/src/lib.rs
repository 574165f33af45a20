//! Playbooks: texts that several authors edit at once.
//!
//! A playbook is an Automerge document with one text. Each edit is a **change**, and each change is a
//! record of its own: content-addressed, signed and never replaced. The document is the merge of the
//! changes of all members. This crate knows changes and documents; records, storage and transport are
//! the business of its callers.
//!
//! ```text
//! bytes of a peer --CheckedChange::check--> CheckedChange --TextDocument::insert--> TextDocument
//!                                                ^                                      |
//!                                                +-----------TextDocument::edit---------+
//! ```
//!
//! A change passes three gates before it becomes part of the text. Each of them is a pure function, so
//! members with the same changes see the same text, whatever the order of arrival:
//!
//! | gate | depends on | file |
//! |---|---|---|
//! | its bytes are one splice list within the limits, written by the author of the record | the bytes | [`change`], `chunk_parser` |
//! | its counters and elements follow from its dependencies | its ancestors | `change_graph` |
//! | its author may write, and no better change has its sequence number | all changes | [`change_selection`] |
//!
//! Memory and time are bounded by the changes that are inserted: a change has at most 64 KiB and 65,536
//! operations, and the applied changes of an author stay within [`limits::AuthorQuota`]. Changes that
//! wait or do not apply are held as well; the caller bounds their number, with one record per author and
//! edit number.
//!
//! The crate is pure: it uses no clock, no randomness, no files and no logs. Author, boot and time are
//! arguments.

#![warn(missing_docs)]

mod actor_lanes;
pub mod blame;
mod causal_clock;
pub mod change;
pub mod change_error;
pub mod change_graph;
pub mod change_hash;
mod change_parser;
pub mod change_selection;
mod change_writer;
pub mod document;
pub mod edit;
pub mod edit_identity;
mod leb128_reader;
pub mod limits;
pub mod markdown_sections;
mod operation_columns;
pub mod root_change;
mod run_length;
mod sequence_diff;
mod sequential_merge;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text_diff;
mod text_elements;

#[cfg(test)]
mod tests;
