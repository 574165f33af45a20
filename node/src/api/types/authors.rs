//! Who said what about an entry, as it travels.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one author adds to an entry's confidence.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Contribution {
    /// Who.
    pub author: String,
    /// What the author is called here.
    pub author_name: String,
    /// How far away; absent if unknown.
    pub hop: Option<u8>,
    /// How far trusted.
    pub trust: f64,
    /// What the author's observations weigh.
    pub weight: f64,
    /// What it adds to α.
    pub alpha: f64,
    /// What it adds to β.
    pub beta: f64,
    /// What it would add to both if nobody were bounded.
    pub offered: f64,
    /// What it was cut down by.
    pub bounds: Vec<String>,
    /// Why the author weighs what it weighs.
    pub reason: String,
}

/// What prior evidence from an import adds to an entry's confidence: at most two observations, and
/// nothing to its status.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prior {
    /// What it adds to α, faded.
    pub alpha: f64,
    /// What it adds to β, faded.
    pub beta: f64,
}

/// What somebody else than the author of an entry's text has put beside it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OfOther {
    /// By whom; where several say it, one of them.
    pub author: String,
    /// What the author is called here.
    pub author_name: String,
    /// Into which field: a set, a register, or `evidence`.
    pub field: String,
    /// The text.
    pub text: String,
}

/// A claim by an author whose word is not shown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Proposed {
    /// By whom.
    pub author: String,
    /// What the author is called here.
    pub author_name: String,
    /// For which field.
    pub register: String,
    /// The text.
    pub text: String,
    /// Milliseconds since 1970, by the author's clock.
    pub at: u64,
}

/// A hit that says the opposite.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Rival {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Its confidence: α / (α + β).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Whether it is listed after this one.
    pub listed_after: bool,
    /// Why the two are listed in this order.
    pub why: String,
}
