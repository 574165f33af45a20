//! Priming: which callers were served an entry before they say something about it.
//!
//! Serving an entry primes a caller if it happened in the caller's task or a parent task, to its
//! session, to its client process, or recently to its user. A client process that connected before
//! the entry was first served to the user's other clients is distinguishable from them, and only
//! from them: a caller whose client process is unknown may belong to any of the user's clients.

use super::command::Confirmation;
use super::record_intake::Transaction;
use super::tasks::chain;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::time::{FUTURE_SKEW_MAX, WallTime};
use klnode_home::CallerLabel;
use klnode_store::client_process::{ClientProcess, SpeakerRow};
use klnode_store::findings::FindingRow;
use klnode_store::recent_readers::{READERS_MAX, ReaderRow};
use klnode_store::row_types::UseRow;
use klnode_store::served_sessions::Recipient;
use klnode_store::{Batch, Error};
use std::collections::BTreeSet;

/// Most servings to one kind of caller that are logged per priming period, the time in which the
/// same user cannot confirm independently.
const LOGGED_SERVINGS_MAX: u32 = 12;

/// Most tasks whose entries one task knows through its chain and through conclusions.
const READ_TASKS_MAX: usize = 512;

/// A caller that makes a statement about an entry, with the time of the statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    /// The caller's operating-system user; unknown for callers over TCP.
    pub(super) uid: Option<u32>,
    client_process: ClientProcess,
    session: Option<CallerLabel>,
    at: WallTime,
}

impl Speaker {
    /// The caller that recorded a finding, at the time it did.
    pub(super) fn of_finding(row: &FindingRow) -> Self {
        let speaker = row.speaker.as_ref();
        Self {
            uid: speaker.and_then(SpeakerRow::user),
            client_process: speaker.map(SpeakerRow::client_process).unwrap_or_default(),
            session: row.session,
            at: row.at,
        }
    }
}

impl Transaction<'_> {
    /// The caller of the current command.
    pub(super) fn speaker(&self) -> Speaker {
        let caller = self.caller.unwrap_or_default();
        let (uid, client_process, session) = (caller.uid, caller.client_process, caller.session);
        Speaker { uid, client_process, session, at: self.now }
    }

    /// Returns how a speaker working in a task was served the entry before its statement, or
    /// `None`.
    pub(super) fn priming_cause(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<Option<Confirmation>, Error> {
        if let Some(priming_cause) = priming_in_chain(batch, task, entry)? {
            return Ok(Some(priming_cause));
        }
        if self.was_served_in_session(batch, task, entry, speaker.session)? {
            return Ok(Some(Confirmation::ServedToSession));
        }
        if was_served_to_client(batch, entry, speaker.client_process)? {
            return Ok(Some(Confirmation::ServedToClient));
        }
        let is_primed = self.was_served_to_user(batch, entry, speaker)?;
        Ok(is_primed.then_some(Confirmation::ServedToUser))
    }

    /// Notes that the caller was served these entries. Does nothing without a caller.
    pub(super) fn note_read(&self, batch: &Batch, entries: &[EntryId]) -> Result<(), Error> {
        let Some(caller) = self.caller else { return Ok(()) };
        if let ClientProcess::Known(lineage) = caller.client_process {
            let below = lineage.processes().map(Recipient::below_client);
            for recipient in lineage.nearest().map(Recipient::client).into_iter().chain(below) {
                batch.mark_served(recipient, entries, self.now)?;
            }
        }
        let primed_for = self.writer.tasks.user_primed_for;
        let granularity = primed_for / LOGGED_SERVINGS_MAX;
        let until = self.latest();
        for entry in entries {
            let uses = batch.uses(*entry)?;
            let mut readers = uses.readers.unwrap_or_default();
            let is_own = |row: &ReaderRow| row.user() == caller.uid;
            let own = readers.iter().position(|row| row.as_ref().is_some_and(is_own));
            let is_free = |row: &ReaderRow| !row.is_recent(self.now, primed_for, until);
            let free = readers.iter().position(|row| row.as_ref().is_none_or(is_free));
            // If all places are taken, every user counts as a reader of the entry.
            let Some(place) = own.or(free) else { continue };
            let row = readers[place].filter(is_own);
            let mut row = row.unwrap_or_else(|| ReaderRow::new(caller.uid));
            if row.note(caller.client_process, self.now, granularity) {
                readers[place] = Some(row);
                batch.put_uses(*entry, UseRow { readers: Some(readers), ..uses })?;
            }
        }
        Ok(())
    }

    /// Whether the entry or a duplicate of it was served to the speaker's user in a way that primes
    /// the speaker.
    fn was_served_to_user(
        &self,
        batch: &Batch,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<bool, Error> {
        // An unknown user matches every user, as reader and as speaker.
        let is_same = |row: &ReaderRow| {
            row.user().is_none() || speaker.uid.is_none() || row.user() == speaker.uid
        };
        // A statement stamped by a fast clock cannot be later than now.
        let (at, primed_for) = (speaker.at.min(self.now), self.writer.tasks.user_primed_for);
        for duplicate in batch.group(entry)? {
            let readers = batch.uses(duplicate)?.readers.unwrap_or_default();
            let recent = readers.into_iter().flatten();
            let recent = recent.filter(|row| row.is_recent(at, primed_for, self.latest()));
            let recent: Vec<ReaderRow> = recent.collect();
            let primes = |row: &ReaderRow| is_same(row) && self.primes(row, speaker, at);
            if recent.len() == READERS_MAX || recent.iter().any(primes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether servings to a speaker's user prime the speaker. Only the last servings are stored,
    /// so those after the statement count as well.
    fn primes(&self, row: &ReaderRow, speaker: &Speaker, at: WallTime) -> bool {
        let since = at.minus(self.writer.tasks.user_primed_for);
        let is_recent = |time: WallTime| (since..=self.latest()).contains(&time);
        let is_typed = speaker.client_process == ClientProcess::Terminal;
        if is_recent(row.at) || (is_typed && row.typed.is_some_and(is_recent)) {
            return true;
        }
        let is_distinguishable = match speaker.client_process {
            ClientProcess::Known(lineage) => {
                row.clients_first(at, self.latest()).is_none_or(|first| lineage.connected < first)
            }
            ClientProcess::Unknown | ClientProcess::Terminal => false,
        };
        !is_distinguishable && row.clients_last(self.latest()).is_some_and(is_recent)
    }

    /// Later times were stamped by a wrong clock and are ignored.
    fn latest(&self) -> WallTime {
        self.now.plus(FUTURE_SKEW_MAX)
    }

    /// Whether the entry or a duplicate of it was served to the speaking session, or to one in
    /// which a task of the chain was begun.
    fn was_served_in_session(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        session: Option<CallerLabel>,
    ) -> Result<bool, Error> {
        let mut sessions: BTreeSet<CallerLabel> =
            self.session().into_iter().chain(session).collect();
        for one in chain(batch, task)? {
            sessions.extend(batch.task(one)?.and_then(|row| row.session));
        }
        is_any_primed(batch, entry, sessions.iter().map(Recipient::session))
    }
}

/// Whether the entry or a duplicate of it was served to a caller of the same client: one of the two
/// callers has the other's nearest client process among its ancestors.
fn was_served_to_client(
    batch: &Batch,
    entry: EntryId,
    process: ClientProcess,
) -> Result<bool, Error> {
    let ClientProcess::Known(lineage) = process else { return Ok(false) };
    let below = lineage.nearest().map(Recipient::below_client);
    let above = lineage.processes().map(Recipient::client);
    is_any_primed(batch, entry, below.into_iter().chain(above))
}

fn is_any_primed(
    batch: &Batch,
    entry: EntryId,
    recipients: impl Iterator<Item = Recipient>,
) -> Result<bool, Error> {
    let group = batch.group(entry)?;
    for recipient in recipients {
        for duplicate in &group {
            if batch.is_primed(recipient, *duplicate)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The tasks whose entries a task knows: its chain, and the parts whose conclusions it could read.
fn read_from(batch: &Batch, task: TaskId) -> Result<Vec<TaskId>, Error> {
    let mut tasks = chain(batch, task)?;
    let mut at = 0;
    // A conclusion may rest on conclusions of further parts.
    while let Some(link) = tasks.get(at).copied() {
        let concluded = batch.task(link)?.map(|row| row.concluded).unwrap_or_default();
        let new: Vec<TaskId> = concluded.into_iter().filter(|part| !tasks.contains(part)).collect();
        let room = READ_TASKS_MAX.saturating_sub(tasks.len());
        tasks.extend(new.into_iter().take(room));
        at += 1;
    }
    Ok(tasks)
}

/// How the nearest task of a chain met the entry or a duplicate of it: it was served there, or
/// written there. An author that repeats its own text confirms nothing.
fn priming_in_chain(
    batch: &Batch,
    task: TaskId,
    entry: EntryId,
) -> Result<Option<Confirmation>, Error> {
    let group = batch.group(entry)?;
    for one in read_from(batch, task)? {
        for duplicate in &group {
            let part = batch.task_part(one, *duplicate)?;
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
