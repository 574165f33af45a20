//! Commands about documents.

use super::NewEntry;
use klnode_crdt::ids::EntryId;
use klnode_document::change_hash::ChangeHash;

/// A command about a document.
#[derive(Clone, Debug)]
pub enum DocumentCommand {
    /// Writes a new document.
    Create {
        /// The entry of the document; its content is empty.
        new: Box<NewEntry>,
        /// The first version of the document's text.
        text: String,
    },
    /// Changes the text of a document.
    Edit {
        /// The playbook that has the document.
        entry: EntryId,
        /// The version that the caller read, as its heads.
        base: Vec<ChangeHash>,
        /// The whole new text.
        text: String,
    },
    /// Makes an earlier version the present text, as a new edit.
    Restore {
        /// The playbook that has the document.
        entry: EntryId,
        /// The earlier version, as its heads.
        version: Vec<ChangeHash>,
    },
}
