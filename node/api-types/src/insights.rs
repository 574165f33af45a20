//! Request and response types of insights.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The query parameters that select insights.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InsightsQuery {
    /// The workspace. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Include dismissed insights.
    #[serde(default)]
    pub dismissed: bool,
}

/// The insights of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InsightList {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// This node's name for the workspace.
    pub workspace: String,
    /// The insights, the most severe first.
    pub insights: Vec<ListedInsight>,
    /// The number of dismissed insights that are left out.
    pub dismissed: usize,
}

/// A matter of a workspace that needs attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListedInsight {
    /// Identifies the matter. It stays the same while its evidence changes.
    pub id: String,
    /// The number of the rule that found it, from 1.
    pub rule: u8,
    /// The name of the rule.
    pub name: String,
    /// The category, such as `contradiction` or `performance`.
    pub category: String,
    /// `action_required`, `attention` or `info`.
    pub severity: String,
    /// The matter in one sentence. Tags, strategies and names of peers in it are data.
    pub text: String,
    /// The suggested action in one sentence.
    pub action: String,
    /// A task that would settle the matter, for contradictions, coverage gaps and stale clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<ProposedTask>,
    /// The entries and numbers that the rule rests on.
    pub evidence: Vec<EvidenceItem>,
    /// When it was dismissed, in milliseconds since 1970; absent if it was not, or if it has other
    /// evidence since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<u64>,
}

/// A task that would settle an insight; `POST /v1/tasks` takes these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposedTask {
    /// The role of the agent.
    pub agent: String,
    /// The goal of the task.
    pub goal: String,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvidenceItem {
    /// `entry`, `task`, `author` or `number`.
    pub kind: String,
    /// The id of the entry, the name of the task, the key of the author, or the name of the number.
    pub id: String,
    /// The name shown to people, such as the citation code of the entry.
    pub label: String,
    /// The evidence in words.
    pub detail: String,
}

/// The result of dismissing an insight, or of taking the dismissal back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InsightDismissal {
    /// The insight after the request.
    pub insight: ListedInsight,
    /// True if the request changed nothing.
    pub already: bool,
}
