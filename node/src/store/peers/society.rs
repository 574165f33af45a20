//! Who is who to this node at a moment: the person's own, peers, members of workspaces.
//!
//! Read from one snapshot, so that an answer sees one state of affairs.

use super::super::error::Error;
use super::super::read::Damage;
use super::super::snapshot::Snapshot;
use super::rows::{Approval, PeerRow};
use klnode_crdt::charter::{self, Charter};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::Entitlement;
use klnode_federation::proto::filter::Acquaintance;
use std::collections::{BTreeMap, BTreeSet};

/// A shared workspace.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// What it is called here.
    pub name: String,
    /// New entries go there, unless they say otherwise.
    pub is_current: bool,
    /// Who belongs to it, as far as the charter can be read.
    pub charter: Charter,
    /// A record of the charter is damaged: who belongs to it is not known for certain. What passes
    /// between nodes stays as it was until a peer has brought the record back.
    pub is_damaged: bool,
}

/// Who is who.
#[derive(Clone, Debug, Default)]
pub struct Society {
    /// This node.
    pub own: AuthorId,
    /// This node and the same person's others.
    pub mine: BTreeSet<AuthorId>,
    /// Other nodes.
    pub peers: BTreeMap<AuthorId, PeerRow>,
    /// Shared workspaces.
    pub workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// Peers and members of workspaces who are not listened to here: blocked, or convicted of signing
    /// two things as one. Nobody of `mine` is among them, and no other author: keys cost nothing, and
    /// whoever comes to this set has everything examined anew.
    pub unheard: BTreeSet<AuthorId>,
}

impl Society {
    /// As a snapshot shows it to `own`.
    pub fn read(snapshot: &Snapshot, own: AuthorId, now: WallTime) -> Result<Self, Error> {
        let peers: BTreeMap<AuthorId, PeerRow> = snapshot.peers()?.into_iter().collect();
        let is_mine = |(_, row): &(&AuthorId, &PeerRow)| row.counts_as_mine();
        let mine: BTreeSet<AuthorId> =
            peers.iter().filter(is_mine).map(|(peer, _)| *peer).chain([own]).collect();
        let mut workspaces = BTreeMap::new();
        let mut known: BTreeSet<AuthorId> = peers.keys().copied().collect();
        for (id, row) in snapshot.workspaces()? {
            let (charter, is_damaged) = charter_of(snapshot, (id, row.owner), now)?;
            known.extend(&charter.members);
            let (name, is_current) = (row.name, row.is_current);
            workspaces.insert(id, Workspace { name, is_current, charter, is_damaged });
        }
        let blocked = peers.iter().filter(|(_, row)| row.is_blocked).map(|(peer, _)| *peer);
        let unheard = blocked.chain(snapshot.convicted_among(&known)?);
        let unheard = unheard.filter(|author| !mine.contains(author)).collect();
        Ok(Self { own, mine, peers, workspaces, unheard })
    }

    /// Whose word is shown in a workspace.
    pub fn entitlement(&self, workspace: Option<WorkspaceId>) -> Entitlement {
        let members = workspace.map(|id| self.heard_members(id)).unwrap_or_default();
        Entitlement { mine: self.mine.clone(), members }
    }

    /// Members of a workspace who are listened to.
    pub fn heard_members(&self, workspace: WorkspaceId) -> BTreeSet<AuthorId> {
        let shared = self.workspaces.get(&workspace);
        let members = shared.map(|shared| &shared.charter.members - &self.unheard);
        members.unwrap_or_default()
    }

    /// Whether an author belongs to a workspace.
    pub fn is_member(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let shared = self.workspaces.get(&workspace);
        shared.is_some_and(|shared| shared.charter.members.contains(&author))
    }

    /// Whether an author is an outsider in a workspace: neither this person nor a fellow member who
    /// is listened to.
    pub fn is_outside(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let is_fellow = || {
            self.is_member(author, workspace)
                && !self.unheard.contains(&author)
                && self.mine.iter().any(|own| self.is_member(*own, workspace))
        };
        !self.mine.contains(&author) && !is_fellow()
    }

    /// Whether an author belongs to any workspace that this node belongs to.
    pub fn is_fellow(&self, author: AuthorId) -> bool {
        self.workspaces.values().any(|shared| {
            let members = &shared.charter.members;
            members.contains(&author) && self.mine.iter().any(|own| members.contains(own))
        })
    }

    /// Whether a peer may talk.
    pub fn is_approved(&self, peer: AuthorId) -> bool {
        self.peers.get(&peer).is_some_and(|row| row.approval == Approval::Approved)
    }

    /// What a peer is to this node as far as filters go.
    pub fn acquaintance(&self, peer: AuthorId) -> Acquaintance {
        let both = |shared: &&Workspace| {
            let members = &shared.charter.members;
            members.contains(&peer) && self.mine.iter().any(|own| members.contains(own))
        };
        let shared = self.workspaces.iter().filter(|(_, shared)| both(shared));
        Acquaintance {
            is_mine: self.mine.contains(&peer),
            shared: shared.map(|(id, _)| *id).collect::<BTreeSet<_>>(),
        }
    }

    /// Whether it is not known for certain who belongs to a workspace.
    pub fn is_damaged(&self, workspace: WorkspaceId) -> bool {
        self.workspaces.get(&workspace).is_some_and(|shared| shared.is_damaged)
    }

    /// Whether the same authors belong to the same workspaces in both, as far as is known.
    pub fn has_members_of(&self, other: &Self) -> bool {
        let belong = |(id, shared): (&WorkspaceId, &Workspace)| {
            other.workspaces.get(id).is_some_and(|other| {
                (&shared.charter.members, shared.is_damaged)
                    == (&other.charter.members, other.is_damaged)
            })
        };
        self.workspaces.len() == other.workspaces.len() && self.workspaces.iter().all(belong)
    }

    /// Where new entries go.
    pub fn current(&self) -> WorkspaceId {
        let current = self.workspaces.iter().find(|(_, shared)| shared.is_current);
        current.map_or(WorkspaceId::MAIN, |(id, _)| *id)
    }

    /// A workspace by what it is called here.
    pub fn workspace(&self, name: &str) -> Option<WorkspaceId> {
        match name {
            "local" => Some(WorkspaceId::LOCAL),
            "main" => Some(WorkspaceId::MAIN),
            _ => {
                let named = self.workspaces.iter().find(|(_, shared)| shared.name == name);
                named.map(|(id, _)| *id)
            }
        }
    }

    /// How many entries are held: neither forgotten ones, of which a tombstone is left, nor the charters
    /// of workspaces. Those that were taken back are among them: each would have to be read.
    pub fn entries(&self, snapshot: &Snapshot) -> Result<u64, Error> {
        let mut entries = snapshot.entry_count()?.saturating_sub(snapshot.forgotten_count()?);
        for id in self.workspaces.keys() {
            let is_held = snapshot.view_row(charter::entry(*id))?.is_some();
            entries = entries.saturating_sub(u64::from(is_held));
        }
        Ok(entries)
    }

    /// The charters of workspaces. Each id takes a hash: whoever goes through rows asks once, before
    /// the first of them.
    pub fn charters(&self) -> BTreeSet<EntryId> {
        self.workspaces.keys().map(|id| charter::entry(*id)).collect()
    }

    /// What a workspace is called here.
    pub fn name(&self, workspace: WorkspaceId) -> String {
        match workspace {
            WorkspaceId::LOCAL => "local".to_owned(),
            WorkspaceId::MAIN => "main".to_owned(),
            id => match self.workspaces.get(&id) {
                Some(shared) => shared.name.clone(),
                None => id.to_string()[..8].to_owned(),
            },
        }
    }
}

/// A charter, and whether some of it is damaged: that counts as not held, so that a peer can bring it
/// back.
fn charter_of(
    snapshot: &Snapshot,
    of: (WorkspaceId, Option<AuthorId>),
    now: WallTime,
) -> Result<(Charter, bool), Error> {
    match Error::unless_damaged(snapshot.charter(of, now, Damage::Told))? {
        Some(charter) => Ok((charter, false)),
        None => Ok((snapshot.charter(of, now, Damage::PassedOver)?, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn authors(bytes: &[u8]) -> BTreeSet<AuthorId> {
        bytes.iter().copied().map(author).collect()
    }

    #[test]
    fn a_member_who_is_not_listened_to_is_an_outsider_whose_word_is_not_shown() {
        let [shared, elsewhere] = [7, 8].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let workspace = |members: &[u8]| {
            let charter = Charter { members: authors(members), ..Charter::default() };
            Workspace { charter, ..Workspace::default() }
        };
        let workspaces = [(shared, workspace(&[1, 2, 3])), (elsewhere, workspace(&[2, 3]))];
        let society = |unheard: &[u8]| Society {
            mine: authors(&[1]),
            workspaces: workspaces.clone().into(),
            unheard: authors(unheard),
            ..Society::default()
        };
        let cases: [(&[u8], &[u8]); 4] =
            [(&[], &[4]), (&[3], &[3, 4]), (&[2, 3], &[2, 3, 4]), (&[4], &[4])];
        for (unheard, outside) in cases {
            let society = society(unheard);
            let given = (1..=4).filter(|byte| society.is_outside(author(*byte), shared));
            assert_eq!(given.collect::<Vec<u8>>(), outside, "{unheard:?}");
            let members = &authors(&[1, 2, 3]) - &authors(unheard);
            assert_eq!(society.heard_members(shared), members);
            let entitled = society.entitlement(Some(shared));
            assert_eq!((entitled.mine, entitled.members), (authors(&[1]), members));
            // Where this person is no member nobody is a fellow; where nobody is known, neither.
            assert!(society.is_outside(author(2), elsewhere));
            assert!(society.heard_members(WorkspaceId::MAIN).is_empty());
            // It is a member all the same: what belongs to a workspace goes to all of them.
            assert!(society.is_member(author(3), shared));
        }
    }
}
