//! The best few of many: heaps that hold no more than were asked for.
//!
//! The order is total (higher cosine first, then the lower id), so that equal vectors come out in
//! the same order however their rows stand.

use klnode_crdt::ids::EntryId;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The best hits so far.
#[derive(Debug)]
pub(super) struct Top {
    /// The worst is at the head, to be pushed out first.
    heap: BinaryHeap<Hit>,
    count: usize,
    /// What a hit must reach: below it nothing can enter.
    bar: f32,
}

impl Top {
    /// Room for this many.
    pub(super) fn new(count: usize) -> Self {
        // Cosines begin at -1, so the first bar is below all.
        let bar = if count == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(count), count, bar }
    }

    /// Whether a hit may be among the best. Of almost every row of a scan this is all that is asked.
    #[inline]
    pub(super) fn reaches(&self, cosine: f32) -> bool {
        cosine >= self.bar
    }

    /// Takes a hit if it is among the best.
    pub(super) fn offer(&mut self, cosine: f32, entry: &EntryId) {
        if !self.reaches(cosine) {
            return;
        }
        let hit = Hit { cosine, entry: *entry };
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

    /// The best of both.
    pub(super) fn with(mut self, other: Self) -> Self {
        for hit in other.heap {
            self.offer(hit.cosine, &hit.entry);
        }
        self
    }

    /// How many were found.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The hits, best first.
    pub(super) fn into_hits(self) -> Vec<(EntryId, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|hit| (hit.entry, hit.cosine)).collect()
    }
}

/// The rows with the highest bounds so far.
#[derive(Debug)]
pub(super) struct Promising {
    /// The lowest is at the head, to be pushed out first.
    heap: BinaryHeap<Reverse<Bounded>>,
    count: usize,
    bar: f32,
}

impl Promising {
    /// Room for this many.
    pub(super) fn new(count: usize) -> Self {
        let bar = if count == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(count + 1), count, bar }
    }

    /// Whether a row may be among them.
    #[inline]
    pub(super) fn reaches(&self, bound: f32) -> bool {
        bound > self.bar
    }

    /// Takes a row that reaches the bar.
    pub(super) fn offer(&mut self, bound: f32, row: usize) {
        self.heap.push(Reverse(Bounded { bound, row }));
        if self.heap.len() > self.count {
            self.heap.pop();
        }
        if self.heap.len() == self.count {
            self.bar = self.heap.peek().map_or(self.bar, |Reverse(lowest)| lowest.bound);
        }
    }

    /// The rows, in no order that means anything.
    pub(super) fn rows(self) -> impl Iterator<Item = usize> {
        self.heap.into_iter().map(|Reverse(Bounded { row, .. })| row)
    }
}

/// Ordered by the bound.
#[derive(Clone, Copy, Debug)]
struct Bounded {
    bound: f32,
    row: usize,
}

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then_with(|| self.row.cmp(&other.row))
    }
}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bounded {}

/// Ordered from the best to the worst.
#[derive(Clone, Copy, Debug)]
struct Hit {
    cosine: f32,
    entry: EntryId,
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then_with(|| self.entry.cmp(&other.entry))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Hit {}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn the_best_are_those_of_a_full_sort_in_any_order_of_arrival() {
        fn law(scores: Vec<(i8, u8)>, count: u8) -> bool {
            let id = |low: u8| EntryId::from_bytes([low; 16]);
            let mut top = Top::new(usize::from(count));
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
}
