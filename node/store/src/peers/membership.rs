//! The membership state of a node: this person's keys, peers, and members of workspaces.
//!
//! Read from one snapshot, so that an answer sees one consistent state.

use super::super::error::Error;
use super::super::shared_reads::Damage;
use super::super::snapshot::Snapshot;
use super::member_removals::RemovalRow;
use super::row_types::{PeerApproval, PeerRow};
use klnode_crdt::entry_view::Entitlement;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter::{self, Charter};
use klnode_federation::proto::entry_filter::Acquaintance;
use std::collections::{BTreeMap, BTreeSet};

/// A shared workspace.
#[derive(Clone, Debug, Default)]
pub struct SharedWorkspace {
    /// The local name.
    pub name: String,
    /// Whether new entries go there by default.
    pub is_current: bool,
    /// The charter, as far as it can be read.
    pub charter: Charter,
    /// The removals that any author states, by removed key.
    pub removals: BTreeMap<AuthorId, RemovalRow>,
    /// Whether a record of the charter is damaged, so that the members are uncertain. Releases stay
    /// as they are until a peer has delivered the record again.
    pub is_damaged: bool,
}

impl SharedWorkspace {
    /// The removed keys, each with the number of its records that still count.
    pub fn cuts(&self) -> BTreeMap<AuthorId, u64> {
        let digests = |key: &AuthorId| self.removals.get(key).map_or(0, |row| row.digests);
        self.charter.removed.keys().map(|key| (*key, digests(key))).collect()
    }
}

/// The membership state.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    /// The author of this node.
    pub own: AuthorId,
    /// The authors of this node and the person's other nodes.
    pub mine: BTreeSet<AuthorId>,
    /// All known other nodes.
    pub peers: BTreeMap<AuthorId, PeerRow>,
    /// All shared workspaces with a local name.
    pub workspaces: BTreeMap<WorkspaceId, SharedWorkspace>,
    /// Peers and members that are ignored: blocked, or convicted of equivocation. Neither this
    /// person's keys nor other authors are included: keys cost nothing to create, and every author
    /// added to this set causes all entries to be examined again.
    pub unheard: BTreeSet<AuthorId>,
}

impl Membership {
    /// Reads the membership state from a snapshot.
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
            let removals = snapshot.removals(id)?.into_iter().collect();
            let shared = SharedWorkspace { name, is_current, charter, removals, is_damaged };
            workspaces.insert(id, shared);
        }
        let blocked = peers.iter().filter(|(_, row)| row.is_blocked).map(|(peer, _)| *peer);
        let unheard = blocked.chain(snapshot.convicted_among(&known)?);
        let unheard = unheard.filter(|author| !mine.contains(author)).collect();
        Ok(Self { own, mine, peers, workspaces, unheard })
    }

    /// The authors whose claims are shown in a workspace.
    pub fn entitlement(&self, workspace: Option<WorkspaceId>) -> Entitlement {
        let members = workspace.map(|id| self.entitled(id)).unwrap_or_default();
        Entitlement { mine: self.mine.clone(), members }
    }

    /// Members and removed keys that are neither blocked nor convicted. The node holds only those
    /// records of a removed key that are in the cut, and these still count.
    pub fn entitled(&self, workspace: WorkspaceId) -> BTreeSet<AuthorId> {
        let shared = self.workspaces.get(&workspace);
        shared.map(|shared| &shared.charter.entitled() - &self.unheard).unwrap_or_default()
    }

    /// Members of a workspace that are neither blocked nor convicted.
    pub fn unblocked_members(&self, workspace: WorkspaceId) -> BTreeSet<AuthorId> {
        let shared = self.workspaces.get(&workspace);
        let members = shared.map(|shared| &shared.charter.members - &self.unheard);
        members.unwrap_or_default()
    }

    /// Whether an author is a member of a workspace.
    pub fn is_member(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let shared = self.workspaces.get(&workspace);
        shared.is_some_and(|shared| shared.charter.members.contains(&author))
    }

    /// Whether the claims of an author that this node holds count as a member's in a workspace: it
    /// is a member, or it was removed and its claims are in the cut.
    pub fn counts_as_member(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let shared = self.workspaces.get(&workspace);
        shared.is_some_and(|shared| {
            shared.charter.members.contains(&author) || shared.charter.removed.contains_key(&author)
        })
    }

    /// Whether an author's claims are an outsider's in a workspace: it is neither this person nor a
    /// fellow member, present or removed, that is neither blocked nor convicted.
    pub fn is_outside(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let is_fellow = || {
            self.counts_as_member(author, workspace)
                && !self.unheard.contains(&author)
                && self.mine.iter().any(|own| self.is_member(*own, workspace))
        };
        !self.mine.contains(&author) && !is_fellow()
    }

    /// Whether an author shares a workspace with this person.
    pub fn is_fellow(&self, author: AuthorId) -> bool {
        self.workspaces.values().any(|shared| {
            let members = &shared.charter.members;
            members.contains(&author) && self.mine.iter().any(|own| members.contains(own))
        })
    }

    /// Whether a peer is approved.
    pub fn is_approved(&self, peer: AuthorId) -> bool {
        self.peers.get(&peer).is_some_and(|row| row.approval == PeerApproval::Approved)
    }

    /// The relation of a peer to this node that filters use.
    pub fn acquaintance(&self, peer: AuthorId) -> Acquaintance {
        let both = |shared: &&SharedWorkspace| {
            let members = &shared.charter.members;
            members.contains(&peer) && self.mine.iter().any(|own| members.contains(own))
        };
        let shared = self.workspaces.iter().filter(|(_, shared)| both(shared));
        Acquaintance {
            receiver: peer,
            is_mine: self.mine.contains(&peer),
            shared: shared.map(|(id, _)| *id).collect::<BTreeSet<_>>(),
        }
    }

    /// Whether the members of a workspace are uncertain because its charter is damaged.
    pub fn is_damaged(&self, workspace: WorkspaceId) -> bool {
        self.workspaces.get(&workspace).is_some_and(|shared| shared.is_damaged)
    }

    /// Whether both states have the same workspaces with the same members.
    pub fn has_members_of(&self, other: &Self) -> bool {
        let belong = |(id, shared): (&WorkspaceId, &SharedWorkspace)| {
            other.workspaces.get(id).is_some_and(|other| {
                let of = |shared: &SharedWorkspace| {
                    (shared.charter.members.clone(), shared.cuts(), shared.is_damaged)
                };
                of(shared) == of(other)
            })
        };
        self.workspaces.len() == other.workspaces.len() && self.workspaces.iter().all(belong)
    }

    /// The default workspace of new entries.
    pub fn current(&self) -> WorkspaceId {
        let current = self.workspaces.iter().find(|(_, shared)| shared.is_current);
        current.map_or(WorkspaceId::MAIN, |(id, _)| *id)
    }

    /// The workspace with this local name.
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

    /// The number of entries, without forgotten ones and without charters of workspaces. Retracted
    /// entries are included, since excluding them would require reading every entry.
    pub fn entries(&self, snapshot: &Snapshot) -> Result<u64, Error> {
        let mut entries = snapshot.entry_count()?.saturating_sub(snapshot.forgotten_count()?);
        for id in self.workspaces.keys() {
            let is_held = snapshot.view_row(workspace_charter::entry(*id))?.is_some();
            entries = entries.saturating_sub(u64::from(is_held));
        }
        let removals = self.workspaces.values().flat_map(|shared| shared.removals.values());
        entries = entries.saturating_sub(removals.map(|row| u64::from(row.pages)).sum());
        Ok(entries)
    }

    /// The charters of all workspaces and the pages of removals, which no list shows. Each id costs
    /// a hash, so a caller that scans rows computes this set once before.
    pub fn internal_entries(&self) -> BTreeSet<EntryId> {
        let mut entries = BTreeSet::new();
        for (workspace, shared) in &self.workspaces {
            entries.insert(workspace_charter::entry(*workspace));
            for (member, row) in &shared.removals {
                let page =
                    |number| RemovalPage { workspace: *workspace, member: *member, number }.entry();
                entries.extend((0..row.pages).map(page));
            }
        }
        entries
    }

    /// The local name of a workspace.
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

/// A charter, and whether some of its records are damaged. Damaged records count as missing, so
/// that a peer can deliver them again.
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
    fn a_blocked_or_convicted_member_counts_as_an_outsider() {
        let [shared, elsewhere] = [7, 8].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let workspace = |members: &[u8]| {
            let charter = Charter { members: authors(members), ..Charter::default() };
            SharedWorkspace { charter, ..SharedWorkspace::default() }
        };
        let workspaces = [(shared, workspace(&[1, 2, 3])), (elsewhere, workspace(&[2, 3]))];
        let membership = |unheard: &[u8]| Membership {
            mine: authors(&[1]),
            workspaces: workspaces.clone().into(),
            unheard: authors(unheard),
            ..Membership::default()
        };
        let cases: [(&[u8], &[u8]); 4] =
            [(&[], &[4]), (&[3], &[3, 4]), (&[2, 3], &[2, 3, 4]), (&[4], &[4])];
        for (unheard, outside) in cases {
            let membership = membership(unheard);
            let given = (1..=4).filter(|byte| membership.is_outside(author(*byte), shared));
            assert_eq!(given.collect::<Vec<u8>>(), outside, "{unheard:?}");
            let members = &authors(&[1, 2, 3]) - &authors(unheard);
            assert_eq!(membership.unblocked_members(shared), members);
            let entitled = membership.entitlement(Some(shared));
            assert_eq!((entitled.mine, entitled.members), (authors(&[1]), members));
            // Where this person is no member, or the members are unknown, there are no fellow
            // members.
            assert!(membership.is_outside(author(2), elsewhere));
            assert!(membership.unblocked_members(WorkspaceId::MAIN).is_empty());
            // The author stays a member: entries of a workspace go to all members.
            assert!(membership.is_member(author(3), shared));
        }
    }

    #[test]
    fn texts_of_a_removed_member_count_as_a_members() {
        let shared = WorkspaceId::from_bytes([7; 16]);
        let removed = [(author(3), authors(&[1]))].into();
        let charter = Charter { members: authors(&[1, 2]), removed, ..Charter::default() };
        let workspace = SharedWorkspace { charter, ..SharedWorkspace::default() };
        let membership = |unheard: &[u8]| Membership {
            mine: authors(&[1]),
            workspaces: [(shared, workspace.clone())].into(),
            unheard: authors(unheard),
            ..Membership::default()
        };
        let heard = membership(&[]);
        assert!(!heard.is_outside(author(3), shared) && heard.is_outside(author(4), shared));
        assert!(!heard.is_member(author(3), shared) && !heard.is_fellow(author(3)));
        assert_eq!(heard.entitled(shared), authors(&[1, 2, 3]));
        assert!(membership(&[3]).is_outside(author(3), shared), "it is blocked");
    }
}
