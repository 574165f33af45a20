//! What is exchanged with peers: filters in both directions, timing and budgets.
//!
//! Separate from `[network]`, which is about connections: these are about records. They are the
//! values a new peer starts with; what an operator sets for one peer is kept in the store.

use serde::Deserialize;

use crate::units::{
    Bytes, EntryType, Fraction, Interval, List, Memory, Name, Reach, Status, Whole,
};

/// `[filter]`: what may leave and what may enter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// What a new peer is sent.
    pub egress: Egress,
    /// What is taken from a new peer.
    pub ingress: Ingress,
}

/// `[filter.egress]`: what is sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// Workspaces by name; none means all that are shared with the peer.
    pub workspaces: List<Name>,
    /// Tags of which an entry needs one; none means that it needs none.
    pub tags_allow: List<Name>,
    /// Tags with which an entry does not pass.
    pub tags_deny: List<Name>,
    /// The least decayed mean.
    pub confidence_min: Fraction,
    /// Types of entries that pass.
    pub types: List<EntryType>,
    /// Memories that pass.
    pub memories: List<Memory>,
    /// Threads of which nothing passes.
    pub threads_exclude: List<Name>,
    /// Whose entries pass.
    pub reach: Reach,
    /// Statuses that pass.
    pub statuses: List<Status>,
}

/// `[filter.ingress]`: what is taken. It is judged once it is here, so nothing is asked of it that a
/// judgement tells.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingress {
    /// Workspaces by name; none means all that are shared with the peer.
    pub workspaces: List<Name>,
    /// Tags of which an entry needs one; none means that it needs none.
    pub tags_allow: List<Name>,
    /// Tags with which an entry does not pass.
    pub tags_deny: List<Name>,
    /// Types of entries that pass.
    pub types: List<EntryType>,
    /// Memories that pass.
    pub memories: List<Memory>,
    /// Threads of which nothing passes.
    pub threads_exclude: List<Name>,
    /// Whose entries pass.
    pub reach: Reach,
}

impl Egress {
    /// What it asks without a judgement.
    #[must_use]
    pub fn unjudged(&self) -> Ingress {
        Ingress {
            workspaces: self.workspaces.clone(),
            tags_allow: self.tags_allow.clone(),
            tags_deny: self.tags_deny.clone(),
            types: self.types.clone(),
            memories: self.memories.clone(),
            threads_exclude: self.threads_exclude.clone(),
            reach: self.reach,
        }
    }
}

/// `[federation]`: replication with peers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Federation {
    /// How long a ticket is good.
    pub ticket_lifetime: Interval,
    /// How long an attempt to join by address may take.
    pub join_lifetime: Interval,
    /// How close together commits are announced once.
    pub notify_debounce: Interval,
    /// How often a connected peer is compared with this node.
    pub scrub_interval: Interval,
    /// How often releases are examined again.
    pub release_sweep_interval: Interval,
    /// What one peer may cost.
    pub budget: Budget,
}

/// `[federation.budget]`: what one peer may cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The time over which the budget is counted.
    pub window: Interval,
    /// Frames in a window.
    pub frames_max: Whole<1, 1_000_000_000>,
    /// Bytes received in a window.
    pub bytes_max: Bytes,
    /// Records in a window.
    pub records_max: Whole<1, 1_000_000_000>,
    /// Signatures that fail in a window.
    pub failed_signatures_max: Whole<0, 1_000_000>,
    /// Entries never seen before in a window.
    pub new_entries_max: Whole<1, 1_000_000_000>,
    /// Rows of the store that are gone through for its sake in a window.
    pub rows_max: Whole<1, 1_000_000_000>,
    /// How long a peer stays away the first time.
    pub back_off: Interval,
    /// The longest it stays away.
    pub back_off_max: Interval,
}
