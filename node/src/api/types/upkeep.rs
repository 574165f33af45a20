//! What the node does by itself, as it travels.

use super::Named;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What of the journal to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UpkeepQuery {
    /// One list alone: `changes`, `proposals`, `contradictions` or `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// At most so many of each: 1 to 1000, and 500 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Those with smaller numbers, which are older: the last number of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// An order to look after the store now, a little at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpkeepRun {
    /// `duplicates`, `contradictions`, `pairs` or `stale`.
    pub service: String,
    /// Say what would be done, and do nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Where to begin; where the service stands unless given. A dry run goes on from `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<UpkeepPlace>,
}

/// A place where a service stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpkeepPlace {
    /// In the feed.
    #[serde(default)]
    pub position: u64,
    /// The id of the last entry, in a walk through all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<String>,
}

/// What was done, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UpkeepRan {
    /// The service.
    pub service: String,
    /// Entries or pairs that were looked at.
    pub examined: u64,
    /// What was found that was not known before.
    pub noted: Vec<Noted>,
    /// What is no longer the case.
    pub over: u64,
    /// Pairs that had faded, and went.
    pub faded: u64,
    /// Whether there is nothing more to look at.
    pub through: bool,
    /// How far it is ...
    pub done: u64,
    /// ... of how much.
    pub total: u64,
    /// What it waits for, if it cannot work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Where it goes on.
    pub next: UpkeepPlace,
}

/// Something that upkeep did or found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Noted {
    /// Its number, by which it is undone, accepted or dismissed; absent in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The service.
    pub service: String,
    /// `sameness`, `contradiction` or `staleness`.
    pub matter: String,
    /// `proposed`, `made`, `undone`, `dismissed`, `open`, `over` or `gone`.
    pub stage: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Which entries; of two that are the same the one that is shown first.
    pub entries: Vec<Named>,
    /// Their titles, in the same order; empty where an entry may not speak unasked.
    #[serde(default)]
    pub titles: Vec<String>,
    /// Why.
    pub why: String,
    /// One of them is not this node's own.
    pub foreign: bool,
    /// When somebody decided about it, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<u64>,
}

/// How far upkeep is, what it did, and what waits for a word.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UpkeepStatus {
    /// Each service.
    pub services: Vec<UpkeepService>,
    /// What was done, the newest first; what was undone included.
    pub changes: Vec<Noted>,
    /// What waits for a word.
    pub proposals: Vec<Noted>,
    /// Entries that say the opposite.
    pub contradictions: Vec<Noted>,
    /// Entries that have become stale.
    pub stale: Vec<Noted>,
    /// Entries that are served together again and again, since the last walk through the pairs.
    pub clusters: Vec<UpkeepCluster>,
    /// Whether there is more of any than is listed.
    pub more: bool,
    /// The lists of which there is more; `before` goes on with one.
    #[serde(default)]
    pub more_of: Vec<String>,
}

/// Entries that hang together.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UpkeepCluster {
    /// Which.
    pub entries: Vec<Named>,
}

/// How far a service is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UpkeepService {
    /// Its name.
    pub name: String,
    /// Whether enough has changed for it to begin, or it is under way.
    pub due: bool,
    /// Records of the feed that it has not looked at.
    pub behind: u64,
    /// When it was last through with everything, in milliseconds since 1970; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    /// Entries or pairs it has looked at, ever.
    pub examined: u64,
    /// What it has written down, ever.
    pub noted: u64,
}

/// What became of a number.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UpkeepDecided {
    /// As it stands now.
    pub noted: Noted,
}
