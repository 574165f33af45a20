//! Where an entry comes from: the preimage of its id.
//!
//! The id is a hash of the origin, so anyone who holds the origin can check who created the entry,
//! in which workspace, as which kind of memory; none of these can be changed later or told
//! differently to different holders. An imported entry has no creator: its id follows from what was
//! imported, so that two members who import the same file get one entry.

use crate::digest::{Context, Fields};
use crate::ids::{AuthorId, EntryId, Nonce, WorkspaceId};
use crate::time::Hlc;
use std::fmt;

/// Which of the three memories an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Durable facts.
    Semantic,
    /// How we work: norms and expectations.
    Procedural,
    /// Raw observations; never surfaced, never promoted by itself.
    Episodic,
}

impl Memory {
    /// The three, with their names.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Semantic, "semantic"),
        (Self::Procedural, "procedural"),
        (Self::Episodic, "episodic"),
    ];

    /// The number that travels.
    pub const fn code(self) -> u8 {
        match self {
            Self::Semantic => 1,
            Self::Procedural => 2,
            Self::Episodic => 3,
        }
    }

    /// From the number that travels.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().map(|(memory, _)| memory).find(|memory| memory.code() == code)
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(memory, _)| memory)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[usize::from(self.code()) - 1].1)
    }
}

/// What an entry's id is a hash of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Written by an author.
    Created {
        /// Who.
        creator: AuthorId,
        /// When, by the creator's clock.
        stamp: Hlc,
        /// Keeps two entries of one moment apart.
        nonce: Nonce,
        /// Where.
        workspace: WorkspaceId,
        /// As what.
        memory: Memory,
    },
    /// Taken from somewhere else.
    Imported {
        /// Where to.
        workspace: WorkspaceId,
        /// As what.
        memory: Memory,
        /// The format of the source.
        format: String,
        /// What the source calls it.
        key: String,
    },
}

impl Origin {
    /// The entry's id.
    pub fn id(&self) -> EntryId {
        let fields = Fields::new(Context::Origin)
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

    /// The creator, unless it was imported.
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
