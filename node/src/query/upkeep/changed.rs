//! Which entries have changed since a place in the feed, in the order in which they did.

use super::Work;
use crate::index::meaning::Meaning;
use crate::store::rows::Seq;
use crate::store::upkeep::ServiceRow;
use crate::store::{Error, Snapshot};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Records that are read for each entry that a pass may look at: most entries have a few.
const RECORDS_PER_ENTRY: usize = 16;

/// Whether a record can change what an entry says.
fn is_text(facet: Facet) -> bool {
    matches!(facet, Facet::Claims | Facet::Retraction)
}

/// How many entries have changed since a place, as far as `enough`.
pub(super) fn count(snapshot: &Snapshot, from: Seq, enough: u64) -> Result<u64, Error> {
    let mut entries = BTreeSet::new();
    let records_max = (enough as usize).saturating_mul(RECORDS_PER_ENTRY);
    for change in snapshot.changes_since(from)?.take(records_max) {
        let Some(change) = Error::unless_damaged(change)? else { continue };
        if is_text(change.record.header().facet) {
            entries.insert(change.record.entry());
        }
        if entries.len() as u64 >= enough {
            break;
        }
    }
    Ok(entries.len() as u64)
}

impl Work<'_> {
    /// Hands every entry that has changed to `examine`, until the pass is spent; returns where it
    /// stands. What the vectors have not yet taken in is left for later.
    pub(super) fn follow(
        &mut self,
        from: ServiceRow,
        mut examine: impl FnMut(&mut Self, &Arc<Meaning>, EntryId) -> Result<(), Error>,
    ) -> Result<ServiceRow, Error> {
        let head = self.reading.snapshot.head();
        self.found.total = head.0;
        let state = self.index.state();
        let (Some(meaning), Some(vectors)) = (self.index.meaning(), state.vectors) else {
            self.found.waits_for = Some("vectors, which are being made");
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
