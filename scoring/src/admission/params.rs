//! The numbers of admission: weights, thresholds, and what each signal's function is made of.
//!
//! Separate because there are many and each carries its reason.

use klnode_crdt::kind::Kind;

/// The numbers of admission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The weight of confidence.
    pub confidence: f64,
    /// The weight of provenance.
    pub provenance: f64,
    /// The weight of the scan.
    pub scanner: f64,
    /// The weight of the author's weight.
    pub federation: f64,
    /// The weight of how much was observed.
    pub observation_mass: f64,
    /// The weight of the type.
    pub kind: f64,
    /// The weight of recency.
    pub recency: f64,

    /// Below this score an entry is rejected.
    pub reject_below: f64,
    /// Below this score an entry is held back.
    pub candidate_below: f64,
    /// Below this score a foreign entry is held back.
    pub foreign_candidate_below: f64,

    /// The mean at which confidence is worth nothing: two failures for each success.
    pub mean_zero: f64,
    /// The mean at which it is worth all.
    pub mean_one: f64,
    /// What context citations are worth where no evidence is cited.
    pub context_only: f64,
    /// What each citation of evidence leaves of what is missing.
    pub citation_leaves: f64,
    /// What a clean scan is worth: less than the reject threshold, when weighed.
    pub scan_safe: f64,
    /// What a scan with a low finding is worth.
    pub scan_low: f64,
    /// The most that a foreign author weighs.
    pub foreign_weight_max: f64,
    /// How fast the observation mass saturates.
    pub mass_rate: f64,
    /// What a type is worth that carries its own check: a finding.
    pub kind_checked: f64,
    /// What a type is worth that says what to do: a skill, a lesson, a norm.
    pub kind_taught: f64,
    /// What a type is worth that says what was: an experience, a spike, a playbook.
    pub kind_told: f64,
    /// What a piece of the graph is worth: little by itself.
    pub kind_graph: f64,
    /// What a raw note is worth: it is not meant for retrieval.
    pub kind_raw: f64,
    /// Days after which a confirmation counts half.
    pub half_life_days: f64,
}

impl Params {
    /// What an entry of this type is worth before anything else is known.
    #[must_use]
    pub fn kind_prior(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Finding => self.kind_checked,
            Kind::Skill | Kind::Lesson | Kind::Norm => self.kind_taught,
            Kind::Experience | Kind::Spike | Kind::Playbook => self.kind_told,
            Kind::Entity | Kind::Relation => self.kind_graph,
            Kind::Signal | Kind::Friction | Kind::Calibration => self.kind_raw,
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Params {
            confidence: 0.20,
            provenance: 0.15,
            scanner: 0.25,
            federation: 0.10,
            observation_mass: 0.10,
            kind: 0.10,
            recency: 0.10,
            reject_below: 0.25,
            candidate_below: 0.35,
            foreign_candidate_below: 0.40,
            mean_zero: 0.35,
            mean_one: 0.95,
            context_only: 0.2,
            citation_leaves: 0.4,
            scan_safe: 0.5,
            scan_low: 0.3,
            foreign_weight_max: 0.5,
            mass_rate: 0.05,
            kind_checked: 0.8,
            kind_taught: 0.6,
            kind_told: 0.5,
            kind_graph: 0.3,
            kind_raw: 0.1,
            half_life_days: crate::recency::HALF_LIFE_DAYS,
        }
    }
}
