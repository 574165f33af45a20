//! The records that are held of one entry, and what happens when another arrives.
//!
//! This is the merge that every record takes, local or foreign. Records of one author on one entry
//! form a [`Holding`]; claims and tallies take each other's place by [`crate::version`]; retractions never
//! replace each other, so that nothing an author retracted is ever un-retracted by a later lie of
//! the same author; a tombstone stands alone for the whole entry.

use crate::entry::Entry;
use crate::equivocation::Proof;
use crate::header::Facet;
use crate::ids::{AuthorId, Digest};
use crate::lattice::Lattice;
use crate::limits::LIVE_SLOTS_MAX;
use crate::record::{Absence, Record};
use crate::version::Version;
use std::collections::BTreeMap;

/// One author's live records on one entry, tombstones apart.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Holding {
    records: BTreeMap<Digest, Record>,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Held already, or covered by what is.
    Known,
    /// Held from now on, with these changes to the rest.
    Merged(Changes),
    /// It came without its payload and nothing held explains why. Its retraction comes first.
    Unexplained,
    /// Its author has too many live records here. Only a liar has: an honest author's next record
    /// covers the ones before.
    OverQuota,
}

/// What a merged record changes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Changes {
    /// Records that are covered from now on: dropped. The merged one may be among them.
    pub covered: Vec<Digest>,
    /// Records whose payload a retraction takes away, perhaps the merged one itself: the header
    /// stays.
    pub erased: Vec<Digest>,
}

/// The outcome of a merge and, whatever it was, the proof of equivocation it brought to light.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// What became of the record.
    pub outcome: Outcome,
    /// Two signatures of the author in one place.
    pub proof: Option<Proof>,
}

impl Lattice for Holding {
    fn join(&mut self, other: Self) {
        // Retractions first, so that headers without payload find what explains them.
        let (retractions, rest): (Vec<_>, Vec<_>) = other
            .records
            .into_values()
            .partition(|record| record.header().facet == Facet::Retraction);
        for record in retractions.into_iter().chain(rest) {
            self.merge(record);
        }
    }
}

impl Holding {
    /// Puts together what a store held: nothing is checked again.
    pub fn from_held(records: impl Iterator<Item = Record>) -> Self {
        Self { records: records.map(|record| (record.digest(), record)).collect() }
    }

    /// The live records, by digest.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> + Clone {
        self.records.values()
    }

    /// One live record.
    pub fn get(&self, digest: Digest) -> Option<&Record> {
        self.records.get(&digest)
    }

    /// The live records of one facet.
    pub fn facet(&self, facet: Facet) -> impl Iterator<Item = &Record> + Clone {
        self.records.values().filter(move |record| record.header().facet == facet)
    }

    /// What these records say.
    pub fn to_entry(&self) -> Entry {
        Entry::assemble(self.records())
    }

    /// Takes in a record of this author on this entry.
    pub fn merge(&mut self, record: Record) -> Merge {
        let proof =
            self.records.values().find_map(|held| Proof::find(held.signed(), record.signed()));
        Merge { outcome: self.place(record), proof }
    }

    fn place(&mut self, record: Record) -> Outcome {
        let (digest, facet) = (record.digest(), record.header().facet);
        if let Some(held) = self.records.get(&digest) {
            let is_wanted = held.absence() == Some(Absence::Stripped);
            if !is_wanted || record.payload().is_none() {
                return Outcome::Known;
            }
        } else if record.payload().is_none() && self.facet(Facet::Retraction).next().is_none() {
            return Outcome::Unexplained;
        }
        let others = || self.facet(facet).filter(|held| held.digest() != digest);
        let mut changes = Changes::default();
        if facet != Facet::Retraction {
            let version = record.version();
            if others().any(|held| covers(held, &held.version(), &record, &version)) {
                return Outcome::Known;
            }
            let covered = others().filter(|held| covers(&record, &version, held, &held.version()));
            changes.covered = covered.map(Record::digest).collect();
        }
        if others().count() - changes.covered.len() >= LIVE_SLOTS_MAX {
            return Outcome::OverQuota;
        }
        self.records.retain(|held, _| !changes.covered.contains(held));
        self.records.insert(digest, record);
        if matches!(facet, Facet::Claims | Facet::Retraction) {
            changes.erased = self.erase();
            changes.covered.extend(self.drop_covered());
        }
        Outcome::Merged(changes)
    }

    /// What was kept for its payload alone goes with it: a header that came stripped covers it now.
    /// Perhaps the record that was just merged itself.
    fn drop_covered(&mut self) -> Vec<Digest> {
        let claims: Vec<&Record> = self.facet(Facet::Claims).collect();
        let is_covered = |old: &&&Record| {
            let others = claims.iter().filter(|new| new.digest() != old.digest());
            old.payload().is_none()
                && others.into_iter().any(|new| covers(new, &new.version(), old, &old.version()))
        };
        let covered: Vec<Digest> =
            claims.iter().filter(is_covered).map(|record| record.digest()).collect();
        self.records.retain(|held, _| !covered.contains(held));
        covered
    }

    /// Erases every payload that the retractions held take away.
    fn erase(&mut self) -> Vec<Digest> {
        let retracted = Entry::assemble(self.facet(Facet::Retraction));
        let doomed = self.records.values().filter(|record| retracted.erases(record));
        let doomed: Vec<Digest> = doomed.map(Record::digest).collect();
        for digest in &doomed {
            if let Some(record) = self.records.remove(digest) {
                self.records.insert(*digest, record.erased());
            }
        }
        doomed
    }
}

/// Whether holding `new` makes holding `old` needless. What came without its payload does not put
/// a payload out of its place: whoever left it out could hide a text that way.
fn covers(new: &Record, new_version: &Version, old: &Record, old_version: &Version) -> bool {
    let hides = new.absence() == Some(Absence::Stripped) && old.payload().is_some();
    new_version.covers(old_version) && !hides
}

/// All records held of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryRecords {
    /// What each author said.
    Live(BTreeMap<AuthorId, Holding>),
    /// Forgotten: the tombstone with the least digest and nothing else.
    Forgotten(Box<Record>),
}

impl Default for EntryRecords {
    fn default() -> Self {
        Self::Live(BTreeMap::new())
    }
}

impl Lattice for EntryRecords {
    fn join(&mut self, other: Self) {
        match other {
            Self::Forgotten(tombstone) => self.merge(*tombstone),
            Self::Live(theirs) => {
                if let Self::Live(ours) = self {
                    ours.join(theirs);
                }
            }
        }
    }
}

impl EntryRecords {
    /// Takes in a record. Whether a tombstone's author is entitled was checked before.
    pub fn merge(&mut self, record: Record) {
        let is_tombstone = record.header().facet == Facet::Tombstone;
        match self {
            Self::Live(_) if is_tombstone => *self = Self::Forgotten(Box::new(record)),
            Self::Live(authors) => {
                authors.entry(record.author()).or_default().merge(record);
            }
            Self::Forgotten(held) => {
                if is_tombstone && record.digest() < held.digest() {
                    **held = record;
                }
            }
        }
    }

    /// What these records say.
    pub fn to_entry(&self) -> Entry {
        match self {
            Self::Forgotten(tombstone) => Entry::forgotten(tombstone.digest()),
            Self::Live(authors) => {
                let mut entry = Entry::default();
                for holding in authors.values() {
                    entry.join(holding.to_entry());
                }
                entry
            }
        }
    }
}

#[cfg(test)]
mod tests;
