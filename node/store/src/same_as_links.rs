//! Index of this person's `same_as` links between duplicates, readable from either end.
//!
//! The index repeats links that are in this person's records. The engine updates it in the commit
//! that stores the records, because a link belongs to one entry but is looked up from the other
//! too. Links of other authors are never included.

use super::batch::Batch;
use super::error::Error;
use super::snapshot::Snapshot;
use super::tables::{SAME, key, part, span};
use klnode_crdt::ids::EntryId;
use redb::ReadableTable;
use std::collections::BTreeSet;

/// Most entries of one group of duplicates that are read.
pub const GROUP_ENTRIES_MAX: usize = 64;

/// The link belongs to the first entry of the key.
const ON_FIRST: u8 = 1;
/// The link belongs to the second entry of the key.
const ON_SECOND: u8 = 2;

fn neighbours(
    table: &impl ReadableTable<&'static [u8; 32], u8>,
    entry: EntryId,
) -> Result<Vec<EntryId>, Error> {
    let (first, last) = span::<32>(entry.as_bytes());
    let rows = table.range::<&[u8; 32]>(&first..=&last)?.take(GROUP_ENTRIES_MAX);
    rows.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 16)))).collect()
}

/// All entries connected to an entry by links, including itself, by id.
fn group(
    table: &impl ReadableTable<&'static [u8; 32], u8>,
    entry: EntryId,
) -> Result<BTreeSet<EntryId>, Error> {
    let (mut found, mut next) = (BTreeSet::from([entry]), vec![entry]);
    while let Some(one) = next.pop() {
        for other in neighbours(table, one)? {
            if found.len() < GROUP_ENTRIES_MAX && found.insert(other) {
                next.push(other);
            }
        }
    }
    Ok(found)
}

impl Snapshot {
    /// All duplicates of an entry by this person's links, including itself, by id.
    pub fn group(&self, entry: EntryId) -> Result<BTreeSet<EntryId>, Error> {
        group(self.same()?, entry)
    }
}

impl Batch {
    pub fn group(&self, entry: EntryId) -> Result<BTreeSet<EntryId>, Error> {
        group(&self.transaction.open_table(SAME)?, entry)
    }

    /// Every entry that a link of this person touches, by id.
    pub fn same_entries(&self) -> Result<BTreeSet<EntryId>, Error> {
        let table = self.transaction.open_table(SAME)?;
        table.iter()?.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 0)))).collect()
    }

    /// Whether a link of this person touches an entry.
    pub fn has_same(&self, entry: EntryId) -> Result<bool, Error> {
        Ok(!neighbours(&self.transaction.open_table(SAME)?, entry)?.is_empty())
    }

    /// Replaces the links that belong to an entry.
    pub fn set_same(&self, entry: EntryId, to: &BTreeSet<EntryId>) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SAME)?;
        let (first, last) = span::<32>(entry.as_bytes());
        let mut others = to.clone();
        for row in table.range::<&[u8; 32]>(&first..=&last)? {
            others.insert(EntryId::from_bytes(part(row?.0.value(), 16)));
        }
        for other in others.into_iter().filter(|other| *other != entry) {
            let here = key::<32>(&[entry.as_bytes(), other.as_bytes()]);
            let there = key::<32>(&[other.as_bytes(), entry.as_bytes()]);
            let held = table.get(&here)?.map_or(0, |row| row.value());
            let is_linked = to.contains(&other);
            let sides = (held & ON_SECOND) | if is_linked { ON_FIRST } else { 0 };
            if sides == 0 {
                table.remove(&here)?;
                table.remove(&there)?;
                continue;
            }
            let swapped = ((sides & ON_FIRST) << 1) | ((sides & ON_SECOND) >> 1);
            table.insert(&here, sides)?;
            table.insert(&there, swapped)?;
        }
        Ok(())
    }

    /// Removes all links of a forgotten entry.
    pub(super) fn forget_same(&self, entry: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SAME)?;
        let (first, last) = span::<32>(entry.as_bytes());
        let mut others = Vec::new();
        for row in table.range::<&[u8; 32]>(&first..=&last)? {
            others.push(part::<16>(row?.0.value(), 16));
        }
        for other in others {
            table.remove(&key::<32>(&[entry.as_bytes(), &other]))?;
            table.remove(&key::<32>(&[&other, entry.as_bytes()]))?;
        }
        Ok(())
    }
}
