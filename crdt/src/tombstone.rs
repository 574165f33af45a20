//! Forgetting an entry for good, and who may.
//!
//! A tombstone carries the proof that its author was entitled: the origin that names it as
//! creator, or the origin that names a workspace together with proof of owning or administering
//! it. The proof stands on its own, so a tombstone is valid for ever and for everyone. Of several
//! valid ones the least digest is kept, so all holders keep the same.

use crate::charter;
use crate::digest::{Context, Fields};
use crate::ids::{AuthorId, EntryId, Nonce, WorkspaceId};
use crate::key::{Purpose, SecretKey, Signature};
use crate::origin::Origin;

impl WorkspaceId {
    /// The id of a workspace: only the owner's key and the nonce give it.
    pub fn of(owner: AuthorId, nonce: Nonce) -> Self {
        Self::from_bytes(
            Fields::new(Context::Workspace)
                .field(owner.as_bytes())
                .field(nonce.as_bytes())
                .finish_short(),
        )
    }
}

/// An owner's signed word that another key administers the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminGrant {
    /// Who owns the workspace.
    pub owner: AuthorId,
    /// With the owner's key, the preimage of the workspace's id.
    pub nonce: Nonce,
    /// The owner's signature over workspace and admin.
    pub signature: Signature,
}

impl AdminGrant {
    /// Makes `admin` an admin of the workspace of `owner` and `nonce`.
    pub fn sign(owner: &SecretKey, nonce: Nonce, admin: AuthorId) -> Self {
        let message = Self::message(WorkspaceId::of(owner.author(), nonce), admin);
        let signature = owner.sign(Purpose::AdminGrant, &message);
        Self { owner: owner.author(), nonce, signature }
    }

    /// Whether this makes `admin` an admin of `workspace`.
    pub fn holds(&self, workspace: WorkspaceId, admin: AuthorId) -> bool {
        let message = Self::message(workspace, admin);
        WorkspaceId::of(self.owner, self.nonce) == workspace
            && self.owner.has_signed(Purpose::AdminGrant, &message, &self.signature)
    }

    fn message(workspace: WorkspaceId, admin: AuthorId) -> Vec<u8> {
        [&workspace.as_bytes()[..], &admin.as_bytes()[..]].concat()
    }
}

/// Why the tombstone's author may forget the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// It created the entry, or imported it into its own person's workspace.
    Origin,
    /// It owns the workspace; the nonce proves it.
    Owner(Nonce),
    /// It administers the workspace.
    Admin(AdminGrant),
}

/// What a tombstone's payload says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The preimage of the entry's id.
    pub origin: Origin,
    /// The author's entitlement.
    pub grounds: Grounds,
}

/// How far a tombstone's entitlement is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// By the tombstone itself: everyone honours it.
    Proved,
    /// It forgets an imported entry of `local` or `main`, which have no owner's key: honoured
    /// where its author is this node or *mine*, which is where such entries live, or where one of
    /// *mine* brings it, which has honoured it then.
    IfMine,
    /// Not at all.
    None,
}

impl Tombstone {
    /// What this tombstone, signed by `author` for `entry`, may do.
    pub fn authority(&self, author: AuthorId, entry: EntryId) -> Authority {
        if self.origin.id() != entry {
            return Authority::None;
        }
        let workspace = self.origin.workspace();
        let is_proved = match &self.grounds {
            Grounds::Origin if self.origin.creator().is_none() => {
                return if workspace.is_personal() { Authority::IfMine } else { Authority::None };
            }
            Grounds::Origin => self.origin.creator() == Some(author),
            Grounds::Owner(nonce) => WorkspaceId::of(author, *nonce) == workspace,
            // A grant is for ever: whoever once was an admin could end the workspace.
            Grounds::Admin(_) if charter::entry(workspace) == entry => false,
            Grounds::Admin(grant) => grant.holds(workspace, author),
        };
        if is_proved { Authority::Proved } else { Authority::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Memory;
    use crate::time::Hlc;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn created(creator: AuthorId, workspace: WorkspaceId) -> Origin {
        let (stamp, nonce) = (Hlc::from_bits(1), Nonce::default());
        Origin::Created { creator, stamp, nonce, workspace, memory: Memory::Semantic }
    }

    fn authority(origin: &Origin, grounds: Grounds, author: AuthorId) -> Authority {
        Tombstone { origin: origin.clone(), grounds }.authority(author, origin.id())
    }

    #[test]
    fn creator_owner_and_admin_may_forget_and_others_may_not() {
        let (creator, owner, admin, stranger) = (key(1), key(2), key(3), key(4));
        let nonce = Nonce::from_bytes([9; 16]);
        let origin = created(creator.author(), WorkspaceId::of(owner.author(), nonce));
        let grant = AdminGrant::sign(&owner, nonce, admin.author());
        let forged = AdminGrant::sign(&stranger, nonce, stranger.author());
        let check = |grounds, author: &SecretKey| authority(&origin, grounds, author.author());

        assert_eq!(check(Grounds::Origin, &creator), Authority::Proved);
        assert_eq!(check(Grounds::Owner(nonce), &owner), Authority::Proved);
        assert_eq!(check(Grounds::Admin(grant.clone()), &admin), Authority::Proved);

        assert_eq!(check(Grounds::Origin, &stranger), Authority::None);
        assert_eq!(check(Grounds::Owner(nonce), &stranger), Authority::None);
        assert_eq!(check(Grounds::Admin(grant), &stranger), Authority::None);
        assert_eq!(check(Grounds::Admin(forged), &stranger), Authority::None);
    }

    #[test]
    fn only_its_owner_may_forget_a_charter() {
        let (owner, admin) = (key(2), key(3));
        let nonce = Nonce::from_bytes([9; 16]);
        let charter = charter::origin(WorkspaceId::of(owner.author(), nonce));
        let grant = AdminGrant::sign(&owner, nonce, admin.author());
        assert_eq!(authority(&charter, Grounds::Owner(nonce), owner.author()), Authority::Proved);
        assert_eq!(authority(&charter, Grounds::Admin(grant), admin.author()), Authority::None);
    }

    #[test]
    fn a_tombstone_moved_to_another_entry_is_void() {
        let creator = key(1);
        let origin = created(creator.author(), WorkspaceId::MAIN);
        let tombstone = Tombstone { origin, grounds: Grounds::Origin };
        let other = EntryId::from_bytes([5; 16]);
        assert_eq!(tombstone.authority(creator.author(), other), Authority::None);
    }

    #[test]
    fn an_import_is_forgotten_by_mine_at_home_and_by_owner_or_admin_elsewhere() {
        let import = |workspace| Origin::Imported {
            workspace,
            memory: Memory::Semantic,
            format: "jsonl".into(),
            key: "1".into(),
        };
        let author = key(1).author();
        let shared = WorkspaceId::of(key(2).author(), Nonce::default());
        assert_eq!(
            authority(&import(WorkspaceId::MAIN), Grounds::Origin, author),
            Authority::IfMine
        );
        assert_eq!(authority(&import(shared), Grounds::Origin, author), Authority::None);
    }
}
