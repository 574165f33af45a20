//! Amounts that a task outcome, explicit feedback or a recovery adds to an entry's counters.
//!
//! Separate from `confidence`, which reads the counters: this module decides which amounts are
//! written and why. It does not decide whether a confirmation is independent or primed; that
//! depends on the serving log, which the caller has.

use crate::decay::DecayClass;
use crate::posterior::Posterior;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;

/// Parameters of credit; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Added to the quality of a success, and to 1 − quality of a failure.
    pub base: f64,
    /// Lower bound of the amount for the entry served first.
    pub amount_min: f64,
    /// Upper bound of the amount for the entry served first.
    pub amount_max: f64,
    /// Factor on the amount for each rank further down in the answer.
    pub rank_factor: f64,
    /// Number of first served entries that share the outcome if the caller names none as used.
    pub unnamed_max: usize,
    /// Factor on the amount if the caller names no entry as used.
    pub unnamed_factor: f64,
    /// Factor on the amount of an entry that answered another question.
    pub incidental_factor: f64,
    /// Amount that explicit feedback adds.
    pub feedback: f64,
    /// A success restores α only if α has fallen below this fraction of its peak.
    pub restoration_below: f64,
    /// Fraction of the lost α that one success restores.
    pub restoration_share: f64,
    /// Smallest number of effective observations for which a reset is allowed.
    pub reset_observations_min: f64,
    /// Lowest mean for which a reset is allowed.
    pub reset_mean_min: f64,
    /// Highest mean for which a reset is allowed.
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
            incidental_factor: 0.5,
            feedback: 1.0,
            restoration_below: 0.5,
            restoration_share: 0.2,
            reset_observations_min: 50.0,
            reset_mean_min: 0.35,
            reset_mean_max: 0.65,
        }
    }
}

/// Whether a task or an entry worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskVerdict {
    /// It worked; the amount is added to the successes.
    Success,
    /// It did not work; the amount is added to the failures.
    Failure,
}

/// Reported result of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskOutcome {
    /// Whether the task succeeded.
    pub verdict: TaskVerdict,
    /// Quality of the work, in [0, 1].
    pub quality: f64,
}

/// An entry that was served in a task, with its rank in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRank {
    /// Id of the entry.
    pub entry: EntryId,
    /// Rank in the answer, 0 for the first.
    pub rank: u32,
}

/// Reason why an entry shares in an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditReason {
    /// The entry was served and the caller named it as used.
    Named,
    /// The caller named it as an answer to another question than its own.
    Incidental,
    /// The caller named no entry, and this one was among the first served.
    AmongFirst,
}

/// The entries that a caller named at the end of its work.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedEntries<'a> {
    /// Entries that helped.
    pub used: &'a [EntryId],
    /// Entries that answered another question; they may be among the used ones, too.
    pub incidental: &'a [EntryId],
}

/// Amount that an outcome adds to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Id of the entry.
    pub entry: EntryId,
    /// Amount added to successes or failures, depending on the verdict.
    pub amount: Thousandths,
    /// Best rank at which the entry was served in the task.
    pub rank: u32,
    /// Reason why the entry shares in the outcome.
    pub reason: CreditReason,
}

/// Computes the amounts that `outcome` adds to the `served` entries, given in serving order.
///
/// Each entry is credited once, at its best rank. A named entry that was not served gets nothing,
/// but naming it still counts as an answer: a caller that names an entry does not mean the first
/// three served. Entries in `dismissed` played no part in the work: they get nothing and do not
/// take one of the first places.
#[must_use]
pub fn credits(
    outcome: TaskOutcome,
    served: &[ServedRank],
    named: NamedEntries<'_>,
    dismissed: &[EntryId],
    params: &Params,
) -> Vec<Credit> {
    let mut entries = each_once(served);
    entries.retain(|one| !dismissed.contains(&one.entry));
    let is_any_named = !named.used.is_empty() || !named.incidental.is_empty();
    let share = |entry: &EntryId| {
        if named.incidental.contains(entry) {
            return Some((CreditReason::Incidental, params.incidental_factor));
        }
        named.used.contains(entry).then_some((CreditReason::Named, 1.0))
    };
    if !is_any_named {
        entries.truncate(params.unnamed_max);
    }
    let whole = amount(outcome, params);
    let credit = |ServedRank { entry, rank }| {
        let (reason, factor) = match is_any_named {
            true => share(&entry)?,
            false => (CreditReason::AmongFirst, params.unnamed_factor),
        };
        let amount = whole * factor * params.rank_factor.powf(f64::from(rank));
        Some(Credit { entry, amount: Thousandths::nearest(amount), rank, reason })
    };
    entries.into_iter().filter_map(credit).collect()
}

/// Amount for an entry that was served first and named as used.
#[must_use]
pub fn amount(outcome: TaskOutcome, params: &Params) -> f64 {
    // A quality of NaN counts as neither good nor bad.
    let quality = if outcome.quality.is_nan() { 0.5 } else { outcome.quality };
    let raw = match outcome.verdict {
        TaskVerdict::Success => params.base + quality,
        TaskVerdict::Failure => params.base + (1.0 - quality),
    };
    raw.max(params.amount_min).min(params.amount_max)
}

/// Amount that explicit feedback adds to successes or failures.
#[must_use]
pub fn feedback(params: &Params) -> Thousandths {
    Thousandths::nearest(params.feedback)
}

/// Extra amount that a success adds to an entry whose α was once far higher.
///
/// `alpha_peak` is the highest α that this node has seen for the entry. Knowledge that proves right
/// again is more reliable than new knowledge. Ephemeral entries get nothing, since they are meant
/// to be forgotten.
#[must_use]
pub fn restoration(class: DecayClass, alpha: f64, alpha_peak: f64, params: &Params) -> Thousandths {
    if class == DecayClass::Ephemeral || alpha >= params.restoration_below * alpha_peak {
        return Thousandths(0);
    }
    Thousandths::nearest(params.restoration_share * (alpha_peak - alpha))
}

/// Whether a person may reset an entry's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetDecision {
    /// Many observations, but the mean is near 0.5: the author's cells so far may stop counting.
    Allowed,
    /// The entry has too few observations to be stuck.
    TooFewObservations,
    /// The observations favour one side, so a reset would discard information.
    Decided,
}

/// Decides whether an entry is stuck near a mean of 0.5, so that a person may reset it.
#[must_use]
pub fn reset(posterior: &Posterior, effective_observations: f64, params: &Params) -> ResetDecision {
    if effective_observations < params.reset_observations_min {
        ResetDecision::TooFewObservations
    } else if (params.reset_mean_min..=params.reset_mean_max).contains(&posterior.mean()) {
        ResetDecision::Allowed
    } else {
        ResetDecision::Decided
    }
}

/// Each entry once, in the order of its first serving, at its best rank.
fn each_once(served: &[ServedRank]) -> Vec<ServedRank> {
    let mut once: Vec<ServedRank> = Vec::new();
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
