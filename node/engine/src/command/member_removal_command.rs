//! The operator's commands about removals of members.

use klnode_crdt::ids::{AuthorId, Digest, WorkspaceId};

/// A command of the operator about a removal.
#[derive(Clone, Debug)]
pub enum RemovalCommand {
    /// Removes a key from a workspace.
    Remove {
        /// The workspace that the key leaves.
        workspace: WorkspaceId,
        /// The key to remove.
        member: AuthorId,
        /// Members that only the removed admin lists and that stay members, because this node lists
        /// them from now on. The other members that only it lists are removed with it.
        keep: Vec<AuthorId>,
    },
    /// States the claims of a record that a removal set aside as claims of this node: on the same
    /// entry, or on a new one if nothing else of the entry counts.
    Adopt(Digest),
    /// Takes back this node's removal of a key.
    Reinstate {
        /// The workspace that the key was removed from.
        workspace: WorkspaceId,
        /// The removed key.
        member: AuthorId,
    },
}
