//! Workspaces of a person's own machines: a charter that arrives gives them their names here.

use super::pairing::free_name;
use crate::engine::PeerAct;
use crate::store::peers::rows::WorkspaceRow;
use crate::store::peers::{Society, Workspace};
use crate::store::{Error, Snapshot};
use klnode_crdt::charter::{self, Charter};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::ticket::is_workspace_name;
use std::collections::BTreeSet;

/// Owners whom charters prove and no row names yet.
pub(super) fn proven_owners(snapshot: &Snapshot, society: &Society) -> Result<Vec<PeerAct>, Error> {
    let mut acts = Vec::new();
    for (id, row) in snapshot.workspaces()? {
        let shared = society.workspaces.get(&id);
        let owner = shared.and_then(|shared| shared.charter.owner).map(|(owner, _)| owner);
        if row.owner.is_none() && owner.is_some() {
            acts.push(PeerAct::NameWorkspace(id, WorkspaceRow { owner, ..row }));
        }
    }
    Ok(acts)
}

/// Workspaces of the same person's other machines, as their charters arrive: this one belongs to them
/// by the charter, and calls them as it says.
pub(super) fn own_workspaces(
    snapshot: &Snapshot,
    society: &Society,
    entries: &BTreeSet<EntryId>,
    now: WallTime,
) -> Result<Vec<PeerAct>, Error> {
    let (mut acts, mut known) = (Vec::new(), None::<Society>);
    if society.mine.len() < 2 {
        return Ok(acts);
    }
    for entry in entries {
        let row = Error::unless_damaged(snapshot.view_row(*entry))?.flatten();
        let workspace = row.and_then(|row| row.workspace);
        let Some(id) = workspace.filter(|id| charter::entry(*id) == *entry) else { continue };
        if society.workspaces.contains_key(&id) {
            continue;
        }
        let Some(held) = Error::unless_damaged(snapshot.entry(*entry))? else { continue };
        let charter = Charter::read(id, &held.to_entry(), now);
        let is_own = charter.owner.is_some_and(|(owner, _)| society.mine.contains(&owner));
        let name = charter.name.filter(|name| is_own && is_workspace_name(name));
        if let Some(name) = name {
            // Two that arrive together are called differently, too.
            let known = known.get_or_insert_with(|| society.clone());
            let name = free_name(known, id, &name);
            let named = Workspace { name: name.clone(), ..Workspace::default() };
            known.workspaces.insert(id, named);
            let owner = charter.owner.map(|(owner, _)| owner);
            let row = WorkspaceRow { name, since: now, is_current: false, owner };
            acts.push(PeerAct::NameWorkspace(id, row));
        }
    }
    Ok(acts)
}
