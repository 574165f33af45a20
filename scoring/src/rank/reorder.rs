//! Reordering that keeps clearly more relevant entries above less relevant ones.
//!
//! Thompson samples and evidence of weak answers may reorder an answer. Neither may move an entry
//! below one that is clearly less relevant. Separate from `rank`, which computes the initial order.

use super::{RankCandidate, RankedEntry, outranks_by_origin, relevance};
use klnode_crdt::ids::EntryId;

/// Lead in relevance from which an entry is clearly more relevant.
pub const RELEVANCE_MARGIN: f64 = 0.05;
/// Tolerance for floating-point differences: 0.35 - 0.30 is slightly less than 0.05.
const ROUNDING: f64 = 1e-9;

/// Whether `one` is more relevant than `other` by [`RELEVANCE_MARGIN`] or more.
#[must_use]
pub fn is_clearly_more_relevant(one: &RankCandidate, other: &RankCandidate) -> bool {
    relevance(one) - relevance(other) >= RELEVANCE_MARGIN - ROUNDING
}

/// Sorts `placed` by descending `score`, except that a pair keeps its present order where
/// `stays_above(upper, lower)` holds. Entries of equal score keep their present order.
///
/// The kept pairs all agree with the present order, so they contain no cycle: each step takes the
/// highest score among the entries with no kept entry left above them.
#[must_use]
pub fn reorder(
    placed: &[RankedEntry],
    score: impl Fn(&RankedEntry) -> f64,
    stays_above: impl Fn(&RankedEntry, &RankedEntry) -> bool,
) -> Vec<RankedEntry> {
    let scores: Vec<f64> = placed.iter().map(score).collect();
    let kept_below: Vec<Vec<usize>> = (0..placed.len())
        .map(|upper| {
            let lower = upper + 1..placed.len();
            lower.filter(|lower| stays_above(&placed[upper], &placed[*lower])).collect()
        })
        .collect();
    let mut blockers = vec![0_usize; placed.len()];
    for lower in kept_below.iter().flatten() {
        blockers[*lower] += 1;
    }
    let mut left: Vec<usize> = (0..placed.len()).collect();
    let mut order = Vec::with_capacity(placed.len());
    while !left.is_empty() {
        let free = (0..left.len()).filter(|at| blockers[left[*at]] == 0);
        // The first of equal scores: `max_by` alone would take the last.
        let best = free.rev().max_by(|a, b| scores[left[*a]].total_cmp(&scores[left[*b]]));
        let next = left.remove(best.expect("the first of the present order is never blocked"));
        for lower in &kept_below[next] {
            blockers[*lower] -= 1;
        }
        order.push(placed[next]);
    }
    order
}

/// Lowers each entry of a ranking by its `demotion` for weak answers to similar questions.
///
/// An entry moves below another only if its demotion is greater. It moves below no clearly less
/// relevant entry; if its relevance reaches `answer_min`, it moves below no entry that does not
/// reach it.
#[must_use]
pub fn demote(
    ranked: &[RankedEntry],
    demotion: impl Fn(EntryId) -> f64,
    answer_min: f64,
) -> Vec<RankedEntry> {
    let answers = |one: &RankCandidate| relevance(one) >= answer_min;
    let stays_above = |upper: &RankedEntry, lower: &RankedEntry| {
        let (upper, lower) = (&upper.candidate, &lower.candidate);
        demotion(upper.entry) <= demotion(lower.entry)
            || is_clearly_more_relevant(upper, lower)
            || outranks_by_origin(upper, lower)
            || (answers(upper) && !answers(lower))
    };
    reorder(ranked, |one| one.score - demotion(one.candidate.entry), stays_above)
}

#[cfg(test)]
mod tests;
