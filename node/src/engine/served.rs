//! What follows from having served something: uses, weak answers, and what belongs together.

use super::ingest::Ingest;
use super::tasks::root;
use crate::store::rows::{PairRow, ServedRow};
use crate::store::sessions::Recipient;
use crate::store::weak_answers::Counted;
use crate::store::{Batch, Error};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_scoring::cooccurrence::{self, Meeting, Params};
use klnode_scoring::weakness::Sketch;

/// Pairs are formed among so many of the first that were served, or used.
const PAIRED_ENTRIES_MAX: usize = 5;

impl Ingest<'_> {
    /// Writes down what was served. What has gone meanwhile is left out.
    pub(super) fn note_served(&mut self, batch: &Batch, row: &ServedRow) -> Result<(), Error> {
        if row.entries.is_empty() {
            // A question without an answer costs time, and leaves nothing to remember.
            return self.count_answer(batch, row);
        }
        let mut row = row.clone();
        let (entries, costs) =
            (std::mem::take(&mut row.entries), std::mem::take(&mut row.cost.hits));
        for (place, entry) in entries.into_iter().enumerate() {
            if batch.view_row(entry)?.is_some_and(|row| !row.is_forgotten) {
                row.entries.push(entry);
                row.cost.hits.extend(costs.get(place));
            }
        }
        if let Some(session) = &row.session {
            batch.prime(Recipient::session(session), &row.entries, self.now)?;
        }
        self.note_read(batch, &row.entries)?;
        if row.is_unrecorded {
            return Ok(());
        }
        if !row.is_unasked {
            self.note_uses(batch, &row)?;
        }
        self.note_in_task(batch, &row)?;
        self.count_answer(batch, &row)?;
        batch.append_served(self.now, &row)
    }

    /// Counts what was served in answer to a question.
    fn note_uses(&self, batch: &Batch, row: &ServedRow) -> Result<(), Error> {
        for (place, entry) in row.entries.iter().enumerate() {
            let mut uses = batch.uses(*entry)?;
            uses.served = uses.served.saturating_add(1);
            // Whoever looks for what is stale does not make it fresh by looking.
            if !row.cost.hits.get(place).is_some_and(|hit| hit.is_stale) {
                // Not the later of both: a clock that stood ahead once would keep it from going stale.
                uses.last_served = self.now;
            }
            batch.put_uses(*entry, uses)?;
            if place == 0 && row.is_weak {
                let task = row.task.as_deref().and_then(TaskId::from_hex);
                self.count_prediction_error(batch, *entry, task, &row.question)?;
            }
        }
        self.meet_all(batch, &row.entries, Meeting::Query)
    }

    /// Counts feedback that an entry misled as a prediction error. The failure itself is evidence and
    /// counted elsewhere.
    pub(super) fn note_feedback(
        &self,
        batch: &Batch,
        entry: EntryId,
        of: Observation,
        task: Option<TaskId>,
    ) -> Result<(), Error> {
        if of == Observation::Failure {
            self.count_prediction_error(batch, entry, task, &Sketch::default())?;
        }
        Ok(())
    }

    /// Counts a prediction error of an entry, with the question that it answered weakly; an empty
    /// sketch if there was none. It counts at most once for each root task, or outside a task for each
    /// user, and day. Every prediction error is counted here.
    pub(super) fn count_prediction_error(
        &self,
        batch: &Batch,
        entry: EntryId,
        task: Option<TaskId>,
        question: &Sketch,
    ) -> Result<Counted, Error> {
        let mut hasher = blake3::Hasher::new();
        match (task, self.caller.and_then(|caller| caller.uid)) {
            (Some(task), _) => hasher.update(b"task").update(root(batch, task)?.as_bytes()),
            (None, Some(uid)) => hasher.update(b"user").update(&uid.to_le_bytes()),
            (None, None) => hasher.update(b"unknown user"),
        };
        let mut by = [0; 8];
        by.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        let mut uses = batch.uses(entry)?;
        let by = (u64::from_le_bytes(by), self.now.day());
        let counted = uses.count_prediction_error(by, question);
        if counted == Counted::Once {
            batch.put_uses(entry, uses)?;
        }
        Ok(counted)
    }

    /// Brings the first of these entries together, each with each.
    pub(super) fn meet_all(
        &self,
        batch: &Batch,
        entries: &[EntryId],
        meeting: Meeting,
    ) -> Result<(), Error> {
        let first = &entries[..entries.len().min(PAIRED_ENTRIES_MAX)];
        for (place, one) in first.iter().enumerate() {
            for two in &first[place + 1..] {
                self.meet(batch, *one, *two, meeting)?;
            }
        }
        Ok(())
    }

    fn meet(
        &self,
        batch: &Batch,
        one: EntryId,
        two: EntryId,
        meeting: Meeting,
    ) -> Result<(), Error> {
        if one == two {
            return Ok(());
        }
        let params: &Params = &self.writer.cooccurrence;
        // One that is damaged is begun anew.
        let pair = Error::unless_damaged(batch.pair(one, two))?.flatten();
        let faded = pair.and_then(|pair| {
            cooccurrence::faded(pair.weight, self.now.day().days_since(pair.at.day()), params)
        });
        let weight = cooccurrence::met(faded, meeting, params);
        batch.put_pair(one, two, PairRow { weight, at: self.now })
    }
}
