//! Which entries this node holds to be the same: its own `same_as` edges, found from either end.
//!
//! A copy of what own records say, kept by the engine in the commit that brings them, because an
//! edge stands on one entry and is looked for from the other. Edges of other authors are never in it.

use super::batch::Batch;
use super::error::Error;
use super::snapshot::Snapshot;
use super::tables::{SAME, key, part, span};
use klnode_crdt::ids::EntryId;
use redb::ReadableTable;
use std::collections::BTreeSet;

/// Entries of one group. A larger one is read as far as this.
pub const GROUP_ENTRIES_MAX: usize = 64;

/// The edge stands on the first entry of the key.
const ON_FIRST: u8 = 1;
/// It stands on the second.
const ON_SECOND: u8 = 2;

fn near(
    table: &impl ReadableTable<&'static [u8; 32], u8>,
    entry: EntryId,
) -> Result<Vec<EntryId>, Error> {
    let (first, last) = span::<32>(entry.as_bytes());
    let rows = table.range::<&[u8; 32]>(&first..=&last)?.take(GROUP_ENTRIES_MAX);
    rows.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 16)))).collect()
}

/// Everything that hangs together with an entry, itself included, by id.
fn group(
    table: &impl ReadableTable<&'static [u8; 32], u8>,
    entry: EntryId,
) -> Result<BTreeSet<EntryId>, Error> {
    let (mut found, mut next) = (BTreeSet::from([entry]), vec![entry]);
    while let Some(one) = next.pop() {
        for other in near(table, one)? {
            if found.len() < GROUP_ENTRIES_MAX && found.insert(other) {
                next.push(other);
            }
        }
    }
    Ok(found)
}

impl Snapshot {
    /// All entries that own edges make the same as an entry, itself included, by id.
    pub fn group(&self, entry: EntryId) -> Result<BTreeSet<EntryId>, Error> {
        group(self.same()?, entry)
    }
}

impl Batch {
    pub(crate) fn group(&self, entry: EntryId) -> Result<BTreeSet<EntryId>, Error> {
        group(&self.transaction.open_table(SAME)?, entry)
    }

    /// Every entry that an own edge touches, by id.
    pub(crate) fn same_entries(&self) -> Result<BTreeSet<EntryId>, Error> {
        let table = self.transaction.open_table(SAME)?;
        table.iter()?.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 0)))).collect()
    }

    /// Whether any own edge touches an entry.
    pub(crate) fn has_same(&self, entry: EntryId) -> Result<bool, Error> {
        Ok(!near(&self.transaction.open_table(SAME)?, entry)?.is_empty())
    }

    /// Puts the edges that stand on an entry in the place of those that did.
    pub(crate) fn set_same(&self, entry: EntryId, to: &BTreeSet<EntryId>) -> Result<(), Error> {
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
            let is_drawn = to.contains(&other);
            let sides = (held & ON_SECOND) | if is_drawn { ON_FIRST } else { 0 };
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

    /// Nothing is the same as a forgotten entry.
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
