//! Decides whether an entry may be retrieved: seven weighted signals, three decisions, and a report
//! of every number.
//!
//! The same rule judges local and foreign entries, but a foreign entry needs a higher score.
//! Separate from `status`, which acts on the decision, and from the content scan, whose worst
//! finding is an input here.
//!
//! The signal values are chosen so that the thresholds separate cases:
//!
//! - **Scanner.** A clean scan is the absence of a known fault, not a merit. If it were worth 1, it
//!   alone would reach the reject threshold and no clean entry could ever be rejected; it is worth
//!   0.5. A medium finding is worth 0.
//! - **Confidence.** The prior gives 0.25: an unproven entry ranks above a disproven one, which
//!   gets 0.
//! - **Observation mass** counts successes only. If failures counted, an entry could gain more by
//!   mass than it loses by confidence, and be admitted for failing often.
//! - **Recency.** The creation date of a foreign entry is the author's own claim; only a
//!   confirmation counted on this node makes a foreign entry recent.
//!
//! Examples, for techniques with one citation: an own entry passes (0.525), an entry by a member
//! whose texts have helped passes (0.425), an entry by a stranger becomes a candidate (0.339), and
//! an entry by a stranger with a medium finding is rejected (0.214).

use crate::clamp_to_unit::unit;
use crate::content_scan::Severity;
use crate::posterior::Posterior;
use crate::recency::recency;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::time::Day;

mod params;

pub use params::Params;

/// Inputs of the admission rule for one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionFacts {
    /// Confidence in the entry, prior included.
    pub posterior: Posterior,
    /// Sum of the weighted, decayed successes of the entry, without the prior.
    pub success_mass: f64,
    /// Number of evidence citations.
    pub citations: u32,
    /// Number of context citations: the task or commit in which the entry was written.
    pub contexts: u32,
    /// Worst finding of the content scan.
    pub scan: Severity,
    /// Relation of the entry's author to this node.
    pub origin: EntryOwner,
    /// Entry type, which sets a small prior.
    pub kind: EntryType,
    /// Creation day as the author states it; ignored for foreign entries.
    pub created: Day,
    /// Day of the last independent confirmation counted on this node; `None` if there is none.
    pub confirmed: Option<Day>,
}

/// Relation of an entry's author to this node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EntryOwner {
    /// The author is this node or another node of the same person.
    Local,
    /// The author is any other node.
    Foreign {
        /// Author weight as computed by [`trust::weight`](crate::trust::weight).
        weight: f64,
    },
}

/// Outcome of the admission rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The entry is kept out of retrieval.
    Reject,
    /// The entry may be retrieved, but its status stays candidate.
    Candidate,
    /// The entry may be retrieved.
    Accept,
}

/// The condition that led to the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionReason {
    /// The content scan found something severe enough to reject the entry regardless of its score.
    Finding(Severity),
    /// The score is below the reject threshold.
    TooWeak,
    /// The score is between the reject and the candidate threshold.
    Borderline,
    /// The score would suffice for a local entry but not for a foreign one.
    ForeignBorderline,
    /// The score reaches the threshold for its origin.
    Passed,
}

/// One weighted input of the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// Name of the signal, as shown in explanations.
    pub name: &'static str,
    /// Value of the signal, in [0, 1].
    pub value: f64,
    /// Factor by which the value enters the score.
    pub weight: f64,
}

/// Decision together with the numbers that led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionResult {
    /// Outcome for the entry.
    pub decision: AdmissionDecision,
    /// Condition that led to the decision.
    pub reason: AdmissionReason,
    /// Weighted sum of the signals, compared with the thresholds.
    pub score: f64,
    /// All seven signals, in a fixed order.
    pub signals: [Signal; 7],
}

/// Decides whether an entry may be retrieved on day `now`.
#[must_use]
pub fn assess(facts: &AdmissionFacts, now: Day, params: &Params) -> AdmissionResult {
    let signals = signals(facts, now, params);
    let score: f64 = signals.iter().map(|signal| signal.weight * signal.value).sum();
    let is_foreign = facts.origin != EntryOwner::Local;
    let (decision, reason) = if facts.scan.disqualifies() {
        (AdmissionDecision::Reject, AdmissionReason::Finding(facts.scan))
    } else if score < params.reject_below {
        (AdmissionDecision::Reject, AdmissionReason::TooWeak)
    } else if score < params.candidate_below {
        (AdmissionDecision::Candidate, AdmissionReason::Borderline)
    } else if is_foreign && score < params.foreign_candidate_below {
        (AdmissionDecision::Candidate, AdmissionReason::ForeignBorderline)
    } else {
        (AdmissionDecision::Accept, AdmissionReason::Passed)
    };
    AdmissionResult { decision, reason, score, signals }
}

fn signals(facts: &AdmissionFacts, now: Day, params: &Params) -> [Signal; 7] {
    let signal = |name, value, weight| Signal { name, value: unit(value), weight };
    [
        signal("confidence", confidence(&facts.posterior, params), params.confidence),
        signal("provenance", provenance(facts, params), params.provenance),
        signal("scanner", scanner(facts.scan, params), params.scanner),
        signal("federation", federation(facts.origin, params), params.federation),
        signal("observation mass", mass(facts.success_mass, params), params.observation_mass),
        signal("type", params.kind_prior(facts.kind), params.kind),
        signal("recency", recent(facts, now, params), params.recency),
    ]
}

/// Maps the mean linearly from 0 at `mean_zero` (disproven) to 1 at `mean_one` (as good as proven).
fn confidence(posterior: &Posterior, params: &Params) -> f64 {
    (posterior.mean() - params.mean_zero) / (params.mean_one - params.mean_zero)
}

/// Each evidence citation leaves `citation_leaves` of the missing part; context alone has a small
/// fixed value.
fn provenance(facts: &AdmissionFacts, params: &Params) -> f64 {
    match (facts.citations, facts.contexts) {
        (0, 0) => 0.0,
        (0, _) => params.context_only,
        (citations, _) => 1.0 - params.citation_leaves.powf(f64::from(citations)),
    }
}

fn scanner(scan: Severity, params: &Params) -> f64 {
    match scan {
        Severity::Safe => params.scan_safe,
        Severity::Low => params.scan_low,
        Severity::Medium | Severity::High | Severity::Critical => 0.0,
    }
}

/// The author weight as a fraction of the highest weight a foreign author can have.
fn federation(origin: EntryOwner, params: &Params) -> f64 {
    match origin {
        EntryOwner::Local => 1.0,
        EntryOwner::Foreign { weight } => unit(weight) / params.foreign_weight_max,
    }
}

fn mass(success_mass: f64, params: &Params) -> f64 {
    1.0 - (-params.mass_rate * success_mass).exp()
}

fn recent(facts: &AdmissionFacts, now: Day, params: &Params) -> f64 {
    let since = match facts.origin {
        EntryOwner::Local => Some(facts.confirmed.unwrap_or(facts.created)),
        EntryOwner::Foreign { .. } => facts.confirmed,
    };
    since.map_or(0.0, |day| recency(day, now, params.half_life_days))
}

#[cfg(test)]
mod tests;
