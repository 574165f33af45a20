//! The removals that one step has read or changed.
//!
//! Separate from `removals`, because the transaction holds it and the code there works on the
//! transaction.

use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_store::peers::Cut;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of removals within one step.
#[derive(Default)]
pub(super) struct RemovalCache {
    pub(super) cuts: BTreeMap<(WorkspaceId, AuthorId), Arc<Cut>>,
    /// Workspaces whose members or removals this step may have changed.
    pub(super) changed: BTreeSet<WorkspaceId>,
    /// Entries whose workspace became known in this step, after records of other authors had
    /// arrived.
    pub(super) placed: BTreeSet<EntryId>,
}
