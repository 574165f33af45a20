//! Clusters of entries that are served together and have many prediction errors.
//!
//! The whole graph of pairs may be large, and a cluster matters only if all its entries have many
//! prediction errors; so the search begins at these entries and follows their pairs.

use crate::ReadContext;
use klnode_crdt::ids::EntryId;
use klnode_scoring::cooccurrence;
use klnode_scoring::insight::EntryInsightFacts;
use klnode_store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The weight from which two entries belong to one cluster, as in maintenance.
const HEAVY_MIN: f64 = 2.0;
/// Maximum number of entries whose pairs are read.
const FOLLOWED_MAX: usize = 1_000;

impl ReadContext<'_> {
    /// Clusters in which every entry has more than `above` prediction errors.
    pub(super) fn weak_clusters(
        &self,
        entries: &[EntryInsightFacts],
        above: u32,
    ) -> Result<Vec<Vec<EntryId>>, Error> {
        let errors: BTreeMap<EntryId, u32> =
            entries.iter().map(|entry| (entry.entry, entry.prediction_errors)).collect();
        let weak = errors.iter().filter(|(_, errors)| **errors > above);
        let mut next: Vec<EntryId> = weak.map(|(entry, _)| *entry).collect();
        let (mut followed, mut pairs) = (BTreeSet::new(), Vec::new());
        while let Some(entry) = next.pop() {
            if followed.len() == FOLLOWED_MAX || !followed.insert(entry) {
                continue;
            }
            for other in self.heavy_pairs(entry)? {
                pairs.push((entry, other));
                next.push(other);
            }
        }
        let mut clusters = Vec::new();
        for cluster in cooccurrence::clusters(&pairs) {
            let mut is_weak = true;
            for entry in &cluster {
                let known = errors.get(entry).copied();
                let stored = || Ok::<_, Error>(self.snapshot.uses(*entry)?.prediction_errors);
                is_weak &= known.map_or_else(stored, Ok)? > above;
            }
            clusters.extend(is_weak.then_some(cluster));
        }
        Ok(clusters)
    }

    /// The entries that are often served with an entry.
    fn heavy_pairs(&self, entry: EntryId) -> Result<Vec<EntryId>, Error> {
        let (mut heavy, params) = (Vec::new(), &self.reader.numbers.cooccurrence);
        for row in self.snapshot.pairs_of(entry)? {
            let ((_, other), pair) = row?;
            let days = self.now.day().days_since(pair.at.day());
            let weight = cooccurrence::decay_weight(pair.weight, days, params);
            if weight.is_some_and(|weight| weight >= HEAVY_MIN) {
                heavy.push(other);
            }
        }
        Ok(heavy)
    }
}
