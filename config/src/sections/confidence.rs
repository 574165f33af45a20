//! `[confidence]` and `[tuning.confidence]`: how observations become the parameters α and β of a
//! Beta distribution.
//!
//! The formulas are in the crate `scoring`; this module only holds their parameters.

use serde::Deserialize;

use crate::units::{BoundedInteger, Days, DecayClass, Fraction, Positive};

/// `[confidence]` and `[tuning.confidence]`: parameters for the confidence of an entry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confidence {
    /// Prior successes of every entry.
    pub prior_alpha: Positive,
    /// Prior failures of every entry.
    pub prior_beta: Positive,
    /// Lower bound of α and β.
    pub floor: Positive,
    /// Age after which an observation decays no further.
    pub decay_age_max: Days,
    /// Decay class of entries that do not set one.
    pub decay_class: DecayClass,
    /// Quantile of Beta(α, β) that serves as the lower bound of an entry's confidence.
    pub lower_quantile: Fraction,
    /// Daily decay factors, by decay class.
    pub decay_per_day: DecayPerDay,
    /// Weight of observations by other authors.
    pub weight: Weight,
    /// Limits on the evidence of other authors.
    pub foreign_evidence: ForeignEvidence,
    /// Amount that the outcome of a task adds.
    pub outcome: OutcomeWeights,
    /// Faster recovery of entries that had a high α before.
    pub restoration: Restoration,
    /// Preconditions of a manual reset.
    pub reset: Reset,
}

/// `[tuning.confidence.decay_per_day]`: factor by which an observation decays per day.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecayPerDay {
    /// For entries that age with the code.
    pub ephemeral: Fraction,
    /// For conventions and decisions, which age over months.
    pub stable: Fraction,
    /// For entries that do not age.
    pub permanent: Fraction,
    /// For entries archived on this node, from the day of archiving.
    pub archived: Fraction,
}

/// `[tuning.confidence.weight]`: weight of observations by other authors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Factor per hop of distance, multiplied with the author's trust.
    pub hop_discount: Fraction,
    /// Maximum weight of another author's observation, relative to a local one.
    pub foreign_max: Fraction,
}

/// `[tuning.confidence.foreign_evidence]`: limits on the evidence of other authors about one entry,
/// in observations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignEvidence {
    /// Maximum for one member, multiplied with the member's weight.
    pub member_max: Positive,
    /// Maximum for all non-members together.
    pub non_members_max: Positive,
    /// Maximum for all non-members that one paired peer relays, multiplied with the peer's weight.
    pub peer_max: Positive,
}

/// `[tuning.confidence.outcome]`: amount that the outcome of a task adds, in observations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeWeights {
    /// Amount for an outcome of quality 0, before clipping.
    pub quality_offset: Fraction,
    /// Minimum amount of an outcome.
    pub step_min: Positive,
    /// Maximum amount of an outcome.
    pub step_max: Positive,
    /// Factor on the credit per rank in the answer.
    pub rank_decay: Fraction,
    /// Number of top-ranked entries that share the credit if the task names none as used.
    pub guessed_entries_max: BoundedInteger<0, 100>,
    /// Factor on the credit in that case.
    pub guessed_weight: Fraction,
    /// Factor on the credit of an entry that answered another question.
    pub incidental_weight: Fraction,
    /// Amount of one explicit feedback, in observations.
    pub feedback_step: Positive,
}

/// `[tuning.confidence.restoration]`: faster recovery of entries that had a high α before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restoration {
    /// A success restores α if it is below this fraction of its peak.
    pub below_peak_fraction: Fraction,
    /// Fraction of the distance to the peak that one success restores.
    pub step_fraction: Fraction,
}

/// `[tuning.confidence.reset]`: preconditions of a manual reset.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// Minimum number of effective observations.
    pub effective_observations_min: Positive,
    /// Minimum mean confidence.
    pub mean_min: Fraction,
    /// Maximum mean confidence.
    pub mean_max: Fraction,
}
