//! The origin of an entry: the preimage of its id.
//!
//! The id is a hash of the origin. A node that holds the origin can verify the creator, the
//! workspace and the memory of the entry. None of them can change later, and no author can show
//! different ones to different nodes. An imported entry has no creator: its id depends on the
//! source format and key only, so two members who import the same file get the same entry.

use crate::digest::{Context, FieldHasher};
use crate::ids::{AuthorId, EntryId, Nonce, WorkspaceId};
use crate::time::Hlc;
use std::fmt;

/// The memory that an entry belongs to, fixed at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Durable facts; the default for most entry types.
    Semantic,
    /// Norms and expectations about the way of working.
    Procedural,
    /// Raw observations. A node never shows them in answers and never promotes them automatically.
    Episodic,
}

impl Memory {
    /// The three memories, with their names.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Semantic, "semantic"),
        (Self::Procedural, "procedural"),
        (Self::Episodic, "episodic"),
    ];

    /// The number of the memory on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Semantic => 1,
            Self::Procedural => 2,
            Self::Episodic => 3,
        }
    }

    /// The memory with this number on the wire; `None` for an unknown number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().map(|(memory, _)| memory).find(|memory| memory.code() == code)
    }

    /// The memory with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(memory, _)| memory)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[usize::from(self.code()) - 1].1)
    }
}

/// The preimage of an entry id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An entry that an author wrote on its node.
    Created {
        /// The author that wrote the first record.
        creator: AuthorId,
        /// Time of creation, by the creator's clock.
        stamp: Hlc,
        /// Distinguishes entries with the same creator and stamp.
        nonce: Nonce,
        /// The workspace, fixed for good.
        workspace: WorkspaceId,
        /// The memory, fixed for good.
        memory: Memory,
    },
    /// An entry that was imported from another system. Equal imports have the same id.
    Imported {
        /// The workspace that it was imported into.
        workspace: WorkspaceId,
        /// The memory, fixed for good.
        memory: Memory,
        /// Name of the source format.
        format: String,
        /// Key of the entry in the source.
        key: String,
    },
}

impl Origin {
    /// The entry id: a hash of all fields.
    pub fn id(&self) -> EntryId {
        let fields = FieldHasher::new(Context::Origin)
            .field(self.workspace().as_bytes())
            .field(&[self.memory().code()]);
        EntryId::from_bytes(match self {
            Self::Created { creator, stamp, nonce, .. } => fields
                .field(b"created")
                .field(creator.as_bytes())
                .field(&stamp.bits().to_be_bytes())
                .field(nonce.as_bytes())
                .finish_short(),
            Self::Imported { format, key, .. } => fields
                .field(b"imported")
                .field(format.as_bytes())
                .field(key.as_bytes())
                .finish_short(),
        })
    }

    /// The workspace, fixed at creation.
    pub fn workspace(&self) -> WorkspaceId {
        match self {
            Self::Created { workspace, .. } | Self::Imported { workspace, .. } => *workspace,
        }
    }

    /// The memory, fixed at creation.
    pub fn memory(&self) -> Memory {
        match self {
            Self::Created { memory, .. } | Self::Imported { memory, .. } => *memory,
        }
    }

    /// The creator; `None` for an imported entry.
    pub fn creator(&self) -> Option<AuthorId> {
        match self {
            Self::Created { creator, .. } => Some(*creator),
            Self::Imported { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_origin_is_in_the_id() {
        let base = (AuthorId::from_bytes([1; 32]), 7, 2, WorkspaceId::MAIN, Memory::Semantic);
        let id = |(creator, stamp, nonce, workspace, memory): (_, u64, u8, _, _)| {
            let (stamp, nonce) = (Hlc::from_bits(stamp), Nonce::from_bytes([nonce; 16]));
            Origin::Created { creator, stamp, nonce, workspace, memory }.id()
        };
        for changed in [
            (AuthorId::default(), base.1, base.2, base.3, base.4),
            (base.0, 8, base.2, base.3, base.4),
            (base.0, base.1, 3, base.3, base.4),
            (base.0, base.1, base.2, WorkspaceId::LOCAL, base.4),
            (base.0, base.1, base.2, base.3, Memory::Episodic),
        ] {
            assert_ne!(id(changed), id(base), "{changed:?}");
        }
    }

    #[test]
    fn two_members_who_import_the_same_key_get_one_entry() {
        let import = |key: &str| Origin::Imported {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            format: "jsonl".into(),
            key: key.into(),
        };
        assert_eq!(import("a").id(), import("a").id());
        assert_ne!(import("a").id(), import("b").id());
    }

    #[test]
    fn a_memory_reads_back_from_its_name_and_number() {
        for (memory, name) in Memory::ALL {
            assert_eq!(Memory::parse(name), Some(memory));
            assert_eq!(Memory::from_code(memory.code()), Some(memory));
            assert_eq!(memory.to_string(), name);
        }
    }
}
