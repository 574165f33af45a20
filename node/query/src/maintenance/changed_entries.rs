//! Follows the feed from a position and lists the changed entries in order.

use super::PassState;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_index::entry_vectors::VectorGeneration;
use klnode_store::maintenance_journal::ServiceRow;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pass may read this many records for each entry it examines; most entries have only a few.
const RECORDS_PER_ENTRY: usize = 16;
/// Maximum number of records read to decide whether a pass is due; observations lie between text
/// changes.
const COUNTED_RECORDS_MAX: usize = 10_000;

/// True if records of this facet can change the text of an entry.
fn is_text(facet: Facet) -> bool {
    matches!(facet, Facet::Claims | Facet::Retraction)
}

/// True if at least `enough` entries have changed since a position. Also true if the limit of
/// records is reached first: the pass that follows is bounded too, and advances the position.
pub(super) fn is_enough(snapshot: &Snapshot, from: Seq, enough: u64) -> Result<bool, Error> {
    let mut entries = BTreeSet::new();
    for (read, change) in snapshot.changes_since(from)?.enumerate() {
        if read >= COUNTED_RECORDS_MAX {
            return Ok(true);
        }
        let Some(change) = Error::unless_damaged(change)? else { continue };
        if is_text(change.record.header().facet) {
            entries.insert(change.record.entry());
        }
        if entries.len() as u64 >= enough {
            return Ok(true);
        }
    }
    Ok(false)
}

impl PassState<'_> {
    /// Calls `examine` for every changed entry until the limits of the pass are reached; returns
    /// the new position. Entries that the vector index has not processed are left for a later pass.
    pub(super) fn follow(
        &mut self,
        from: ServiceRow,
        mut examine: impl FnMut(&mut Self, &Arc<VectorGeneration>, EntryId) -> Result<(), Error>,
    ) -> Result<ServiceRow, Error> {
        let head = self.reading.snapshot.head();
        self.found.total = head.0;
        let state = self.index.state();
        let (Some(meaning), Some(vectors)) = (self.index.meaning(), state.vectors) else {
            self.found.waits_for = Some("the vector index, which is being built");
            (self.found.done, self.found.is_through) = (from.position.0, true);
            return Ok(from);
        };
        let goal = head.min(vectors);
        let (mut at, mut seen, mut records) = (from.position, BTreeSet::new(), 0);
        self.found.is_through = true;
        for change in self.reading.snapshot.changes_since(from.position)? {
            let Some(change) = Error::unless_damaged(change)? else { continue };
            if change.seq > goal {
                break;
            }
            let entry = change.record.entry();
            if is_text(change.record.header().facet) && !seen.contains(&entry) {
                if seen.len() >= self.params.entries_max || self.is_spent() {
                    self.found.is_through = false;
                    break;
                }
                seen.insert(entry);
                examine(self, &meaning, entry)?;
                self.found.examined += 1;
            }
            at = change.seq;
            records += 1;
            if records >= self.params.entries_max.saturating_mul(RECORDS_PER_ENTRY) {
                self.found.is_through = at >= goal;
                break;
            }
        }
        if self.found.is_through {
            at = at.max(goal);
        }
        self.found.done = at.0;
        Ok(ServiceRow { position: at, ..from })
    }
}
