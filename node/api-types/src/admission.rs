//! Response types for admission (whether an entry may be retrieved) and for the content scan.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Whether an entry may be retrieved, with all numbers behind the decision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Admission {
    /// The sum of `adds`.
    pub score: f64,
    /// `accepted`, `candidate` (retrievable, but not served automatically) or `rejected`.
    pub decision: String,
    /// The reason for the decision, for people.
    pub reason: String,
    /// The score from which the entry is accepted. Entries of other people need a higher score.
    pub accepted_from: f64,
    /// The score below which the entry is rejected.
    pub rejected_below: f64,
    /// Each signal, in [0, 1]: `confidence`, `provenance`, `scanner`, `federation`, `observations`,
    /// `type` and `recency`.
    pub parts: BTreeMap<String, f64>,
    /// The share of each signal in the score: signal times weight.
    pub adds: BTreeMap<String, f64>,
}

/// The result of the content scan of the displayed parts of an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScanVerdict {
    /// The severity: `safe`, `low`, `medium`, `high` or `critical`.
    pub verdict: String,
    /// The rules that matched, most severe first; never the matched text.
    pub rules: Vec<String>,
    /// True if the operator released the entry from quarantine. Its severity then counts as `low`
    /// at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}
