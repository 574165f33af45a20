//! Request and response types of typed links between entries.

use super::EntryIdentity;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects the links around an entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LinksQuery {
    /// The most steps from the entry, from 1 to 8. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Only links of this relation, such as `uses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
}

/// The links around an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryLinks {
    /// The first entry.
    pub entry: EntryIdentity,
    /// The entries within the steps, the nearest first.
    pub entries: Vec<LinkedEntry>,
    /// The links between them.
    pub links: Vec<TypedLink>,
    /// True if links were left out because there are more than 1000.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An entry of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkedEntry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code; only its digits if this node does not hold the entry.
    pub code: String,
    /// The title; empty if the text may not be served without a review.
    pub title: String,
    /// The number of steps from the first entry.
    pub steps: usize,
}

/// A typed link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TypedLink {
    /// The id of the entry that states the link.
    pub from: String,
    /// The relation, such as `uses`.
    pub relation: String,
    /// The id of the target.
    pub to: String,
}
