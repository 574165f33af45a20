//! Local data of an import: prior evidence, and the words of the file.
//!
//! Prior evidence is observations of another system. The store keeps it in the entry's local row and
//! in no record, so no peer receives it. A reader adds it to the displayed confidence and ranks by
//! it. It affects no status, gate, filter or confirmation.
//!
//! The words of the file are displayed and exported. Of them only the newest date has an effect: an
//! entry is at least as old as its file says, so a stale corpus arrives stale. A later import takes
//! the date that a person has edited in the file since, at most the time of that import.

use super::command::{PriorEvidence, Receipt, Rejection};
use super::record_intake::Transaction;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_store::Batch;
use klnode_store::imports::{IMPORT_WORDS_BYTES_MAX, ImportRow};
use klnode_store::row_types::{PriorRow, UseRow};

impl Transaction<'_> {
    /// Stores prior evidence for an entry. Only the first import that supplies some counts; a
    /// second import, or an entry this node lacks, changes nothing.
    pub(super) fn note_prior(
        &self,
        batch: &Batch,
        entry: EntryId,
        prior: PriorEvidence,
    ) -> Result<Receipt, Rejection> {
        let is_held = batch.view_row(entry)?.is_some_and(|row| !row.is_forgotten);
        let uses = batch.uses(entry)?;
        let PriorEvidence { successes, failures } = prior.limit_mass();
        if !is_held || uses.prior.is_some() || (successes.0 == 0 && failures.0 == 0) {
            return Ok(Receipt::Known(entry));
        }
        let (successes, failures) = (successes.0, failures.0);
        let prior = Some(PriorRow { day: self.now.day(), successes, failures });
        batch.put_uses(entry, UseRow { prior, ..uses })?;
        Ok(Receipt::Noted)
    }

    /// Stores the words of the file that an entry was imported from, in place of earlier ones. An
    /// entry that this node lacks changes nothing. The date is at most the time of the import, and at
    /// the first import at most the arrival of the entry.
    pub(super) fn note_source(
        &self,
        batch: &Batch,
        entry: EntryId,
        row: &ImportRow,
        dated: Option<WallTime>,
    ) -> Result<Receipt, Rejection> {
        let held = batch.view_row(entry)?.filter(|row| !row.is_forgotten);
        let Some(held) = held.filter(|_| row.words.len() <= IMPORT_WORDS_BYTES_MAX) else {
            return Ok(Receipt::Known(entry));
        };
        let earlier = batch.import(entry)?;
        if earlier.as_ref() == Some(row) {
            return Ok(Receipt::Known(entry));
        }
        batch.put_import(entry, row)?;
        // A first import makes no entry younger that this node holds already.
        let latest = if earlier.is_some() { self.now } else { self.now.min(held.first_seen) };
        let dated = dated.map(|date| date.min(latest).day());
        if dated.is_some() {
            batch.put_uses(entry, UseRow { dated, ..batch.uses(entry)? })?;
        }
        Ok(Receipt::Done(batch.head()?))
    }
}
