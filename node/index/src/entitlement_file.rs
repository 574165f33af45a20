//! The entitled authors, by workspace, whose claims the index contains.
//!
//! Not every change of visible texts has a feed record: a member joins by one record on the
//! charter, and then the texts of a whole workspace may change; a node becomes one of the owner's,
//! or a member is blocked or convicted of equivocation, without any record. So the index saves in
//! its own file which authors it took as entitled, and reads entries again that changed since.
//! Without the file, all shared entries are read again.

use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_store::peers::Membership;
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The entitled authors at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EntitlementFile {
    mine: BTreeSet<AuthorId>,
    members: BTreeMap<WorkspaceId, BTreeSet<AuthorId>>,
    /// The removed keys, each with the size of its cut: records outside the cut leave the entries
    /// without a feed record.
    removed: BTreeMap<WorkspaceId, BTreeMap<AuthorId, u64>>,
}

/// The entries that may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangedEntries {
    /// No entry may have changed.
    Nothing,
    /// The entries of these workspaces.
    Workspaces(BTreeSet<WorkspaceId>),
    /// Every entry may have changed, because the owner's nodes changed.
    Everything,
}

impl EntitlementFile {
    /// The entitled authors in the current membership.
    pub(super) fn of(membership: &Membership) -> Self {
        let members =
            membership.workspaces.keys().map(|id| (*id, membership.unblocked_members(*id)));
        let removed = membership.workspaces.iter().map(|(id, shared)| (*id, shared.cuts()));
        let removed = removed.filter(|(_, cuts)| !cuts.is_empty()).collect();
        Self { mine: membership.mine.clone(), members: members.collect(), removed }
    }

    /// The entitled authors if no other member is known.
    pub(super) fn owner_only(own: AuthorId) -> Self {
        Self { mine: [own].into(), ..Self::default() }
    }

    /// The entries that may differ between `self` and `other`.
    pub(super) fn changed(&self, other: &Self) -> ChangedEntries {
        if self.mine != other.mine {
            return ChangedEntries::Everything;
        }
        let ids = [self, other].into_iter();
        let ids = ids.flat_map(|one| one.members.keys().chain(one.removed.keys()));
        let ids: BTreeSet<WorkspaceId> = ids.copied().collect();
        let of = |entitled: &Self, id| {
            let members = entitled.members.get(&id).cloned().unwrap_or_default();
            (members, entitled.removed.get(&id).cloned().unwrap_or_default())
        };
        let changed: BTreeSet<WorkspaceId> =
            ids.into_iter().filter(|id| of(self, *id) != of(other, *id)).collect();
        if changed.is_empty() {
            ChangedEntries::Nothing
        } else {
            ChangedEntries::Workspaces(changed)
        }
    }

    /// Loads the list from an index folder.
    pub(super) fn read(folder: &Path, own: AuthorId) -> Self {
        let Ok(text) = fs::read_to_string(file(folder)) else { return Self::owner_only(own) };
        // Unreadable lines count as no author, so that the entries are read again.
        let mut noted = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("mine", author)) => noted.mine.extend(AuthorId::from_hex(author)),
                Some(("removed", rest)) => noted.read_removed(rest),
                Some((workspace, author)) => {
                    let id = WorkspaceId::from_hex(workspace).zip(AuthorId::from_hex(author));
                    if let Some((id, author)) = id {
                        noted.members.entry(id).or_default().insert(author);
                    }
                }
                None => {}
            }
        }
        noted
    }

    fn read_removed(&mut self, line: &str) {
        let mut fields = line.split(' ');
        let workspace = fields.next().and_then(WorkspaceId::from_hex);
        let author = fields.next().and_then(AuthorId::from_hex);
        let digests = fields.next().and_then(|digests| digests.parse().ok());
        if let (Some(workspace), Some(author), Some(digests)) = (workspace, author, digests) {
            self.removed.entry(workspace).or_default().insert(author, digests);
        }
    }

    /// Saves the list in an index folder. Losing it costs reading the texts once more.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = String::new();
        for author in &self.mine {
            let _ = writeln!(text, "mine {author}");
        }
        for (workspace, members) in &self.members {
            for author in members {
                let _ = writeln!(text, "{workspace} {author}");
            }
        }
        for (workspace, cuts) in &self.removed {
            for (author, digests) in cuts {
                let _ = writeln!(text, "removed {workspace} {author} {digests}");
            }
        }
        let new = file(folder).with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, file(folder))
    }
}

impl ChangedEntries {
    /// The entries of the store that may have changed.
    pub(super) fn entries(&self, snapshot: &Snapshot) -> Result<Vec<EntryId>, Error> {
        if *self == Self::Nothing {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for row in snapshot.entries()? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            let is_changed = match self {
                Self::Nothing => false,
                Self::Workspaces(ids) => row.workspace.is_some_and(|id| ids.contains(&id)),
                Self::Everything => true,
            };
            if is_changed && !row.is_forgotten && !row.is_parked() {
                entries.push(entry);
            }
        }
        Ok(entries)
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("entitled.txt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::workspace_charter::Charter;
    use klnode_store::peers::SharedWorkspace;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn entitled(members: &[(u8, &[u8])]) -> EntitlementFile {
        let of = |(id, members): &(u8, &[u8])| {
            let members = members.iter().map(|byte| author(*byte)).collect();
            (WorkspaceId::from_bytes([*id; 16]), members)
        };
        let members = members.iter().map(of).collect();
        EntitlementFile { mine: [author(1)].into(), members, ..EntitlementFile::default() }
    }

    #[test]
    fn only_workspaces_with_changed_members_are_read_again() {
        let before = entitled(&[(7, &[2, 3]), (8, &[4]), (9, &[])]);
        let some = |ids: &[u8]| {
            ChangedEntries::Workspaces(
                ids.iter().map(|id| WorkspaceId::from_bytes([*id; 16])).collect(),
            )
        };
        assert_eq!(before.changed(&before.clone()), ChangedEntries::Nothing);
        assert_eq!(before.changed(&entitled(&[(7, &[2, 3]), (8, &[4, 5])])), some(&[8]));
        assert_eq!(before.changed(&entitled(&[(7, &[2, 3])])), some(&[8]));
        assert_eq!(before.changed(&entitled(&[])), some(&[7, 8]));
        let other = EntitlementFile { mine: [author(1), author(2)].into(), ..before.clone() };
        assert_eq!(before.changed(&other), ChangedEntries::Everything);
    }

    #[test]
    fn a_workspace_is_read_again_when_a_member_is_ignored() {
        let id = WorkspaceId::from_bytes([7; 16]);
        let charter = Charter { members: [1, 2].map(author).into(), ..Charter::default() };
        let workspaces = [(id, SharedWorkspace { charter, ..SharedWorkspace::default() })].into();
        let heard = Membership { mine: [author(1)].into(), workspaces, ..Membership::default() };
        let of = |unheard: u8| {
            EntitlementFile::of(&Membership { unheard: [author(unheard)].into(), ..heard.clone() })
        };
        assert_eq!(EntitlementFile::of(&heard), entitled(&[(7, &[1, 2])]));
        assert_eq!(
            EntitlementFile::of(&heard).changed(&of(2)),
            ChangedEntries::Workspaces([id].into())
        );
        assert_eq!(
            of(2).changed(&EntitlementFile::of(&heard)),
            ChangedEntries::Workspaces([id].into())
        );
        assert_eq!(
            EntitlementFile::of(&heard).changed(&of(3)),
            ChangedEntries::Nothing,
            "the author never was a member"
        );
    }

    #[test]
    fn a_saved_list_is_loaded_and_a_missing_one_has_only_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            EntitlementFile::read(folder.path(), author(1)),
            EntitlementFile::owner_only(author(1))
        );
        let noted = entitled(&[(7, &[2, 3]), (8, &[4])]);
        noted.write(folder.path()).unwrap();
        assert_eq!(EntitlementFile::read(folder.path(), author(1)), noted);
        fs::write(file(folder.path()), "mine\nmine 00\n?").unwrap();
        assert_ne!(EntitlementFile::read(folder.path(), author(1)), noted);
    }
}
