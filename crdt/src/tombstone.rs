//! Tombstones: deletion of an entry for good, with the proof of authority.
//!
//! A tombstone carries the entry's origin and a proof. The author is the creator that the origin
//! names, or it proves that it owns or administers the workspace that the origin names. The proof
//! needs nothing else, so every node accepts the tombstone at any later time. The exception is an
//! imported entry of a personal workspace, see [`Authority::IfMine`]. A page of a removal cannot be
//! forgotten.
//!
//! Of several valid tombstones nodes keep the one with the least [`TombstoneRank`], so all of them
//! keep the same one.

use crate::charter_origin;
use crate::digest::{Context, FieldHasher};
use crate::entry_origin::Origin;
use crate::ids::{AuthorId, Digest, EntryId, Nonce, WorkspaceId};
use crate::removal_page_origin::RemovalPage;
use crate::signing_key::{Purpose, SecretKey, Signature};

impl WorkspaceId {
    /// The id of a workspace: a hash of the owner's public key and a nonce.
    pub fn of(owner: AuthorId, nonce: Nonce) -> Self {
        Self::from_bytes(
            FieldHasher::new(Context::Workspace)
                .field(owner.as_bytes())
                .field(nonce.as_bytes())
                .finish_short(),
        )
    }
}

/// A signed grant by which the owner of a workspace makes another key an admin. Grants do not
/// expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminGrant {
    /// The owner of the workspace.
    pub owner: AuthorId,
    /// Together with the owner's key, the preimage of the workspace id.
    pub nonce: Nonce,
    /// The owner's signature over workspace id and admin key.
    pub signature: Signature,
}

impl AdminGrant {
    /// Signs a grant for `admin` in the workspace of `owner` and `nonce`.
    pub fn sign(owner: &SecretKey, nonce: Nonce, admin: AuthorId) -> Self {
        let message = Self::message(WorkspaceId::of(owner.author(), nonce), admin);
        let signature = owner.sign(Purpose::AdminGrant, &message);
        Self { owner: owner.author(), nonce, signature }
    }

    /// Verifies that this grant makes `admin` an admin of `workspace`.
    pub fn holds(&self, workspace: WorkspaceId, admin: AuthorId) -> bool {
        let message = Self::message(workspace, admin);
        WorkspaceId::of(self.owner, self.nonce) == workspace
            && self.owner.has_signed(Purpose::AdminGrant, &message, &self.signature)
    }

    fn message(workspace: WorkspaceId, admin: AuthorId) -> Vec<u8> {
        [&workspace.as_bytes()[..], &admin.as_bytes()[..]].concat()
    }
}

/// The proof that the author of a tombstone may delete the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The author created the entry, or the entry was imported into a personal workspace.
    Origin,
    /// The author owns the workspace. The nonce is the missing part of the preimage of its id.
    Owner(Nonce),
    /// The author is an admin of the workspace, by a grant of the owner.
    Admin(AdminGrant),
}

/// The payload of a tombstone record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The origin of the entry, whose hash is the entry id.
    pub origin: Origin,
    /// The proof of the author's authority.
    pub grounds: Grounds,
}

/// The order in which nodes keep one of several valid tombstones: they keep the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TombstoneRank {
    /// Whether the tombstone rests on an admin's grant. A removal of the admin lifts it, and must
    /// not bring back an entry that its creator or the owner forgot, too.
    pub is_by_grant: bool,
    /// The digest of the record.
    pub digest: Digest,
}

/// The result of checking the authority of a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The tombstone proves its authority by itself. Every node applies it.
    Proved,
    /// The entry was imported into `local` or `main`, which have no owner key. A node applies the
    /// tombstone if its author is this node or another node of the same person (*mine*), or if one
    /// of *mine* delivers it, since that node has applied it already.
    IfMine,
    /// The proof is missing or wrong.
    None,
}

impl Tombstone {
    /// Whether the tombstone rests on an admin's grant, which a removal of the admin ends.
    pub fn is_by_grant(&self) -> bool {
        matches!(self.grounds, Grounds::Admin(_))
    }

    /// Checks the authority of this tombstone, signed by `author`, over `entry`.
    pub fn authority(&self, author: AuthorId, entry: EntryId) -> Authority {
        // A removal ends by the withdrawal of its statement. The id of its pages can be computed in
        // advance, so a tombstone would prevent the removal for ever.
        if self.origin.id() != entry || RemovalPage::of(&self.origin).is_some() {
            return Authority::None;
        }
        let workspace = self.origin.workspace();
        let is_proved = match &self.grounds {
            Grounds::Origin if self.origin.creator().is_none() => {
                return if workspace.is_personal() { Authority::IfMine } else { Authority::None };
            }
            Grounds::Origin => self.origin.creator() == Some(author),
            Grounds::Owner(nonce) => WorkspaceId::of(author, *nonce) == workspace,
            // Grants never expire, so a former admin could otherwise delete the workspace's
            // charter.
            Grounds::Admin(_) if charter_origin::entry(workspace) == entry => false,
            Grounds::Admin(grant) => grant.holds(workspace, author),
        };
        if is_proved { Authority::Proved } else { Authority::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_origin::Memory;
    use crate::removal_page_origin;
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
        let charter = charter_origin::origin(WorkspaceId::of(owner.author(), nonce));
        let grant = AdminGrant::sign(&owner, nonce, admin.author());
        assert_eq!(authority(&charter, Grounds::Owner(nonce), owner.author()), Authority::Proved);
        assert_eq!(authority(&charter, Grounds::Admin(grant), admin.author()), Authority::None);
    }

    #[test]
    fn a_page_of_a_removal_cannot_be_forgotten() {
        let (owner, admin) = (key(2), key(3));
        let nonce = Nonce::from_bytes([9; 16]);
        let workspace = WorkspaceId::of(owner.author(), nonce);
        let grant = AdminGrant::sign(&owner, nonce, admin.author());
        for number in [0, 1, removal_page_origin::PAGES_MAX - 1] {
            let page = RemovalPage { workspace, member: admin.author(), number }.origin();
            let by = |grounds, author: &SecretKey| authority(&page, grounds, author.author());
            assert_eq!(by(Grounds::Admin(grant.clone()), &admin), Authority::None);
            assert_eq!(by(Grounds::Owner(nonce), &owner), Authority::None);
            assert_eq!(by(Grounds::Origin, &admin), Authority::None);
        }
        let personal =
            RemovalPage { workspace: WorkspaceId::MAIN, member: admin.author(), number: 0 };
        let by_import = authority(&personal.origin(), Grounds::Origin, owner.author());
        assert_eq!(by_import, Authority::None);
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
    fn an_imported_entry_is_forgotten_by_its_importer_or_by_owner_and_admins() {
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
