//! What was served, as it travels.

use super::Named;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ServedQuery {
    /// Those with this entry alone: its code, its id, or an unambiguous beginning of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// At most so many: 1 to 1000, and 20 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// What was served last, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Served {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// The answers.
    pub answers: Vec<ServedAnswer>,
    /// Whether there are older ones.
    pub more: bool,
}

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServedAnswer {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// To whom: what the client calls itself, else its user and process.
    pub caller: String,
    /// In which of its sessions, as it calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In which task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What was asked, its first 200 characters, without secrets and without what would instruct a
    /// reader; `briefing` where nobody asked; none where something that it found was forgotten since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Nobody asked for these entries in particular: a briefing, or a hook.
    pub unasked: bool,
    /// The best of them was hardly relevant.
    pub weak: bool,
    /// What was served, best first.
    pub entries: Vec<Named>,
}
