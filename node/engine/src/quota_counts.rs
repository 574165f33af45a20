//! The counts behind author quotas, as far as one step has made them.
//!
//! Separate from `author_quota`, which applies them: a transaction holds them from record to record.

use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

/// Counts that one step has made, kept so that each is computed once per step.
#[derive(Default)]
pub(super) struct QuotaCounts {
    /// By entry and peer: the entry's unknown authors, and how many of them that peer delivered.
    pub(super) counted: BTreeMap<(EntryId, AuthorId), (usize, usize)>,
    /// Bytes of the stored records about an entry, by author.
    pub(super) bytes: BTreeMap<EntryId, BTreeMap<AuthorId, u64>>,
    /// Records that were stored and dropped as damaged; an intact copy may take their place again.
    pub(super) dropped: BTreeSet<Digest>,
    /// Approved peers that are neither blocked nor convicted, with the membership revision at which
    /// they were read.
    pub(super) peers: Option<(u64, BTreeSet<AuthorId>)>,
    /// Members of workspaces, with the membership revision at which they were read.
    pub(super) members: BTreeMap<(WorkspaceId, u64), WorkspaceMembers>,
}

/// The members of a workspace, as far as quotas distinguish them.
#[derive(Clone)]
pub(super) struct WorkspaceMembers {
    /// The author that the workspace id proves to be its owner, once a record shows the nonce.
    pub(super) owner: Option<AuthorId>,
    /// Admins that are neither blocked nor convicted.
    pub(super) admins: BTreeSet<AuthorId>,
    /// All members, admins included, that are neither blocked nor convicted.
    pub(super) heard: BTreeSet<AuthorId>,
}
