//! Request and response types of a briefing.

use super::ListedInsight;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use utoipa::{IntoParams, ToSchema};

/// The allowed token budget of a briefing.
pub const BRIEFING_TOKENS: RangeInclusive<u32> = 100..=20_000;

/// Selects the contents of a briefing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BriefingQuery {
    /// The workspace. Default: the workspace of the checkout, else the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's thread. Its entries come first, and only its tasks are listed. Entries of other
    /// threads are left out, except those of the task's thread and the branch's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The caller's task; entries of its thread are included. An unknown task is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The token budget, 100 to 20,000. Default: the configured budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// The caller's location as an absolute path. The node evaluates predicates there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A summary of a workspace: entries and open tasks that matter now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Briefing {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// This node's name for the workspace.
    pub workspace: String,
    /// The size of the text in tokens.
    pub tokens: u32,
    /// The sections `verified`, `contested`, `stale`, `brought` and `tasks`, in this order. Empty
    /// sections are left out.
    pub sections: Vec<BriefingSection>,
    /// Insights of the workspace, the most severe first; as many as their part of the budget
    /// allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<ListedInsight>,
    /// Number of entries left out because the token budget was spent.
    pub left_out: usize,
    /// The whole briefing as text: entries are quoted as data, each with its origin.
    pub text: String,
}

/// One section of a briefing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BriefingSection {
    /// The name of the section, for programs.
    pub kind: String,
    /// The heading, for people.
    pub title: String,
    /// The entries or tasks of the section.
    pub entries: Vec<BriefingEntry>,
}

/// An entry or an open task in a briefing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BriefingEntry {
    /// The entry's citation code, or the task's name.
    pub code: String,
    /// The entry's id, or the task's name.
    pub id: String,
    /// Identifies the current text. It changes whenever title, content or summary changes; absent
    /// for a task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The entry's title, or the task's goal; one line.
    pub title: String,
    /// One sentence; empty if the budget allowed only the title.
    pub line: String,
    /// The entry's status on this node, or the task's state.
    pub status: String,
    /// Mean of the confidence; absent for a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The weight of the evidence, in observations made today; absent for a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
    /// This node's name for the author, or the agent that works on the task.
    pub author: String,
    /// Hops from this node to the author; 0 for this node, absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<u8>,
    /// Trust in the author, in [0, 1]; 1 for this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<f64>,
    /// Warnings that belong to the entry.
    #[serde(default)]
    pub caveats: Vec<String>,
}
