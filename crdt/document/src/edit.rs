//! Edits: from a whole text that an author hands in to the changes that it stands for.
//!
//! An author reads a version of the text and returns it with modifications, minutes later. Other
//! authors may have written meanwhile. The edit therefore names the heads that were read, and its
//! changes depend on these heads alone: only the difference between the text that was read and the new
//! text becomes a change, and the merge keeps the work of the others.
//!
//! The difference comes from [`text_diff`] rather than from automerge's
//! `update_text`, whose time grows with the square of the text if two texts have little in common.
//!
//! A change has at most [`CHANGE_BYTES_MAX`](crate::limits::CHANGE_BYTES_MAX) bytes, so a large edit
//! becomes several changes, each made on the one before.

use crate::change::CheckedChange;
use crate::change_error::ChangeError;
use crate::change_hash::ChangeHash;
use crate::change_writer::ChangeWriter;
use crate::document::{TextDocument, UnknownVersion};
use crate::edit_identity::{Actor, EditIdentity};
use crate::limits::{CHANGE_OPERATIONS_MAX, DEPENDENCIES_MAX, TEXT_BYTES_MAX};
use crate::text_diff::{self, TextSplice};
use crate::text_elements::{BaseElements, ElementId};
use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::time::WallTime;
use std::borrow::Cow;

/// First limit of the cost of one change. If the encoded change is too long all the same, the edit is
/// cut into smaller pieces.
const COST_MAX: usize = CHANGE_OPERATIONS_MAX as usize / 2;
/// Limit of the cost below which an edit is not cut any further.
const COST_MIN: usize = 64;
/// Cost of a splice in addition to its code points: it interrupts the runs of several columns.
const SPLICE_COST: usize = 32;

/// The author of an edit, its number and its time.
#[derive(Clone, Copy, Debug)]
pub struct EditContext {
    /// The author of the edit.
    pub author: AuthorId,
    /// The author's present process start.
    pub boot: Boot,
    /// The author's next edit number for this document; the first is 1.
    pub number: u32,
    /// The present time.
    pub time: WallTime,
}

/// Why an edit is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The base is not a version of this document.
    #[error(transparent)]
    UnknownVersion(#[from] UnknownVersion),
    /// The new text is too long.
    #[error("The text has {0} bytes, more than the limit of {TEXT_BYTES_MAX}. Shorten it.")]
    TextTooLong(usize),
    /// The author has no edit number left.
    #[error("The author has used all {0} edits of this document. Start a new document.")]
    NoEditLeft(u32),
    /// The base has more heads than one change can name.
    #[error("The version has {0} heads, more than one change can name.")]
    TooManyHeads(usize),
    /// The edit touches text of too many actors to fit into changes of the format.
    #[error("The edit cannot be cut into changes of the permitted length.")]
    NotDivisible,
}

impl TextDocument {
    /// Makes the changes that turn the version `base` into `text`; none if the texts are equal. `base`
    /// are the heads that the author read, and none for the empty text. The document itself does not
    /// change: the caller stores the changes and passes them to [`Self::insert`]. The changes have
    /// consecutive numbers.
    ///
    /// # Errors
    ///
    /// See [`EditError`].
    pub fn edit(
        &self,
        base: &[ChangeHash],
        text: &str,
        context: &EditContext,
    ) -> Result<Vec<CheckedChange>, EditError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(EditError::TextTooLong(text.len()));
        }
        let heads = self.known_heads(base)?;
        if heads.len() > DEPENDENCIES_MAX - 1 {
            return Err(EditError::TooManyHeads(heads.len()));
        }
        let (elements, old) = match self.is_present(&heads) {
            true => (BaseElements::Present(self), Cow::Borrowed(self.present_text())),
            false => {
                let (elements, old): (Vec<ElementId>, String) = self.elements_at(&heads).unzip();
                (BaseElements::Earlier(elements), Cow::Owned(old))
            }
        };
        let splices = text_diff::splices(&old, text);
        let branch = self.free_branch(context, &heads);
        let writer = self.writer(context, branch, &heads, &elements);
        let mut cost_max = COST_MAX;
        while cost_max >= COST_MIN {
            let parts = parts(&splices, cost_max);
            match self.write_parts(writer.clone(), &parts, context, branch)? {
                Some(changes) => return Ok(changes),
                None => cost_max /= 2,
            }
        }
        Err(EditError::NotDivisible)
    }

    /// Makes the changes that restore an earlier version, as a new edit of the present text.
    ///
    /// # Errors
    ///
    /// See [`EditError`].
    pub fn restore(
        &self,
        version: &[ChangeHash],
        context: &EditContext,
    ) -> Result<Vec<CheckedChange>, EditError> {
        let text = self.text_at(version)?;
        self.edit(&self.heads(), &text, context)
    }

    /// The lowest branch whose changes are all in the history of the base.
    fn free_branch(&self, context: &EditContext, heads: &[usize]) -> u32 {
        let history = self.graph().history_of(heads);
        let is_free = |branch: &u32| {
            let actor = Actor::derive(context.author, context.boot, *branch);
            self.graph().may_continue(actor, &history)
        };
        (0..u32::MAX).find(is_free).expect("a document has fewer than 2^32 changes")
    }

    /// A writer of changes on the version with these heads and elements.
    fn writer<'a>(
        &self,
        context: &EditContext,
        branch: u32,
        heads: &[usize],
        elements: &'a BaseElements<'a>,
    ) -> ChangeWriter<'a> {
        let actor = Actor::derive(context.author, context.boot, branch);
        let (history, last_counter) = self.graph().merged_history(heads);
        let admitted = self.graph().admitted();
        let last = self.graph().last_change(actor, &history).map(|index| &admitted[index].change);
        ChangeWriter::new(
            actor,
            context.time,
            elements,
            self.hashes(heads),
            last.map(|change| (change.hash(), change.sequence())),
            last_counter,
        )
    }

    /// Writes each part as one change; `None` if a change is too long.
    fn write_parts(
        &self,
        mut writer: ChangeWriter<'_>,
        parts: &[Vec<TextSplice<'_>>],
        context: &EditContext,
        branch: u32,
    ) -> Result<Option<Vec<CheckedChange>>, EditError> {
        let EditContext { author, boot, .. } = *context;
        let mut changes = Vec::new();
        for (number, part) in (context.number..).zip(parts) {
            let identity = EditIdentity { author, boot, branch, number };
            let change = writer.write(part);
            match CheckedChange::check(change.raw_bytes(), identity, self.quota()) {
                Ok(change) => changes.push(change),
                Err(ChangeError::NumberOutOfRange(_)) => {
                    return Err(EditError::NoEditLeft(self.quota().edits_max));
                }
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(changes))
    }
}

/// Cuts splices of the old text into parts of bounded cost. The positions of the result refer to the
/// text in which all earlier splices are applied.
fn parts<'a>(splices: &[TextSplice<'a>], cost_max: usize) -> Vec<Vec<TextSplice<'a>>> {
    let mut parts: Vec<Vec<TextSplice<'a>>> = Vec::new();
    let mut cost = cost_max;
    let mut shift = 0_isize;
    for splice in splices {
        let at = splice.at.checked_add_signed(shift).expect("splices ascend and do not overlap");
        let inserted = splice.inserted.chars().count();
        shift += inserted as isize - splice.deleted as isize;
        for piece in pieces(&TextSplice { at, ..*splice }, cost_max) {
            let piece_cost = piece.deleted + piece.inserted.len() + SPLICE_COST;
            if cost + piece_cost > cost_max || parts.is_empty() {
                parts.push(Vec::new());
                cost = 0;
            }
            cost += piece_cost;
            parts.last_mut().expect("a part was added").push(piece);
        }
    }
    parts
}

/// Cuts one splice into pieces of bounded cost.
fn pieces<'a>(splice: &TextSplice<'a>, cost_max: usize) -> Vec<TextSplice<'a>> {
    let length_max = cost_max.saturating_sub(SPLICE_COST).max(4);
    if splice.deleted + splice.inserted.len() <= length_max {
        return vec![*splice];
    }
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (splice.at, splice.inserted);
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(length_max);
        let (inserted, tail) = rest.split_at(end);
        pieces.push(TextSplice { at, deleted: 0, inserted });
        at += inserted.chars().count();
        rest = tail;
    }
    let mut left = splice.deleted;
    while left > 0 {
        let deleted = left.min(length_max);
        pieces.push(TextSplice { at, deleted, inserted: "" });
        left -= deleted;
    }
    pieces
}
