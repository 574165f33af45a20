//! Request and response types for the serving log.

use super::EntryIdentity;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects answers in the serving log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ServingLogQuery {
    /// Only answers that contain this entry: its code, its id, or an unambiguous prefix of the
    /// code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The largest number of answers: 1 to 1000. Default: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Recent answers, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServingLog {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// The answers that this node gave.
    pub answers: Vec<ServedAnswer>,
    /// True if the log holds older answers.
    pub more: bool,
}

/// One answer in the serving log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServedAnswer {
    /// When it was served, in milliseconds since 1970.
    pub at: u64,
    /// The caller: the name the client gave itself, else its user and process id.
    pub caller: String,
    /// The session name that the client gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The task in which the answer was served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The first 200 characters of the query, without secrets and without instructions to a reader;
    /// `briefing` for a briefing. Absent if an entry of the answer was forgotten since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// True if the answer was automatic, from a briefing or a hook.
    pub unasked: bool,
    /// True if the best entry was hardly relevant.
    pub weak: bool,
    /// The entries of the answer, best first.
    pub entries: Vec<EntryIdentity>,
}
