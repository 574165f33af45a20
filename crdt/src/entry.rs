//! An entry: everything that everybody said about one piece of knowledge, as a struct of lattices.
//!
//! It is the join of what its live records say. Nothing is decided here; [`crate::view`] reads an
//! entry at a moment and for a reader.

use crate::claims::Claims;
use crate::header::Facet;
use crate::ids::{AuthorId, Digest, EntryId};
use crate::kind::{Kind, code_digits};
use crate::lattice::Lattice;
use crate::lww::Register;
use crate::origin::Origin;
use crate::payload::Payload;
use crate::record::Record;
use crate::retraction::Marks;
use crate::tally::Tally;
use std::collections::BTreeMap;

/// All that is held about one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// Who created it, where, as what; unknown until a record that carries it arrives.
    pub origin: Option<Origin>,
    /// What each author claims.
    pub claims: BTreeMap<AuthorId, Claims>,
    /// What each author has counted.
    pub tallies: BTreeMap<AuthorId, Tally>,
    /// What each author has taken back.
    pub marks: BTreeMap<AuthorId, Marks>,
    /// The tombstone with the least digest; nothing else is kept beside it.
    pub tombstone: Option<Digest>,
}

impl Lattice for Entry {
    fn join(&mut self, other: Self) {
        let tombstone = self.tombstone.into_iter().chain(other.tombstone).min();
        if let Some(digest) = tombstone {
            *self = Self::forgotten(digest);
            return;
        }
        // Both are preimages of one id: they can only differ by a hash collision.
        self.origin = self.origin.take().max(other.origin);
        self.claims.join(other.claims);
        self.tallies.join(other.tallies);
        self.marks.join(other.marks);
    }
}

impl Entry {
    /// What people call it: by a type that somebody claims for it, else by its digits alone. For where
    /// it does not matter whose word is shown, since the letter is only a hint.
    pub fn code(&self, entry: EntryId) -> String {
        let types = self.claims.values().filter_map(|said| said.registers.get(&Register::TYPE));
        let mut texts = types.flat_map(|values| values.iter().map(|(_, value)| &value.text));
        let kind = texts.find_map(|text| Kind::parse(text));
        kind.map_or_else(|| code_digits(entry), |kind| kind.code(entry))
    }

    /// An entry of which only the tombstone is left.
    pub fn forgotten(tombstone: Digest) -> Self {
        Self { tombstone: Some(tombstone), ..Self::default() }
    }

    /// The entry that these records describe. A claims payload of which any part is taken back
    /// counts as erased whole, whether its bytes are still here or not: so a holder that erased it
    /// and one that has not yet read the same.
    pub fn assemble<'a>(records: impl Iterator<Item = &'a Record> + Clone) -> Self {
        let mut entry = Self::default();
        for record in records.clone().filter(|record| record.header().facet != Facet::Claims) {
            entry.join(record.to_entry());
        }
        for record in records.filter(|record| record.header().facet == Facet::Claims) {
            if !entry.erases(record) {
                entry.join(record.to_entry());
            }
        }
        entry
    }

    /// Whether the retractions held say that this record's payload must go.
    pub fn erases(&self, record: &Record) -> bool {
        match record.payload() {
            Some(Payload::Claims { claims, .. }) => {
                self.marks.get(&record.author()).is_some_and(|marks| claims.has_suppressed(marks))
            }
            _ => false,
        }
    }
}
