//! Request and response types of the event stream.

use super::JournalItem;
use super::joins::JoiningNode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The start of an event stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Start after this position of the feed. Default: only new events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Start after this number of the maintenance journal. Default: only new events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted_since: Option<u64>,
}

/// The data of an event; the name of the event tells the variant.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StreamEvent {
    /// `entry`, `observation`, `retraction` or `forgotten`.
    Record(RecordEvent),
    /// `maintenance`: maintenance merged, proposed or found something. Its number is the next
    /// `noted_since`.
    Maintenance(JournalItem),
    /// `join`: a node asks to join this one by address.
    Join(JoiningNode),
}

/// A record was stored. Its type is the name of the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordEvent {
    /// The position in the feed: the next `since`.
    pub seq: u64,
    /// The id of the entry that the record belongs to.
    pub entry: String,
    /// The entry's citation code; absent if its type is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `claims`, `tally`, `retraction` or `tombstone`.
    pub facet: String,
    /// The key of the author of the record.
    pub author: String,
    /// This node's name for the author: `you`, a peer's name, or the start of the key.
    #[serde(default)]
    pub author_name: String,
    /// When it was written, by the author's clock, in milliseconds since 1970.
    pub at: u64,
    /// The changes of the entry since the previous event; status, confidence and its counters `alpha`
    /// and `beta` come first. Absent
    /// if the node no longer has the earlier state: for records superseded before it started, and
    /// for retracted records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<ValueChange>>,
}

/// A changed value of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValueChange {
    /// The field: `status`, `confidence`, `title`, `content`, `tags` and so on.
    pub field: String,
    /// The old value, at most 200 characters of it; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new value, at most 200 characters of it; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}
