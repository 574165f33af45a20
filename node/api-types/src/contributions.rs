//! Response types for the shares of other authors in an entry: confidence, values and proposals.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The share of one author in an entry's confidence.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Contribution {
    /// The author's key.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// Hops from this node to the author; absent if unknown.
    pub hop: Option<u8>,
    /// Trust in the author, in [0, 1].
    pub trust: f64,
    /// Weight of the author's observations, in [0, 1].
    pub weight: f64,
    /// The share in α.
    pub alpha: f64,
    /// The share in β.
    pub beta: f64,
    /// The share in α and β together before any limit was applied.
    pub offered: f64,
    /// The limits that reduced the share.
    pub bounds: Vec<String>,
    /// Why the author has this weight.
    pub reason: String,
}

/// Prior evidence from an import. It adds at most two observations to the confidence and does not
/// change the status.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prior {
    /// The share in α, after decay.
    pub alpha: f64,
    /// The share in β, after decay.
    pub beta: f64,
}

/// A value that a person other than the author of the text added to an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OtherAuthorValue {
    /// The key of the author of the value; one of them if several authors agree.
    pub author: String,
    /// This node's name for that author.
    pub author_name: String,
    /// The field: a set, a register, or `evidence`.
    pub field: String,
    /// The element or value that the author contributed.
    pub text: String,
}

/// A claim by an author whose claims are not displayed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProposedClaim {
    /// The author's key.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// The name of the field that the claim sets.
    pub register: String,
    /// The proposed value.
    pub text: String,
    /// When it was claimed, by the author's clock, in milliseconds since 1970.
    pub at: u64,
}

/// Another hit that contradicts this hit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ContradictingHit {
    /// The other entry's id.
    pub id: String,
    /// The other entry's citation code.
    pub code: String,
    /// The other entry's title.
    #[serde(default)]
    pub title: String,
    /// Mean of the other entry's confidence: α / (α + β).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// True if the other entry is listed after this one.
    pub listed_after: bool,
    /// Why the two are listed in this order.
    pub why: String,
}
