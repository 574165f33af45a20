//! Effects of serving entries: use counts, weak answers, and co-occurrence pairs.

use super::record_intake::Transaction;
use super::tasks::root;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_scoring::cooccurrence::{self, PairingCause, Params};
use klnode_scoring::weak_answers::QuerySketch;
use klnode_store::row_types::{PairRow, ServedRow};
use klnode_store::served_sessions::Recipient;
use klnode_store::weak_answers::CountResult;
use klnode_store::{Batch, Error};

/// Co-occurrence pairs are formed among this many first entries of an answer or task.
const PAIRED_ENTRIES_MAX: usize = 5;

impl Transaction<'_> {
    /// Writes a row to the serving log and applies its effects. Entries forgotten meanwhile are
    /// left out.
    pub(super) fn note_served(&mut self, batch: &Batch, row: &ServedRow) -> Result<(), Error> {
        self.note_search(batch, row)?;
        if row.entries.is_empty() && !row.is_weak {
            // An answer that found nothing counts as cost but is not logged.
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
            batch.mark_served(Recipient::session(session), &row.entries, self.now)?;
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

    /// Counts entries that were served in answer to a query.
    fn note_uses(&self, batch: &Batch, row: &ServedRow) -> Result<(), Error> {
        for (place, entry) in row.entries.iter().enumerate() {
            let mut uses = batch.uses(*entry)?;
            uses.served = uses.served.saturating_add(1);
            // A search for stale entries does not make them fresh.
            if !row.cost.hits.get(place).is_some_and(|hit| hit.is_stale) {
                // Do not take the maximum: a clock that was ahead once would keep the entry fresh
                // for too long.
                uses.last_served = self.now;
            }
            batch.put_uses(*entry, uses)?;
            if place == 0 && row.is_weak {
                let task = row.task.as_deref().and_then(TaskId::from_hex);
                self.count_prediction_error(batch, *entry, task, &row.question)?;
            }
        }
        if let Some(entry) = row.first_title.filter(|_| row.is_weak && row.entries.is_empty())
            && batch.view_row(entry)?.is_some_and(|row| !row.is_forgotten)
        {
            let task = row.task.as_deref().and_then(TaskId::from_hex);
            self.count_prediction_error(batch, entry, task, &row.question)?;
        }
        self.strengthen_pairs(batch, &row.entries, PairingCause::Query)
    }

    /// Counts feedback that an entry misled as a prediction error. The failure itself is evidence
    /// and counted elsewhere.
    pub(super) fn note_feedback(
        &self,
        batch: &Batch,
        entry: EntryId,
        of: Observation,
        task: Option<TaskId>,
    ) -> Result<(), Error> {
        if of == Observation::Failure {
            self.count_prediction_error(batch, entry, task, &QuerySketch::default())?;
        }
        Ok(())
    }

    /// Counts a prediction error of an entry, with the query that it answered weakly; an empty
    /// sketch if there was none. It counts at most once a day for each root task or, outside a
    /// task, for each user. Every prediction error is counted here.
    pub(super) fn count_prediction_error(
        &self,
        batch: &Batch,
        entry: EntryId,
        task: Option<TaskId>,
        question: &QuerySketch,
    ) -> Result<CountResult, Error> {
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
        if counted == CountResult::Once {
            batch.put_uses(entry, uses)?;
        }
        Ok(counted)
    }

    /// Strengthens the co-occurrence of the first entries, each with each.
    pub(super) fn strengthen_pairs(
        &self,
        batch: &Batch,
        entries: &[EntryId],
        meeting: PairingCause,
    ) -> Result<(), Error> {
        let first = &entries[..entries.len().min(PAIRED_ENTRIES_MAX)];
        for (place, one) in first.iter().enumerate() {
            for two in &first[place + 1..] {
                self.strengthen_pair(batch, *one, *two, meeting)?;
            }
        }
        Ok(())
    }

    fn strengthen_pair(
        &self,
        batch: &Batch,
        one: EntryId,
        two: EntryId,
        meeting: PairingCause,
    ) -> Result<(), Error> {
        if one == two {
            return Ok(());
        }
        let params: &Params = &self.writer.cooccurrence;
        // A damaged pair starts from zero.
        let pair = Error::unless_damaged(batch.pair(one, two))?.flatten();
        let faded = pair.and_then(|pair| {
            cooccurrence::decay_weight(
                pair.weight,
                self.now.day().days_since(pair.at.day()),
                params,
            )
        });
        let weight = cooccurrence::strengthen(faded, meeting, params);
        batch.put_pair(one, two, PairRow { weight, at: self.now })
    }
}
