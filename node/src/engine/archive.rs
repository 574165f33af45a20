//! The archive rule: what was served in many root tasks, with nothing that speaks for it, is put away;
//! and what brings it back.

use super::command::{Receipt, Rejection};
use super::confirm::Confirmation;
use super::ingest::Ingest;
use super::tasks::{TaskDone, taken, unless_damaged};
use crate::store::rows::UseRow;
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::origin::Origin;
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use klnode_scoring::outcome::Served;
use klnode_scoring::predicate::Predicate;

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

/// What a look into a caller's checkout said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Entries of which all that they depend on holds.
    pub held: Vec<EntryId>,
    /// Entries of which something is broken.
    pub broken: Vec<EntryId>,
    /// Whether the operator lets it count as an observation of this node.
    pub is_counted: bool,
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
        let records = batch.records(entry)?;
        let origin = Entry::assemble(records.iter()).origin;
        let is_strict =
            matches!(origin, Some(Origin::Imported { format, .. }) if format == STRICT_FORMAT);
        Ok(!is_strict)
    }

    /// Counts an independent confirmation: the entry is fresh, and back if only the rule put it away.
    pub(super) fn confirm_independent(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        task: Option<TaskId>,
    ) -> Result<(), Rejection> {
        // Brought back first, since what is archived counts for less.
        let uses = batch.uses(entry)?;
        if uses.is_put_away {
            let claim = self.claim(batch, entry, &[Claim::Archive(Presence::Withdrawn)]);
            let is_put_away = !taken(claim)?;
            batch.put_uses(entry, UseRow { is_put_away, ..uses })?;
        }
        let of = Observation::Confirmation;
        self.observe(batch, entry, (of, Thousandths::ONE), task)?;
        Ok(self.speak_for(batch, entry, By::Independent)?)
    }

    /// The person behind this node confirms an entry. That is independent whatever was served, once
    /// a day.
    pub(super) fn confirm_as_person(
        &mut self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<TaskDone, Rejection> {
        self.must_hold(batch, entry)?;
        let today = Some(self.now.day());
        if batch.uses(entry)?.person_confirmed == today {
            self.confirm_primed(batch, entry)?;
            return Ok(TaskDone::Confirmed(Confirmation::PersonAgain));
        }
        self.confirm_independent(batch, entry, None)?;
        self.observe(batch, entry, (Observation::Success, Thousandths::ONE), None)?;
        let uses = batch.uses(entry)?;
        batch.put_uses(entry, UseRow { person_confirmed: today, ..uses })?;
        Ok(TaskDone::Confirmed(Confirmation::Person))
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
            (after.unarchived, after.prediction_errors) = (Some(self.now.day()), 0);
        }
        if after != uses {
            batch.put_uses(entry, after)?;
        }
        Ok(receipt)
    }

    /// Whether a look was at this person's own alone: at a text of theirs, by what they say that it
    /// depends on. Whoever else writes a text, or adds to what it depends on, would have this node
    /// observe as they please.
    fn is_own_look(&self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        let mine = &self.writer.mine;
        let Some(view) = self.view(batch, entry)? else { return Ok(false) };
        let is_own_text = view.author(mine).is_some_and(|author| mine.contains(&author));
        let sets = [TextSet::DEPENDS_ON, TextSet::ANCHORS];
        let elements = sets.iter().filter_map(|set| view.texts.get(set)).flatten();
        let mut predicates = elements.filter(|(text, _)| Predicate::read(text).is_ok());
        Ok(is_own_text && predicates.all(|(_, by)| !by.is_disjoint(mine)))
    }

    /// Notes what a look into a caller's checkout said. Each entry counts once a day, if at all.
    pub(super) fn note_looks(&mut self, batch: &Batch, looks: &Looks) -> Result<(), Rejection> {
        let today = self.now.day();
        let held = looks.held.iter().map(|entry| (*entry, Observation::Success));
        let broken = looks.broken.iter().map(|entry| (*entry, Observation::Failure));
        for (entry, of) in held.chain(broken) {
            if batch.view_row(entry)?.is_none_or(|row| row.is_forgotten) {
                continue;
            }
            if of == Observation::Success {
                let uses = batch.uses(entry)?;
                batch.put_uses(entry, UseRow { held: Some(self.now), ..uses })?;
                self.speak_for(batch, entry, By::Anchor)?;
            }
            let uses = batch.uses(entry)?;
            let is_due = looks.is_counted && uses.look_counted != Some(today);
            if is_due && self.is_own_look(batch, entry)? {
                batch.put_uses(entry, UseRow { look_counted: Some(today), ..uses })?;
                taken(self.observe(batch, entry, (of, Thousandths::ONE), None))?;
            }
        }
        Ok(())
    }
}
