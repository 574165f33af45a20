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
/// Records that are read to tell whether enough has changed: observations stand between texts.
const COUNTED_RECORDS_MAX: usize = 10_000;

/// Whether a record can change what an entry says.
fn is_text(facet: Facet) -> bool {
    matches!(facet, Facet::Claims | Facet::Retraction)
}

/// Whether so many entries have changed since a place. It is taken for so where as many records as are
/// read do not tell: a pass is bounded as well, and moves the place on.
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
