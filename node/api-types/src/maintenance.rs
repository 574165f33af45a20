//! Request and response types for maintenance and its journal.

use super::EntryIdentity;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects items of the maintenance journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MaintenanceQuery {
    /// Only one list: `changes`, `proposals`, `contradictions` or `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// The largest number of items per list: 1 to 1000. Default: 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only items with smaller numbers, which are older: the last number of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// A request to run one step of a maintenance service now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRun {
    /// `duplicates`, `contradictions`, `pairs` or `stale`.
    pub service: String,
    /// Report the changes without making them.
    #[serde(default)]
    pub dry_run: bool,
    /// Where to start. Default: where the service stopped last. A dry run continues from `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<MaintenancePosition>,
}

/// The position of a maintenance service.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenancePosition {
    /// The position in the feed.
    #[serde(default)]
    pub position: u64,
    /// The id of the last visited entry, during a pass over all entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<String>,
}

/// The result of one step of a maintenance service.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceResult {
    /// The name of the service.
    pub service: String,
    /// Entries or pairs that were examined.
    pub examined: u64,
    /// New items in the journal.
    pub noted: Vec<JournalItem>,
    /// Journal items that no longer apply.
    pub over: u64,
    /// Pairs that had decayed and were removed.
    pub faded: u64,
    /// True if nothing is left to examine.
    pub through: bool,
    /// Progress: entries or pairs done.
    pub done: u64,
    /// Progress: entries or pairs in total.
    pub total: u64,
    /// Why the service has to wait; absent if it can work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The position from which the service continues.
    pub next: MaintenancePosition,
}

/// An item of the maintenance journal: a change, a proposal or a finding.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalItem {
    /// The number by which the item is undone, accepted or dismissed; absent in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The name of the service.
    pub service: String,
    /// `sameness`, `contradiction` or `staleness`.
    pub matter: String,
    /// `proposed`, `made`, `undone`, `dismissed`, `open`, `over` or `gone`.
    pub stage: String,
    /// When it was recorded, in milliseconds since 1970.
    pub at: u64,
    /// The entries concerned; of two duplicates, the displayed one comes first.
    pub entries: Vec<EntryIdentity>,
    /// The titles of the entries, in the same order; empty for an entry whose gate is shut.
    #[serde(default)]
    pub titles: Vec<String>,
    /// The reason for the action or the proposal, as text.
    pub why: String,
    /// True if one of the entries is not this node's own.
    pub foreign: bool,
    /// When the operator decided about the item, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<u64>,
}

/// The progress of maintenance and the items of its journal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceStatus {
    /// The state of each service.
    pub services: Vec<MaintenanceService>,
    /// Changes that were made, newest first; undone ones included.
    pub changes: Vec<JournalItem>,
    /// Proposals that wait for a decision.
    pub proposals: Vec<JournalItem>,
    /// Contradictions between entries.
    pub contradictions: Vec<JournalItem>,
    /// Entries that have become stale.
    pub stale: Vec<JournalItem>,
    /// Groups of entries that are often served together, from the last pass over the pairs.
    pub clusters: Vec<EntryCluster>,
    /// Entries that two projects found independently, proposed for the workspace `main`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_main: Vec<MainProposal>,
    /// True if one of the lists is incomplete.
    pub more: bool,
    /// The incomplete lists; continue one with `before`.
    #[serde(default)]
    pub more_of: Vec<String>,
}

/// An entry that two projects found independently.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MainProposal {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The title, one line.
    pub title: String,
    /// The workspaces whose agents found it.
    pub projects: Vec<String>,
}

/// A group of entries that are often served together.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryCluster {
    /// The entries of the group.
    pub entries: Vec<EntryIdentity>,
    /// The mean weight of the pairs of the group; each has at least 2.
    #[serde(default)]
    pub mean_weight: f64,
    /// True with at least 5 entries and a mean weight above 3: one entry could replace them.
    #[serde(default)]
    pub dense: bool,
}

/// The state of a maintenance service.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceService {
    /// The name of the service.
    pub name: String,
    /// True if enough has changed for a pass to start, or if one is in progress.
    pub due: bool,
    /// Records of the feed that the service has not examined.
    pub behind: u64,
    /// When the service last finished a full pass, in milliseconds since 1970; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    /// Entries or pairs examined since the store was created.
    pub examined: u64,
    /// Items recorded since the store was created.
    pub noted: u64,
}

/// The result of a decision about a journal item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceDecision {
    /// The item in its new state.
    pub noted: JournalItem,
}
