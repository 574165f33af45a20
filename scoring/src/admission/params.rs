//! Parameters of the admission rule: weights, thresholds and the constants of each signal function.
//!
//! Separate because there are many and each carries its reason.

use klnode_crdt::entry_type::EntryType;

/// Parameters of the admission rule; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Weight of the confidence signal.
    pub confidence: f64,
    /// Weight of the provenance signal.
    pub provenance: f64,
    /// Weight of the scanner signal.
    pub scanner: f64,
    /// Weight of the federation signal, which carries the author weight.
    pub federation: f64,
    /// Weight of the observation mass signal.
    pub observation_mass: f64,
    /// Weight of the entry type signal.
    pub kind: f64,
    /// Weight of the recency signal.
    pub recency: f64,

    /// Scores below this value reject the entry.
    pub reject_below: f64,
    /// Scores below this value keep a local entry a candidate.
    pub candidate_below: f64,
    /// Scores below this value keep a foreign entry a candidate.
    pub foreign_candidate_below: f64,

    /// Mean at which the confidence signal is 0: two failures for each success.
    pub mean_zero: f64,
    /// Mean at which the confidence signal is 1.
    pub mean_one: f64,
    /// Provenance value of an entry with context citations but no evidence citation.
    pub context_only: f64,
    /// Fraction of the missing provenance that remains after each evidence citation.
    pub citation_leaves: f64,
    /// Scanner value of a clean scan; multiplied by its weight it stays below the reject threshold.
    pub scan_safe: f64,
    /// Scanner value of a scan whose worst finding is low.
    pub scan_low: f64,
    /// Highest weight that a foreign author can reach.
    pub foreign_weight_max: f64,
    /// Rate at which the observation mass signal saturates, per observation.
    pub mass_rate: f64,
    /// Prior of an entry type that carries its own check: a finding.
    pub kind_checked: f64,
    /// Prior of an entry type that prescribes an action: a skill, a lesson, a norm.
    pub kind_taught: f64,
    /// Prior of an entry type that describes the past: an experience, a spike, a playbook.
    pub kind_told: f64,
    /// Prior of a graph element (entity or relation), which says little by itself.
    pub kind_graph: f64,
    /// Prior of a raw note, which is not meant for retrieval.
    pub kind_raw: f64,
    /// Half-life of the recency signal, in days.
    pub half_life_days: f64,
}

impl Params {
    /// Value of the entry type signal, before any evidence is known.
    #[must_use]
    pub fn kind_prior(&self, kind: EntryType) -> f64 {
        match kind {
            EntryType::Finding => self.kind_checked,
            EntryType::Skill | EntryType::Lesson | EntryType::Norm => self.kind_taught,
            EntryType::Experience | EntryType::Spike | EntryType::Playbook => self.kind_told,
            EntryType::Entity | EntryType::Relation => self.kind_graph,
            EntryType::Signal | EntryType::Friction | EntryType::Calibration => self.kind_raw,
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
