//! A change of order that keeps clearly more relevant entries where they are.
//!
//! Samples of confidence and evidence of weak answers may reorder an answer. Neither may cost an
//! entry its place above one that is clearly less relevant. Separate from `rank`, which makes the
//! order that this starts from.

use super::{Candidate, Placed, outranks_by_origin, relevance};
use klnode_crdt::ids::EntryId;

/// An entry that is more relevant by this much is clearly more relevant.
pub const RELEVANCE_MARGIN: f64 = 0.05;
/// Differences of decimal fractions are not exact: 0.35 - 0.30 is a little less than 0.05.
const ROUNDING: f64 = 1e-9;

/// Whether `one` is more relevant than `other` by [`RELEVANCE_MARGIN`] or more.
#[must_use]
pub fn is_clearly_more_relevant(one: &Candidate, other: &Candidate) -> bool {
    relevance(one) - relevance(other) >= RELEVANCE_MARGIN - ROUNDING
}

/// Orders `placed` by descending `score`, except that a pair keeps its present order where
/// `stays_above(upper, lower)` holds. Entries of equal score keep their present order.
///
/// The kept pairs all agree with the present order, so they contain no cycle: each step takes the
/// highest score among the entries with no kept entry left above them.
#[must_use]
pub fn reorder(
    placed: &[Placed],
    score: impl Fn(&Placed) -> f64,
    stays_above: impl Fn(&Placed, &Placed) -> bool,
) -> Vec<Placed> {
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
        // Of equal scores the first: `max_by` would take the last.
        let best = free.rev().max_by(|a, b| scores[left[*a]].total_cmp(&scores[left[*b]]));
        let next = left.remove(best.expect("the first of the present order is never blocked"));
        for lower in &kept_below[next] {
            blockers[*lower] -= 1;
        }
        order.push(placed[next]);
    }
    order
}

/// Lowers each entry of a ranking by its `demotion`, for weak answers to similar questions.
///
/// An entry passes below another only if it loses more than that one. It passes below no entry that is
/// clearly less relevant, and if its relevance reaches `answer_min`, below none whose relevance does
/// not.
#[must_use]
pub fn demote(
    ranked: &[Placed],
    demotion: impl Fn(EntryId) -> f64,
    answer_min: f64,
) -> Vec<Placed> {
    let answers = |one: &Candidate| relevance(one) >= answer_min;
    let stays_above = |upper: &Placed, lower: &Placed| {
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
