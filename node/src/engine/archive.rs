//! The archive rule: what was served in many root tasks, with nothing that speaks for it, is put away;
//! and the word of whoever archives or restores by hand, which goes before the rule.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::{taken, unless_damaged};
use crate::store::rows::UseRow;
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::origin::Origin;
use klnode_crdt::writer::Claim;
use klnode_scoring::outcome::Served;

/// Entries imported in this dialect are kept by independent confirmations alone, as it has it.
const STRICT_FORMAT: &str = "flux-drive";

/// What speaks for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// An independent confirmation.
    Independent,
    /// A use that was credited.
    Use,
    /// What it depends on was looked at in a checkout, and holds.
    Anchor,
}

impl Ingest<'_> {
    /// Counts a root task against what was served in it, once, and puts away what was served in too
    /// many for nothing.
    pub(super) fn count_served(
        &mut self,
        batch: &Batch,
        root: TaskId,
        served: &[Served],
    ) -> Result<Vec<EntryId>, Rejection> {
        let mut archived = Vec::new();
        for Served { entry, .. } in served {
            if unless_damaged(self.count_one(batch, root, *entry))? == Some(true) {
                archived.push(*entry);
            }
        }
        Ok(archived)
    }

    /// Counts a root task against one entry; whether that puts it away.
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
            // What is restored has its chances again.
            uses.idle_tasks = 0;
            if !self.is_archived(batch, entry)? {
                let claim = self.claim(batch, entry, &[Claim::Archive(Presence::Present)]);
                is_archived = taken(claim)?;
                uses.is_put_away = is_archived;
            }
        }
        batch.put_uses(entry, uses)?;
        Ok(is_archived)
    }

    fn is_archived(&self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        Ok(self.view(batch, entry)?.is_some_and(|view| view.archived.is_some()))
    }

    /// Something speaks for an entry: what it was served in before no longer counts against it.
    pub(super) fn speak_for(&self, batch: &Batch, entry: EntryId, by: By) -> Result<(), Error> {
        let uses = batch.uses(entry)?;
        if uses.idle_tasks == 0 || !self.is_heeded(batch, entry, by)? {
            return Ok(());
        }
        batch.put_uses(entry, UseRow { idle_tasks: 0, ..uses })
    }

    /// The same, in a root task, which does not count against it either.
    pub(super) fn speak_for_in(
        &self,
        batch: &Batch,
        root: TaskId,
        entry: EntryId,
        by: By,
    ) -> Result<(), Error> {
        if !self.is_heeded(batch, entry, by)? {
            return Ok(());
        }
        let part = batch.task_part(root, entry)?;
        batch.put_task_part(root, entry, &PartRow { is_counted: true, ..part })?;
        self.speak_for(batch, entry, by)
    }

    /// Whether what speaks for an entry keeps it out of the archive.
    fn is_heeded(&self, batch: &Batch, entry: EntryId, by: By) -> Result<bool, Error> {
        let has_creator = batch.view_row(entry)?.is_some_and(|row| row.creator.is_some());
        if by == By::Independent || has_creator {
            return Ok(true);
        }
        let origin = batch.entry(entry)?.origin;
        let is_strict =
            matches!(origin, Some(Origin::Imported { format, .. }) if format == STRICT_FORMAT);
        Ok(!is_strict)
    }

    /// Claims what somebody wants claimed. Whoever archives or restores an entry by hand has decided:
    /// nothing else brings it back, and it has its chances again; what is restored is not stale.
    pub(super) fn claim_by_hand(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        claims: &[Claim],
    ) -> Result<Receipt, Rejection> {
        let receipt = self.claim(batch, entry, claims)?;
        let wanted = claims.iter().rev().find_map(|claim| match claim {
            Claim::Archive(presence) => Some(*presence),
            _ => None,
        });
        let Some(presence) = wanted else { return Ok(receipt) };
        let uses = batch.uses(entry)?;
        let mut after = UseRow { idle_tasks: 0, is_put_away: false, ..uses };
        if presence == Presence::Withdrawn {
            // It is fresh, like anything that was revived: what made it stale was before.
            after.unarchived = Some(self.now.day());
            after = after.without_prediction_errors();
        }
        if after != uses {
            batch.put_uses(entry, after)?;
        }
        Ok(receipt)
    }
}
