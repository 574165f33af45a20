//! Settings of replication: filters in both directions, timing and rate limits.
//!
//! `[network]` is about connections, this module about records. A new peer starts with these
//! values. The store keeps the values that an operator sets for a single peer.

use serde::Deserialize;

use crate::units::{
    BoundedInteger, BoundedList, Bytes, EntryType, Fraction, Interval, Memory, Reach, ScopeName,
    Status,
};

/// `[filter]`: default filters for new peers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// Filter for records sent to a new peer.
    pub egress: Egress,
    /// Filter for records received from a new peer.
    pub ingress: Ingress,
}

/// `[filter.egress]`: filter for entries sent to a peer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// Workspaces by name; empty means all that this node shares with the peer.
    pub workspaces: BoundedList<ScopeName>,
    /// Allowlist of tags: an entry needs at least one of them; empty means any.
    pub tags_allow: BoundedList<ScopeName>,
    /// Denylist of tags: an entry with one of them is not sent.
    pub tags_deny: BoundedList<ScopeName>,
    /// Minimum mean confidence after decay.
    pub confidence_min: Fraction,
    /// Entry types that are sent.
    pub types: BoundedList<EntryType>,
    /// Memories that are sent.
    pub memories: BoundedList<Memory>,
    /// Threads whose entries are not sent.
    pub threads_exclude: BoundedList<ScopeName>,
    /// Whether relayed entries are sent, too.
    pub reach: Reach,
    /// Statuses that are sent.
    pub statuses: BoundedList<Status>,
}

/// `[filter.ingress]`: filter for entries received from a peer. It has no criteria that depend on
/// local judgements, because a node judges an entry only after receiving it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingress {
    /// Workspaces by name; empty means all that this node shares with the peer.
    pub workspaces: BoundedList<ScopeName>,
    /// Allowlist of tags: an entry needs at least one of them; empty means any.
    pub tags_allow: BoundedList<ScopeName>,
    /// Denylist of tags: an entry with one of them is refused.
    pub tags_deny: BoundedList<ScopeName>,
    /// Entry types that are accepted.
    pub types: BoundedList<EntryType>,
    /// Memories that are accepted.
    pub memories: BoundedList<Memory>,
    /// Threads whose entries are refused.
    pub threads_exclude: BoundedList<ScopeName>,
    /// Whether relayed entries are accepted, too.
    pub reach: Reach,
}

impl Egress {
    /// The criteria of this filter that do not depend on local judgements.
    #[must_use]
    pub fn structural_criteria(&self) -> Ingress {
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

/// `[federation]` and `[tuning.federation]`: replication with peers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Federation {
    /// Validity of a pairing ticket.
    pub ticket_lifetime: Interval,
    /// Time limit of an attempt to join by address.
    pub join_lifetime: Interval,
    /// Debounce interval: commits within it are announced once.
    pub notify_debounce: Interval,
    /// Interval between two set comparisons with a connected peer.
    pub set_comparison_interval: Interval,
    /// Interval between two re-evaluations of all releases.
    pub release_sweep_interval: Interval,
    /// Rate limits for one peer.
    pub budget: Budget,
}

/// `[tuning.federation.budget]`: rate limits for one peer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Length of the time window of the limits.
    pub window: Interval,
    /// Maximum number of frames per window.
    pub frames_max: BoundedInteger<1, 1_000_000_000>,
    /// Maximum number of received bytes per window.
    pub bytes_max: Bytes,
    /// Maximum number of records per window.
    pub records_max: BoundedInteger<1, 1_000_000_000>,
    /// Maximum number of invalid signatures per window.
    pub failed_signatures_max: BoundedInteger<0, 1_000_000>,
    /// Maximum number of previously unknown entries per window.
    pub new_entries_max: BoundedInteger<1, 1_000_000_000>,
    /// Maximum number of store rows read on behalf of the peer, per window and kind of work.
    pub rows_max: BoundedInteger<1, 1_000_000_000>,
    /// Duration of the first disconnection; it doubles each time.
    pub back_off: Interval,
    /// Maximum duration of a disconnection.
    pub back_off_max: Interval,
}
