//! Confirmations: independent or primed, and what an independent one counts.
//!
//! The class is decided here, never taken from a caller. Whether a caller was served the entry before
//! is decided in `priming`.

use super::archive::By;
use super::command::Rejection;
use super::ingest::Ingest;
use super::priming::Speaker;
use super::tasks::{TaskDone, is_observed, root, taken};
use crate::store::rows::{UseRow, VoiceRow, VoicesRow};
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;

/// What a confirmation is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The entry was served nowhere in the task's chain: evidence.
    Independent,
    /// Primed: the entry was served in this task of the chain.
    Served(TaskId),
    /// Primed: the entry was written in this task of the chain.
    Written(TaskId),
    /// Primed: it was confirmed independently in the same root task before.
    Again,
    /// Primed: it was served to the session that confirms, or to one that began a task of the chain.
    ServedToSession,
    /// Primed: it was served to a caller below the same client process.
    ServedToClient,
    /// Primed: the same user was served it lately, and nothing tells that caller from this one.
    ServedToUser,
    /// Primed: another agent of the same user confirmed it independently on the same day.
    UserAgain,
    /// By the person behind this node, with their key: evidence.
    Person,
    /// Primed: the person confirmed it earlier on the same day.
    PersonAgain,
    /// Primed, by the caller's own word.
    Lowered,
}

impl Ingest<'_> {
    /// Notes a confirmation that is no evidence.
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
        let confirmation = match self.met(batch, task, entry, &speaker)? {
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

    /// Counts an independent confirmation, and the success that it is.
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
        Ok(self.speak_for_in(batch, root, entry, By::Independent)?)
    }

    /// Counts an independent confirmation: the entry is fresh, and back if only the rule put it away.
    fn confirm_independent(
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

    /// Whether an agent of the speaker's user confirmed an entry, or one that says the same,
    /// independently today. A user that is not known may be any.
    pub(super) fn is_confirmed_today(
        &self,
        batch: &Batch,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<bool, Error> {
        let is_same = |voice: &VoiceRow| {
            voice.uid.is_none() || speaker.uid.is_none() || voice.uid == speaker.uid
        };
        for equal in batch.group(entry)? {
            let voices = self.voices_today(batch, equal)?.of;
            let is_known = voices.iter().flatten().any(|voice| voice.uid == speaker.uid);
            let is_full = voices.iter().all(Option::is_some) && !is_known;
            let mut confirmed = voices.iter().flatten().filter(|voice| voice.is_confirmed);
            if is_full || confirmed.any(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes that an agent of the speaker's user confirmed an entry independently today.
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

/// Whether an entry, or one that says the same, was confirmed independently in a root task.
pub(super) fn is_confirmed(batch: &Batch, root: TaskId, entry: EntryId) -> Result<bool, Error> {
    for equal in batch.group(entry)? {
        if batch.task_part(root, equal)?.is_confirmed {
            return Ok(true);
        }
    }
    Ok(false)
}
