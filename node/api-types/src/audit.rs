//! Request and response types for the audit: rule violations, drift and health numbers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Selects one page of an audit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Only this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's location as an absolute path. The node evaluates predicates there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// The cursor: `next` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One page of an audit. The counts of all pages add up to the total.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditReportPage {
    /// Health numbers of this page's entries; on the first page of all workspaces also those that
    /// belong to no entry. The totals are the sums over all pages.
    pub counts: AuditCounts,
    /// Number of entries by the first level of their tags.
    pub tags: BTreeMap<String, u64>,
    /// Number of entries by reviewer, that is by the tag `review/NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reviewers: BTreeMap<String, u64>,
    /// Rule violations and signs of drift, sorted by entry id.
    pub marked: Vec<AuditItem>,
    /// The thresholds for the totals.
    pub limits: AuditLimits,
    /// Why predicates were not evaluated, if a checkout was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlooked: Option<String>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Health numbers. The first page also contains the numbers that do not belong to entries.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditCounts {
    /// Entries that the gate admits.
    pub entries: u64,
    /// Of these, entries that are stale or depend on a broken predicate.
    pub stale: u64,
    /// Of these, entries with an edit conflict or a contradiction.
    pub disputed: u64,
    /// Friction entries recorded on this node recently.
    pub friction: u64,
    /// Items that wait for the operator: records in quarantine, maintenance proposals and nodes to
    /// approve. They belong to the whole node, so this field is absent and the task counts are 0 if
    /// a workspace is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Tasks that were finished recently.
    pub tasks: u64,
    /// Of these tasks, those that failed.
    pub failed: u64,
}

/// Thresholds of an audit, from `[tuning.audit]` of the configuration.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditLimits {
    /// Largest number of entries under one tag and its sub-tags.
    pub tag_entries: u64,
    /// Largest number of entries of one reviewer; 0 on a node of an earlier version.
    #[serde(default)]
    pub reviewer_entries: u64,
    /// The number of days that count as recent.
    pub recent_days: u32,
    /// Fractions are computed only from at least this many items.
    pub sample_min: u64,
    /// Largest healthy fraction of stale entries.
    pub stale: f64,
    /// Largest healthy fraction of disputed entries.
    pub disputed: f64,
    /// Largest healthy number of recent friction entries.
    pub friction: u64,
    /// Largest healthy number of waiting items.
    pub waiting: u64,
    /// Largest healthy fraction of recent tasks that failed.
    pub failed: f64,
}

/// A rule violation or a sign of drift of one entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditItem {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The entry's title, one line.
    pub title: String,
    /// The author's name, if another person wrote the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// True if the entry was observed to work, on this node or by trusted members.
    pub corroborated: bool,
    /// The violated rule (`evidence`, `backflow`, `contradiction`, `links`, `outdated`) or the sign
    /// of drift (`contradiction`, `orphaned`, `stale`).
    pub mark: String,
    /// True if other entries must not build on this entry until it is fixed.
    pub blocks: bool,
    /// The explanation for people.
    pub why: String,
}
