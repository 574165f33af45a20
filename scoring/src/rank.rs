//! Order of the candidates of a query, with every number that led to it.
//!
//! Six signals make a composite. Foreign entries are then discounted by the evidence about them and
//! their author; pinned entries gain a bonus if they pass the relevance gate; and a foreign
//! candidate moves below every local verified entry of the same or higher relevance. This order,
//! computed with the mean of each confidence, is the deterministic order. In the last step the
//! Thompson samples reorder entries of nearly equal relevance (see [`reorder`]). Separate from
//! `token_budget`, which decides how much of the order is shown. This module looks nothing up:
//! signals are passed in as numbers.

mod reorder;
pub mod signals;
mod weights;

pub use reorder::{RELEVANCE_MARGIN, demote, is_clearly_more_relevant, reorder};
pub use weights::{PerSignal, SUM_TOLERANCE, WEIGHT_MAX, Weights, WeightsError};

use crate::clamp_to_unit::unit;
use crate::status::Status;
use klnode_crdt::ids::EntryId;

/// Parameters of ranking other than the weights; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Bonus that a pin adds to the score.
    pub pin_bonus: f64,
    /// Weight of the confidence's lower bound in the factor of a foreign entry.
    pub foreign_evidence: f64,
    /// Weight of the status floor in the factor of a foreign entry.
    pub foreign_status: f64,
    /// Status floor of a verified entry.
    pub floor_verified: f64,
    /// Status floor of an active entry.
    pub floor_active: f64,
    /// Status floor of a candidate.
    pub floor_candidate: f64,
    /// The factor exceeds the author weight by at most this amount.
    pub foreign_over_weight_max: f64,
    /// Lower bound of the factor.
    pub foreign_min: f64,
    /// Upper bound of the factor.
    pub foreign_max: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            pin_bonus: 0.15,
            foreign_evidence: 0.6,
            foreign_status: 0.4,
            floor_verified: 0.80,
            floor_active: 0.55,
            floor_candidate: 0.35,
            foreign_over_weight_max: 0.1,
            foreign_min: 0.1,
            foreign_max: 0.9,
        }
    }
}

/// Relation of a candidate's author to this node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CandidateOwner {
    /// The author is this node or another node of the same person.
    Local,
    /// The author is any other node.
    Foreign {
        /// Author weight as computed by [`trust::weight`](crate::trust::weight).
        weight: f64,
        /// Lower bound of the confidence in the entry.
        lower_bound: f64,
    },
}

/// Mark of the operator on an entry, valid on this node only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkEffect {
    /// The entry has no mark that affects ranking.
    None,
    /// The entry gains a bonus if it is relevant.
    Pinned,
}

/// An entry that may answer a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankCandidate {
    /// Id of the entry, also the final tie-break.
    pub entry: EntryId,
    /// Signals of the entry; `semantic` is its relevance, `thompson` a sample of its confidence.
    pub signals: PerSignal,
    /// Mean of the confidence, which replaces the sample in the deterministic order.
    pub confidence_mean: f64,
    /// Bonus for the caller's role and workspace, added to the score.
    pub bonus: f64,
    /// Current status of the entry.
    pub status: Status,
    /// Relation of the author to this node.
    pub origin: CandidateOwner,
    /// Mark of the operator on the entry.
    pub overlay: MarkEffect,
}

/// A ranked entry with the numbers behind its rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedEntry {
    /// The candidate as it was passed in.
    pub candidate: RankCandidate,
    /// Score with the Thompson sample, used for the final order.
    pub score: f64,
    /// Score with the mean of the confidence in place of the sample.
    pub score_expected: f64,
    /// Weighted sum of the signals.
    pub composite: f64,
    /// Factor applied to the composite of a foreign entry; `None` for a local one.
    pub foreign_factor: Option<f64>,
    /// Bonus for a pin; 0 without one.
    pub pin_bonus: f64,
    /// The local verified entry below which the entry was moved; `None` if it was not moved.
    pub put_below: Option<EntryId>,
}

/// Ranked answer. If `placed` is empty, the answer is to abstain.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Candidates that passed the relevance gate, best first.
    pub placed: Vec<RankedEntry>,
    /// Candidates that did not pass, nearest first; shown only on request.
    pub nearest: Vec<RankCandidate>,
    /// Weights that were used, for the explanation.
    pub weights: Weights,
}

/// Ranks `candidates`; those with a relevance below `relevance_min` go to `nearest`.
#[must_use]
pub fn rank(
    candidates: &[RankCandidate],
    relevance_min: f64,
    weights: &Weights,
    params: &Params,
) -> Ranking {
    let (relevant, mut nearest): (Vec<RankCandidate>, Vec<RankCandidate>) =
        candidates.iter().copied().partition(|one| relevance(one) >= relevance_min);
    nearest.sort_by(|a, b| relevance(b).total_cmp(&relevance(a)).then(a.entry.cmp(&b.entry)));

    let mut placed: Vec<RankedEntry> =
        relevant.into_iter().map(|candidate| score(candidate, weights, params)).collect();
    placed.sort_by(|a, b| {
        let by_score = b.score_expected.total_cmp(&a.score_expected);
        by_score.then(a.candidate.entry.cmp(&b.candidate.entry))
    });
    let placed = explore(&local_verified_first(placed));
    Ranking { placed, nearest, weights: *weights }
}

/// Reorders the deterministic order by the samples. Two entries change their order only if neither
/// is clearly more relevant, and no foreign candidate passes a local verified entry of the same or
/// higher relevance.
fn explore(deterministic: &[RankedEntry]) -> Vec<RankedEntry> {
    let stays_above = |upper: &RankedEntry, lower: &RankedEntry| {
        let (upper, lower) = (&upper.candidate, &lower.candidate);
        is_clearly_more_relevant(upper, lower)
            || is_clearly_more_relevant(lower, upper)
            || outranks_by_origin(upper, lower)
    };
    let mut placed = reorder(deterministic, |one| one.score, stays_above);
    let mut verified: Vec<(EntryId, f64, f64)> = Vec::new();
    for one in &mut placed {
        let relevance = relevance(&one.candidate);
        if is_local_verified(&one.candidate) {
            verified.push((one.candidate.entry, relevance, one.score));
        } else if is_foreign_candidate(&one.candidate) {
            let last = verified.iter().rfind(|(_, other, _)| *other >= relevance);
            let is_put_below = |(_, _, score): &&(EntryId, f64, f64)| *score < one.score;
            one.put_below = last.filter(is_put_below).map(|(entry, _, _)| *entry);
        }
    }
    placed
}

/// Factor of a foreign entry: the evidence for it, at most slightly above its author's weight.
#[must_use]
pub fn foreign_factor(status: Status, lower_bound: f64, weight: f64, params: &Params) -> f64 {
    let floor = match status {
        Status::Verified => params.floor_verified,
        Status::Active => params.floor_active,
        Status::Candidate => params.floor_candidate,
        Status::Stale | Status::Archived | Status::Rejected | Status::Retracted => 0.0,
    };
    let proven = params.foreign_evidence * unit(lower_bound) + params.foreign_status * floor;
    let capped = proven.min(unit(weight) + params.foreign_over_weight_max);
    capped.max(params.foreign_min).min(params.foreign_max)
}

fn relevance(candidate: &RankCandidate) -> f64 {
    unit(candidate.signals.semantic)
}

fn score(candidate: RankCandidate, weights: &Weights, params: &Params) -> RankedEntry {
    let composite = weights.composite(&candidate.signals);
    let signals_expected = PerSignal { thompson: candidate.confidence_mean, ..candidate.signals };
    let foreign_factor = match candidate.origin {
        CandidateOwner::Local => None,
        CandidateOwner::Foreign { weight, lower_bound } => {
            Some(foreign_factor(candidate.status, lower_bound, weight, params))
        }
    };
    let pin_bonus = if candidate.overlay == MarkEffect::Pinned { params.pin_bonus } else { 0.0 };
    let score_of =
        |composite: f64| composite * foreign_factor.unwrap_or(1.0) + pin_bonus + candidate.bonus;
    RankedEntry {
        candidate,
        score: score_of(composite),
        score_expected: score_of(weights.composite(&signals_expected)),
        composite,
        foreign_factor,
        pin_bonus,
        put_below: None,
    }
}

/// Moves each foreign candidate below every local verified entry of equal or higher relevance.
///
/// All others keep their order: an entry is only ever moved down, right behind the last of those it
/// must not precede. A later pass that changes the order of a ranking has to repeat it.
#[must_use]
pub fn local_verified_first(mut placed: Vec<RankedEntry>) -> Vec<RankedEntry> {
    let verified: Vec<(usize, EntryId, f64)> = placed
        .iter()
        .enumerate()
        .filter(|(_, one)| is_local_verified(&one.candidate))
        .map(|(place, one)| (place, one.candidate.entry, relevance(&one.candidate)))
        .collect();
    let mut keyed: Vec<((usize, usize), RankedEntry)> = Vec::with_capacity(placed.len());
    for (place, mut one) in placed.drain(..).enumerate() {
        let mut behind = place;
        one.put_below = None;
        if is_foreign_candidate(&one.candidate) {
            let relevance = relevance(&one.candidate);
            let last = verified.iter().rfind(|(_, _, other)| *other >= relevance);
            if let Some(&(last, entry, _)) = last.filter(|(last, _, _)| *last > place) {
                behind = last;
                one.put_below = Some(entry);
            }
        }
        // Moved entries come after the one they are behind, in the order they had.
        let among = if one.put_below.is_some() { place + 1 } else { 0 };
        keyed.push(((behind, among), one));
    }
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, one)| one).collect()
}

/// Whether a local verified entry stays above a foreign candidate, regardless of their scores.
fn outranks_by_origin(upper: &RankCandidate, lower: &RankCandidate) -> bool {
    is_local_verified(upper) && is_foreign_candidate(lower) && relevance(upper) >= relevance(lower)
}

fn is_local_verified(candidate: &RankCandidate) -> bool {
    candidate.origin == CandidateOwner::Local && candidate.status == Status::Verified
}

fn is_foreign_candidate(candidate: &RankCandidate) -> bool {
    candidate.origin != CandidateOwner::Local && candidate.status == Status::Candidate
}

#[cfg(test)]
mod tests;
