//! Edits: changes of a playbook's text, one per record.
//!
//! An edit record is content-addressed and never replaced: the text is the merge of all edits of the
//! members, which the crate `document` computes. This crate only knows the position of an edit. Its
//! header uses the common fields as follows:
//!
//! - `counter` is the **number** of the edit: an author numbers the edits of one document from 1 to
//!   [`EDITS_MAX`](crate::limits::EDITS_MAX). The quota of an author is a greatest number, so it does
//!   not depend on the order of arrival.
//! - `place` has the boot of the process that made the edit, and generation 0.
//! - `absorbs` is empty.
//!
//! Two copies of one home may use a number twice. Both edits count, so a node keeps the
//! [`EDIT_COPIES_MAX`](crate::limits::EDIT_COPIES_MAX) edits with the least digests of each number.

/// The payload of an edit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentEdit {
    /// Number of the change's actor among the actors of this author and boot.
    pub branch: u32,
    /// One change of the document, encoded by the crate `document`.
    pub change: Vec<u8>,
}
