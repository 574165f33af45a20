//! Usage accounting: the cost of answers, and the outcome of served entries.

use super::record_intake::Transaction;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_store::daily_usage::{Amount, UsageAxis};
use klnode_store::row_types::{CallerRow, ServedRow};
use klnode_store::tasks::EntryFeedback;
use klnode_store::{Batch, Error};
use std::collections::BTreeMap;

impl Transaction<'_> {
    /// Counts an answer for its caller, and each hit for its author and the peers that delivered
    /// it. An answer without hits counts as an abstention.
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
        batch.add_usage(self.now.day(), UsageAxis::Caller, &named(&caller), &asked)?;
        let mut by: BTreeMap<(UsageAxis, AuthorId), Amount> = BTreeMap::new();
        for (entry, hit) in row.entries.iter().zip(&row.cost.hits) {
            let Some(author) = hit.author else { continue };
            let one = Amount { hits: 1, tokens: hit.tokens.into(), ..Amount::default() };
            for holder in self.account_holders(batch, *entry, author)? {
                by.entry(holder).or_default().add(&one);
            }
        }
        for ((axis, holder), amount) in by {
            let amount = Amount { answers: 1, ..amount };
            batch.add_usage(self.now.day(), axis, &holder.to_string(), &amount)?;
        }
        Ok(())
    }

    /// Counts a helpful or harmful use of an entry for the reporting caller, for the author of its
    /// text and for the peers that delivered it. In a task the text is the one served there.
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

    /// Counts the feedback about an entry at the end of a task. Helpful use is counted when credit
    /// is given.
    pub(super) fn count_feedback(
        &self,
        batch: &Batch,
        entry: EntryId,
        said: EntryFeedback,
        task: TaskId,
    ) -> Result<(), Error> {
        let amount = match said {
            EntryFeedback::Used
            | EntryFeedback::Partial
            | EntryFeedback::Composite
            | EntryFeedback::Incidental => return Ok(()),
            EntryFeedback::Dismissed => Amount { dismissed: 1, ..Amount::default() },
            EntryFeedback::Avoided => Amount { avoided: 1, ..Amount::default() },
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
        batch.add_usage(
            day,
            UsageAxis::Caller,
            &named(&self.caller.unwrap_or_default()),
            amount,
        )?;
        let Some(view) = self.view(batch, entry)? else { return Ok(()) };
        let text = self.observed_text(batch, (entry, &view), task)?;
        let Some(author) = text.authors.first() else { return Ok(()) };
        for (axis, holder) in self.account_holders(batch, entry, *author)? {
            batch.add_usage(day, axis, &holder.to_string(), amount)?;
        }
        Ok(())
    }

    /// The author of a text, and the delivering peers if the author is not this person.
    fn account_holders(
        &self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<Vec<(UsageAxis, AuthorId)>, Error> {
        let mut account_holders = vec![(UsageAxis::Author, author)];
        if !self.writer.mine.contains(&author) {
            let bringers = batch.bringers(entry)?.into_iter();
            account_holders.extend(bringers.map(|peer| (UsageAxis::Peer, peer)));
        }
        Ok(account_holders)
    }
}

/// The name under which the usage of a caller is counted.
fn named(caller: &CallerRow) -> String {
    match (caller.client, caller.uid) {
        (Some(client), _) => client.to_string(),
        (None, Some(uid)) => format!("uid {uid}"),
        (None, None) => "unknown".to_owned(),
    }
}
