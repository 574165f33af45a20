//! A survey as it travels: whether what is held is in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Which part of a survey.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SurveyQuery {
    /// Only this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where the caller is, as an absolute path: what entries depend on is looked at there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// After this id: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One page of a survey. Counts of pages add up to those of the whole.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SurveyPage {
    /// What is counted.
    pub counts: SurveyCounts,
    /// Entries by the first part of their tags.
    pub tags: BTreeMap<String, u64>,
    /// What is wrong, by id.
    pub marked: Vec<Marked>,
    /// By which numbers the whole is told.
    pub limits: SurveyLimits,
    /// Why what entries depend on was not looked at, where a checkout was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlooked: Option<String>,
    /// The last id of this page, where there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is counted. Of what is beside entries the first page tells.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SurveyCounts {
    /// Entries that may speak.
    pub entries: u64,
    /// Of these: stale, or resting on something broken.
    pub stale: u64,
    /// Of these: contested or contradicted.
    pub disputed: u64,
    /// Friction that was recorded here recently.
    pub friction: u64,
    /// What waits for a decision: in quarantine, proposed by upkeep, or a node that waits to be approved.
    /// Of the whole node, so neither this nor tasks are told where a workspace is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Tasks that were finished recently ...
    pub tasks: u64,
    /// ... and how many of them failed.
    pub failed: u64,
}

/// By which numbers a survey is told: `[survey]` of the configuration.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct SurveyLimits {
    /// Entries under one tag, or one below it.
    pub tag_entries: u64,
    /// How many days are recent.
    pub recent_days: u32,
    /// Of fewer no fraction is told.
    pub sample_min: u64,
    /// The part of all entries that may be stale.
    pub stale: f64,
    /// The part that may be disputed.
    pub disputed: f64,
    /// Recent friction.
    pub friction: u64,
    /// What may wait.
    pub waiting: u64,
    /// The part of recent tasks that may have failed.
    pub failed: f64,
}

/// Something that is wrong with an entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Marked {
    /// Its id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// One line.
    pub title: String,
    /// Who wrote it, where that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether it has been seen to work, here or by members who are trusted.
    pub corroborated: bool,
    /// A rule that is broken (`evidence`, `backflow`, `contradiction`, `links`, `outdated`) or a sign of
    /// drift (`contradiction`, `orphaned`, `stale`).
    pub mark: String,
    /// Whether it keeps the entry from being built upon.
    pub blocks: bool,
    /// The same in words.
    pub why: String,
}
