//! Why an entry may be retrieved, or may not, as it travels.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Whether an entry may be retrieved at all, with every number that led to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Admission {
    /// The sum of what the signals add.
    pub score: f64,
    /// `accepted`, `candidate` (it may be retrieved, and is held back) or `rejected`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// The score from which it is accepted: what is not this person's own needs more.
    pub accepted_from: f64,
    /// The score below which it is rejected.
    pub rejected_below: f64,
    /// Each signal, in [0, 1]: `confidence`, `provenance`, `scanner`, `federation`, `observations`,
    /// `type` and `recency`.
    pub parts: BTreeMap<String, f64>,
    /// What each adds to the score: signal times weight.
    pub adds: BTreeMap<String, f64>,
}

/// What the scan says of what is shown of an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScanVerdict {
    /// `safe`, `low`, `medium`, `high` or `critical`.
    pub verdict: String,
    /// The rules that matched, the gravest first; never what they matched.
    pub rules: Vec<String>,
    /// Whether the operator let it in out of quarantine: then it counts as `low` at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}
