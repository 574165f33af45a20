//! Confirmations: independent or primed, and what an independent one counts.
//!
//! Which it is, is decided here, from what this node served and to whom, and never taken from a
//! caller.

use super::archive::By;
use super::command::Rejection;
use super::ingest::Ingest;
use super::tasks::{TaskDone, chain, is_observed, root, taken};
use crate::store::rows::{CallerRow, READERS_MAX, ReaderRow, UseRow};
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error, Label};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{FUTURE_SKEW_MAX, WallTime};
use klnode_crdt::writer::Claim;
use std::collections::BTreeSet;
use std::time::Duration;

/// So long after reading something a user is taken to be in the conversation that read it, by whatever
/// names its parts call themselves. A day would leave a person with several agents no way to confirm
/// anything: each of them is the same user.
const READ_LASTS: Duration = Duration::from_secs(3_600);
/// That somebody reads on is not written down more often.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(300);

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
    /// Primed: the same user has read it lately, and nothing tells that session from this one.
    ServedToUser,
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
        let confirmation = match self.met(batch, task, entry, (None, self.now))? {
            _ if is_lowered => Confirmation::Lowered,
            Some(met) => met,
            None if is_confirmed(batch, root, entry)? => Confirmation::Again,
            None => Confirmation::Independent,
        };
        if confirmation != Confirmation::Independent {
            self.confirm_primed(batch, entry)?;
            return Ok(confirmation);
        }
        self.count_confirmation(batch, task, root, entry)?;
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

    /// Where whoever works in a task, or has spoken from another session, had met an entry when they
    /// spoke, if they had.
    pub(super) fn met(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        (session, spoken): (Option<Label>, WallTime),
    ) -> Result<Option<Confirmation>, Error> {
        if let Some(met) = met_in_chain(batch, task, entry)? {
            return Ok(Some(met));
        }
        if self.was_served_in_session(batch, task, entry, session)? {
            return Ok(Some(Confirmation::ServedToSession));
        }
        Ok(self.was_read(batch, entry, spoken)?.then_some(Confirmation::ServedToUser))
    }

    /// Notes that the caller's user has read these entries, whoever that is. Sessions have the names
    /// they give themselves: one conversation may have several, and what it was served under one of
    /// them it has read under all.
    pub(super) fn note_read(&self, batch: &Batch, entries: &[EntryId]) -> Result<(), Error> {
        let Some(CallerRow { uid: user, .. }) = self.caller else { return Ok(()) };
        let lately = self.now.minus(READ_AGAIN_AFTER);
        let is_recent = |row: ReaderRow| self.is_since(row, self.now.minus(READ_LASTS));
        for entry in entries {
            let uses = batch.uses(*entry)?;
            let mut readers = uses.readers.unwrap_or_default();
            let own = readers.iter().position(|row| row.is_some_and(|row| row.user() == user));
            if own.and_then(|place| readers[place]).is_some_and(|row| self.is_since(row, lately)) {
                continue;
            }
            let free = readers.iter().position(|row| row.is_none_or(|row| !is_recent(row)));
            // Where there is no room, everybody counts as having read it.
            let Some(place) = own.or(free) else { continue };
            readers[place] = Some(ReaderRow::new(user, self.now));
            batch.put_uses(*entry, UseRow { readers: Some(readers), ..uses })?;
        }
        Ok(())
    }

    /// Whether the caller's user had lately read an entry, or one that says the same, when they spoke.
    /// Who is not known may be any user, who reads as well as who speaks. Only the last time is kept:
    /// what was read after that counts as well.
    fn was_read(&self, batch: &Batch, entry: EntryId, spoken: WallTime) -> Result<bool, Error> {
        let caller = self.caller.and_then(|caller| caller.uid);
        let is_caller = |row: &ReaderRow| {
            let reader = row.user();
            reader.is_none() || caller.is_none() || reader == caller
        };
        // Whatever was said under a clock that stood ahead was said by now.
        let since = spoken.min(self.now).minus(READ_LASTS);
        for equal in batch.group(entry)? {
            let readers = batch.uses(equal)?.readers.unwrap_or_default();
            let recent = readers.into_iter().flatten().filter(|row| self.is_since(*row, since));
            let recent: Vec<ReaderRow> = recent.collect();
            if recent.len() == READERS_MAX || recent.iter().any(is_caller) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something was read at a moment or after it. One that lies ahead was noted under a wrong
    /// clock, and would hold until its time has come.
    fn is_since(&self, row: ReaderRow, since: WallTime) -> bool {
        (since..=self.now.plus(FUTURE_SKEW_MAX)).contains(&row.at)
    }

    /// Whether an entry, or one that says the same, was served to the session that speaks, or to one
    /// in which a task of the chain was begun.
    fn was_served_in_session(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        session: Option<Label>,
    ) -> Result<bool, Error> {
        let mut sessions: BTreeSet<Label> = self.session().into_iter().chain(session).collect();
        for one in chain(batch, task)? {
            sessions.extend(batch.task(one)?.and_then(|row| row.session));
        }
        for equal in batch.group(entry)? {
            for session in &sessions {
                if batch.is_primed(session, equal)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// How the nearest task of a chain met an entry, or one that says the same: it was served there, or
/// written. Who wrote it confirms nothing by saying it again.
fn met_in_chain(
    batch: &Batch,
    task: TaskId,
    entry: EntryId,
) -> Result<Option<Confirmation>, Error> {
    let group = batch.group(entry)?;
    for one in chain(batch, task)? {
        for equal in &group {
            let part = batch.task_part(one, *equal)?;
            if part.order.is_some() {
                return Ok(Some(Confirmation::Served(one)));
            }
            if part.is_made {
                return Ok(Some(Confirmation::Written(one)));
            }
        }
    }
    Ok(None)
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
