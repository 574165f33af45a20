//! What a stream of events carries.

use super::Noted;
use super::joins::JoinRequested;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Where a stream of events begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Everything after this position of the feed; from now on without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// What upkeep noted after this number; from now on without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted_since: Option<u64>,
}

/// What a stream tells; which, the event's name says.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Told {
    /// `entry`, `observation`, `retraction` or `forgotten`.
    Record(Event),
    /// `upkeep`: what was merged, proposed or found. Its number is the next `noted_since`.
    Upkeep(Noted),
    /// `join`: a node asks to join this one by address.
    Join(JoinRequested),
}

/// That a record came in. Its kind travels as the name of the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its position in the feed: the next `since`.
    pub seq: u64,
    /// The entry it speaks of.
    pub entry: String,
    /// The entry's citation code; absent if its type is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `claims`, `tally`, `retraction` or `tombstone`.
    pub facet: String,
    /// Who wrote it.
    pub author: String,
    /// What the author is called here: `you`, a peer's name, or the beginning of the key.
    #[serde(default)]
    pub author_name: String,
    /// When, by the author's clock, in milliseconds since 1970.
    pub at: u64,
    /// What is different about the entry since the event before; judgements of this node come first.
    /// Absent where the node does not know any more what stood before: of what was covered before it
    /// started, and of what was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<ValueChange>>,
}

/// A value of an entry that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValueChange {
    /// Which: `status`, `confidence`, `title`, `content`, `tags` and so on.
    pub field: String,
    /// The value before, at most 200 characters of it; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value after, at most 200 characters of it; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}
