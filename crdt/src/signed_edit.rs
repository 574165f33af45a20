//! Edits in records: signs an edit, and reads it from a record.
//!
//! Separate from [`crate::document_edit`], which the payload and the wire format use.

use crate::document_edit::DocumentEdit;
use crate::ids::{AuthorId, Boot, EntryId, Generation};
use crate::payload::Payload;
use crate::record::{Position, Record};
use crate::record_error::RecordError;
use crate::signing_key::SecretKey;
use crate::time::Hlc;
use crate::version_vector::Slot;

/// The position of a new edit.
#[derive(Clone, Copy, Debug)]
pub struct EditPosition {
    /// The entry of the document that the edit changes.
    pub entry: EntryId,
    /// The author's present process start.
    pub boot: Boot,
    /// The number of the edit.
    pub number: u32,
    /// Time of signing, by the author's clock.
    pub stamp: Hlc,
}

impl DocumentEdit {
    /// Signs this edit.
    ///
    /// # Errors
    ///
    /// The limit of the format that the edit exceeds.
    pub fn seal(self, at: &EditPosition, key: &SecretKey) -> Result<Record, RecordError> {
        crate::header::check_edit_number(u64::from(at.number))?;
        let position = Position {
            entry: at.entry,
            place: Slot { boot: at.boot, generation: Generation(0) },
            counter: u64::from(at.number),
            stamp: at.stamp,
            absorbs: Vec::new(),
        };
        Record::seal(position, Payload::Edit(self), key)
    }
}

/// An edit with the fields of its header that name it.
#[derive(Clone, Copy, Debug)]
pub struct SignedEdit<'a> {
    /// The author of the record.
    pub author: AuthorId,
    /// The process start in which the author made the edit.
    pub boot: Boot,
    /// The number of the edit among the author's edits of the document, from 1.
    pub number: u32,
    /// The change of the text, as the payload of the record.
    pub edit: &'a DocumentEdit,
}

impl Record {
    /// The edit in this record; `None` for other facets.
    pub fn edit(&self) -> Option<SignedEdit<'_>> {
        let Some(Payload::Edit(edit)) = self.payload() else { return None };
        let header = self.header();
        // The header was checked against a limit below 2^32.
        let number = u32::try_from(header.counter).ok()?;
        Some(SignedEdit { author: header.author, boot: header.place.boot, number, edit })
    }
}
