//! Response types for the history of an entry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All records of an entry, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code; only its digits if the entry type is unknown.
    pub code: String,
    /// The key of the author of the displayed text.
    #[serde(default)]
    pub author: String,
    /// This node's name for that author.
    #[serde(default)]
    pub author_name: String,
    /// True if another person wrote the displayed text.
    #[serde(default)]
    pub foreign: bool,
    /// The entry's status on this node; empty if the entry cannot be read.
    #[serde(default)]
    pub status: String,
    /// The gate's decision for automatic answers such as briefings and hooks: `open`, `last_places`
    /// `shut`, or `held` until the operator releases the text.
    #[serde(default)]
    pub gate: String,
    /// The records, newest last.
    pub records: Vec<HistoryRecord>,
}

/// One record: an author's claims, tally, retraction or tombstone.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryRecord {
    /// The position in this node's feed.
    pub seq: u64,
    /// `claims`, `tally`, `retraction` or `tombstone`.
    pub facet: String,
    /// The key of the record's author.
    pub author: String,
    /// This node's name for the author: `you`, a peer's name, or the start of the key.
    #[serde(default)]
    pub author_name: String,
    /// True if this node wrote the record.
    pub own: bool,
    /// True if claims of this author are displayed: those of this person, the creator and members.
    #[serde(default)]
    pub heard: bool,
    /// When the record was last written, by its author's clock, in milliseconds since 1970.
    pub at: u64,
    /// The generation: the number of slots that its author had opened for this entry.
    pub generation: u64,
    /// How often the record was written in its slot.
    pub counter: u64,
    /// True if the text was retracted and is erased.
    pub erased: bool,
    /// The claims, in the order in which the author made them.
    pub changes: Vec<HistoryItem>,
    /// The counted observations, by day.
    pub observations: Vec<DayCount>,
    /// The local caller that wrote the record last; absent for records from peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<HistoryCaller>,
}

/// One claim of a record: a change of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryItem {
    /// When it was made, in milliseconds since 1970.
    pub at: u64,
    /// The field: a register, a set, `evidence`, a relation, `archived`.
    pub field: String,
    /// How the claim changed the field.
    pub act: ClaimEffect,
    /// The value that was set, added or withdrawn, as text.
    pub value: String,
}

/// How a claim changes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimEffect {
    /// Replaces the previous value.
    Set,
    /// Adds a value to a set.
    Added,
    /// Withdraws a value from a set.
    Withdrawn,
}

/// Observations counted on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DayCount {
    /// The day, such as 2026-11-15; absent for observations too old to be kept by day.
    pub day: Option<String>,
    /// How often the entry helped.
    pub successes: f64,
    /// How often the entry misled.
    pub failures: f64,
    /// How often others confirmed the entry.
    pub confirmations: f64,
}

/// A local caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryCaller {
    /// `socket` or `tcp`.
    pub way: String,
    /// The user id that the operating system reported.
    pub uid: Option<u32>,
    /// The process id that the operating system reported. The process may have ended and its id may
    /// have been reused.
    pub pid: Option<u32>,
    /// The name that the client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The session name that the client gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}
