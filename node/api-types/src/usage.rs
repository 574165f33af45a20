//! Request and response types for usage: served answers, their cost and their benefit.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects a period.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// The length of the period up to now, today included, in days or weeks, such as `7d` or `4w`.
    /// Default: `7d`; at most `400d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Answers served by this node in a period, with their cost and their benefit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// The first counted day, such as 2026-11-15.
    pub since: String,
    /// The totals of the period.
    pub total: UsageNumbers,
    /// The numbers of each day.
    pub days: Vec<UsageDay>,
    /// The numbers of each caller: a client by its name, else the user.
    pub callers: Vec<UsageGroup>,
    /// The numbers of each author of served entries. The time of an answer is not split between
    /// authors.
    pub authors: Vec<UsageGroup>,
    /// The numbers of each peer that sent entries of other authors. An entry sent by several peers
    /// counts for each of them.
    pub peers: Vec<UsageGroup>,
}

/// The numbers of one day.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageDay {
    /// The day in UTC, such as 2026-11-15.
    pub day: String,
    /// Cost and benefit of the answers of this day.
    #[serde(flatten)]
    pub used: UsageNumbers,
}

/// The numbers of one caller, author or peer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageGroup {
    /// This node's name for it.
    pub name: String,
    /// The key of the author or peer; absent for a caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Cost and benefit of the answers served to this group.
    #[serde(flatten)]
    pub used: UsageNumbers,
}

/// Cost and benefit of served answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageNumbers {
    /// Answers with at least one hit.
    pub answers: u64,
    /// Tokens of the served answers.
    pub tokens: u64,
    /// Entries in those answers; an entry counts in each answer.
    pub hits: u64,
    /// Hits that helped.
    pub used: u64,
    /// Hits that misled.
    pub harmful: u64,
    /// Queries without a hit.
    pub abstentions: u64,
    /// Total time of the answers in milliseconds.
    pub millis: u64,
    /// Hits that were dismissed at the end of a task because they contradicted observed facts.
    #[serde(default)]
    pub dismissed: u64,
    /// Spikes that made an experiment unnecessary.
    #[serde(default)]
    pub avoided: u64,
}
