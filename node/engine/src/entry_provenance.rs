//! Where entries come from: promotion of another entry, or a task that created them; and the effect
//! of the task's outcome on the latter.

use super::command::{NewEntry, Promotion, Receipt, Rejection, was_written};
use super::record_intake::Transaction;
use klnode_crdt::claims::Citation;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_store::checkouts::PromotionRow;
use klnode_store::row_types::UseRow;
use klnode_store::{Batch, Error};

impl Transaction<'_> {
    /// Creates the promoted entry and links it to its source.
    pub(super) fn promote(
        &mut self,
        batch: &Batch,
        promotion: &Promotion,
    ) -> Result<Receipt, Rejection> {
        let Promotion { new, source, approved_by, reason } = promotion;
        self.must_hold(batch, *source)?;
        if let Some((entry, view)) = self.promoted_before(batch, promotion)? {
            self.add_missing_citations(batch, (entry, &view), &new.citations)?;
            return Ok(Receipt::Known(entry));
        }
        let receipt = self.create(batch, new)?;
        if let Receipt::Created(entry) = receipt {
            let row = PromotionRow {
                source: *source,
                at: self.now,
                approved_by: *approved_by,
                reason: reason.clone(),
            };
            batch.put_promotion(entry, &row)?;
            // A promotion does not turn unfinished work into finished work.
            let of = batch.uses(*source)?;
            if !of.is_from_success {
                let uses = batch.uses(entry)?;
                batch.put_uses(entry, UseRow { made_in: of.made_in, ..uses })?;
            }
        }
        Ok(receipt)
    }

    /// The entry created by an identical earlier promotion, if it is unchanged.
    fn promoted_before(
        &self,
        batch: &Batch,
        promotion: &Promotion,
    ) -> Result<Option<(EntryId, EntryView)>, Rejection> {
        let Promotion { new, source, approved_by, .. } = promotion;
        for (entry, row) in batch.promotions_of(*source)? {
            // A promotion approved by another key needs its own entry.
            if row.approved_by != *approved_by {
                continue;
            }
            let view = Error::unless_damaged(self.view(batch, entry))?.flatten();
            if let Some(view) = view.filter(|view| is_as_made(view, new)) {
                return Ok(Some((entry, view)));
            }
        }
        Ok(None)
    }

    /// Adds citations that the existing entry lacks, instead of creating a second entry.
    fn add_missing_citations(
        &mut self,
        batch: &Batch,
        (entry, view): (EntryId, &EntryView),
        citations: &[Citation],
    ) -> Result<(), Rejection> {
        let is_cited = |of: &Citation| view.citations.keys().any(|held| is_same(held, of));
        let lacking = citations.iter().filter(|of| !is_cited(of));
        let claims: Vec<ClaimEdit> = lacking.cloned().map(ClaimEdit::Cite).collect();
        if !claims.is_empty() {
            self.claim(batch, entry, &claims)?;
        }
        Ok(())
    }

    /// Creates an entry in a task, and marks it there as created by the task.
    pub(super) fn create_in(
        &mut self,
        batch: &Batch,
        task: TaskId,
        new: &NewEntry,
    ) -> Result<Receipt, Rejection> {
        self.open_task(batch, task)?;
        let receipt = self.create(batch, new)?;
        if let Receipt::Created(entry) = receipt {
            let mut part = batch.task_part(task, entry)?;
            part.is_made = true;
            batch.put_task_part(task, entry, &part)?;
            // Readers of the entry look up the outcome of this task.
            let uses = batch.uses(entry)?;
            batch.put_uses(entry, UseRow { made_in: Some(task), ..uses })?;
        }
        Ok(receipt)
    }

    /// Applies the outcome of a finished task to the entries created in it: they count as verified,
    /// or get the failed-work flag.
    pub(super) fn apply_task_outcome(
        &mut self,
        batch: &Batch,
        task: TaskId,
        is_success: bool,
    ) -> Result<(), Rejection> {
        for (entry, _) in batch.task_parts(task)?.into_iter().filter(|(_, part)| part.is_made) {
            // An unreadable entry does not block the others.
            if is_success {
                if let Some(uses) = Error::unless_damaged(batch.uses(entry))? {
                    batch.put_uses(entry, UseRow { is_from_success: true, ..uses })?;
                }
                continue;
            }
            // A retracted entry stays retracted.
            let view = Error::unless_damaged(self.view(batch, entry))?.flatten();
            let is_unflagged = |view: &EntryView| {
                view.state == State::Live && view.text(Register::FAILED_WORK).is_none()
            };
            if view.as_ref().is_some_and(is_unflagged) {
                let flag = ClaimEdit::Set(Register::FAILED_WORK, "true".to_owned());
                was_written(self.claim(batch, entry, &[flag]))?;
            }
        }
        Ok(())
    }
}

/// Whether two citations name the same evidence, regardless of author and time.
fn is_same(one: &Citation, other: &Citation) -> bool {
    one.evidence_type == other.evidence_type
        && one.evidence_ref == other.evidence_ref
        && one.is_context == other.is_context
}

/// Whether an entry still equals the new one.
fn is_as_made(view: &EntryView, new: &NewEntry) -> bool {
    let place = view.origin.as_ref().map(|origin| (origin.workspace(), origin.memory()));
    view.state == State::Live
        && view.archived.is_none()
        && place == Some((new.workspace, new.memory))
        && view.kind() == Some(new.kind)
        && view.text(Register::TITLE) == Some(new.title.as_str())
        && view.text(Register::CONTENT) == Some(new.content.as_str())
}
