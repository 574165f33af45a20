//! Where entries belong: checkouts that are mapped, entries that are promoted or made in a task.

use super::command::{NewEntry, Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::taken;
use crate::store::places::{CHECKOUTS_MAX, CheckoutRow, PromotionRow};
use crate::store::rows::UseRow;
use crate::store::{Batch, Error};
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::lww::Register;
use klnode_crdt::view::{State, View};
use klnode_crdt::writer::Claim;

/// Bytes of what says which repository a checkout is of, or where it lies.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// One thing to do about a checkout.
#[derive(Clone, Debug)]
pub enum CheckoutAct {
    /// Maps one to a workspace, under the hash of its identity.
    Map([u8; 16], CheckoutRow),
    /// Maps it no longer.
    Unmap([u8; 16]),
}

/// An entry that is made of another.
#[derive(Clone, Debug)]
pub struct Promotion {
    /// What it is to be.
    pub new: NewEntry,
    /// What it is made of.
    pub source: EntryId,
    /// The person's key that signed for it, where there is one.
    pub approved_by: Option<AuthorId>,
}

impl Ingest<'_> {
    pub(super) fn about_checkout(&self, batch: &Batch, act: &CheckoutAct) -> Result<(), Rejection> {
        match act {
            CheckoutAct::Unmap(at) => batch.drop_checkout(*at)?,
            CheckoutAct::Map(at, row) => {
                let longest = row.identity.len().max(row.folder.len());
                if longest > TEXT_BYTES_MAX {
                    let problem = format!("has {longest} bytes; {TEXT_BYTES_MAX} are allowed");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
                if !batch.put_checkout(*at, row)? {
                    let problem = format!("is one too many: {CHECKOUTS_MAX} are mapped already");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
            }
        }
        Ok(())
    }

    /// Writes what an entry is promoted to, and of what it was made.
    pub(super) fn promote(
        &mut self,
        batch: &Batch,
        promotion: &Promotion,
    ) -> Result<Receipt, Rejection> {
        let Promotion { new, source, approved_by } = promotion;
        self.must_hold(batch, *source)?;
        let receipt = self.create(batch, new)?;
        if let Receipt::Created(entry) = receipt {
            let row = PromotionRow { source: *source, at: self.now, approved_by: *approved_by };
            batch.put_promotion(entry, &row)?;
        }
        Ok(receipt)
    }

    /// Writes an entry in a task: it is told there that the entry is its own.
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
        }
        Ok(receipt)
    }

    /// A task is over: what was written in it comes from a success, or says that it does not.
    pub(super) fn judge_made(
        &mut self,
        batch: &Batch,
        task: TaskId,
        is_success: bool,
    ) -> Result<(), Rejection> {
        for (entry, _) in batch.task_parts(task)?.into_iter().filter(|(_, part)| part.is_made) {
            // What cannot be read holds nothing up.
            if is_success {
                if let Some(uses) = Error::unless_damaged(batch.uses(entry))? {
                    batch.put_uses(entry, UseRow { is_from_success: true, ..uses })?;
                }
                continue;
            }
            // What was taken back stays so.
            let view = Error::unless_damaged(self.view(batch, entry))?.flatten();
            let is_unflagged = |view: &View| {
                view.state == State::Live && view.text(Register::FAILED_WORK).is_none()
            };
            if view.as_ref().is_some_and(is_unflagged) {
                let flag = Claim::Set(Register::FAILED_WORK, "true".to_owned());
                taken(self.claim(batch, entry, &[flag]))?;
            }
        }
        Ok(())
    }
}
