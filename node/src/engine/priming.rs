//! Priming: which callers were served an entry before they say something about it.
//!
//! A caller is primed by what was served in its task and above it, to its session, to its client
//! process, and, for a while, to its user. A client process that was connected before the entry was
//! first served to the user's other clients is told apart from them, and only from them: a caller
//! whose client process is unknown may belong to any of the user's clients.

use super::confirm::Confirmation;
use super::ingest::Ingest;
use super::tasks::chain;
use crate::store::client_process::{ClientProcess, SpeakerRow};
use crate::store::findings::FindingRow;
use crate::store::readers::{READERS_MAX, ReaderRow};
use crate::store::rows::UseRow;
use crate::store::sessions::Recipient;
use crate::store::{Batch, Error, Label};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::time::{FUTURE_SKEW_MAX, WallTime};
use std::collections::BTreeSet;

/// Servings to one kind of caller are noted this many times while they prime a user, not more often.
const NOTES_WHILE_PRIMED: u32 = 12;

/// A caller that says something about an entry, and when it said so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    /// The user; unknown over TCP.
    pub(super) uid: Option<u32>,
    client_process: ClientProcess,
    session: Option<Label>,
    at: WallTime,
}

impl Speaker {
    /// The caller that recorded a finding, when it did.
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

impl Ingest<'_> {
    /// The caller that asks for something now.
    pub(super) fn speaker(&self) -> Speaker {
        let caller = self.caller.unwrap_or_default();
        let (uid, client_process, session) = (caller.uid, caller.client_process, caller.session);
        Speaker { uid, client_process, session, at: self.now }
    }

    /// How the speaker, who works in a task, was served an entry before they spoke, if they were.
    pub(super) fn met(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<Option<Confirmation>, Error> {
        if let Some(met) = met_in_chain(batch, task, entry)? {
            return Ok(Some(met));
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

    /// Notes that the caller was served these entries, if anyone asks at all.
    pub(super) fn note_read(&self, batch: &Batch, entries: &[EntryId]) -> Result<(), Error> {
        let Some(caller) = self.caller else { return Ok(()) };
        if let ClientProcess::Known(lineage) = caller.client_process {
            let below = lineage.processes().map(Recipient::below_client);
            for recipient in lineage.nearest().map(Recipient::client).into_iter().chain(below) {
                batch.prime(recipient, entries, self.now)?;
            }
        }
        let primed_for = self.writer.tasks.user_primed_for;
        let granularity = primed_for / NOTES_WHILE_PRIMED;
        let until = self.latest();
        for entry in entries {
            let uses = batch.uses(*entry)?;
            let mut readers = uses.readers.unwrap_or_default();
            let is_own = |row: &ReaderRow| row.user() == caller.uid;
            let own = readers.iter().position(|row| row.as_ref().is_some_and(is_own));
            let is_free = |row: &ReaderRow| !row.is_recent(self.now, primed_for, until);
            let free = readers.iter().position(|row| row.as_ref().is_none_or(is_free));
            // If there is no room, every user counts as having read it.
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

    /// Whether the speaker's user was served an entry, or one that says the same, in a way that
    /// primes the speaker.
    fn was_served_to_user(
        &self,
        batch: &Batch,
        entry: EntryId,
        speaker: &Speaker,
    ) -> Result<bool, Error> {
        // A user that is not known may be any, the reader as well as the speaker.
        let is_same = |row: &ReaderRow| {
            row.user().is_none() || speaker.uid.is_none() || row.user() == speaker.uid
        };
        // A word under a clock that stood ahead was said by now.
        let (at, primed_for) = (speaker.at.min(self.now), self.writer.tasks.user_primed_for);
        for equal in batch.group(entry)? {
            let readers = batch.uses(equal)?.readers.unwrap_or_default();
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

    /// Whether servings to a speaker's user prime the speaker. Only the last ones are kept: those after
    /// the speaker spoke count as well.
    fn primes(&self, row: &ReaderRow, speaker: &Speaker, at: WallTime) -> bool {
        let since = at.minus(self.writer.tasks.user_primed_for);
        let is_lately = |time: WallTime| (since..=self.latest()).contains(&time);
        let is_typed = speaker.client_process == ClientProcess::Terminal;
        if is_lately(row.at) || (is_typed && row.typed.is_some_and(is_lately)) {
            return true;
        }
        let is_told_apart = match speaker.client_process {
            ClientProcess::Known(lineage) => {
                row.clients_first(at, self.latest()).is_none_or(|first| lineage.connected < first)
            }
            ClientProcess::Unknown | ClientProcess::Terminal => false,
        };
        !is_told_apart && row.clients_last(self.latest()).is_some_and(is_lately)
    }

    /// Times after this were noted under a wrong clock, and do not count.
    fn latest(&self) -> WallTime {
        self.now.plus(FUTURE_SKEW_MAX)
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
        is_any_primed(batch, entry, sessions.iter().map(Recipient::session))
    }
}

/// Whether an entry, or one that says the same, was served to a caller that belongs to the same client:
/// one of the two has the other's nearest client process above it.
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
        for equal in &group {
            if batch.is_primed(recipient, *equal)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// How the nearest task of a chain met an entry, or one that says the same: it was served there, or
/// written. A writer confirms nothing by repeating the text.
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
