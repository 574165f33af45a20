//! Where a caller is: the repository of its checkout, and the workspace that is mapped to it.
//!
//! What the operator mapped decides. What owner or admins of a workspace say belongs to it is only
//! offered: whoever could decide that alone could have a member's private notes sent to all others.

use super::checkout::{Identity, Likeness, Repository};
use super::{Reader, Reading};
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

impl Reader {
    /// The repository to record with predicates that are written in a folder, for an entry of a
    /// workspace. None outside of any repository, and in one without commits and remote.
    pub fn written_in(
        &self,
        snapshot: &Snapshot,
        society: &Society,
        folder: Option<&Path>,
        workspace: WorkspaceId,
    ) -> Result<Option<Identity>, Error> {
        let repository = folder.and_then(|folder| Repository::open(folder).ok());
        let Some(repository) = repository else { return Ok(None) };
        tellable(snapshot, society, &self.identity(&repository), workspace)
    }
}

/// An identity as it may be recorded in an entry of a workspace. Root commits say nothing to readers
/// without the repository; a remote can name a private host. So in a shared workspace it is recorded
/// only where its members know it: if the repository is mapped to the workspace, or offered by it.
/// None if nothing is left.
pub fn tellable(
    snapshot: &Snapshot,
    society: &Society,
    identity: &Identity,
    workspace: WorkspaceId,
) -> Result<Option<Identity>, Error> {
    let identity = identity.clone();
    let is_known = match identity.remote() {
        Some(remote) if !workspace.is_personal() => {
            remotes_of(snapshot, society, workspace)?.iter().any(|known| known == remote)
        }
        _ => true,
    };
    let identity = if is_known { identity } else { identity.without_remote() };
    Ok(Some(identity).filter(|identity| !identity.is_empty()))
}

/// The remotes of a workspace's repositories, as host and path: its members know them.
pub(super) fn remotes_of(
    snapshot: &Snapshot,
    society: &Society,
    workspace: WorkspaceId,
) -> Result<Vec<String>, Error> {
    let rows = snapshot.checkouts()?.into_iter();
    let mapped = rows.filter(|(_, row)| row.workspace == workspace).map(|(_, row)| row.identity);
    let of = society.workspaces.get(&workspace);
    let offered = of.into_iter().flat_map(|of| of.charter.checkouts.iter().cloned());
    let identities = mapped.chain(offered).filter_map(|line| line.parse::<Identity>().ok());
    Ok(identities.filter_map(|identity| identity.remote().map(str::to_owned)).collect())
}

impl Reading<'_> {
    /// How people call a repository: by its remote, else by that of a mapped checkout of the same
    /// repository, else by a root commit.
    pub fn repository_name(&self, identity: &Identity) -> Result<String, Error> {
        if identity.remote().is_some() {
            return Ok(identity.in_words());
        }
        let rows = self.snapshot.checkouts()?.into_iter();
        let mut known = rows.filter_map(|(_, row)| row.identity.parse::<Identity>().ok());
        let like = known.find(|one| one.remote().is_some() && one.is_same_repository(identity));
        Ok(like.as_ref().unwrap_or(identity).in_words())
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
