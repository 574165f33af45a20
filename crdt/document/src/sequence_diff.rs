//! The difference of two sequences, in bounded time and memory.
//!
//! This is Myers' greedy algorithm. Its time is the length of the sequences times the number of
//! differences, and its memory the square of the number of differences, so it gives up at a number that
//! the caller passes and reports everything between the common beginning and the common end as
//! different.

use std::ops::Range;

/// A range of the old sequence and the range of the new sequence that replaces it. At least one of
/// them is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffRange {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The ranges that differ, ascending and with at least one common item between two of them.
pub(crate) fn differences<T: PartialEq>(old: &[T], new: &[T], cost_max: usize) -> Vec<DiffRange> {
    let prefix = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let suffix = ends.take_while(|(old, new)| old == new).count();
    let old_middle = &old_rest[..old_rest.len() - suffix];
    let new_middle = &new_rest[..new_rest.len() - suffix];
    if old_middle.is_empty() && new_middle.is_empty() {
        return Vec::new();
    }
    let whole = DiffRange { old: 0..old_middle.len(), new: 0..new_middle.len() };
    let is_simple = old_middle.is_empty() || new_middle.is_empty();
    let trace = if is_simple { None } else { shortest_path(old_middle, new_middle, cost_max) };
    let ranges = trace.map_or(vec![whole], |trace| ranges(&trace, old_middle, new_middle));
    let shift = |range: Range<usize>| range.start + prefix..range.end + prefix;
    ranges
        .into_iter()
        .map(|range| DiffRange { old: shift(range.old), new: shift(range.new) })
        .collect()
}

/// For each number of differences the furthest old position on each diagonal; `None` if more than
/// `cost_max` differences are needed. Diagonal `k` of step `d` is at index `k + d`.
fn shortest_path<T: PartialEq>(old: &[T], new: &[T], cost_max: usize) -> Option<Vec<Vec<usize>>> {
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for cost in 0..=cost_max.min(old.len() + new.len()) {
        let mut row = vec![0; 2 * cost + 1];
        for index in (0..=2 * cost).step_by(2) {
            let mut x = start(trace.last(), cost, index);
            let mut y = x + cost - index;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            row[index] = x;
            if x == old.len() && y == new.len() {
                trace.push(row);
                return Some(trace);
            }
        }
        trace.push(row);
    }
    None
}

/// Whether the path to this diagonal begins with an insertion: a step down, from the diagonal above.
fn steps_down(previous: &[usize], cost: usize, index: usize) -> bool {
    // In the previous row, diagonal k - 1 is at `index - 2`, and diagonal k + 1 at `index`.
    index == 0 || (index != 2 * cost && previous[index - 2] < previous[index])
}

fn start(previous: Option<&Vec<usize>>, cost: usize, index: usize) -> usize {
    match previous {
        None => 0,
        Some(previous) if steps_down(previous, cost, index) => previous[index],
        Some(previous) => previous[index - 2] + 1,
    }
}

/// Walks the path back, and joins steps without a common item between them.
fn ranges<T>(trace: &[Vec<usize>], old: &[T], new: &[T]) -> Vec<DiffRange> {
    let mut ranges: Vec<DiffRange> = Vec::new();
    let (mut x, mut y) = (old.len(), new.len());
    // The path ends on the diagonal that leads to the ends of both sequences.
    let mut index = x + (trace.len() - 1) - y;
    for cost in (1..trace.len()).rev() {
        let previous = &trace[cost - 1];
        let down = steps_down(previous, cost, index);
        let (from_x, next_index) =
            if down { (previous[index], index) } else { (previous[index - 2], index - 2) };
        // The previous row has one diagonal less on each side.
        let from_y = from_x + (cost - 1) - next_index;
        let (to_x, to_y) = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        match ranges.last_mut() {
            Some(range) if range.old.start == to_x && range.new.start == to_y => {
                range.old.start = from_x;
                range.new.start = from_y;
            }
            _ => ranges.push(DiffRange { old: from_x..to_x, new: from_y..to_y }),
        }
        (x, y) = (from_x, from_y);
        index = next_index;
    }
    debug_assert_eq!(x, y, "the path begins with common items");
    ranges.reverse();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(old: &[u8], new: &[u8], ranges: &[DiffRange]) -> Vec<u8> {
        let mut result = Vec::new();
        let mut at = 0;
        for range in ranges {
            result.extend(&old[at..range.old.start]);
            result.extend(&new[range.new.clone()]);
            at = range.old.end;
        }
        result.extend(&old[at..]);
        result
    }

    #[test]
    fn differences_are_the_shortest() {
        let ranges = differences(b"abcabba", b"cbabac", 100);
        let cost: usize = ranges.iter().map(|range| range.old.len() + range.new.len()).sum();
        assert_eq!(cost, 5);
        assert_eq!(apply(b"abcabba", b"cbabac", &ranges), b"cbabac");
        let one = differences(b"the cat sat", b"the cot sat", 10);
        assert_eq!(one, [DiffRange { old: 5..6, new: 5..6 }]);
        assert_eq!(differences(b"same", b"same", 10), []);
        assert_eq!(differences(b"", b"ab", 10), [DiffRange { old: 0..0, new: 0..2 }]);
    }

    #[test]
    fn too_many_differences_are_reported_as_one() {
        let ranges = differences(b"xabcdey", b"x1a2c3y", 2);
        assert_eq!(ranges, [DiffRange { old: 1..6, new: 1..6 }]);
    }

    #[test]
    fn the_ranges_turn_the_old_sequence_into_the_new_one() {
        fn law(old: Vec<u8>, new: Vec<u8>, cost_max: u8) -> bool {
            // Few values, so that items are common.
            let old: Vec<u8> = old.into_iter().map(|item| item % 4).collect();
            let new: Vec<u8> = new.into_iter().map(|item| item % 4).collect();
            let ranges = differences(&old, &new, usize::from(cost_max));
            let is_apart = ranges.windows(2).all(|pair| {
                pair[0].old.end < pair[1].old.start && pair[0].new.end < pair[1].new.start
            });
            is_apart && apply(&old, &new, &ranges) == new
        }
        quickcheck::quickcheck(law as fn(Vec<u8>, Vec<u8>, u8) -> bool);
    }
}
