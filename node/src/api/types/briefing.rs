//! A briefing as it travels.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use utoipa::{IntoParams, ToSchema};

/// Tokens that a briefing may be asked to take.
pub const BRIEFING_TOKENS: RangeInclusive<u32> = 100..=20_000;

/// Which briefing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BriefingQuery {
    /// Of which workspace; that of the checkout unless given, else the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's thread: its entries come first, and of tasks only its own are told. Entries of
    /// other threads are not told, but for the thread of the task and of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The task it is asked in: entries of its thread are told. One that is unknown counts as none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Tokens that it may take, 100 to 20,000; as many as the configuration says unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// Where the caller is, as an absolute path: what entries depend on is looked at there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// What of a workspace matters now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Briefing {
    /// Milliseconds since 1970, by the node's clock.
    pub as_of: u64,
    /// What the workspace is called here.
    pub workspace: String,
    /// What the text costs, in tokens.
    pub tokens: u32,
    /// What is told, by heading: `verified`, `contested`, `stale`, `brought`, `tasks`, in this
    /// order; headings without an entry are left out.
    pub sections: Vec<BriefingSection>,
    /// How many entries would have been told, and were too much.
    pub left_out: usize,
    /// All of it as text: quoted as data, with where it comes from.
    pub text: String,
}

/// What stands under one heading.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BriefingSection {
    /// The heading, for programs.
    pub kind: String,
    /// The heading, for people.
    pub title: String,
    /// What stands under it.
    pub entries: Vec<BriefingEntry>,
}

/// One entry of a briefing, or an open task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BriefingEntry {
    /// Its citation code; of a task its name.
    pub code: String,
    /// Its id; of a task its name.
    pub id: String,
    /// Names its text: another one as soon as title, content or summary changes; absent for a task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One line; of a task its goal.
    pub title: String,
    /// One sentence; empty where there was room for the title alone.
    pub line: String,
    /// Where it stands here.
    pub status: String,
    /// Confidence; absent for a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// How many observations of today that rests on; absent for a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
    /// What the author is called here; of a task, who works on it.
    pub author: String,
    /// 0 for this node; absent for an author whose distance is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<u8>,
    /// How far the author is trusted; 1 for this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<f64>,
    /// What must be said along with it.
    #[serde(default)]
    pub caveats: Vec<String>,
}
