//! `[confidence]`: how observations become α and β.
//!
//! Separate because it is the largest judgement and the one most often looked up. The formulas are
//! in `scoring`; nothing is computed here.

use serde::Deserialize;

use crate::units::{Days, DecayClass, Fraction, Positive, Whole};

/// `[confidence]`: what observations say about an entry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confidence {
    /// Successes every entry starts with.
    pub prior_alpha: Positive,
    /// Failures every entry starts with.
    pub prior_beta: Positive,
    /// The least that α and β become.
    pub floor: Positive,
    /// The age at which an observation stops to decay.
    pub decay_age_max: Days,
    /// The decay class of an entry that names none.
    pub decay_class: DecayClass,
    /// The quantile of Beta(α, β) that is an entry's lower bound.
    pub lower_quantile: Fraction,
    /// What is left of an observation after one day.
    pub gamma_per_day: GammaPerDay,
    /// What an observation of another author weighs.
    pub weight: Weight,
    /// How much others may say about one entry.
    pub mass: Mass,
    /// What the outcome of a task adds.
    pub outcome: Outcome,
    /// How a success revives what was once well known.
    pub restoration: Restoration,
    /// When a reset by hand is open.
    pub reset: Reset,
}

/// `[confidence.gamma_per_day]`: what is left of an observation after one day.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GammaPerDay {
    /// Entries that age with the code.
    pub ephemeral: Fraction,
    /// Entries that age over months.
    pub stable: Fraction,
    /// Entries that do not age.
    pub permanent: Fraction,
    /// Entries archived here, from that day on.
    pub archived: Fraction,
}

/// `[confidence.weight]`: what an observation of another author weighs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// What each hop leaves of the trust.
    pub hop_discount: Fraction,
    /// The most that an observation of another author weighs.
    pub foreign_max: Fraction,
}

/// `[confidence.mass]`: how much others may say about one entry, in observations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mass {
    /// One member, times the member's weight.
    pub member_max: Positive,
    /// All non-members together.
    pub non_members_max: Positive,
    /// All non-members behind one paired peer, times the peer's weight.
    pub peer_max: Positive,
}

/// `[confidence.outcome]`: what the outcome of a task adds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// What an outcome of no quality is worth, before clipping.
    pub quality_offset: Fraction,
    /// The least an outcome counts.
    pub step_min: Positive,
    /// The most an outcome counts.
    pub step_max: Positive,
    /// What each further place leaves of the credit.
    pub rank_decay: Fraction,
    /// How many of the first served share the credit where none was named.
    pub unnamed_entries_max: Whole<0, 100>,
    /// Their part of the credit.
    pub unnamed_weight: Fraction,
    /// What explicit feedback counts.
    pub feedback_step: Positive,
}

/// `[confidence.restoration]`: how a success revives what was once well known.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restoration {
    /// The part of its peak below which α is restored.
    pub below_peak_fraction: Fraction,
    /// The part of the way back that one success restores.
    pub step_fraction: Fraction,
}

/// `[confidence.reset]`: when a reset by hand is open.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// The least number of effective observations.
    pub effective_observations_min: Positive,
    /// The least mean.
    pub mean_min: Fraction,
    /// The greatest mean.
    pub mean_max: Fraction,
}
