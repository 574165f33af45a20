//! The entry: the join of all live records about one piece of knowledge.
//!
//! [`Entry`] is a struct of lattices, separated by author. It selects nothing and hides nothing:
//! [`crate::entry_view`] turns it into the view of one reader at one moment.

use crate::claims::Claims;
use crate::entry_origin::Origin;
use crate::entry_type::{EntryType, code_digits};
use crate::header::Facet;
use crate::ids::{AuthorId, EntryId};
use crate::lattice::Lattice;
use crate::payload::Payload;
use crate::record::Record;
use crate::register::Register;
use crate::retraction::RetractionSet;
use crate::tally::Tally;
use crate::tombstone::TombstoneRank;
use std::collections::BTreeMap;

/// The joined state of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// Creator, workspace and memory; `None` until a record that carries the origin arrives.
    pub origin: Option<Origin>,
    /// The statements of each author: texts, tags, evidence, links, archival. The reader's
    /// [`Entitlement`](crate::entry_view::Entitlement) decides which of them are shown.
    pub claims: BTreeMap<AuthorId, Claims>,
    /// The counters of each author.
    pub tallies: BTreeMap<AuthorId, Tally>,
    /// The ids of each author's retractions, which suppress the author's earlier claims.
    pub marks: BTreeMap<AuthorId, RetractionSet>,
    /// The tombstone; the one with the least rank wins. If it is set, all other fields are empty.
    pub tombstone: Option<TombstoneRank>,
}

impl Lattice for Entry {
    fn join(&mut self, other: Self) {
        let tombstone = self.tombstone.into_iter().chain(other.tombstone).min();
        if let Some(rank) = tombstone {
            *self = Self::forgotten(rank);
            return;
        }
        // Both hash to the same entry id, so they differ only if the hash collides.
        self.origin = self.origin.take().max(other.origin);
        self.claims.join(other.claims);
        self.tallies.join(other.tallies);
        self.marks.join(other.marks);
    }
}

impl Entry {
    /// The citation code of the entry, with the letter of any claimed type; only the digits if no
    /// known type is claimed. It ignores which authors the reader may see, since the letter is only
    /// a hint.
    pub fn code(&self, entry: EntryId) -> String {
        let types = self.claims.values().filter_map(|said| said.registers.get(&Register::TYPE));
        let mut texts = types.flat_map(|values| values.iter().map(|(_, value)| &value.text));
        let kind = texts.find_map(|text| EntryType::parse(text));
        kind.map_or_else(|| code_digits(entry), |kind| kind.code(entry))
    }

    /// A deleted entry: only its tombstone.
    pub fn forgotten(tombstone: TombstoneRank) -> Self {
        Self { tombstone: Some(tombstone), ..Self::default() }
    }

    /// Joins these records into an entry. A claims payload with any suppressed claim counts as
    /// erased even if its bytes are still present, so a node that has erased it and a node that has
    /// not compute the same entry.
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

    /// True if the held retractions suppress any claim of this record, so that its payload must be
    /// erased.
    pub fn erases(&self, record: &Record) -> bool {
        match record.payload() {
            Some(Payload::Claims { claims, .. }) => {
                self.marks.get(&record.author()).is_some_and(|marks| claims.has_suppressed(marks))
            }
            _ => false,
        }
    }
}

impl Record {
    /// The content of this record alone, as an entry.
    pub fn to_entry(&self) -> Entry {
        let mut entry = Entry::default();
        let author = self.author();
        match self.payload() {
            None => {}
            Some(Payload::Claims { origin, claims }) => {
                entry.origin = origin.clone();
                entry.claims.insert(author, claims.clone());
            }
            Some(Payload::Tally(tally)) => {
                entry.tallies.insert(author, tally.clone());
            }
            Some(Payload::Retraction { origin, mark }) => {
                entry.origin = origin.clone();
                entry.marks.entry(author).or_default().insert(*mark);
            }
            // The text of a document is no part of the joined entry.
            Some(Payload::Edit(_)) => {}
            Some(Payload::Tombstone(_)) => entry = Entry::forgotten(self.tombstone_rank()),
        }
        entry
    }
}
