//! The origin of a charter, from which its entry id follows.
//!
//! Separate from the charter itself, because a tombstone must recognise a charter without reading it.

use crate::entry_origin::{Memory, Origin};
use crate::ids::{EntryId, WorkspaceId};

/// The source format in the origin of a charter.
pub const FORMAT: &str = "klnode/workspace";
/// The source key in the origin of a charter.
pub const KEY: &str = "charter";

/// The origin of the charter of a workspace.
pub fn origin(workspace: WorkspaceId) -> Origin {
    let memory = Memory::Episodic;
    Origin::Imported { workspace, memory, format: FORMAT.to_owned(), key: KEY.to_owned() }
}

/// The entry id of the charter of a workspace.
pub fn entry(workspace: WorkspaceId) -> EntryId {
    origin(workspace).id()
}
