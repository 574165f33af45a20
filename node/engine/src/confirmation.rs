//! Confirmations: how they are classified as independent or primed, and how an independent one
//! counts.
//!
//! The engine decides the class itself and never accepts it from a caller. `priming` decides
//! whether the caller was served the entry before.

use super::auto_archive::SupportingEvidence;
use super::caller_priming::Speaker;
use super::command::{Confirmation, Rejection, TaskReceipt, was_written};
use super::record_intake::Transaction;
use super::tasks::{is_observed, root};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::tally::Observation;
use klnode_store::row_types::{UseRow, VoiceRow, VoicesRow};
use klnode_store::tasks::PartRow;
use klnode_store::{Batch, Error};

impl Transaction<'_> {
    /// Counts a primed confirmation, which is no evidence.
    pub(super) fn confirm_primed(&self, batch: &Batch, entry: EntryId) -> Result<(), Rejection> {
        self.must_hold(batch, entry)?;
        let mut uses = batch.uses(entry)?;
        uses.primed_confirmations = uses.primed_confirmations.saturating_add(1);
        Ok(batch.put_uses(entry, uses)?)
    }

    pub(super) fn confirm_in(
        &mut self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        is_lowered: bool,
    ) -> Result<Confirmation, Rejection> {
        self.must_hold(batch, entry)?;
        self.open_task(batch, task)?;
        let root = root(batch, task)?;
        let speaker = self.speaker();
        let confirmation = match self.priming_cause(batch, task, entry, &speaker)? {
            _ if is_lowered => Confirmation::Lowered,
            Some(met) => met,
            None if is_confirmed(batch, root, entry)? => Confirmation::Again,
            None if self.is_confirmed_today(batch, entry, &speaker)? => Confirmation::UserAgain,
            None => Confirmation::Independent,
        };
        if confirmation != Confirmation::Independent {
            self.confirm_primed(batch, entry)?;
            return Ok(confirmation);
        }
        self.count_confirmation(batch, task, root, entry)?;
        self.note_confirmed_today(batch, entry, &speaker)?;
        Ok(confirmation)
    }

    /// Counts an independent confirmation, which is also a success.
    pub(super) fn count_confirmation(
        &mut self,
        batch: &Batch,
        task: TaskId,
        root: TaskId,
        entry: EntryId,
    ) -> Result<(), Rejection> {
        self.confirm_independent(batch, entry, Some(task))?;
        let part = batch.task_part(task, entry)?;
        if !is_observed(batch, task, entry)? {
            let success = (Observation::Success, Thousandths::ONE);
            self.observe(batch, entry, success, Some(task))?;
            batch.put_task_part(task, entry, &PartRow { is_observed: true, ..part })?;
        }
        let part = batch.task_part(root, entry)?;
        batch.put_task_part(root, entry, &PartRow { is_confirmed: true, ..part })?;
        Ok(self.note_support_in(batch, root, entry, SupportingEvidence::Independent)?)
    }

    /// Counts an independent confirmation. It makes the entry fresh, and restores it if only the
    /// archive rule had archived it.
    fn confirm_independent(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        task: Option<TaskId>,
    ) -> Result<(), Rejection> {
        // Restore first, since an observation of an archived entry counts for less.
        let uses = batch.uses(entry)?;
        if uses.is_put_away {
            let claim = self.claim(batch, entry, &[ClaimEdit::Archive(Presence::Withdrawn)]);
            let is_put_away = !was_written(claim)?;
            batch.put_uses(entry, UseRow { is_put_away, ..uses })?;
        }
        let of = Observation::Confirmation;
        self.observe(batch, entry, (of, Thousandths::ONE), task)?;
        Ok(self.note_support(batch, entry, SupportingEvidence::Independent)?)
    }

    /// Records a confirmation by the person who owns this node. It counts as independent regardless
    /// of serving, once a day.
    pub(super) fn confirm_as_person(
        &mut self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<TaskReceipt, Rejection> {
        self.must_hold(batch, entry)?;
        let today = Some(self.now.day());
        if batch.uses(entry)?.person_confirmed == today {
            self.confirm_primed(batch, entry)?;
            return Ok(TaskReceipt::Confirmed(Confirmation::PersonAgain));
        }
        self.confirm_independent(batch, entry, None)?;
        self.observe(batch, entry, (Observation::Success, Thousandths::ONE), None)?;
        let uses = batch.uses(entry)?;
        batch.put_uses(entry, UseRow { person_confirmed: today, ..uses })?;
        Ok(TaskReceipt::Confirmed(Confirmation::Person))
    }

    /// Whether an agent of the speaker's user independently confirmed the entry or a duplicate of
    /// it today. An unknown user matches every user.
    pub(super) fn is_confirmed_today(
        &self,
        batch: &Batch,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<bool, Error> {
        let is_same = |voice: &VoiceRow| {
            voice.uid.is_none() || speaker.uid.is_none() || voice.uid == speaker.uid
        };
        for duplicate in batch.group(entry)? {
            let voices = self.voices_today(batch, duplicate)?.of;
            let is_known = voices.iter().flatten().any(|voice| voice.uid == speaker.uid);
            let is_full = voices.iter().all(Option::is_some) && !is_known;
            let mut confirmed = voices.iter().flatten().filter(|voice| voice.is_confirmed);
            if is_full || confirmed.any(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes that an agent of the speaker's user independently confirmed the entry today.
    pub(super) fn note_confirmed_today(
        &self,
        batch: &Batch,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<(), Error> {
        let mut voices = self.voices_today(batch, entry)?;
        let is_own = |voice: &Option<VoiceRow>| voice.is_some_and(|one| one.uid == speaker.uid);
        let own = voices.of.iter().position(is_own);
        let Some(place) = own.or_else(|| voices.of.iter().position(Option::is_none)) else {
            return Ok(());
        };
        let voice = voices.of[place].unwrap_or(VoiceRow { uid: speaker.uid, ..<_>::default() });
        voices.of[place] = Some(VoiceRow { is_confirmed: true, ..voice });
        let uses = batch.uses(entry)?;
        batch.put_uses(entry, UseRow { voices: Some(voices), ..uses })
    }

    fn voices_today(&self, batch: &Batch, entry: EntryId) -> Result<VoicesRow, Error> {
        let day = self.now.day();
        let today = batch.uses(entry)?.voices.filter(|voices| voices.day == day);
        Ok(today.unwrap_or(VoicesRow { day, ..VoicesRow::default() }))
    }
}

/// Whether the entry or a duplicate of it was confirmed independently in a root task.
pub(super) fn is_confirmed(batch: &Batch, root: TaskId, entry: EntryId) -> Result<bool, Error> {
    for duplicate in batch.group(entry)? {
        if batch.task_part(root, duplicate)?.is_confirmed {
            return Ok(true);
        }
    }
    Ok(false)
}
