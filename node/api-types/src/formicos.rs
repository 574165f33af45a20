//! Requests and answers in the shapes of `FormicOS`, which `/api/v1/` serves.
//!
//! Separate from the types of `/v1/`, because names and meaning of the fields are those of the other
//! system: a colony is a task, and a domain is a tag.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects knowledge items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct KnowledgeQuery {
    /// Only items of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only items of this sub-type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// Only items of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The most items: 1 to 200. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A list of knowledge items, as FormicOS names entries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeItems {
    /// The listed items.
    pub items: Vec<KnowledgeItem>,
    /// The number of items.
    pub total: usize,
}

/// A search for knowledge items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct KnowledgeSearchQuery {
    /// The question in plain words.
    #[serde(default)]
    pub q: String,
    /// Only items of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only items of this sub-type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// Only items of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The most items: 1 to 50. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The detail of a result: `summary`, `standard`, `full` or `auto`. Default: whole items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

/// The results of a search.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeResults {
    /// The items, best first.
    pub results: Vec<KnowledgeResult>,
    /// The number of items.
    pub total: usize,
}

/// A result of a search, in the detail of its tier.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum KnowledgeResult {
    /// A whole item: the tier `full`.
    Item(Box<KnowledgeItem>),
    /// A part of an item: the tiers `summary` and `standard`.
    Brief(KnowledgeBrief),
}

/// A part of a knowledge item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeBrief {
    /// The entry's id.
    pub id: String,
    /// The title of the entry, on one line.
    pub title: String,
    /// At most 100 characters.
    pub summary: String,
    /// `high`, `moderate` or `low` confidence; `exploratory` with few observations; `stale`.
    pub confidence_tier: String,
    /// At most 200 characters of the text; not in the tier `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_preview: Option<String>,
    /// The tags; not in the tier `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<String>>,
    /// The decay class; not in the tier `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay_class: Option<String>,
}

/// An entry as a knowledge item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeItem {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The entry type.
    pub entry_type: String,
    /// The sub-type of the entry, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// The status on this node.
    pub status: String,
    /// `positive`, `negative` or `neutral`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
    /// The title of the entry.
    pub title: String,
    /// The text; in a search result as much of it as the answer shows. Title, text and tags are
    /// empty if `gate` is `shut` or `held`, or if the node rejects an entry of another person.
    pub content: String,
    /// The summary in one sentence, in a search result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The tags of the entry.
    pub domains: Vec<String>,
    /// Successes of the confidence.
    pub conf_alpha: f64,
    /// Failures of the confidence.
    pub conf_beta: f64,
    /// The mean of the confidence.
    pub confidence: f64,
    /// The decay class.
    pub decay_class: String,
    /// The name of the thread; absent if the entry is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// This node's name for the workspace.
    pub workspace_id: String,
    /// When the entry was created, such as `2026-11-15T10:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Ids of entries that were merged into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<String>,
    /// Ids of the other entries of its co-occurrence cluster, as maintenance found it last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cooccurrence_cluster: Vec<String>,
    /// The score of a search result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The decision of the gate: `open`; `last_places` for an untried entry of a member; `shut` for
    /// one of an outsider; `held` for an own entry that the operator must release first.
    pub gate: String,
    /// True if the entry is data of another author that was not tried here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untried: bool,
}

/// A promotion out of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgePromotion {
    /// `workspace` or `global`. `global` promotes to the workspace `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_scope: Option<String>,
}

/// The result of a promotion.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgePromoted {
    /// True: the entry was promoted.
    pub promoted: bool,
    /// The id of the new entry; the old one stays in its thread.
    pub entry_id: String,
    /// The scope of the new entry.
    pub scope: String,
}

/// An action of the operator on an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeAction {
    /// `pin`, `unpin`, `mute`, `unmute`, `invalidate` or `reinstate`.
    #[serde(default)]
    pub action: String,
    /// The reason; becomes the note of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ignored: the operating system names the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Ignored: an entry has one workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
}

/// The result of an action.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeActed {
    /// True: the action is durable.
    pub ok: bool,
    /// The entry's id.
    pub entry_id: String,
    /// The action that was carried out.
    pub action: String,
}

/// An annotation of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeAnnotation {
    /// The text; replaces an earlier one.
    #[serde(default)]
    pub annotation_text: String,
    /// A label, which becomes the beginning of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Ignored: the operating system names the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Ignored: an entry has one workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
}

/// The result of an annotation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeAnnotated {
    /// True: the annotation is durable.
    pub ok: bool,
    /// The entry's id.
    pub entry_id: String,
    /// Always true; FormicOS clients read it.
    pub annotated: bool,
}

/// The operator's marks on an item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeOverlay {
    /// The entry's id.
    pub entry_id: String,
    /// True if it ranks higher here.
    pub pinned: bool,
    /// True if it is hidden here.
    pub muted: bool,
    /// True if it counts as wrong here.
    pub invalidated: bool,
    /// 1 with an annotation, otherwise 0.
    pub annotation_count: usize,
}

/// The origin of an item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeProvenance {
    /// The entry's id.
    pub entry_id: String,
    /// This node's name for the author of the text.
    pub author: String,
    /// The key of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_key: Option<String>,
    /// The citations, each as `KIND:REF`; empty if the text of the entry is not shown.
    pub citations: Vec<String>,
    /// Ids of entries that were merged into this one.
    pub merged_from: Vec<String>,
    /// The changes of the entry, newest first.
    pub events: Vec<KnowledgeEvent>,
}

/// A change of an item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeEvent {
    /// When it was made, such as `2026-11-15T10:00:00Z`.
    pub timestamp: String,
    /// This node's name for its author.
    pub actor: String,
    /// The change in words; without the value if the text of the entry is not shown.
    pub detail: String,
}

/// Selects the briefing of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceBriefing {
    /// This node's name for the workspace.
    pub workspace_id: String,
    /// When it was made, such as `2026-11-15T10:00:00Z`.
    pub generated_at: String,
    /// The insights, the most severe first.
    pub insights: Vec<BriefingInsight>,
    /// The number of entries in the workspace's briefing.
    pub total_entries: usize,
    /// The whole briefing as text: entries are quoted as data, each with its origin.
    pub text: String,
}

/// An insight of a briefing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BriefingInsight {
    /// Identifies the insight.
    pub id: String,
    /// `action_required`, `attention` or `info`.
    pub severity: String,
    /// The category, such as `contradiction` or `performance`.
    pub category: String,
    /// The name of the rule.
    pub title: String,
    /// The matter in one sentence.
    pub detail: String,
    /// Ids of the entries concerned.
    pub affected_entries: Vec<String>,
    /// The suggested action.
    pub suggested_action: String,
    /// A task that would settle the matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_colony: Option<SuggestedColony>,
}

/// A task that would settle an insight.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SuggestedColony {
    /// The goal of the task.
    pub task: String,
    /// The role of the agent.
    pub caste: String,
}

/// Selects the period of outcomes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ColonyOutcomesQuery {
    /// The length of the period, such as `7d`. Default: `7d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
}

/// Outcomes of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ColonyOutcomes {
    /// This node's name for the workspace.
    pub workspace_id: String,
    /// The length of the period.
    pub period: String,
    /// The totals of all outcomes in the period.
    pub summary: ColonySummary,
    /// The outcomes, the latest begun first.
    pub outcomes: Vec<ColonyOutcome>,
}

/// Totals of outcomes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ColonySummary {
    /// The number of tasks.
    pub total_colonies: u64,
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// The sum of the costs.
    pub total_cost: f64,
    /// Entries written in the tasks.
    pub total_extracted: u64,
    /// Entries served in the tasks.
    pub total_accessed: u64,
    /// The mean quality; 0 without a task.
    pub avg_quality: f64,
    /// The cost of maintenance: 0, because maintenance of this node calls no model.
    pub maintenance_spend: f64,
}

/// The outcome of a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ColonyOutcome {
    /// The name of the task.
    pub colony_id: String,
    /// This node's name for the workspace.
    pub workspace_id: String,
    /// The thread of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// The number of rounds; 0 if the agent gave none.
    pub total_rounds: u32,
    /// The cost; 0 if the agent gave none.
    pub total_cost: f64,
    /// The time from beginning to end, in milliseconds.
    pub duration_ms: u64,
    /// Entries written in the task.
    pub entries_extracted: u32,
    /// Entries served in the task.
    pub entries_accessed: u32,
    /// The quality, in [0, 1].
    pub quality_score: f64,
    /// The agents that worked on it.
    pub caste_composition: Vec<String>,
    /// The strategy; empty if the agent gave none.
    pub strategy: String,
}
