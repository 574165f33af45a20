//! Request and response types for findings.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A finding to record in a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFinding {
    /// The finding, in one to three sentences.
    pub text: String,
    /// The severity: `info`, `low`, `medium`, `high` or `critical`, or a number from 0 to 10.
    pub severity: String,
    /// How sure the finder is: in [0, 1], or in [0, 10] if the severity is a number.
    pub confidence: f64,
    /// Predicates that hold where the finding was seen; at least one.
    pub anchors: Vec<String>,
    /// One to three steps that check whether the finding still holds.
    pub verify: Vec<String>,
    /// Why the finding is a false positive, if the finder says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismiss: Option<String>,
    /// The workspace of an entry made from the finding, by name or id. Default: the current
    /// workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The finder's location: the absolute path of a git checkout or of a folder in one. Its
    /// repository is recorded with the anchors. Callers over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// A one-time issue: it is recorded, but never becomes an entry by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// A finding and its state.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskFinding {
    /// The task in which it was recorded.
    pub task: String,
    /// The number within the task, from 1.
    pub number: u32,
    /// The agent that reported the finding.
    pub agent: String,
    /// The text of the finding; empty if it was forgotten.
    pub text: String,
    /// The severity: `info`, `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// The severity as a number from 0 to 10, if the finder gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// How sure the finder is, in [0, 1].
    pub confidence: f64,
    /// Predicates that hold where the finding was seen.
    pub anchors: Vec<String>,
    /// Steps that check whether the finding still holds.
    pub verify: Vec<String>,
    /// Why the finding counts as a false positive; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<String>,
    /// When it was recorded, in milliseconds since 1970.
    pub at: u64,
    /// The state: `waiting`, `new_entry`, `confirmed`, `reinforced`, `false_positive`, `kept`,
    /// `refused` or `forgotten`.
    pub became: String,
    /// An explanation of the state; empty if none is needed.
    pub reason: String,
    /// The id of the entry that the finding created or supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// That entry's citation code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How often the finding was reported again without independence: by the same agent, or by an
    /// agent that had been served it.
    pub echoes: u32,
    /// True if it is a one-time issue, which never becomes an entry by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// The query parameters that select findings of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FindingsQuery {
    /// Include the findings of parent tasks, which are handed down.
    #[serde(default)]
    pub inherited: bool,
    /// The task that reads the findings, if it is another one. That task is primed by them from
    /// then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
}

/// Findings, those of the task first, each sorted by number.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Findings {
    /// The findings; a forgotten one has no text.
    pub findings: Vec<TaskFinding>,
    /// The number of findings that were handed down from parent tasks.
    pub handed_down: u32,
}

/// A request to dismiss a finding as a false positive.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DismissRequest {
    /// Why it is a false positive.
    pub reason: String,
}
