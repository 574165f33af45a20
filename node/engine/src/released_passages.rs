//! Keeps which flagged passages of an entry the operator released for peers and agents.

use super::command::Rejection;
use super::record_intake::Transaction;
use klnode_crdt::ids::EntryId;
use klnode_store::Batch;

/// Most released passages of one entry.
const RELEASED_PASSAGES_MAX: usize = 512;

impl Transaction<'_> {
    /// Adds passages to the released ones. Where there are too many, only the new ones stay: the
    /// entry waits again if it still has an older one.
    pub(super) fn release_passages(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        numbers: &[u64],
    ) -> Result<(), Rejection> {
        self.must_hold(batch, entry)?;
        let mut overlay = batch.overlay(entry)?;
        if overlay.released.len() + numbers.len() > RELEASED_PASSAGES_MAX {
            overlay.released.clear();
        }
        overlay.released.extend(numbers.iter().take(RELEASED_PASSAGES_MAX));
        overlay.released.sort_unstable();
        overlay.released.dedup();
        batch.put_overlay(entry, &overlay)?;
        Ok(())
    }
}
