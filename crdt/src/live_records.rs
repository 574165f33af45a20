//! The merge: the live records of one entry, and the effect of a new record on them.
//!
//! Every record goes through this merge, whether this node wrote it or a peer sent it. A
//! [`LiveRecords`] has the live records of one author on one entry:
//!
//! - Claims and tallies replace each other in the order of [`crate::version_vector`].
//! - Edits never replace each other ([`crate::document_edit`]). Of too many edits with one number those with
//!   the least digests stay.
//! - Retractions never replace each other. An author therefore cannot undo a retraction by a later,
//!   dishonest retraction record.
//! - A tombstone replaces all records of the entry ([`EntryRecords::Forgotten`]).

use crate::entry::Entry;
use crate::equivocation::EquivocationProof;
use crate::header::Facet;
use crate::ids::{AuthorId, Digest};
use crate::lattice::Lattice;
use crate::limits::{EDIT_COPIES_MAX, LIVE_SLOTS_MAX};
use crate::record::{Absence, Record};
use crate::version_vector::VersionVector;
use std::collections::BTreeMap;

/// The live records of one author on one entry, without tombstones.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LiveRecords {
    records: BTreeMap<Digest, Record>,
}

/// The effect of merging one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// No change: the record is held already, or a held record covers it.
    Known,
    /// The record was added. Other records may have changed.
    Merged(MergeEffects),
    /// The record has no payload, and no retraction of its author is held that would explain it.
    /// The sender has to send the retraction first.
    Unexplained,
    /// The author has too many live records. An honest author never reaches the quota, because each
    /// of its records covers the previous ones.
    OverQuota,
}

/// Changes to other records, and possibly to the merged record itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MergeEffects {
    /// Records that another record covers now. They were dropped; the merged record may be one of
    /// them.
    pub covered: Vec<Digest>,
    /// Records whose payload a retraction erased. The header stays; the merged record may be one of
    /// them.
    pub erased: Vec<Digest>,
}

/// The result of merging one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The effect on the held records.
    pub outcome: MergeOutcome,
    /// A proof of equivocation, if the author signed two different records with the same slot and
    /// counter. Independent of the outcome.
    pub proof: Option<EquivocationProof>,
}

impl Lattice for LiveRecords {
    fn join(&mut self, other: Self) {
        // Retractions first: a claims header without payload needs a held retraction that explains
        // it.
        let (retractions, rest): (Vec<_>, Vec<_>) = other
            .records
            .into_values()
            .partition(|record| record.header().facet == Facet::Retraction);
        for record in retractions.into_iter().chain(rest) {
            self.merge(record);
        }
    }
}

impl LiveRecords {
    /// Rebuilds a holding from stored records, which are live already. Does not check them again.
    pub fn from_held(records: impl Iterator<Item = Record>) -> Self {
        Self { records: records.map(|record| (record.digest(), record)).collect() }
    }

    /// The live records, ordered by digest.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> + Clone {
        self.records.values()
    }

    /// The live record with this digest.
    pub fn get(&self, digest: Digest) -> Option<&Record> {
        self.records.get(&digest)
    }

    /// The live records of one facet.
    pub fn facet(&self, facet: Facet) -> impl Iterator<Item = &Record> + Clone {
        self.records.values().filter(move |record| record.header().facet == facet)
    }

    /// The join of these records.
    pub fn to_entry(&self) -> Entry {
        Entry::assemble(self.records())
    }

    /// Merges a record of this author on this entry.
    pub fn merge(&mut self, record: Record) -> Merge {
        let proof = self
            .records
            .values()
            .find_map(|held| EquivocationProof::find(held.signed_header(), record.signed_header()));
        Merge { outcome: self.place(record), proof }
    }

    fn place(&mut self, record: Record) -> MergeOutcome {
        let (digest, facet) = (record.digest(), record.header().facet);
        if let Some(held) = self.records.get(&digest) {
            let is_wanted = held.absence() == Some(Absence::Stripped);
            if !is_wanted || record.payload().is_none() {
                return MergeOutcome::Known;
            }
        } else if record.payload().is_none() && self.facet(Facet::Retraction).next().is_none() {
            return MergeOutcome::Unexplained;
        }
        if facet == Facet::Edit {
            return self.place_edit(record);
        }
        let others = || self.facet(facet).filter(|held| held.digest() != digest);
        let mut changes = MergeEffects::default();
        if facet != Facet::Retraction {
            let version = record.version();
            if others().any(|held| covers(held, &held.version(), &record, &version)) {
                return MergeOutcome::Known;
            }
            let covered = others().filter(|held| covers(&record, &version, held, &held.version()));
            changes.covered = covered.map(Record::digest).collect();
        }
        if others().count() - changes.covered.len() >= LIVE_SLOTS_MAX {
            return MergeOutcome::OverQuota;
        }
        self.records.retain(|held, _| !changes.covered.contains(held));
        self.records.insert(digest, record);
        if matches!(facet, Facet::Claims | Facet::Retraction) {
            changes.erased = self.erase();
            changes.covered.extend(self.drop_covered());
        }
        MergeOutcome::Merged(changes)
    }

    /// Adds an edit. Beyond the limit of copies, the one with the greatest digest is dropped.
    fn place_edit(&mut self, record: Record) -> MergeOutcome {
        let number = record.header().counter;
        let same = self.facet(Facet::Edit).filter(|held| held.header().counter == number);
        let same: Vec<Digest> = same.map(Record::digest).collect();
        let mut changes = MergeEffects::default();
        // The digests ascend.
        if same.len() >= EDIT_COPIES_MAX {
            match same.last() {
                Some(greatest) if *greatest > record.digest() => changes.covered.push(*greatest),
                _ => return MergeOutcome::Known,
            }
        }
        self.records.retain(|held, _| !changes.covered.contains(held));
        self.records.insert(record.digest(), record);
        MergeOutcome::Merged(changes)
    }

    /// Drops records without payload that a held header covers. A record that arrived stripped
    /// covers another one only after the other has lost its payload. The record just merged may be
    /// dropped, too.
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

    /// Erases every payload that the held retractions suppress, and returns the digests of its
    /// records.
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

/// True if `new` makes `old` redundant. A stripped record covers no record that has a payload:
/// otherwise a relay could hide a text by removing the payload of a newer record.
fn covers(
    new: &Record,
    new_version: &VersionVector,
    old: &Record,
    old_version: &VersionVector,
) -> bool {
    let hides = new.absence() == Some(Absence::Stripped) && old.payload().is_some();
    new_version.covers(old_version) && !hides
}

/// All records of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryRecords {
    /// The live records of each author.
    Live(BTreeMap<AuthorId, LiveRecords>),
    /// The entry was deleted: only the tombstone with the least rank is left.
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
    /// Merges a record. The caller has checked the authority of a tombstone.
    pub fn merge(&mut self, record: Record) {
        let is_tombstone = record.header().facet == Facet::Tombstone;
        match self {
            Self::Live(_) if is_tombstone => *self = Self::Forgotten(Box::new(record)),
            Self::Live(authors) => {
                authors.entry(record.author()).or_default().merge(record);
            }
            Self::Forgotten(held) => {
                if is_tombstone && record.tombstone_rank() < held.tombstone_rank() {
                    **held = record;
                }
            }
        }
    }

    /// The join of these records.
    pub fn to_entry(&self) -> Entry {
        match self {
            Self::Forgotten(tombstone) => Entry::forgotten(tombstone.tombstone_rank()),
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
