//! What an entry's history holds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything that stands about an entry, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// Its id.
    pub id: String,
    /// Its citation code, or the code's digits alone where its type is not known.
    pub code: String,
    /// Who wrote the text that is shown.
    #[serde(default)]
    pub author: String,
    /// What the author is called here.
    #[serde(default)]
    pub author_name: String,
    /// Whether somebody else wrote the text that is shown.
    #[serde(default)]
    pub foreign: bool,
    /// Where it stands here; empty where it cannot be read.
    #[serde(default)]
    pub status: String,
    /// Whether it may enter an answer that nobody looks at first: `open`, `last_places` or `shut`.
    #[serde(default)]
    pub gate: String,
    /// Its records, newest last.
    pub records: Vec<HistoryRecord>,
}

/// What one author says, or has said and taken back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryRecord {
    /// Its position in the feed of this node.
    pub seq: u64,
    /// `claims`, `tally`, `retraction` or `tombstone`.
    pub facet: String,
    /// Who wrote it.
    pub author: String,
    /// What the author is called here: `you`, a peer's name, or the beginning of the key.
    #[serde(default)]
    pub author_name: String,
    /// Whether this node did.
    pub own: bool,
    /// Whether its author's word is shown here: this person's, the creator's, a member's.
    #[serde(default)]
    pub heard: bool,
    /// When it was last written, by its author's clock, in milliseconds since 1970.
    pub at: u64,
    /// How many slots its author had opened there.
    pub generation: u64,
    /// How often it was written in its slot.
    pub counter: u64,
    /// Whether its text was taken back and is erased.
    pub erased: bool,
    /// What it says, in the order in which it was said.
    pub changes: Vec<Change>,
    /// What it counts, by day.
    pub observations: Vec<DayCount>,
    /// Which local caller wrote it last; absent for what came from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<HistoryCaller>,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Of what: a register, a set, `evidence`, a relation, `archived`.
    pub field: String,
    /// What was done to it.
    pub act: Act,
    /// The text.
    pub value: String,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Put in the place of what was there.
    Set,
    /// Put beside what was there.
    Added,
    /// Taken out again.
    Withdrawn,
}

/// What was counted on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DayCount {
    /// The day, as in 2026-11-15; absent for what is too old to be kept by day.
    pub day: Option<String>,
    /// How often it helped.
    pub successes: f64,
    /// How often it misled.
    pub failures: f64,
    /// How often others found the same.
    pub confirmations: f64,
}

/// A local caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryCaller {
    /// `socket` or `tcp`.
    pub way: String,
    /// The user, as the system named it.
    pub uid: Option<u32>,
    /// The process, as the system named it; it may have ended, and its number been given anew.
    pub pid: Option<u32>,
    /// What the client called itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// In which of its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}
