//! Adopts workspaces of the person's other nodes: an arriving charter gives the workspace its name
//! here.

use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::member_removal::RemovalStatements;
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter::{self, Charter};
use klnode_engine::PeerCommand;
use klnode_federation::proto::ticket::is_workspace_name;
use klnode_store::peers::row_types::WorkspaceRow;
use klnode_store::peers::{Membership, SharedWorkspace};
use klnode_store::{Error, Snapshot};
use std::collections::BTreeSet;

/// Owners that charters prove and that are not stored in a row yet.
pub(super) fn proven_owners(
    snapshot: &Snapshot,
    membership: &Membership,
) -> Result<Vec<PeerCommand>, Error> {
    let mut acts = Vec::new();
    for (id, row) in snapshot.workspaces()? {
        let shared = membership.workspaces.get(&id);
        let owner = shared.and_then(|shared| shared.charter.owner).map(|(owner, _)| owner);
        if row.owner.is_none() && owner.is_some() {
            acts.push(PeerCommand::NameWorkspace(id, WorkspaceRow { owner, ..row }));
        }
    }
    Ok(acts)
}

/// Rows for workspaces of the same person's other nodes whose charters have arrived. The charter
/// makes this node a member and contains the name.
pub(super) fn own_workspaces(
    snapshot: &Snapshot,
    membership: &Membership,
    entries: &BTreeSet<EntryId>,
    now: WallTime,
) -> Result<Vec<PeerCommand>, Error> {
    let (mut acts, mut known) = (Vec::new(), None::<Membership>);
    if membership.mine.len() < 2 {
        return Ok(acts);
    }
    for entry in entries {
        let row = Error::unless_damaged(snapshot.view_row(*entry))?.flatten();
        let workspace = row.and_then(|row| row.workspace);
        let Some(id) = workspace.filter(|id| workspace_charter::entry(*id) == *entry) else {
            continue;
        };
        if membership.workspaces.contains_key(&id) {
            continue;
        }
        let Some(held) = Error::unless_damaged(snapshot.entry(*entry))? else { continue };
        let charter = Charter::read(id, &held.to_entry(), &RemovalStatements::new(), now);
        let is_own = charter.owner.is_some_and(|(owner, _)| membership.mine.contains(&owner));
        let name = charter.name.filter(|name| is_own && is_workspace_name(name));
        if let Some(name) = name {
            // Two workspaces that arrive together get different names.
            let known = known.get_or_insert_with(|| membership.clone());
            let name = free_name(known, id, &name);
            let named = SharedWorkspace { name: name.clone(), ..SharedWorkspace::default() };
            known.workspaces.insert(id, named);
            let owner = charter.owner.map(|(owner, _)| owner);
            let row = WorkspaceRow { name, since: now, is_current: false, owner };
            acts.push(PeerCommand::NameWorkspace(id, row));
        }
    }
    Ok(acts)
}

/// The wanted name, or a numbered variant of it that is free on this node.
pub(super) fn free_name(membership: &Membership, id: WorkspaceId, wanted: &str) -> String {
    let is_free = |name: &str| membership.workspace(name).is_none_or(|held| held == id);
    let numbered = (2..1_000).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or_else(|| id.to_string())
}
