//! Findings as they travel.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What was found in a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFinding {
    /// What, in one to three sentences.
    pub text: String,
    /// How grave it is: `info`, `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// How sure the finder is, in [0, 1].
    pub confidence: f64,
    /// Where it is seen: predicates, one at least.
    pub anchors: Vec<String>,
    /// How to check that it still holds: one to three steps.
    pub verify: Vec<String>,
    /// Why it is a false positive, if the finder says that it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismiss: Option<String>,
    /// The workspace that an entry made of it goes to, by name or id; the current one unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where the finder is: the absolute path of a git checkout, or of a folder in one. Its repository
    /// is recorded with the anchors. Refused to callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A finding, and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskFinding {
    /// The task it was recorded in.
    pub task: String,
    /// Its number there, from 1.
    pub number: u32,
    /// Who found it.
    pub agent: String,
    /// What was found; empty once it was forgotten.
    pub text: String,
    /// How grave it is.
    pub severity: String,
    /// How sure the finder is, in [0, 1].
    pub confidence: f64,
    /// Where it is seen.
    pub anchors: Vec<String>,
    /// How to check that it still holds.
    pub verify: Vec<String>,
    /// Why it is held to be a false positive, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<String>,
    /// When it was recorded, in milliseconds since 1970.
    pub at: u64,
    /// What became of it: `waiting`, `new_entry`, `confirmed`, `reinforced`, `false_positive`,
    /// `kept`, `refused` or `forgotten`.
    pub became: String,
    /// Why, where there is something to say.
    pub reason: String,
    /// The entry it went into or spoke for, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// That entry's citation code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How often it was found again by an echo: the same agent, or somebody who was told.
    pub echoes: u32,
}

/// Which findings to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FindingsQuery {
    /// Those of the tasks above it as well: what was handed down.
    #[serde(default)]
    pub inherited: bool,
    /// The task in which they are read, if it is another: from then on it is primed by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
}

/// Findings, those of the task first, each by number.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Findings {
    /// The findings.
    pub findings: Vec<TaskFinding>,
    /// How many of them were handed down from the tasks above.
    pub handed_down: u32,
}

/// Why a finding is a false positive.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Dismiss {
    /// Why.
    pub reason: String,
}
