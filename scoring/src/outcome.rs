//! What the end of a task, a word of feedback or a rare success adds to an entry's counters.
//!
//! Separate from `confidence`, which reads counters: here is decided what is written into them, and
//! why. It does not know whether a confirmation is independent or primed; that is a matter of what
//! was served, which the caller knows.

use crate::decay::Class;
use crate::posterior::Posterior;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;

/// The numbers of outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Added to the quality of a success, or to what a failure lacks of quality.
    pub base: f64,
    /// The least that an outcome adds to an entry served first.
    pub amount_min: f64,
    /// The most that an outcome adds to an entry served first.
    pub amount_max: f64,
    /// What each place further down in the answer leaves of the amount.
    pub rank_factor: f64,
    /// How many of the first served share the outcome when none is named.
    pub unnamed_max: usize,
    /// What is left of the amount when none is named.
    pub unnamed_factor: f64,
    /// What explicit feedback adds.
    pub feedback: f64,
    /// α must have fallen below this share of its peak for a success to restore some of it.
    pub restoration_below: f64,
    /// The share of the lost α that a success restores.
    pub restoration_share: f64,
    /// A reset needs at least so many effective observations.
    pub reset_observations_min: f64,
    /// A reset needs a mean of at least this.
    pub reset_mean_min: f64,
    /// A reset needs a mean of at most this.
    pub reset_mean_max: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            base: 0.5,
            amount_min: 0.5,
            amount_max: 1.5,
            rank_factor: 0.7,
            unnamed_max: 3,
            unnamed_factor: 0.5,
            feedback: 1.0,
            restoration_below: 0.5,
            restoration_share: 0.2,
            reset_observations_min: 50.0,
            reset_mean_min: 0.35,
            reset_mean_max: 0.65,
        }
    }
}

/// Whether something worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It worked: counts for.
    Success,
    /// It did not: counts against.
    Failure,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Whether it worked.
    pub verdict: Verdict,
    /// How good the work was, in [0, 1].
    pub quality: f64,
}

/// An entry that was served in a task, at a place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The entry.
    pub entry: EntryId,
    /// Its place in the answer, 0 for the first.
    pub rank: u32,
}

/// Why an entry shares in an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was served and named as used.
    Named,
    /// None was named, and it was among the first served.
    AmongFirst,
}

/// What an outcome adds to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The entry.
    pub entry: EntryId,
    /// Added to successes or to failures, as the verdict says.
    pub amount: Thousandths,
    /// The best place at which the entry was served in the task.
    pub rank: u32,
    /// Why it shares in the outcome.
    pub reason: Reason,
}

/// What `outcome` adds to the entries that were `served`, given in the order of serving.
///
/// Each entry is credited once, at the best place it had. A name that was not served earns nothing,
/// yet it is an answer: whoever names something does not mean the first three served. What was
/// `dismissed` had no part in the work: it neither earns anything nor takes a place among the first.
#[must_use]
pub fn credits(
    outcome: Outcome,
    served: &[Served],
    named: &[EntryId],
    dismissed: &[EntryId],
    params: &Params,
) -> Vec<Credit> {
    let mut entries = each_once(served);
    entries.retain(|one| !dismissed.contains(&one.entry));
    let (chosen, reason, factor): (Vec<Served>, Reason, f64) = if named.is_empty() {
        let first = entries.into_iter().take(params.unnamed_max).collect();
        (first, Reason::AmongFirst, params.unnamed_factor)
    } else {
        let used = entries.into_iter().filter(|one| named.contains(&one.entry)).collect();
        (used, Reason::Named, 1.0)
    };
    let whole = amount(outcome, params) * factor;
    let credit = |Served { entry, rank }| {
        let amount = Thousandths::nearest(whole * params.rank_factor.powf(f64::from(rank)));
        Credit { entry, amount, rank, reason }
    };
    chosen.into_iter().map(credit).collect()
}

/// What an outcome adds to an entry that was served first and named as used.
#[must_use]
pub fn amount(outcome: Outcome, params: &Params) -> f64 {
    // Quality that is not a number says neither good nor bad.
    let quality = if outcome.quality.is_nan() { 0.5 } else { outcome.quality };
    let raw = match outcome.verdict {
        Verdict::Success => params.base + quality,
        Verdict::Failure => params.base + (1.0 - quality),
    };
    raw.max(params.amount_min).min(params.amount_max)
}

/// What explicit feedback adds to successes or failures.
#[must_use]
pub fn feedback(params: &Params) -> Thousandths {
    Thousandths::nearest(params.feedback)
}

/// What a success adds on top, to an entry that was once believed far more than now.
///
/// `alpha_peak` is the highest α this node has seen of it. What is learnt again is more reliable
/// than what is learnt for the first time; ephemeral entries are meant to be forgotten.
#[must_use]
pub fn restoration(class: Class, alpha: f64, alpha_peak: f64, params: &Params) -> Thousandths {
    if class == Class::Ephemeral || alpha >= params.restoration_below * alpha_peak {
        return Thousandths(0);
    }
    Thousandths::nearest(params.restoration_share * (alpha_peak - alpha))
}

/// Whether an entry may be reset by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Many observations that say nothing: its own cells so far may stop counting.
    Allowed,
    /// There is not enough to be stuck on.
    TooFewObservations,
    /// The observations do say something.
    Decided,
}

/// Whether an entry is stuck in the middle, so that a person may start it anew.
#[must_use]
pub fn reset(posterior: &Posterior, effective_observations: f64, params: &Params) -> Reset {
    if effective_observations < params.reset_observations_min {
        Reset::TooFewObservations
    } else if (params.reset_mean_min..=params.reset_mean_max).contains(&posterior.mean()) {
        Reset::Allowed
    } else {
        Reset::Decided
    }
}

/// Each entry once, in the order of first serving, at its best rank.
fn each_once(served: &[Served]) -> Vec<Served> {
    let mut once: Vec<Served> = Vec::new();
    for &one in served {
        match once.iter_mut().find(|known| known.entry == one.entry) {
            Some(known) => known.rank = known.rank.min(one.rank),
            None => once.push(one),
        }
    }
    once
}

#[cfg(test)]
mod tests;
