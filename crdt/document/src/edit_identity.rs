//! The identity of an edit: its author, boot, branch and number, and the actor derived from them.
//!
//! Automerge identifies a change by an actor and a sequence number, and every change of an actor
//! must follow the actor's previous change. An author who edits an older version of the text, or
//! starts again from a copy of its home, would break that rule. The actor is therefore a hash of
//! three values:
//!
//! - the **author**, so that a peer cannot write under the actor of another author;
//! - the **boot**, so that two copies of one home never share an actor;
//! - the **branch**, a number that grows when the edited version lacks the last change of the actor
//!   with the lower number.
//!
//! The record of an edit carries author, boot and branch, and a node checks that their hash is the
//! actor inside the change.

use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, Boot};
use std::fmt;

/// Author, boot, branch and number of one edit, as its record states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EditIdentity {
    /// The author of the record.
    pub author: AuthorId,
    /// The process start in which the author made the edit.
    pub boot: Boot,
    /// Number of the actor among the actors of this author and boot; the first is 0.
    pub branch: u32,
    /// Number of the edit among the author's edits of this document; the first is 1. The quota
    /// limits it.
    pub number: u32,
}

impl EditIdentity {
    /// The actor that a change of this edit must have.
    pub fn actor(&self) -> Actor {
        Actor::derive(self.author, self.boot, self.branch)
    }
}

/// The actor of a change: 16 bytes. Automerge orders concurrent insertions at one place by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor([u8; Self::LEN]);

impl Actor {
    /// Length of an actor in bytes.
    pub const LEN: usize = 16;

    /// Computes the actor of an author, boot and branch.
    pub fn derive(author: AuthorId, boot: Boot, branch: u32) -> Self {
        let hasher = FieldHasher::new(Context::Actor)
            .field(author.as_bytes())
            .field(&boot.0.to_be_bytes())
            .field(&branch.to_be_bytes());
        Self(hasher.finish_short())
    }

    pub(crate) const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn to_automerge(self) -> automerge::ActorId {
        automerge::ActorId::from(&self.0)
    }

    /// The raw bytes, as they are in a change.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Actor({})", data_encoding::HEXLOWER.encode(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn author_boot_and_branch_each_change_the_actor_and_the_number_does_not() {
        let one = EditIdentity {
            author: AuthorId::from_bytes([1; 32]),
            boot: Boot(1),
            branch: 0,
            number: 1,
        };
        assert_ne!(
            one.actor(),
            EditIdentity { author: AuthorId::from_bytes([2; 32]), ..one }.actor()
        );
        assert_ne!(one.actor(), EditIdentity { boot: Boot(2), ..one }.actor());
        assert_ne!(one.actor(), EditIdentity { branch: 1, ..one }.actor());
        assert_eq!(one.actor(), EditIdentity { number: 2, ..one }.actor());
    }

    #[test]
    fn the_derivation_of_an_actor_is_fixed() {
        let actor = Actor::derive(AuthorId::from_bytes([7; 32]), Boot(9), 3);
        assert_eq!(actor.to_string(), "6e82b70d15ae61212b23e2b8a57792f0");
    }
}
