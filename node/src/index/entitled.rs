//! Whose words the index was made of: who was entitled, in which workspace.
//!
//! The feed does not tell of everything that changes what is shown: a member joins by one record on
//! the charter, and then the texts of a whole workspace may be others; a node becomes the person's
//! own, or a member is blocked or convicted, by no record at all. So the index notes in a file of its own whom it took for entitled, and
//! reads anew what is shown differently since. Without the file everything shared is read anew.

use crate::store::peers::Society;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Who was entitled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entitled {
    mine: BTreeSet<AuthorId>,
    members: BTreeMap<WorkspaceId, BTreeSet<AuthorId>>,
}

/// Which entries are shown differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// None.
    Nothing,
    /// Those of these workspaces.
    Workspaces(BTreeSet<WorkspaceId>),
    /// Any.
    Everything,
}

impl Entitled {
    /// Who is entitled now.
    pub(super) fn of(society: &Society) -> Self {
        let members = society.workspaces.keys().map(|id| (*id, society.heard_members(*id)));
        Self { mine: society.mine.clone(), members: members.collect() }
    }

    /// Who is entitled where nobody else is known.
    pub(super) fn alone(own: AuthorId) -> Self {
        Self { mine: [own].into(), members: BTreeMap::new() }
    }

    /// What is shown differently to `other`.
    pub(super) fn changed(&self, other: &Self) -> Changed {
        if self.mine != other.mine {
            return Changed::Everything;
        }
        let ids: BTreeSet<WorkspaceId> =
            self.members.keys().chain(other.members.keys()).copied().collect();
        let of = |entitled: &Self, id| entitled.members.get(&id).cloned().unwrap_or_default();
        let changed: BTreeSet<WorkspaceId> =
            ids.into_iter().filter(|id| of(self, *id) != of(other, *id)).collect();
        if changed.is_empty() { Changed::Nothing } else { Changed::Workspaces(changed) }
    }

    /// Reads what was noted in an index folder.
    pub(super) fn read(folder: &Path, own: AuthorId) -> Self {
        let Ok(text) = fs::read_to_string(file(folder)) else { return Self::alone(own) };
        // What cannot be read is taken for nobody: then it is found out anew.
        let mut noted = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("mine", author)) => noted.mine.extend(AuthorId::from_hex(author)),
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

    /// Notes it in an index folder. Losing it costs reading the texts once more.
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
        let new = file(folder).with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, file(folder))
    }
}

impl Changed {
    /// The entries that are shown differently, as far as a store holds any.
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
    use crate::store::peers::Workspace;
    use klnode_crdt::charter::Charter;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn entitled(members: &[(u8, &[u8])]) -> Entitled {
        let of = |(id, members): &(u8, &[u8])| {
            let members = members.iter().map(|byte| author(*byte)).collect();
            (WorkspaceId::from_bytes([*id; 16]), members)
        };
        Entitled { mine: [author(1)].into(), members: members.iter().map(of).collect() }
    }

    #[test]
    fn only_a_workspace_whose_members_changed_is_read_anew() {
        let before = entitled(&[(7, &[2, 3]), (8, &[4]), (9, &[])]);
        let some = |ids: &[u8]| {
            Changed::Workspaces(ids.iter().map(|id| WorkspaceId::from_bytes([*id; 16])).collect())
        };
        assert_eq!(before.changed(&before.clone()), Changed::Nothing);
        assert_eq!(before.changed(&entitled(&[(7, &[2, 3]), (8, &[4, 5])])), some(&[8]));
        assert_eq!(before.changed(&entitled(&[(7, &[2, 3])])), some(&[8]));
        assert_eq!(before.changed(&entitled(&[])), some(&[7, 8]));
        let other = Entitled { mine: [author(1), author(2)].into(), ..before.clone() };
        assert_eq!(before.changed(&other), Changed::Everything);
    }

    #[test]
    fn a_workspace_of_which_a_member_is_no_longer_heard_is_read_anew() {
        let id = WorkspaceId::from_bytes([7; 16]);
        let charter = Charter { members: [1, 2].map(author).into(), ..Charter::default() };
        let workspaces = [(id, Workspace { charter, ..Workspace::default() })].into();
        let heard = Society { mine: [author(1)].into(), workspaces, ..Society::default() };
        let of = |unheard: u8| {
            Entitled::of(&Society { unheard: [author(unheard)].into(), ..heard.clone() })
        };
        assert_eq!(Entitled::of(&heard), entitled(&[(7, &[1, 2])]));
        assert_eq!(Entitled::of(&heard).changed(&of(2)), Changed::Workspaces([id].into()));
        assert_eq!(of(2).changed(&Entitled::of(&heard)), Changed::Workspaces([id].into()));
        assert_eq!(Entitled::of(&heard).changed(&of(3)), Changed::Nothing, "it never was inside");
    }

    #[test]
    fn what_was_noted_is_read_again_and_a_missing_note_knows_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Entitled::read(folder.path(), author(1)), Entitled::alone(author(1)));
        let noted = entitled(&[(7, &[2, 3]), (8, &[4])]);
        noted.write(folder.path()).unwrap();
        assert_eq!(Entitled::read(folder.path(), author(1)), noted);
        fs::write(file(folder.path()), "mine\nmine 00\n?").unwrap();
        assert_ne!(Entitled::read(folder.path(), author(1)), noted);
    }
}
