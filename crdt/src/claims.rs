//! The claims facet: the texts, sets and archival state that one author asserts about one entry.
//!
//! [`Claims`] is a struct of lattices: multi-value registers for texts, LWW element sets for tags,
//! citations and links. The claims of different authors are never merged with each other.
//! [`crate::entry_view`] decides whose claims a reader sees.

use crate::ids::{AuthorId, EntryId, RetractionId};
use crate::lattice::Lattice;
use crate::lww_set::{ElementState, LwwSet};
use crate::register::{MvRegister, Register};
use crate::retraction::RetractionSet;
use crate::time::WallTime;
use std::collections::{BTreeMap, BTreeSet};

/// Number of a set of plain texts. Nodes keep and forward numbers of later versions, but do not
/// show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextSet(pub u8);

impl TextSet {
    /// Tags. A `/` separates levels: `auth/jwt` is below `auth`.
    pub const TAGS: Self = Self(1);
    /// Anchors: the places in a checkout that the entry is about.
    pub const ANCHORS: Self = Self(2);
    /// Steps that check whether the entry still holds.
    pub const VERIFY_STEPS: Self = Self(3);
    /// Predicates that must hold for the entry to be valid.
    pub const DEPENDS_ON: Self = Self(4);
    /// Ids of the entry in other systems.
    pub const EXTERNAL_KEYS: Self = Self(5);
    /// On a workspace charter: public keys of the admins, as hex.
    pub const ADMINS: Self = Self(6);
    /// On a workspace charter: public keys of the members, as hex.
    pub const MEMBERS: Self = Self(7);
    /// On a workspace charter: nonces that prove the ownership of the workspace, as hex.
    pub const OWNER_NONCES: Self = Self(8);
    /// On a workspace charter: the checkouts of the workspace, each identified by its root commits
    /// and its remote.
    pub const CHECKOUTS: Self = Self(9);
    /// On a workspace charter: one admin grant per admin, as the admin's key and the owner's
    /// signature. An admin puts its grant into its tombstones.
    pub const GRANTS: Self = Self(10);
    /// The repositories in which anchors and `depends_on` were written. Each element names some
    /// predicates by digest and one repository by roots and remote. It is missing from
    /// [`Self::KNOWN`]: readers see it beside each predicate, never as a set of its own.
    pub const ANCHOR_REPOSITORIES: Self = Self(11);
    /// On a workspace charter: the names of members, each as key and name.
    pub const NAMES: Self = Self(12);
    /// On page 0 of a removal: the removed key, as hex, while the author states its removal.
    pub const REMOVED: Self = Self(13);
    /// On a page of a removal: digests of the removed key's records that still count, several to an
    /// element, as hex. Missing from [`Self::KNOWN`]: readers need no list of digests.
    pub const CUT: Self = Self(14);

    /// The sets that readers see, with their names.
    pub const KNOWN: [(Self, &'static str); 12] = [
        (Self::TAGS, "tags"),
        (Self::ANCHORS, "anchors"),
        (Self::VERIFY_STEPS, "verify_steps"),
        (Self::DEPENDS_ON, "depends_on"),
        (Self::EXTERNAL_KEYS, "external_keys"),
        (Self::ADMINS, "admins"),
        (Self::MEMBERS, "members"),
        (Self::OWNER_NONCES, "owner_nonces"),
        (Self::CHECKOUTS, "checkouts"),
        (Self::GRANTS, "grants"),
        (Self::NAMES, "names"),
        (Self::REMOVED, "removed"),
    ];

    /// The set's name, if readers see it.
    pub fn name(self) -> Option<&'static str> {
        Self::KNOWN.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }
}

/// Evidence for an entry. A citation cannot be withdrawn; only a retraction of all claims removes
/// it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// `commit`, `pr`, `doc`, `test`, `transcript`, `file`, `url` or `run`; `word` for the writer's own
    /// word, which only says where the entry comes from.
    pub evidence_type: String,
    /// Reference to the evidence, such as a commit hash, a path or a URL.
    pub evidence_ref: String,
    /// Name of the agent, person or program that cites the evidence.
    pub cited_by: String,
    /// Time of the citation, by the clock of the author.
    pub cited_at: WallTime,
    /// True if the citation only records where the entry was written. It counts less than evidence.
    pub is_context: bool,
}

/// Number of a relation between two entries. Nodes keep and forward numbers of later versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation(pub u8);

impl Relation {
    /// The entry was made from the target by promoting or moving it.
    pub const DERIVED_FROM: Self = Self(1);
    /// The entry replaces the target.
    pub const SUPERSEDES: Self = Self(2);
    /// The entry has the same meaning as the target: a duplicate.
    pub const SAME_AS: Self = Self(3);
    /// Any other relation.
    pub const RELATED: Self = Self(4);
    /// The entry describes a part of what the target describes.
    pub const PART_OF: Self = Self(5);
    /// The entry describes something that uses what the target describes.
    pub const USES: Self = Self(6);
    /// The entry describes something that needs what the target describes.
    pub const DEPENDS_ON: Self = Self(7);
    /// The entry describes the cause of what the target describes.
    pub const CAUSES: Self = Self(8);
    /// The entry is evidence for the target.
    pub const SUPPORTS: Self = Self(9);
    /// The entry says the opposite of the target.
    pub const CONTRADICTS: Self = Self(10);

    /// All known relations with their names, ordered by number.
    pub const KNOWN: [(Self, &str); 10] = [
        (Self::DERIVED_FROM, "derived_from"),
        (Self::SUPERSEDES, "supersedes"),
        (Self::SAME_AS, "same_as"),
        (Self::RELATED, "related"),
        (Self::PART_OF, "part_of"),
        (Self::USES, "uses"),
        (Self::DEPENDS_ON, "depends_on"),
        (Self::CAUSES, "causes"),
        (Self::SUPPORTS, "supports"),
        (Self::CONTRADICTS, "contradicts"),
    ];

    /// Relations that say what entries describe and change no judgement, so that any edit may state
    /// them.
    pub const DESCRIPTIVE: [Self; 7] = [
        Self::RELATED,
        Self::PART_OF,
        Self::USES,
        Self::DEPENDS_ON,
        Self::CAUSES,
        Self::SUPPORTS,
        Self::CONTRADICTS,
    ];

    /// The relation's name; `None` for relations of later versions.
    pub fn name(self) -> Option<&'static str> {
        Self::KNOWN.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }

    /// The relation with this name; `None` for names of later versions.
    pub fn parse(name: &str) -> Option<Self> {
        Self::KNOWN.iter().find(|(_, known)| *known == name).map(|(relation, _)| *relation)
    }
}

/// A directed edge from this entry to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// How this entry relates to the target.
    pub relation: Relation,
    /// The target entry.
    pub to: EntryId,
}

/// All claims of one author on one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Claims {
    /// One multi-value register per field of text.
    pub registers: BTreeMap<Register, MvRegister>,
    /// One set per kind of plain text, such as tags.
    pub texts: BTreeMap<TextSet, LwwSet<String>>,
    /// Evidence that the author cites for the entry.
    pub citations: LwwSet<Citation>,
    /// Links from this entry to other entries.
    pub links: LwwSet<Link>,
    /// The author's latest archive or unarchive operation: `Present` means archived.
    pub archival: Option<ElementState>,
}

impl Lattice for Claims {
    fn join(&mut self, other: Self) {
        self.registers.join(other.registers);
        self.texts.join(other.texts);
        self.citations.join(other.citations);
        self.links.join(other.links);
        self.archival.join(other.archival);
    }
}

impl Claims {
    /// The `after` list of each register value and each set operation.
    fn histories(&self) -> impl Iterator<Item = &BTreeSet<RetractionId>> {
        let values =
            self.registers.values().flat_map(MvRegister::iter).map(|(_, value)| &value.after);
        let texts = self.texts.values().flat_map(LwwSet::iter).map(|(_, word)| &word.after);
        let citations = self.citations.iter().map(|(_, word)| &word.after);
        let links = self.links.iter().map(|(_, word)| &word.after);
        let archival = self.archival.iter().map(|word| &word.after);
        values.chain(texts).chain(citations).chain(links).chain(archival)
    }

    /// True if `marks` suppress any claim here. Every node erases such a payload as a whole; the
    /// author signs the remaining claims again.
    pub fn has_suppressed(&self, marks: &RetractionSet) -> bool {
        !marks.is_empty() && self.histories().any(|after| marks.suppress(after))
    }

    /// Removes the claims that `marks` suppress.
    #[must_use]
    pub fn without_suppressed(mut self, marks: &RetractionSet) -> Self {
        for register in self.registers.values_mut() {
            register.retain(|value| !marks.suppress(&value.after));
        }
        for set in self.texts.values_mut() {
            set.retain(|word| !marks.suppress(&word.after));
        }
        self.citations.retain(|word| !marks.suppress(&word.after));
        self.links.retain(|word| !marks.suppress(&word.after));
        self.archival = self.archival.filter(|word| !marks.suppress(&word.after));
        self.without_empty()
    }

    /// Removes the register values that a later value of the same author replaces. The author does
    /// this before it signs again; the remaining values stay byte for byte the same.
    #[must_use]
    pub fn without_replaced(mut self) -> Self {
        for register in self.registers.values_mut() {
            *register = std::mem::take(register).without_replaced();
        }
        self.without_empty()
    }

    fn without_empty(mut self) -> Self {
        self.registers.retain(|_, register| !register.is_empty());
        self.texts.retain(|_, set| !set.is_empty());
        self
    }

    /// True if there is no claim at all.
    pub fn is_empty(&self) -> bool {
        self.histories().next().is_none()
    }

    /// All retractions that the claims here name in `after`.
    pub fn marks(&self) -> RetractionSet {
        let mut marks = RetractionSet::default();
        for mark in self.histories().flatten() {
            marks.insert(*mark);
        }
        marks
    }

    /// True if `author` wrote every register value. A value repeats the author of its record.
    pub fn is_all_by(&self, author: AuthorId) -> bool {
        self.registers.values().flat_map(MvRegister::iter).all(|(_, value)| value.author == author)
    }
}
