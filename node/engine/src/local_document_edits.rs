//! Commands about documents: writes a playbook, and signs the edits of this node.
//!
//! Separate from `documents`, which stores and merges the edits of all authors.

use super::command::{DocumentCommand, IngestOutcome, Receipt, RecordSource, Rejection};
use super::entry_validation;
use super::local_writes;
use super::record_intake::{Screening, Transaction};
use klnode_crdt::document_edit::DocumentEdit;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_type::{EntryType, code_digits};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::signed_edit::EditPosition;
use klnode_document::change::CheckedChange;
use klnode_document::document::TextDocument;
use klnode_document::edit::{EditContext, EditError};
use klnode_store::{Batch, Error};

/// Why a local edit is rejected while the members of the workspace are unknown.
const CHARTER_DAMAGED: &str = "A record of its workspace's charter is damaged on this node; a peer \
                               that holds it will deliver it again.";

impl Transaction<'_> {
    /// Runs a command of a caller.
    pub(super) fn about_document(
        &mut self,
        batch: &Batch,
        command: &DocumentCommand,
    ) -> Result<Receipt, Rejection> {
        match command {
            DocumentCommand::Create { new, text } => {
                entry_validation::new_document(new, text)?;
                let origin = self.new_origin(new.workspace, new.memory);
                let entry = origin.id();
                self.must_be_member(batch, origin.workspace())?;
                let claims = local_writes::document_claims(new);
                self.write(batch, entry, |writer, stamp| {
                    writer.claim(&Default::default(), Some(origin.clone()), &claims, stamp)
                })?;
                self.edit_document(batch, entry, |document, context| {
                    document.edit(&[], text, context)
                })?;
                Ok(Receipt::Created(entry))
            }
            DocumentCommand::Edit { entry, base, text } => {
                self.must_be_document(batch, *entry)?;
                self.edit_document(batch, *entry, |document, context| {
                    document.edit(base, text, context)
                })
            }
            DocumentCommand::Restore { entry, version } => {
                self.must_be_document(batch, *entry)?;
                self.edit_document(batch, *entry, |document, context| {
                    document.restore(version, context)
                })
            }
        }
    }

    /// Whether an entry shows the text of a document.
    pub(super) fn is_playbook(
        &self,
        batch: &Batch,
        entry: EntryId,
        held: &Entry,
    ) -> Result<bool, Error> {
        let is_shown = batch.document(entry)?.is_some_and(|row| row.applied > 0);
        Ok(is_shown && held.code(entry) == EntryType::Playbook.code(entry))
    }

    fn must_be_document(&mut self, batch: &Batch, entry: EntryId) -> Result<(), Rejection> {
        self.must_hold(batch, entry)?;
        if batch.document(entry)?.is_none() {
            return Err(Rejection::NoDocument(batch.entry(entry)?.code(entry)));
        }
        let row = batch.view_row(entry)?;
        match row.and_then(|row| row.workspace) {
            Some(workspace) => self.must_be_member(batch, workspace),
            None => Ok(()),
        }
    }

    /// Rejects a local edit that no member would see, because this node is no member.
    fn must_be_member(&mut self, batch: &Batch, workspace: WorkspaceId) -> Result<(), Rejection> {
        self.must_be_in(batch, workspace)?;
        if workspace.is_personal() {
            return Ok(());
        }
        let charter = Error::unless_damaged(batch.charter(workspace, self.now))?;
        let charter = charter.ok_or_else(|| Rejection::NotEdited(CHARTER_DAMAGED.into()))?;
        let is_member = charter.members.contains(&self.writer.key.author());
        // The charter of a workspace that this node has just joined may still be on its way.
        match is_member || charter.owner.is_none() {
            true => Ok(()),
            false => Err(Rejection::NotMember(workspace)),
        }
    }

    /// Signs and stores the changes that `make` makes of the document.
    fn edit_document(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        make: impl FnOnce(&TextDocument, &EditContext) -> Result<Vec<CheckedChange>, EditError>,
    ) -> Result<Receipt, Rejection> {
        let (author, boot, time) = (self.writer.key.author(), self.writer.boot, self.now);
        self.forget_stale_documents();
        let number = batch.last_edit_number(entry, author)? + 1;
        let context = EditContext { author, boot, number, time };
        let made = self.with_document(batch, entry, |held| make(&held.document, &context))?;
        let made = made.ok_or_else(|| Rejection::NotEdited(CHARTER_DAMAGED.into()))?;
        let changes = made.map_err(|error| Rejection::NotEdited(error.to_string()))?;
        if changes.is_empty() {
            return Ok(Receipt::Known(entry));
        }
        let mut head = batch.head()?;
        for change in changes {
            let identity = change.identity();
            let edit = DocumentEdit { branch: identity.branch, change: change.bytes().to_vec() };
            let stamp = self.writer.clock.stamp(self.now);
            let at = EditPosition { entry, boot, number: identity.number, stamp };
            let record = edit.seal(&at, &self.writer.key)?;
            match self.take(batch, &record, RecordSource::Local, Screening::Judge)? {
                IngestOutcome::Merged(seq) => head = seq,
                IngestOutcome::Forgotten => {
                    return Err(Rejection::Forgotten(code_digits(entry)));
                }
                IngestOutcome::Known => {}
                IngestOutcome::Quarantined(why)
                | IngestOutcome::Refused(why)
                | IngestOutcome::Deferred(why) => return Err(Rejection::Judged(why)),
            }
        }
        Ok(Receipt::Done(head))
    }
}
