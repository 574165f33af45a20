//! Request and response types for tasks.

use super::{Outcome, TaskFinding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A task to begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// The agent that works on the task.
    pub agent: String,
    /// The goal of the task.
    pub goal: String,
    /// The thread that the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The parent task. Entries served in the parent prime this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The workspace of the work. Default: that of the parent, of the checkout, or the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's location as an absolute path. Callers over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A piece of work of an agent: its goal, state and result.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// The name of the task.
    pub task: String,
    /// The agent that works on the task.
    pub agent: String,
    /// The goal of the task.
    pub goal: String,
    /// The thread that the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The parent task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// This node's name for the workspace of the work.
    #[serde(default)]
    pub workspace: String,
    /// `open`, `finished` or `expired`.
    pub state: String,
    /// When the task began, in milliseconds since 1970.
    pub begun: u64,
    /// When the task was finished, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<u64>,
    /// The outcome of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The quality of the work, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// The cost, in a unit that the agent chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The number of rounds the work took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The strategy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The number of entries served in the task.
    pub served: u32,
    /// The entries served in the task, in order of serving. Only if one task is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<TaskEntry>,
    /// The findings of the task and their states. Only if one task is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<TaskFinding>,
    /// The number of findings handed down from parent tasks. Only if one task is requested or
    /// begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_down: Option<u32>,
    /// The number of questions that were asked in the task.
    #[serde(default)]
    pub searches: u32,
    /// The conclusion of the task, for later parts of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// The conclusions of earlier parts of the same work. They stand for the entries on which they
    /// are based. Only if one task is requested or begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<TaskConclusion>,
}

/// The conclusion of an earlier part of the work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskConclusion {
    /// The task that reached the conclusion.
    pub task: String,
    /// The agent that worked on that task.
    pub agent: String,
    /// The conclusion, in the words of that agent.
    pub conclusion: String,
    /// The citation codes of the entries that it adopted.
    pub cites: Vec<String>,
}

/// An entry that was served in a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskEntry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The entry's title, one line.
    pub title: String,
    /// The best rank of the entry in an answer, 0 for the first place.
    pub rank: u32,
    /// True if a success or a failure of the entry was counted in the task.
    pub observed: bool,
    /// `used`, `partial`, `composite`, `incidental`, `dismissed` or `avoided`, if the agent named the
    /// entry when it finished the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The gap that a partial use left, or the reason for adopting the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Selects tasks to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TasksQuery {
    /// The largest number of tasks: 1 to 1000. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only open tasks.
    #[serde(default)]
    pub open: bool,
}

/// Tasks, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tasks {
    /// The tasks of this page.
    pub tasks: Vec<Task>,
    /// True if there are older tasks.
    pub more: bool,
}

/// The end of a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishTask {
    /// Whether the task succeeded.
    pub outcome: Outcome,
    /// The quality of the work, in [0, 1]. Default: 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// The entries that helped, by id or code. If none is named, the first three served entries
    /// that were not dismissed share the outcome at half weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<String>,
    /// Entries that were set aside because they contradicted observed facts, by id or code. The
    /// outcome of the task does not change their confidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<String>,
    /// Spikes that made an experiment unnecessary, by id or code. They count as used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// The cost, in a unit that the agent chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The number of rounds the work took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The strategy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Entries that answered a part of the question, each with the gap. They count as used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<PartialUse>,
    /// Two or more entries that answered together, by id or code. They were not tested together as
    /// a unit. They count as used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite: Vec<String>,
    /// Entries that answered another question than the one asked, by id or code. They count less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidental: Vec<String>,
    /// Why named entries apply here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<AdoptionReason>,
    /// The conclusion for later parts of the work: what the entries mean for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

impl FinishTask {
    /// The end of a task without any detail.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            quality: None,
            used: Vec::new(),
            dismissed: Vec::new(),
            avoided: Vec::new(),
            cost: None,
            rounds: None,
            strategy: None,
            partial: Vec::new(),
            composite: Vec::new(),
            incidental: Vec::new(),
            reasons: Vec::new(),
            conclusion: None,
        }
    }
}

/// An entry that answered a part of the question.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialUse {
    /// The entry, by id or code.
    pub entry: String,
    /// The part of the question that it left open.
    pub gap: String,
}

/// Why an entry was adopted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptionReason {
    /// The entry, by id or code.
    pub entry: String,
    /// Why it applies here, such as the same technology and scale.
    pub reason: String,
}

/// Splits `CODE=TEXT`, the form in which an agent names an entry with its gap or reason; `None` if
/// one of the two is empty.
pub fn split_code(text: &str) -> Option<(String, String)> {
    let (code, text) = text.split_once('=')?;
    let (code, text) = (code.trim(), text.trim());
    (!code.is_empty() && !text.is_empty()).then(|| (code.to_owned(), text.to_owned()))
}

/// The result of finishing a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedTask {
    /// The name of the task.
    pub task: String,
    /// True if the task had been finished before, so that this request changed nothing.
    pub already: bool,
    /// The recorded outcome: the first one that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The credit that each entry received.
    pub credits: Vec<TaskCredit>,
    /// Ids of named entries that were not served in the task. They receive no credit.
    pub unserved: Vec<String>,
    /// Ids of dismissed entries. They receive neither credit nor blame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<String>,
    /// Ids of spikes that made an experiment unnecessary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// Ids of entries that were archived because they were served in too many tasks without an
    /// observation in their favour.
    pub archived: Vec<String>,
    /// The citation codes of all these entries, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, String>,
    /// True if no question was asked in the task, so its agent consulted no knowledge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsearched: bool,
    /// Ids of the entries of a composite answer, which were not tested together as a unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite: Vec<String>,
}

impl FinishedTask {
    /// Codes of the adopted entries that a conclusion does not cite.
    pub fn uncited<'a>(&'a self, conclusion: &'a str) -> impl Iterator<Item = &'a str> {
        let adopted = self.credits.iter().filter(|credit| credit.named);
        adopted.map(|credit| credit.code.as_str()).filter(|code| !conclusion.contains(code))
    }
}

/// The credit that an entry received from a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskCredit {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The amount in observations, added to successes or failures by the outcome of the task.
    pub amount: f64,
    /// The best rank of the entry in an answer, 0 for the first place.
    pub rank: u32,
    /// True if the agent named the entry as used or avoided; false if it was among the first
    /// served.
    pub named: bool,
    /// True if the entry answered another question, and counts less for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incidental: bool,
}
