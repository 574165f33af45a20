//! The location of a caller: the repository of its checkout, and the workspace mapped to it.
//!
//! The operator's mapping decides. A mapping by a workspace's owner or admins is only an offer: if
//! it took effect by itself, they could have a member's private notes sent to all members.

use super::{ReadContext, Reader};
use klnode_crdt::ids::WorkspaceId;
use klnode_git::{Repository, RepositoryIdentity, RepositorySimilarity};
use klnode_store::peers::Membership;
use klnode_store::{Error, Snapshot};
use std::collections::BTreeSet;
use std::path::Path;

/// The location of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerLocation {
    /// The workspace that the checkout is mapped to.
    pub workspace: Option<WorkspaceId>,
    /// A workspace that offers itself for the checkout, if none is mapped.
    pub offered: Option<WorkspaceId>,
    /// The checked-out commit.
    pub head: Option<String>,
    /// The checked-out branch.
    pub branch: Option<String>,
    /// The format of the repository's references if it is unsupported; head and branch are then
    /// unknown.
    pub unread_refs: Option<String>,
}

impl Reader {
    /// The identity of the repository of a checkout.
    pub fn identity(&self, repository: &Repository) -> RepositoryIdentity {
        repository.identity(&self.roots)
    }

    /// The location of a caller in a folder; empty if the folder is in no checkout, or in an
    /// unreadable one.
    pub fn here(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        folder: Option<&Path>,
    ) -> Result<CallerLocation, Error> {
        let Some(repository) = folder.and_then(|folder| Repository::open(folder).ok()) else {
            return Ok(CallerLocation::default());
        };
        let (head, branch) = (repository.head(), repository.branch());
        let unread_refs = repository.unread_refs().map(str::to_owned);
        let mapped: Vec<(WorkspaceId, String)> = snapshot
            .checkouts()?
            .into_iter()
            .map(|(_, row)| (row.workspace, row.identity))
            .filter(|(id, _)| id.is_personal() || membership.workspaces.contains_key(id))
            .collect();
        let offered = offers(membership);
        if mapped.is_empty() && offered.is_empty() {
            return Ok(CallerLocation { head, branch, unread_refs, ..CallerLocation::default() });
        }
        let identity = self.identity(&repository);
        let workspace = most_similar(&identity, &mapped);
        let offered = if workspace.is_none() { most_similar(&identity, &offered) } else { None };
        Ok(CallerLocation { workspace, offered, head, branch, unread_refs })
    }
}

impl Reader {
    /// The repository to record with predicates written in a folder, for an entry of a workspace.
    /// `None` outside any repository, and in one without commits and remote.
    pub fn written_in(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        folder: Option<&Path>,
        workspace: WorkspaceId,
    ) -> Result<Option<RepositoryIdentity>, Error> {
        let repository = folder.and_then(|folder| Repository::open(folder).ok());
        let Some(repository) = repository else { return Ok(None) };
        tellable(snapshot, membership, &self.identity(&repository), workspace)
    }
}

/// The part of an identity that may be recorded in an entry of a workspace. Root commits are
/// meaningless without the repository, but a remote can name a private host. So in a shared
/// workspace the remote is recorded only if the members know it: the repository is mapped to the
/// workspace, or offered by it. `None` if nothing is left.
pub fn tellable(
    snapshot: &Snapshot,
    membership: &Membership,
    identity: &RepositoryIdentity,
    workspace: WorkspaceId,
) -> Result<Option<RepositoryIdentity>, Error> {
    let identity = identity.clone();
    let is_known = match identity.remote() {
        Some(remote) if !workspace.is_personal() => {
            remotes_of(snapshot, membership, workspace)?.iter().any(|known| known == remote)
        }
        _ => true,
    };
    let identity = if is_known { identity } else { identity.without_remote() };
    Ok(Some(identity).filter(|identity| !identity.is_empty()))
}

/// The remotes of a workspace's repositories as host and path, which its members know.
pub(super) fn remotes_of(
    snapshot: &Snapshot,
    membership: &Membership,
    workspace: WorkspaceId,
) -> Result<Vec<String>, Error> {
    let rows = snapshot.checkouts()?.into_iter();
    let mapped = rows.filter(|(_, row)| row.workspace == workspace).map(|(_, row)| row.identity);
    let of = membership.workspaces.get(&workspace);
    let offered = of.into_iter().flat_map(|of| of.charter.checkouts.iter().cloned());
    let identities =
        mapped.chain(offered).filter_map(|line| line.parse::<RepositoryIdentity>().ok());
    Ok(identities.filter_map(|identity| identity.remote().map(str::to_owned)).collect())
}

impl ReadContext<'_> {
    /// The display name of a repository: its remote, otherwise the remote of a mapped checkout of
    /// the same repository, otherwise a root commit.
    pub fn repository_name(&self, identity: &RepositoryIdentity) -> Result<String, Error> {
        if identity.remote().is_some() {
            return Ok(identity.in_words());
        }
        let rows = self.snapshot.checkouts()?.into_iter();
        let mut known = rows.filter_map(|(_, row)| row.identity.parse::<RepositoryIdentity>().ok());
        let like = known.find(|one| one.remote().is_some() && one.is_same_repository(identity));
        Ok(like.as_ref().unwrap_or(identity).in_words())
    }
}

/// The checkouts that workspaces of this node claim as theirs.
fn offers(membership: &Membership) -> Vec<(WorkspaceId, String)> {
    let shared = membership.workspaces.iter();
    let shared =
        shared.filter(|(id, _)| membership.mine.iter().any(|own| membership.is_member(*own, **id)));
    shared
        .flat_map(|(id, shared)| shared.charter.checkouts.iter().map(|line| (*id, line.clone())))
        .collect()
}

/// The workspace whose checkout is most similar; `None` if several are equally similar.
fn most_similar(
    identity: &RepositoryIdentity,
    mapped: &[(WorkspaceId, String)],
) -> Option<WorkspaceId> {
    let near = mapped.iter().filter_map(|(workspace, line)| {
        let likeness = identity.likeness(&line.parse().ok()?);
        (likeness > RepositorySimilarity::Other).then_some((likeness, *workspace))
    });
    let near: Vec<(RepositorySimilarity, WorkspaceId)> = near.collect();
    let nearest = near.iter().map(|(likeness, _)| *likeness).max()?;
    let nearest = near.iter().filter(|(likeness, _)| *likeness == nearest);
    let workspaces: BTreeSet<WorkspaceId> = nearest.map(|(_, workspace)| *workspace).collect();
    workspaces.first().copied().filter(|_| workspaces.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_checkout_decides_unless_tied() {
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
            // Nothing in a clone of a folder shows which of the two it belongs to.
            (format!("root:{root}"), None),
        ] {
            assert_eq!(most_similar(&line.parse().unwrap(), &mapped), expected, "{line}");
        }
        let bare = [(one, format!("root:{root}"))];
        assert_eq!(most_similar(&format!("root:{root}").parse().unwrap(), &bare), Some(one));
        assert_eq!(most_similar(&RepositoryIdentity::default(), &bare), None);
    }
}
