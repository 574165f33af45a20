//! Where entries come from: another entry that was promoted, or a task in which they were made, and
//! what the end of the task says of those.

use super::command::{NewEntry, Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::taken;
use crate::store::places::PromotionRow;
use crate::store::rows::UseRow;
use crate::store::{Batch, Error};
use klnode_crdt::claims::Citation;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::lww::Register;
use klnode_crdt::view::{State, View};
use klnode_crdt::writer::Claim;

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
    /// Writes what an entry is promoted to, and of what it was made.
    pub(super) fn promote(
        &mut self,
        batch: &Batch,
        promotion: &Promotion,
    ) -> Result<Receipt, Rejection> {
        let Promotion { new, source, approved_by } = promotion;
        self.must_hold(batch, *source)?;
        if let Some((entry, view)) = self.promoted_before(batch, promotion)? {
            self.cite_what_lacks(batch, (entry, &view), &new.citations)?;
            return Ok(Receipt::Known(entry));
        }
        let receipt = self.create(batch, new)?;
        if let Receipt::Created(entry) = receipt {
            let row = PromotionRow { source: *source, at: self.now, approved_by: *approved_by };
            batch.put_promotion(entry, &row)?;
            // What nobody finished is not finished by having been promoted.
            let of = batch.uses(*source)?;
            if !of.is_from_success {
                let uses = batch.uses(entry)?;
                batch.put_uses(entry, UseRow { made_in: of.made_in, ..uses })?;
            }
        }
        Ok(receipt)
    }

    /// The entry that the same promotion made before, if it still says the same in the same place.
    fn promoted_before(
        &self,
        batch: &Batch,
        promotion: &Promotion,
    ) -> Result<Option<(EntryId, View)>, Rejection> {
        let Promotion { new, source, approved_by } = promotion;
        for (entry, row) in batch.promotions_of(*source)? {
            // Whoever signs wants an entry that is signed for.
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

    /// Evidence that came since goes to the entry that is there: it makes no other of it.
    fn cite_what_lacks(
        &mut self,
        batch: &Batch,
        (entry, view): (EntryId, &View),
        citations: &[Citation],
    ) -> Result<(), Rejection> {
        let is_cited = |of: &Citation| view.citations.keys().any(|held| is_same(held, of));
        let lacking = citations.iter().filter(|of| !is_cited(of));
        let claims: Vec<Claim> = lacking.cloned().map(Claim::Cite).collect();
        if !claims.is_empty() {
            self.claim(batch, entry, &claims)?;
        }
        Ok(())
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
            // Whoever reads the entry asks what became of the task.
            let uses = batch.uses(entry)?;
            batch.put_uses(entry, UseRow { made_in: Some(task), ..uses })?;
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

/// Whether two cite the same, whoever does, and whenever.
fn is_same(one: &Citation, other: &Citation) -> bool {
    one.evidence_type == other.evidence_type
        && one.evidence_ref == other.evidence_ref
        && one.is_context == other.is_context
}

/// Whether an entry stands as a new one would.
fn is_as_made(view: &View, new: &NewEntry) -> bool {
    let place = view.origin.as_ref().map(|origin| (origin.workspace(), origin.memory()));
    view.state == State::Live
        && view.archived.is_none()
        && place == Some((new.workspace, new.memory))
        && view.kind() == Some(new.kind)
        && view.text(Register::TITLE) == Some(new.title.as_str())
        && view.text(Register::CONTENT) == Some(new.content.as_str())
}
