//! The order in which the candidates of a query come, with every number that led to it.
//!
//! Six signals make a composite. Foreign entries are then discounted by what is known about them
//! and their author; pinned ones gain, once they have passed the relevance gate; and a foreign
//! candidate goes below every local verified entry that is as relevant. That order, made with the
//! mean of each confidence, is the deterministic order. In the last step the samples of the
//! confidences reorder entries of nearly equal relevance (see [`reorder`]). Separate from `budget`,
//! which decides how much of the order is shown. It never looks anything up: signals come in as
//! numbers.

mod reorder;
pub mod signals;
mod weights;

pub use reorder::{RELEVANCE_MARGIN, demote, is_clearly_more_relevant, reorder};
pub use weights::{PerSignal, SUM_TOLERANCE, WEIGHT_MAX, Weights, WeightsError};

use crate::status::Status;
use crate::unit::unit;
use klnode_crdt::ids::EntryId;

/// The numbers of ranking beside the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// What a pin adds to the score.
    pub pin_bonus: f64,
    /// What the lower bound of its confidence contributes to a foreign entry's factor.
    pub foreign_evidence: f64,
    /// What the floor of its status contributes to it.
    pub foreign_status: f64,
    /// The floor of a verified entry.
    pub floor_verified: f64,
    /// The floor of an active entry.
    pub floor_active: f64,
    /// The floor of a candidate.
    pub floor_candidate: f64,
    /// The factor exceeds the author's weight by at most this.
    pub foreign_over_weight_max: f64,
    /// The least factor.
    pub foreign_min: f64,
    /// The greatest factor.
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

/// Whose entry a candidate is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// Of this node or its person's other nodes.
    Local,
    /// Of anyone else.
    Foreign {
        /// The author's weight, as [`trust::weight`](crate::trust::weight) gives it.
        weight: f64,
        /// The lower bound of the entry's confidence.
        lower_bound: f64,
    },
}

/// What the operator laid over an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Nothing.
    None,
    /// Shown higher, where relevant.
    Pinned,
}

/// An entry that may answer a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The entry.
    pub entry: EntryId,
    /// Its signals; `semantic` is its relevance, `thompson` a sample of its confidence.
    pub signals: PerSignal,
    /// The mean of its confidence, which takes the sample's place in the deterministic order.
    pub confidence_mean: f64,
    /// Added to the score for the caller's role and workspace.
    pub bonus: f64,
    /// Where it stands.
    pub status: Status,
    /// Whose it is.
    pub origin: Origin,
    /// What the operator laid over it.
    pub overlay: Overlay,
}

/// An entry at its place, with what led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The candidate as it came in.
    pub candidate: Candidate,
    /// The score by which it was placed.
    pub score: f64,
    /// The score with the mean of its confidence in place of the sample.
    pub score_expected: f64,
    /// The weighted sum of the signals.
    pub composite: f64,
    /// What a foreign entry's composite was multiplied by.
    pub foreign_factor: Option<f64>,
    /// What a pin added.
    pub pin_bonus: f64,
    /// The local verified entry below which the last pass put it.
    pub put_below: Option<EntryId>,
}

/// An ordered answer. Where nothing is placed, the answer is to abstain.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// What passed the relevance gate, best first.
    pub placed: Vec<Placed>,
    /// What did not, nearest first: shown only on request.
    pub nearest: Vec<Candidate>,
    /// The weights, for the explanation.
    pub weights: Weights,
}

/// Orders `candidates`; those less relevant than `relevance_min` are left out.
#[must_use]
pub fn rank(
    candidates: &[Candidate],
    relevance_min: f64,
    weights: &Weights,
    params: &Params,
) -> Ranking {
    let (relevant, mut nearest): (Vec<Candidate>, Vec<Candidate>) =
        candidates.iter().copied().partition(|one| relevance(one) >= relevance_min);
    nearest.sort_by(|a, b| relevance(b).total_cmp(&relevance(a)).then(a.entry.cmp(&b.entry)));

    let mut placed: Vec<Placed> =
        relevant.into_iter().map(|candidate| score(candidate, weights, params)).collect();
    placed.sort_by(|a, b| {
        let by_score = b.score_expected.total_cmp(&a.score_expected);
        by_score.then(a.candidate.entry.cmp(&b.candidate.entry))
    });
    let placed = explore(&local_verified_first(placed));
    Ranking { placed, nearest, weights: *weights }
}

/// Reorders the deterministic order by the samples. Two entries change their order only if neither is
/// clearly more relevant, and no foreign candidate passes a local verified entry that is as relevant.
fn explore(deterministic: &[Placed]) -> Vec<Placed> {
    let stays_above = |upper: &Placed, lower: &Placed| {
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

/// The factor of a foreign entry: what is proven about it, at most a little above its author.
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

fn relevance(candidate: &Candidate) -> f64 {
    unit(candidate.signals.semantic)
}

fn score(candidate: Candidate, weights: &Weights, params: &Params) -> Placed {
    let composite = weights.composite(&candidate.signals);
    let signals_expected = PerSignal { thompson: candidate.confidence_mean, ..candidate.signals };
    let foreign_factor = match candidate.origin {
        Origin::Local => None,
        Origin::Foreign { weight, lower_bound } => {
            Some(foreign_factor(candidate.status, lower_bound, weight, params))
        }
    };
    let pin_bonus = if candidate.overlay == Overlay::Pinned { params.pin_bonus } else { 0.0 };
    let score_of =
        |composite: f64| composite * foreign_factor.unwrap_or(1.0) + pin_bonus + candidate.bonus;
    Placed {
        candidate,
        score: score_of(composite),
        score_expected: score_of(weights.composite(&signals_expected)),
        composite,
        foreign_factor,
        pin_bonus,
        put_below: None,
    }
}

/// Puts each foreign candidate below every local verified entry of equal or higher relevance.
///
/// All others keep their order: an entry is only ever moved down, right behind the last of those
/// it must not precede. A later pass that changes the order of a ranking has to repeat it.
#[must_use]
pub fn local_verified_first(mut placed: Vec<Placed>) -> Vec<Placed> {
    let verified: Vec<(usize, EntryId, f64)> = placed
        .iter()
        .enumerate()
        .filter(|(_, one)| is_local_verified(&one.candidate))
        .map(|(place, one)| (place, one.candidate.entry, relevance(&one.candidate)))
        .collect();
    let mut keyed: Vec<((usize, usize), Placed)> = Vec::with_capacity(placed.len());
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

/// Whether a local verified entry keeps its place above a foreign candidate, whatever their scores.
fn outranks_by_origin(upper: &Candidate, lower: &Candidate) -> bool {
    is_local_verified(upper) && is_foreign_candidate(lower) && relevance(upper) >= relevance(lower)
}

fn is_local_verified(candidate: &Candidate) -> bool {
    candidate.origin == Origin::Local && candidate.status == Status::Verified
}

fn is_foreign_candidate(candidate: &Candidate) -> bool {
    candidate.origin != Origin::Local && candidate.status == Status::Candidate
}

#[cfg(test)]
mod tests;
