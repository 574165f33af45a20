//! Where a caller is: the repository of its checkout, and the workspace that is mapped to it.
//!
//! What the operator mapped decides. What owner or admins of a workspace say belongs to it is only
//! offered: whoever could decide that alone could have a member's private notes sent to all others.

use super::Reader;
use super::checkout::{Identity, Likeness, Repository};
use crate::store::peers::Society;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::WorkspaceId;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a caller is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The workspace that its checkout is mapped to.
    pub workspace: Option<WorkspaceId>,
    /// A workspace that offers itself for it, where none is mapped.
    pub offered: Option<WorkspaceId>,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The format of its references, if that is none that is read: then head and branch are not known.
    pub unread_refs: Option<String>,
}

impl Reader {
    /// Which repository a checkout is of.
    pub fn identity(&self, repository: &Repository) -> Identity {
        repository.identity(&self.roots)
    }

    /// Where a caller in a folder is; nowhere if that lies in no checkout, or in one that cannot be
    /// read.
    pub fn here(
        &self,
        snapshot: &Snapshot,
        society: &Society,
        folder: Option<&Path>,
    ) -> Result<Here, Error> {
        let Some(repository) = folder.and_then(|folder| Repository::open(folder).ok()) else {
            return Ok(Here::default());
        };
        let (head, branch) = (repository.head(), repository.branch());
        let unread_refs = repository.unread_refs().map(str::to_owned);
        let mapped: Vec<(WorkspaceId, String)> = snapshot
            .checkouts()?
            .into_iter()
            .map(|(_, row)| (row.workspace, row.identity))
            .filter(|(id, _)| id.is_personal() || society.workspaces.contains_key(id))
            .collect();
        let offered = offers(society);
        if mapped.is_empty() && offered.is_empty() {
            return Ok(Here { head, branch, unread_refs, ..Here::default() });
        }
        let identity = self.identity(&repository);
        let workspace = meant(&identity, &mapped);
        let offered = if workspace.is_none() { meant(&identity, &offered) } else { None };
        Ok(Here { workspace, offered, head, branch, unread_refs })
    }
}

/// Checkouts that workspaces of this node say belong to them.
fn offers(society: &Society) -> Vec<(WorkspaceId, String)> {
    let shared = society.workspaces.iter();
    let shared =
        shared.filter(|(id, _)| society.mine.iter().any(|own| society.is_member(*own, **id)));
    shared
        .flat_map(|(id, shared)| shared.charter.checkouts.iter().map(|line| (*id, line.clone())))
        .collect()
}

/// The workspace whose checkout this one is most like; none if several are equally near.
fn meant(identity: &Identity, mapped: &[(WorkspaceId, String)]) -> Option<WorkspaceId> {
    let near = mapped.iter().filter_map(|(workspace, line)| {
        let likeness = identity.likeness(&line.parse().ok()?);
        (likeness > Likeness::Other).then_some((likeness, *workspace))
    });
    let near: Vec<(Likeness, WorkspaceId)> = near.collect();
    let nearest = near.iter().map(|(likeness, _)| *likeness).max()?;
    let nearest = near.iter().filter(|(likeness, _)| *likeness == nearest);
    let workspaces: BTreeSet<WorkspaceId> = nearest.map(|(_, workspace)| *workspace).collect();
    workspaces.first().copied().filter(|_| workspaces.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_checkout_decides_and_of_two_equally_near_neither() {
        let root = "a".repeat(40);
        let [one, two] = [1, 2].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let mapped = [
            (one, format!("root:{root} remote:h/ours")),
            (two, format!("root:{root} remote:h/fork")),
        ];
        for (line, expected) in [
            (format!("root:{root} remote:h/ours"), Some(one)),
            (format!("root:{root} remote:h/fork"), Some(two)),
            (format!("root:{root} remote:h/other"), None),
            ("remote:h/fork".to_owned(), Some(two)),
            // A clone of a folder says of which of the two it is by nothing.
            (format!("root:{root}"), None),
        ] {
            assert_eq!(meant(&line.parse().unwrap(), &mapped), expected, "{line}");
        }
        let bare = [(one, format!("root:{root}"))];
        assert_eq!(meant(&format!("root:{root}").parse().unwrap(), &bare), Some(one));
        assert_eq!(meant(&Identity::default(), &bare), None);
    }
}
