//! Bounded collections of the best items.
//!
//! The order is total (higher cosine first, then the lower id), so that equal vectors come out in
//! the same order wherever their rows are.

use klnode_crdt::ids::EntryId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Factor by which `PromisingRows` collects more rows than wanted before it discards the worst.
const GATHERED_SHARE: usize = 4;

/// The best hits so far.
#[derive(Debug)]
pub(super) struct TopHits {
    /// The worst hit is on top and is replaced first.
    heap: BinaryHeap<VectorHit>,
    count: usize,
    /// The minimum cosine of a new hit.
    bar: f32,
}

impl TopHits {
    /// Room for `count` hits.
    pub(super) fn new(count: usize) -> Self {
        // Cosines begin at -1, so the first bar is below all of them.
        let bar = if count == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(count), count, bar }
    }

    /// True if a hit may be among the best. For almost every row of a scan this check is the only
    /// work.
    #[inline]
    pub(super) fn reaches(&self, cosine: f32) -> bool {
        cosine >= self.bar
    }

    /// The minimum cosine of a new hit.
    pub(super) fn bar(&self) -> f32 {
        self.bar
    }

    /// Inserts a hit if it is among the best.
    pub(super) fn offer(&mut self, cosine: f32, entry: &EntryId) {
        if !self.reaches(cosine) {
            return;
        }
        let hit = VectorHit { cosine, entry: *entry };
        if self.heap.len() < self.count {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
        if self.heap.len() == self.count {
            self.bar = self.heap.peek().map_or(f32::INFINITY, |worst| worst.cosine);
        }
    }

    /// The best hits of both.
    pub(super) fn with(mut self, other: Self) -> Self {
        for hit in other.heap {
            self.offer(hit.cosine, &hit.entry);
        }
        self
    }

    /// The number of hits.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The hits, best first.
    pub(super) fn into_hits(self) -> Vec<(EntryId, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|hit| (hit.entry, hit.cosine)).collect()
    }
}

/// The rows with the highest upper bounds so far: collected, and reduced whenever there are too
/// many.
#[derive(Debug)]
pub(super) struct PromisingRows {
    gathered: Vec<(f32, usize)>,
    count: usize,
    bar: f32,
}

impl PromisingRows {
    /// Room for `count` rows.
    pub(super) fn new(count: usize) -> Self {
        let bar = if count == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { gathered: Vec::with_capacity(count * GATHERED_SHARE), count, bar }
    }

    /// A row is collected if its upper bound is above this value.
    #[inline]
    pub(super) fn bar(&self) -> f32 {
        self.bar
    }

    /// Adds a row whose upper bound is above the bar.
    pub(super) fn offer(&mut self, bound: f32, row: usize) {
        self.gathered.push((bound, row));
        if self.gathered.len() >= self.count * GATHERED_SHARE {
            self.cut();
        }
    }

    /// Keeps only the best.
    fn cut(&mut self) {
        let Some(last) = self.count.checked_sub(1) else { return self.gathered.clear() };
        if last < self.gathered.len() {
            let (_, lowest, _) =
                self.gathered.select_nth_unstable_by(last, |a, b| b.0.total_cmp(&a.0));
            self.bar = lowest.0;
            self.gathered.truncate(self.count);
        }
    }

    /// The rows in ascending order.
    pub(super) fn rows(mut self) -> Vec<usize> {
        self.cut();
        let mut rows: Vec<usize> = self.gathered.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }
}

/// Ordered from best to worst.
#[derive(Clone, Copy, Debug)]
struct VectorHit {
    cosine: f32,
    entry: EntryId,
}

impl Ord for VectorHit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then_with(|| self.entry.cmp(&other.entry))
    }
}

impl PartialOrd for VectorHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VectorHit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for VectorHit {}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn the_best_hits_match_a_full_sort() {
        fn law(scores: Vec<(i8, u8)>, count: u8) -> bool {
            let id = |low: u8| EntryId::from_bytes([low; 16]);
            let mut top = TopHits::new(usize::from(count));
            let mut all: Vec<(EntryId, f32)> = Vec::new();
            for (score, low) in scores {
                let score = f32::from(score / 16) / 16.0;
                top.offer(score, &id(low));
                all.push((id(low), score));
            }
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(usize::from(count));
            top.into_hits() == all
        }
        quickcheck(law as fn(Vec<(i8, u8)>, u8) -> bool);
    }

    #[test]
    fn the_rows_with_the_highest_bounds_are_kept() {
        fn law(bounds: Vec<i8>, count: u8) -> bool {
            let count = usize::from(count % 8);
            let mut promising = PromisingRows::new(count);
            for (row, bound) in bounds.iter().enumerate() {
                if f32::from(*bound) > promising.bar() {
                    promising.offer(f32::from(*bound), row);
                }
            }
            let rows = promising.rows();
            let mut found: Vec<i8> = rows.iter().map(|row| bounds[*row]).collect();
            let mut expected = bounds;
            for bounds in [&mut found, &mut expected] {
                bounds.sort_unstable_by(|a, b| b.cmp(a));
            }
            expected.truncate(count);
            rows.is_sorted() && found == expected
        }
        quickcheck(law as fn(Vec<i8>, u8) -> bool);
    }
}
