//! Maintains pairs of entries that are served together: deletes faded pairs and finds clusters.
//!
//! A pair below the minimum weight has no effect wherever it is read, from the day on which it
//! fades; this service deletes its row. The deletion is therefore invisible and needs no undo.

use super::PassState;
use klnode_crdt::ids::EntryId;
use klnode_scoring::cooccurrence;
use klnode_store::Error;
use klnode_store::maintenance_journal::ServiceRow;
use std::collections::BTreeMap;

/// The weight from which two entries belong to one cluster; a new pair has weight 1.
const HEAVY_MIN: f64 = 2.0;
/// Maximum number of heavy pairs collected in one pass over the table.
const HEAVY_MAX: usize = 10_000;
/// Maximum number of clusters reported.
const CLUSTERS_MAX: usize = 100;
/// A cluster of at least this many entries ...
const DENSE_ENTRIES_MIN: usize = 5;
/// ... whose heavy pairs have a higher mean weight than this is dense.
const DENSE_WEIGHT_ABOVE: f64 = 3.0;
/// Rows that a pass reads per entry that it may examine.
const ROWS_PER_ENTRY: u64 = 50;

/// The heavy pairs collected so far, and the clusters from the last complete run.
#[derive(Debug, Default)]
pub(super) struct HeavyPairs {
    met: Vec<((EntryId, EntryId), f64)>,
    pub(super) clusters: Vec<HeavyCluster>,
}

/// A group of entries that are repeatedly served together.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyCluster {
    /// The entries, sorted by id.
    pub entries: Vec<EntryId>,
    /// The mean weight of their heavy pairs.
    pub mean_weight: f64,
}

impl HeavyCluster {
    /// True if the entries are served together so often that one entry could replace them.
    pub fn is_dense(&self) -> bool {
        self.entries.len() >= DENSE_ENTRIES_MIN && self.mean_weight > DENSE_WEIGHT_ABOVE
    }
}

impl HeavyPairs {
    /// The clusters of the collected pairs, each with its mean weight.
    fn find_clusters(&self) -> Vec<HeavyCluster> {
        let pairs: Vec<(EntryId, EntryId)> = self.met.iter().map(|(pair, _)| *pair).collect();
        let mut clusters = cooccurrence::clusters(&pairs);
        clusters.truncate(CLUSTERS_MAX);
        let place: BTreeMap<EntryId, usize> = (0..)
            .zip(&clusters)
            .flat_map(|(at, entries)| entries.iter().map(move |entry| (*entry, at)))
            .collect();
        let mut sums = vec![(0.0, 0_u32); clusters.len()];
        for ((one, _), weight) in &self.met {
            // Both entries of a pair are in one cluster, or in none.
            if let Some((sum, count)) = place.get(one).and_then(|at| sums.get_mut(*at)) {
                *sum += weight;
                *count += 1;
            }
        }
        let mean = |(sum, count): (f64, u32)| sum / f64::from(count.max(1));
        let cluster = |(entries, sums)| HeavyCluster { entries, mean_weight: mean(sums) };
        clusters.into_iter().zip(sums).map(cluster).collect()
    }
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
                    heavy.met.push(((one, two), weight));
                }
                Some(_) => {}
            }
        }
        if self.found.is_through {
            heavy.clusters = heavy.find_clusters();
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
