//! The archive rule: an entry that was served in many root tasks without any supporting evidence is
//! archived. A person's decision to archive or restore an entry takes precedence over the rule.

use super::command::{Receipt, Rejection, unless_damaged, was_written};
use super::record_intake::Transaction;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_scoring::credit::ServedRank;
use klnode_store::row_types::UseRow;
use klnode_store::tasks::PartRow;
use klnode_store::{Batch, Error};

/// For entries imported from this format only independent confirmations prevent archiving, as that
/// format defines it.
const STRICT_FORMAT: &str = "flux-drive";

/// Evidence in favour of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SupportingEvidence {
    /// The entry was confirmed independently.
    Independent,
    /// The entry was credited with helping in a task.
    Use,
    /// All anchors and predicates of the entry held in a checkout.
    Anchor,
}

impl Transaction<'_> {
    /// Counts a root task against each entry served in it, at most once per entry. Archives the
    /// entries that reach the limit, and returns them.
    pub(super) fn count_served(
        &mut self,
        batch: &Batch,
        root: TaskId,
        served: &[ServedRank],
    ) -> Result<Vec<EntryId>, Rejection> {
        let mut archived = Vec::new();
        for ServedRank { entry, .. } in served {
            if unless_damaged(self.count_one(batch, root, *entry))? == Some(true) {
                archived.push(*entry);
            }
        }
        Ok(archived)
    }

    /// Counts a root task against one entry. Returns whether the entry is archived by it.
    fn count_one(
        &mut self,
        batch: &Batch,
        root: TaskId,
        entry: EntryId,
    ) -> Result<bool, Rejection> {
        let part = batch.task_part(root, entry)?;
        if part.is_counted {
            return Ok(false);
        }
        batch.put_task_part(root, entry, &PartRow { is_counted: true, ..part })?;
        let mut uses = batch.uses(entry)?;
        uses.idle_tasks = uses.idle_tasks.saturating_add(1);
        let mut is_archived = false;
        if uses.idle_tasks >= self.writer.tasks.archive_after {
            // A restored entry starts from zero again.
            uses.idle_tasks = 0;
            if !self.is_archived(batch, entry)? {
                let claim = self.claim(batch, entry, &[ClaimEdit::Archive(Presence::Present)]);
                is_archived = was_written(claim)?;
                uses.is_put_away = is_archived;
            }
        }
        batch.put_uses(entry, uses)?;
        Ok(is_archived)
    }

    fn is_archived(&self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        Ok(self.view(batch, entry)?.is_some_and(|view| view.archived.is_some()))
    }

    /// Notes evidence in favour of an entry: tasks in which it was served before no longer count
    /// against it.
    pub(super) fn note_support(
        &self,
        batch: &Batch,
        entry: EntryId,
        support: SupportingEvidence,
    ) -> Result<(), Error> {
        let uses = batch.uses(entry)?;
        if uses.idle_tasks == 0 || !self.prevents_archiving(batch, entry, support)? {
            return Ok(());
        }
        batch.put_uses(entry, UseRow { idle_tasks: 0, ..uses })
    }

    /// Like [`Self::note_support`], for evidence from a root task, which then does not count
    /// against the entry either.
    pub(super) fn note_support_in(
        &self,
        batch: &Batch,
        root: TaskId,
        entry: EntryId,
        support: SupportingEvidence,
    ) -> Result<(), Error> {
        if !self.prevents_archiving(batch, entry, support)? {
            return Ok(());
        }
        let part = batch.task_part(root, entry)?;
        batch.put_task_part(root, entry, &PartRow { is_counted: true, ..part })?;
        self.note_support(batch, entry, support)
    }

    /// Whether this kind of evidence prevents archiving the entry.
    fn prevents_archiving(
        &self,
        batch: &Batch,
        entry: EntryId,
        support: SupportingEvidence,
    ) -> Result<bool, Error> {
        let has_creator = batch.view_row(entry)?.is_some_and(|row| row.creator.is_some());
        if support == SupportingEvidence::Independent || has_creator {
            return Ok(true);
        }
        let origin = batch.entry(entry)?.origin;
        let is_strict =
            matches!(origin, Some(Origin::Imported { format, .. }) if format == STRICT_FORMAT);
        Ok(!is_strict)
    }

    /// Adds claims on a caller's request. A caller that archives or restores an entry overrides the
    /// rule: no later confirmation restores it automatically, and its task count restarts. A
    /// restored entry also loses its stale mark.
    pub(super) fn claim_by_hand(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        claims: &[ClaimEdit],
    ) -> Result<Receipt, Rejection> {
        let receipt = self.claim(batch, entry, claims)?;
        let wanted = claims.iter().rev().find_map(|claim| match claim {
            ClaimEdit::Archive(presence) => Some(*presence),
            _ => None,
        });
        let Some(presence) = wanted else { return Ok(receipt) };
        let uses = batch.uses(entry)?;
        let mut after = UseRow { idle_tasks: 0, is_put_away: false, ..uses };
        if presence == Presence::Withdrawn {
            // A restored entry counts as fresh, so earlier prediction errors are dropped.
            after.unarchived = Some(self.now.day());
            after = after.without_prediction_errors();
        }
        if after != uses {
            batch.put_uses(entry, after)?;
        }
        Ok(receipt)
    }
}
