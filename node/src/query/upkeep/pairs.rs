//! Pairs of entries that are served together: what has faded goes, and what is heavy hangs together.
//!
//! A pair that is lighter than the least counts for nothing from the day it is, wherever it is read;
//! here its row goes too. So nothing anybody could see changes, and nothing is to be undone.

use super::Work;
use crate::store::Error;
use crate::store::upkeep::ServiceRow;
use klnode_crdt::ids::EntryId;
use klnode_scoring::cooccurrence;

/// From this weight on two entries hang together: a new pair has one.
const HEAVY_MIN: f64 = 2.0;
/// Heavy pairs that are remembered in one walk.
const HEAVY_MAX: usize = 10_000;
/// Clusters that are told of.
const CLUSTERS_MAX: usize = 100;
/// Rows that a pass reads for each entry that it may look at.
const ROWS_PER_ENTRY: u64 = 50;

/// What a walk through the pairs has met, and what the last one made of it.
#[derive(Debug, Default)]
pub(super) struct Heavy {
    met: Vec<(EntryId, EntryId)>,
    pub(super) clusters: Vec<Vec<EntryId>>,
}

impl Work<'_> {
    pub(super) fn pairs(
        &mut self,
        from: ServiceRow,
        heavy: &mut Heavy,
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
            match cooccurrence::faded(pair.weight, days, params) {
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

/// How far a walk by id is, in thousandths: ids are hashes, and lie evenly.
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
