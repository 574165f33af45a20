//! Tasks as they travel.

use super::{Outcome, TaskFinding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A task to begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// Who works on it.
    pub agent: String,
    /// What for.
    pub goal: String,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The task it is a part of: what was served there primes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its name.
    pub task: String,
    /// Who works on it.
    pub agent: String,
    /// What for.
    pub goal: String,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The task it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `open`, `finished` or `expired`.
    pub state: String,
    /// Since when, in milliseconds since 1970.
    pub begun: u64,
    /// When it was finished, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<u64>,
    /// How it was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How good the work was, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// What it cost, in whatever the agent counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How many rounds it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// How it was gone about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// How many entries were served in it.
    pub served: u32,
    /// What was served in it, in the order of serving, where one task is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<TaskEntry>,
    /// What was found in it, and what became of it, where one task is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<TaskFinding>,
    /// How many findings of the tasks above it were handed down to it, where one task is shown or
    /// begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_down: Option<u32>,
}

/// An entry that was served in a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskEntry {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// One line.
    pub title: String,
    /// The best place it had in an answer, 0 for the first.
    pub rank: u32,
    /// Whether a success or a failure of it was counted in the task.
    pub observed: bool,
    /// `used`, `dismissed` or `avoided`, where that was said of it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TasksQuery {
    /// At most so many: 1 to 1000, and 50 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only those that go on.
    #[serde(default)]
    pub open: bool,
}

/// Tasks, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Whether there are older ones.
    pub more: bool,
}

/// How a task ends.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishTask {
    /// Whether it worked.
    pub outcome: Outcome,
    /// How good the work was, in [0, 1]; 0.5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// The entries that were of use, by id or code. If none is named, the first three served that
    /// were not dismissed share the outcome at half weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<String>,
    /// Those that were set aside because they contradicted what was seen, by id or code: the outcome
    /// is neither their merit nor their fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<String>,
    /// Spikes that made an experiment needless, by id or code: they count as used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// What it cost, in whatever the agent counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How many rounds it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// How it was gone about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
}

/// What the end of a task led to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedTask {
    /// Its name.
    pub task: String,
    /// Whether it was finished before: then nothing was added.
    pub already: bool,
    /// The outcome that stands: the first that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What was added to which entry.
    pub credits: Vec<Credited>,
    /// What was named and not served in the task, by id: it earns nothing.
    pub unserved: Vec<String>,
    /// What was dismissed, by id: it is neither credited nor blamed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<String>,
    /// The spikes that made an experiment needless, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// What was served in too many tasks with nothing that speaks for it, by id: it is archived.
    pub archived: Vec<String>,
    /// The citation codes of all of these, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, String>,
}

/// What an outcome added to one entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Credited {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// How much, in observations; to successes or failures, as the task ended.
    pub amount: f64,
    /// The best place it had in an answer, 0 for the first.
    pub rank: u32,
    /// Whether it was named as used or avoided; if not, it was among the first served.
    pub named: bool,
}
