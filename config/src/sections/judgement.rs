//! The judgements on entries and authors: provenance, anchors, status, admission, gate, scanner and trust.
//!
//! Together because each decides whether something may pass, and each is a handful of thresholds.
//! None of these values is ever replicated, and nothing is computed here.

use serde::Deserialize;

use crate::units::{Days, Fraction, Interval, IntervalFrom, List, Name, Positive, Switch, Whole};

/// `[provenance]`: when an entry that nothing confirms is put away, and a task given up.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Root tasks in which the entry was served, and nothing that speaks for it.
    pub archive_after_root_tasks: Whole<1, 1_000_000>,
    /// How long a task may go unfinished.
    pub task_expires_after: Interval,
    /// Observations of each kind that count for one entry, caller and day outside any task.
    pub outside_observations_per_day_max: Whole<1, 1_000_000>,
    /// How long an entry that a user was served primes that user's callers that are not told apart.
    pub user_primed_for: IntervalFrom<10>,
    /// How long after the end of their task findings are compared.
    pub findings_compared_after: Interval,
}

/// `[anchors]`: what follows from a look at what entries depend on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchors {
    /// Whether it counts as an observation of this node.
    pub count_as_observation: Switch,
}

/// `[status]`: when an entry becomes active, verified or stale.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusThresholds {
    /// What makes a candidate active: of own texts days and starts with a success here, of others'
    /// texts successes here.
    pub active_successes_min: Whole<1, 1_000>,
    /// The least α of a verified entry.
    pub verified_alpha_min: Positive,
    /// The least mean of a verified entry.
    pub verified_mean_min: Fraction,
    /// How long an entry may go unserved.
    pub stale_after: Days,
    /// Prediction errors that make an entry stale, if it has too few uses.
    pub stale_prediction_errors_min: Whole<1, 1_000_000>,
    /// Uses that keep it from becoming stale for its prediction errors.
    pub stale_uses_below: Whole<0, 1_000_000>,
}

/// `[admission]`: which entries may be retrieved at all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The score below which an entry is rejected.
    pub reject_below: Fraction,
    /// The score below which an entry stays a candidate.
    pub candidate_below: Fraction,
    /// The same for a foreign entry.
    pub foreign_candidate_below: Fraction,
    /// How fast successes fill their component.
    pub observation_mass_rate: Positive,
    /// What each component weighs.
    pub weights: AdmissionWeights,
}

/// `[admission.weights]`: what each component of the admission score weighs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionWeights {
    /// The entry's mean confidence.
    pub confidence: Fraction,
    /// Who says it and what is cited for it.
    pub provenance: Fraction,
    /// What the scanner found.
    pub scanner: Fraction,
    /// Distance and trust of the author.
    pub federation: Fraction,
    /// How much success has been observed.
    pub observation_mass: Fraction,
    /// The type of the entry.
    pub entry_type: Fraction,
    /// How new it is.
    pub recency: Fraction,
}

/// `[gate]`: which entries may be served to a program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Places that uncorroborated entries of members may take.
    pub uncorroborated_places_max: Whole<0, 1_000>,
    /// Local successes that corroborate an entry.
    pub corroborating_successes_min: Whole<1, 1_000>,
    /// Members whose independent successes corroborate it instead.
    pub corroborating_members_min: Whole<1, 1_000>,
    /// The least trust of each of them.
    pub corroborating_trust_min: Fraction,
}

/// `[scan]`: what the scanner looks for beside its own rules.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Names that are flagged in entries that others will have.
    pub organisation_names: List<Name>,
}

/// `[trust]`: how far authors are believed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// Good outcomes every author starts with.
    pub prior_alpha: Positive,
    /// Bad outcomes every author starts with.
    pub prior_beta: Positive,
    /// The quantile of Beta(α, β) that is the trust.
    pub quantile: Fraction,
    /// What a success adds to α.
    pub success_step: Positive,
    /// What a failure adds to β.
    pub failure_step: Positive,
    /// Successes that count for one author on one day.
    pub successes_per_day_max: Whole<1, 1_000_000>,
    /// The age from which on evidence fades.
    pub fade_after: Days,
    /// What each further day leaves of it.
    pub fade_per_day: Fraction,
    /// How many of the last outcomes bound the trust.
    pub recent_outcomes: Whole<1, 1_000>,
    /// The distance beyond which an author is unknown.
    pub hop_max: Whole<1, 16>,
}
