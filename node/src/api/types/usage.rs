//! The account of cost and use as it travels.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How far back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// Days or weeks up to now, today included, as in `7d` or `4w`; `7d` unless given, at most
    /// `400d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// What was asked, served and used here.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// The first day that is counted, as in 2026-11-15.
    pub since: String,
    /// All of it.
    pub total: Used,
    /// By day, each of them.
    pub days: Vec<UsageDay>,
    /// By who asked: a client by its name, else the user.
    pub callers: Vec<UsageBy>,
    /// By who wrote what was served. What one author's hits cost in time is not told apart.
    pub authors: Vec<UsageBy>,
    /// By the peer that brought what others wrote; what several brought counts for each.
    pub peers: Vec<UsageBy>,
}

/// One day.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageDay {
    /// As in 2026-11-15, in UTC.
    pub day: String,
    /// How much.
    #[serde(flatten)]
    pub used: Used,
}

/// One caller, author or peer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageBy {
    /// What it is called here.
    pub name: String,
    /// Its key, of an author or a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub used: Used,
}

/// How much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    /// Answers with at least one hit.
    pub answers: u64,
    /// Tokens of what was served.
    pub tokens: u64,
    /// Hits served.
    pub hits: u64,
    /// Hits that were of use.
    pub used: u64,
    /// Hits that did harm.
    pub harmful: u64,
    /// Questions without a hit.
    pub abstentions: u64,
    /// Milliseconds that answers took.
    pub millis: u64,
    /// Hits that were set aside at the end of a task, because they contradicted what was seen.
    #[serde(default)]
    pub dismissed: u64,
    /// Spikes that made an experiment needless.
    #[serde(default)]
    pub avoided: u64,
}
