//! Whether an entry may be retrieved at all: seven signals, three decisions, every number reported.
//!
//! Local and foreign entries are judged alike, but a foreign one needs a little more. Separate
//! from `status`, which acts on the decision, and from the scan, whose worst finding comes in.
//!
//! The signals are chosen so that the thresholds decide something:
//! - **Scanner.** A clean scan is the absence of a known fault, not a merit. Were it worth 1, it
//!   alone would reach the reject threshold and nothing clean could ever be rejected; it is worth a
//!   half. A medium finding is worth nothing.
//! - **Confidence.** The prior gives a quarter: unproven is better than disproven, which gives 0.
//! - **Observation mass** counts successes only. With failures in it an entry could gain more by
//!   mass than it loses by confidence, and be admitted for failing often.
//! - **Recency.** The date a stranger writes on its own entry is its own claim; only a confirmation
//!   counted here makes a foreign entry recent.
//!
//! So, of techniques with one citation, an own one passes (0.525), one of a member whose
//! texts have helped passes (0.425), one of a stranger is held back (0.339), and one of a stranger
//! with a medium finding is rejected (0.214).

use crate::posterior::Posterior;
use crate::recency::recency;
use crate::scan::Severity;
use crate::unit::unit;
use klnode_crdt::kind::Kind;
use klnode_crdt::time::Day;

mod params;

pub use params::Params;

/// What is known about an entry that asks to be admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The confidence in it.
    pub posterior: Posterior,
    /// The weighted, faded mass of its successes, without the prior.
    pub success_mass: f64,
    /// Citations of evidence.
    pub citations: u32,
    /// Citations of context: the task or commit in which it was written.
    pub contexts: u32,
    /// The worst finding of the scan.
    pub scan: Severity,
    /// Whose it is.
    pub origin: Origin,
    /// Its type.
    pub kind: Kind,
    /// The day it says it was made.
    pub created: Day,
    /// The day of the last independent confirmation that counts here.
    pub confirmed: Option<Day>,
}

/// Whose entry asks to be admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// Of this node or its person's other nodes.
    Local,
    /// Of anyone else.
    Foreign {
        /// The author's weight, as [`trust::weight`](crate::trust::weight) gives it.
        weight: f64,
    },
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is kept out of retrieval.
    Reject,
    /// It may be retrieved, and is held back to candidate.
    Candidate,
    /// It may be retrieved.
    Accept,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The scan found something that disqualifies alone.
    Finding(Severity),
    /// Too little speaks for it.
    TooWeak,
    /// Enough to be looked at, too little to be accepted.
    Borderline,
    /// Enough for a local entry, too little for a foreign one.
    ForeignBorderline,
    /// Enough speaks for it.
    Passed,
}

/// One signal of an assessment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// Its value, in [0, 1].
    pub value: f64,
    /// Its weight.
    pub weight: f64,
}

/// A decision with everything that led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// What becomes of the entry.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// The weighted sum of the signals.
    pub score: f64,
    /// The signals.
    pub signals: [Signal; 7],
}

/// Whether an entry may be retrieved today.
#[must_use]
pub fn assess(facts: &Facts, now: Day, params: &Params) -> Assessment {
    let signals = signals(facts, now, params);
    let score: f64 = signals.iter().map(|signal| signal.weight * signal.value).sum();
    let is_foreign = facts.origin != Origin::Local;
    let (decision, reason) = if facts.scan.disqualifies() {
        (Decision::Reject, Reason::Finding(facts.scan))
    } else if score < params.reject_below {
        (Decision::Reject, Reason::TooWeak)
    } else if score < params.candidate_below {
        (Decision::Candidate, Reason::Borderline)
    } else if is_foreign && score < params.foreign_candidate_below {
        (Decision::Candidate, Reason::ForeignBorderline)
    } else {
        (Decision::Accept, Reason::Passed)
    };
    Assessment { decision, reason, score, signals }
}

fn signals(facts: &Facts, now: Day, params: &Params) -> [Signal; 7] {
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

/// The mean, from disproven (0) to as good as proven (1).
fn confidence(posterior: &Posterior, params: &Params) -> f64 {
    (posterior.mean() - params.mean_zero) / (params.mean_one - params.mean_zero)
}

/// Each citation halves, and more, what is missing; context alone is worth a little.
fn provenance(facts: &Facts, params: &Params) -> f64 {
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

/// The author's weight, in parts of the most that a foreign author can weigh.
fn federation(origin: Origin, params: &Params) -> f64 {
    match origin {
        Origin::Local => 1.0,
        Origin::Foreign { weight } => unit(weight) / params.foreign_weight_max,
    }
}

fn mass(success_mass: f64, params: &Params) -> f64 {
    1.0 - (-params.mass_rate * success_mass).exp()
}

fn recent(facts: &Facts, now: Day, params: &Params) -> f64 {
    let since = match facts.origin {
        Origin::Local => Some(facts.confirmed.unwrap_or(facts.created)),
        Origin::Foreign { .. } => facts.confirmed,
    };
    since.map_or(0.0, |day| recency(day, now, params.half_life_days))
}

#[cfg(test)]
mod tests;
