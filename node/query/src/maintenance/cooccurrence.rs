//! Maintains pairs of entries that are served together: deletes faded pairs and finds clusters.
//!
//! A pair below the minimum weight has no effect wherever it is read, from the day on which it
//! fades; this service deletes its row. The deletion is therefore invisible and needs no undo.

use super::PassState;
use klnode_crdt::ids::EntryId;
use klnode_scoring::cooccurrence;
use klnode_store::Error;
use klnode_store::maintenance::ServiceRow;

/// The weight from which two entries belong to one cluster; a new pair has weight 1.
const HEAVY_MIN: f64 = 2.0;
/// Maximum number of heavy pairs collected in one pass over the table.
const HEAVY_MAX: usize = 10_000;
/// Maximum number of clusters reported.
const CLUSTERS_MAX: usize = 100;
/// Rows that a pass reads per entry that it may examine.
const ROWS_PER_ENTRY: u64 = 50;

/// The heavy pairs collected so far, and the clusters from the last complete run.
#[derive(Debug, Default)]
pub(super) struct HeavyPairs {
    met: Vec<(EntryId, EntryId)>,
    pub(super) clusters: Vec<Vec<EntryId>>,
}

impl PassState<'_> {
    pub(super) fn pairs(
        &mut self,
        from: ServiceRow,
        heavy: &mut HeavyPairs,
    ) -> Result<ServiceRow, Error> {
        if from.walk.is_none() {
            heavy.met.clear();
        }
        let (mut last, mut walk) = (from.walk, from.walk);
        let rows_max = self.params.entries_max as u64 * ROWS_PER_ENTRY;
        self.found.is_through = true;
        for row in self.reading.snapshot.pairs_after(from.walk)? {
            let ((one, two), pair) = row?;
            if last != Some(one) {
                walk = last;
                if self.found.examined >= rows_max || (walk != from.walk && self.is_spent()) {
                    self.found.is_through = false;
                    break;
                }
                last = Some(one);
            }
            self.found.examined += 1;
            if one > two {
                continue;
            }
            let days = self.reading.now.day().days_since(pair.at.day());
            let params = &self.reading.reader.numbers.cooccurrence;
            match cooccurrence::decay_weight(pair.weight, days, params) {
                None => self.found.faded.push((one, two)),
                Some(weight) if weight >= HEAVY_MIN && heavy.met.len() < HEAVY_MAX => {
                    heavy.met.push((one, two));
                }
                Some(_) => {}
            }
        }
        if self.found.is_through {
            heavy.clusters = cooccurrence::clusters(&heavy.met);
            heavy.clusters.truncate(CLUSTERS_MAX);
            heavy.met = Vec::new();
            walk = None;
        }
        (self.found.done, self.found.total) = progress(walk, self.found.is_through);
        let position = self.reading.snapshot.head();
        Ok(ServiceRow { walk, position, ..from })
    }
}

/// The progress of a scan in order of id, in thousandths: ids are hashes and evenly distributed.
pub(super) fn progress(walk: Option<EntryId>, is_through: bool) -> (u64, u64) {
    let done = match walk {
        _ if is_through => 1_000,
        None => 0,
        Some(entry) => {
            let [first, second, ..] = *entry.as_bytes();
            u64::from(u16::from_be_bytes([first, second])) * 1_000 / u64::from(u16::MAX)
        }
    };
    (done, 1_000)
}
