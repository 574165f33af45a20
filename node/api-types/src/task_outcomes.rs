//! Request and response types for outcomes of tasks in a period.

use super::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The query parameters that select outcomes of tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutcomesQuery {
    /// The workspace. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The length of the period up to now, today included, in days or weeks, such as `7d` or `4w`.
    /// Default: `7d`; at most `400d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
}

/// Outcomes of the tasks of a workspace that finished in a period.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OutcomeReport {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// This node's name for the workspace.
    pub workspace: String,
    /// The length of the period, such as `7d`.
    pub period: String,
    /// The totals of the outcomes.
    pub summary: OutcomeTotals,
    /// The totals of each strategy, best mean quality first. Tasks without a strategy are left out.
    pub strategies: Vec<StrategyTotals>,
    /// The outcomes, the task that began last first.
    pub outcomes: Vec<FinishedOutcome>,
    /// True if there are more outcomes than the limit of 1000.
    pub more: bool,
}

/// Totals of outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeTotals {
    /// The number of tasks.
    pub tasks: u64,
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// The mean quality; absent without a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// The sum of the costs, in the unit that the agents chose.
    pub cost: f64,
    /// The sum of the rounds.
    pub rounds: u64,
    /// The sum of the durations in milliseconds.
    pub duration_millis: u64,
    /// Entries written in the tasks, or made from their findings.
    pub made: u64,
    /// Entries served in the tasks; an entry counts once per task.
    pub served: u64,
    /// Entries that the agents named as used.
    pub used: u64,
}

/// Totals of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StrategyTotals {
    /// The strategy as the agents named it.
    pub strategy: String,
    /// The totals of the tasks with this strategy.
    #[serde(flatten)]
    pub totals: OutcomeTotals,
}

/// The outcome of a finished task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinishedOutcome {
    /// The name of the task.
    pub task: String,
    /// The agent that worked on it.
    pub agent: String,
    /// The goal of the task.
    pub goal: String,
    /// The thread that the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// When it was finished, in milliseconds since 1970.
    pub finished: u64,
    /// The time from beginning to end, in milliseconds.
    pub duration_millis: u64,
    /// How the task ended.
    pub outcome: Outcome,
    /// The quality of the work, in [0, 1].
    pub quality: f64,
    /// The strategy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The number of rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The cost, in a unit that the agent chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Entries written in the task, or made from its findings.
    pub made: u32,
    /// Entries served in the task.
    pub served: u32,
    /// Entries that the agent named as used.
    pub used: u32,
}
