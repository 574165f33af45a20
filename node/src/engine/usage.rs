//! The account of cost and use: what an answer cost, and what came of what was served.

use super::ingest::Ingest;
use crate::store::rows::{CallerRow, ServedRow};
use crate::store::tasks::Said;
use crate::store::usage::{Amount, Axis};
use crate::store::{Batch, Error};
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::tally::Observation;
use std::collections::BTreeMap;

impl Ingest<'_> {
    /// Counts an answer: for who asked, and each hit for its author and for the peers that brought
    /// it. One without a hit is an abstention.
    pub(super) fn count_answer(&self, batch: &Batch, row: &ServedRow) -> Result<(), Error> {
        let hits = row.entries.len() as u64;
        let (answers, abstentions) = if hits == 0 { (0, 1) } else { (1, 0) };
        let asked = Amount {
            answers,
            abstentions,
            hits,
            tokens: row.cost.hits.iter().map(|hit| u64::from(hit.tokens)).sum(),
            millis: row.cost.millis.into(),
            ..Amount::default()
        };
        let caller = self.caller.unwrap_or_default();
        let caller = CallerRow { client: row.client.or(caller.client), ..caller };
        batch.add_usage(self.now.day(), Axis::Caller, &named(&caller), &asked)?;
        let mut by: BTreeMap<(Axis, AuthorId), Amount> = BTreeMap::new();
        for (entry, hit) in row.entries.iter().zip(&row.cost.hits) {
            let Some(author) = hit.author else { continue };
            let one = Amount { hits: 1, tokens: hit.tokens.into(), ..Amount::default() };
            for whose in self.whose(batch, *entry, author)? {
                by.entry(whose).or_default().add(&one);
            }
        }
        for ((axis, whose), amount) in by {
            let amount = Amount { answers: 1, ..amount };
            batch.add_usage(self.now.day(), axis, &whose.to_string(), &amount)?;
        }
        Ok(())
    }

    /// Counts that an entry was of use, or did harm: for who says so, for the author of its text
    /// and for the peers that brought it. In a task that is the text that was served there.
    pub(super) fn count_use(
        &self,
        batch: &Batch,
        entry: EntryId,
        of: Observation,
        task: Option<TaskId>,
    ) -> Result<(), Error> {
        let amount = match of {
            Observation::Success => Amount { used: 1, ..Amount::default() },
            Observation::Failure => Amount { harmful: 1, ..Amount::default() },
            Observation::Confirmation => return Ok(()),
        };
        self.count_of(batch, entry, &amount, task)
    }

    /// Counts what was said of an entry at the end of a task. That it was of use is counted where it
    /// is credited.
    pub(super) fn count_said(
        &self,
        batch: &Batch,
        entry: EntryId,
        said: Said,
        task: TaskId,
    ) -> Result<(), Error> {
        let amount = match said {
            Said::Used => return Ok(()),
            Said::Dismissed => Amount { dismissed: 1, ..Amount::default() },
            Said::Avoided => Amount { avoided: 1, ..Amount::default() },
        };
        self.count_of(batch, entry, &amount, Some(task))
    }

    fn count_of(
        &self,
        batch: &Batch,
        entry: EntryId,
        amount: &Amount,
        task: Option<TaskId>,
    ) -> Result<(), Error> {
        let day = self.now.day();
        batch.add_usage(day, Axis::Caller, &named(&self.caller.unwrap_or_default()), amount)?;
        let Some(view) = self.view(batch, entry)? else { return Ok(()) };
        let text = self.observed_text(batch, (entry, &view), task)?;
        let Some(author) = text.authors.first() else { return Ok(()) };
        for (axis, whose) in self.whose(batch, entry, *author)? {
            batch.add_usage(day, axis, &whose.to_string(), amount)?;
        }
        Ok(())
    }

    /// The author of a text, and the peers that brought it if it is another's.
    fn whose(
        &self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<Vec<(Axis, AuthorId)>, Error> {
        let mut whose = vec![(Axis::Author, author)];
        if !self.writer.mine.contains(&author) {
            let bringers = batch.bringers(entry)?.into_iter();
            whose.extend(bringers.map(|peer| (Axis::Peer, peer)));
        }
        Ok(whose)
    }
}

/// What a caller is counted as.
fn named(caller: &CallerRow) -> String {
    match (caller.client, caller.uid) {
        (Some(client), _) => client.to_string(),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => "unknown".to_owned(),
    }
}
