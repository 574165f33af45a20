//! What one author claims about one entry: texts, sets, and whether it is archived.
//!
//! Claims of several authors are kept apart; [`crate::view`] decides whose are shown.

use crate::gset::{GSet, Word};
use crate::ids::{AuthorId, EntryId, MarkId};
use crate::lattice::Lattice;
use crate::lww::{Lww, Register};
use crate::retraction::Marks;
use crate::time::WallTime;
use std::collections::{BTreeMap, BTreeSet};

/// Which set of plain texts. Numbers of later versions are kept and passed on, not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextSet(pub u8);

impl TextSet {
    /// Tags, hierarchical with `/`.
    pub const TAGS: Self = Self(1);
    /// Places in a checkout that the entry speaks of.
    pub const ANCHORS: Self = Self(2);
    /// How to check that it still holds.
    pub const VERIFY_STEPS: Self = Self(3);
    /// Predicates that must hold for it to be valid.
    pub const DEPENDS_ON: Self = Self(4);
    /// What other systems call it.
    pub const EXTERNAL_KEYS: Self = Self(5);
    /// On a workspace's charter: who administers it, by key.
    pub const ADMINS: Self = Self(6);
    /// On a workspace's charter: who belongs to it, by key.
    pub const MEMBERS: Self = Self(7);
    /// On a workspace's charter: what proves its owner.
    pub const OWNER_NONCES: Self = Self(8);
    /// On a workspace's charter: checkouts that belong to it, each by roots and remote.
    pub const CHECKOUTS: Self = Self(9);
    /// On a workspace's charter: what each admin shows when it forgets, by key and signature.
    pub const GRANTS: Self = Self(10);
    /// On a workspace's charter: what members are called, each by key and name.
    pub const NAMES: Self = Self(11);

    /// The sets this version knows, with their names.
    pub const KNOWN: [(Self, &'static str); 11] = [
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
    ];

    /// The set's name, if this version knows it.
    pub fn name(self) -> Option<&'static str> {
        Self::KNOWN.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }
}

/// Evidence for an entry. Never withdrawn, only retracted with the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// `commit`, `pr`, `doc`, `test`, `transcript`, `file`, `url` or `run`; `word` for the writer's own
    /// word, which only says where the entry comes from.
    pub evidence_type: String,
    /// Where the evidence is.
    pub evidence_ref: String,
    /// Who cites it: an agent, a person, a program.
    pub cited_by: String,
    /// When.
    pub cited_at: WallTime,
    /// Whether it only says where the entry was written, which counts less than evidence.
    pub is_context: bool,
}

/// How one entry relates to another. Numbers of later versions are kept and passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation(pub u8);

impl Relation {
    /// Made from that entry by promoting or moving it.
    pub const DERIVED_FROM: Self = Self(1);
    /// Takes that entry's place.
    pub const SUPERSEDES: Self = Self(2);
    /// Says the same as that entry.
    pub const SAME_AS: Self = Self(3);
    /// Related in some other way.
    pub const RELATED: Self = Self(4);
}

/// An edge to another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// How it relates.
    pub relation: Relation,
    /// To which entry.
    pub to: EntryId,
}

/// One author's claims on one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Claims {
    /// Texts that replace each other.
    pub registers: BTreeMap<Register, Lww>,
    /// Sets of plain texts.
    pub texts: BTreeMap<TextSet, GSet<String>>,
    /// Evidence.
    pub citations: GSet<Citation>,
    /// Edges to other entries.
    pub links: GSet<Link>,
    /// Present while the author wants the entry archived.
    pub archival: Option<Word>,
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
    /// The `after` list of every single claim.
    fn histories(&self) -> impl Iterator<Item = &BTreeSet<MarkId>> {
        let values = self.registers.values().flat_map(Lww::iter).map(|(_, value)| &value.after);
        let texts = self.texts.values().flat_map(GSet::iter).map(|(_, word)| &word.after);
        let citations = self.citations.iter().map(|(_, word)| &word.after);
        let links = self.links.iter().map(|(_, word)| &word.after);
        let archival = self.archival.iter().map(|word| &word.after);
        values.chain(texts).chain(citations).chain(links).chain(archival)
    }

    /// Whether any claim here is taken back by the marks. A payload for which this holds is
    /// erased whole by every holder; its author signs the rest again.
    pub fn has_suppressed(&self, marks: &Marks) -> bool {
        !marks.is_empty() && self.histories().any(|after| marks.suppress(after))
    }

    /// The claims that the marks leave standing.
    #[must_use]
    pub fn without_suppressed(mut self, marks: &Marks) -> Self {
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

    /// What the author keeps when it signs again: every value that no other of its values
    /// replaces, verbatim.
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

    /// Whether nothing is claimed.
    pub fn is_empty(&self) -> bool {
        self.histories().next().is_none()
    }

    /// Every mark that some claim here comes after.
    pub fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        for mark in self.histories().flatten() {
            marks.insert(*mark);
        }
        marks
    }

    /// Whether every value is by `author`: values carry their author, records have one.
    pub fn is_all_by(&self, author: AuthorId) -> bool {
        self.registers.values().flat_map(Lww::iter).all(|(_, value)| value.author == author)
    }
}
