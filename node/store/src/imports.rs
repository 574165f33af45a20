//! The words of the files that entries were imported from, and the ids that the files gave them.
//!
//! Local: no peer receives them. A file may state anything, so its statements are displayed and
//! exported as its words, and never become records.

use super::batch::{Batch, overwrite};
use super::error::Error;
use super::row_types::{decode, encode};
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{IMPORT_IDS, IMPORTS, key, part, span};
use klnode_crdt::ids::EntryId;
use redb::ReadableTable;
use serde::{Deserialize, Serialize};

/// Most bytes of words that are stored for one entry.
pub const IMPORT_WORDS_BYTES_MAX: usize = 64 * 1024;

/// The words of the file that an entry was imported from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRow {
    /// The id that the file gave the entry.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Format, path, dates, provenance, status, citations, links and unknown fields, as JSON.
    #[serde(rename = "w")]
    pub words: String,
    /// The place of the entry in a file of this machine, by which a changed file finds its entry.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Digests of the fields in the file, as JSON; `None` if an earlier version imported the entry.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Links that imports made of links in the file, each as RELATION:ID.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

impl ImportRow {
    /// The first parts of the keys of the index. Ids and places have any length, and keys of the
    /// store a fixed one.
    fn hashes(&self) -> impl Iterator<Item = [u8; 16]> {
        let id = self.id.as_deref().map(id_hash);
        id.into_iter().chain(self.place.as_deref().map(place_hash))
    }
}

fn id_hash(id: &str) -> [u8; 16] {
    part(&blake3::derive_key("klnode v1 imported id", id.as_bytes()), 0)
}

fn place_hash(place: &str) -> [u8; 16] {
    part(&blake3::derive_key("klnode v1 imported place", place.as_bytes()), 0)
}

impl Snapshot {
    /// The words of the file that an entry was imported from.
    pub fn import(&self, entry: EntryId) -> Result<Option<ImportRow>, Error> {
        shared_reads::row("imports", &self.transaction.open_table(IMPORTS)?, entry.as_bytes())
    }

    /// The entries that this node imported under an id, at most `limit`.
    pub fn imported_as(&self, id: &str, limit: usize) -> Result<Vec<EntryId>, Error> {
        self.indexed(&id_hash(id), limit)
    }

    /// The entries that this node imported from a place in a file, at most `limit`.
    pub fn imported_from(&self, place: &str, limit: usize) -> Result<Vec<EntryId>, Error> {
        self.indexed(&place_hash(place), limit)
    }

    fn indexed(&self, hash: &[u8; 16], limit: usize) -> Result<Vec<EntryId>, Error> {
        let table = self.transaction.open_table(IMPORT_IDS)?;
        let (first, last) = span::<32>(hash);
        let rows = table.range::<&[u8; 32]>(&first..=&last)?.take(limit);
        rows.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 16)))).collect()
    }

    /// All entries that this node imported from files of other tools. A damaged row is left out.
    pub fn imports(
        &self,
    ) -> Result<impl Iterator<Item = Result<(EntryId, ImportRow), Error>>, Error> {
        let rows = self.transaction.open_table(IMPORTS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.filter_map(|row| {
            let read = row.map_err(Error::from).and_then(|(entry, row)| {
                let row = Error::unless_damaged(decode::<ImportRow>("imports", row.value()))?;
                Ok(row.map(|row| (EntryId::from_bytes(*entry.value()), row)))
            });
            read.transpose()
        }))
    }
}

impl Batch {
    /// The words of the file that an entry was imported from.
    pub fn import(&self, entry: EntryId) -> Result<Option<ImportRow>, Error> {
        shared_reads::row("imports", &self.transaction.open_table(IMPORTS)?, entry.as_bytes())
    }

    /// Stores the words of a file.
    pub fn put_import(&self, entry: EntryId, row: &ImportRow) -> Result<(), Error> {
        self.forget_import(entry)?;
        let mut table = self.transaction.open_table(IMPORTS)?;
        table.insert(entry.as_bytes(), encode(row).as_slice())?;
        let mut ids = self.transaction.open_table(IMPORT_IDS)?;
        for hash in row.hashes() {
            ids.insert(&key::<32>(&[&hash, entry.as_bytes()]), 0)?;
        }
        Ok(())
    }

    /// Erases the words of the file of a forgotten or retracted entry.
    pub fn forget_import(&self, entry: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(IMPORTS)?;
        let row = match table.get(entry.as_bytes())? {
            None => return Ok(()),
            Some(row) => Error::unless_damaged(decode::<ImportRow>("imports", row.value()))?,
        };
        overwrite(&mut table, entry.as_bytes())?;
        table.remove(entry.as_bytes())?;
        let mut ids = self.transaction.open_table(IMPORT_IDS)?;
        match row {
            Some(row) => {
                for hash in row.hashes() {
                    ids.remove(&key::<32>(&[&hash, entry.as_bytes()]))?;
                }
            }
            // Its keys are unknown if the row is damaged.
            None => ids.retain(|at, _| EntryId::from_bytes(part(at, 16)) != entry)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    #[test]
    fn an_imported_id_leads_to_its_entries_until_they_are_forgotten() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let entries = [1, 2].map(|byte| EntryId::from_bytes([byte; 16]));
        let row = ImportRow {
            id: Some("les-1".into()),
            words: "{}".into(),
            place: Some("root:1 a.md#".into()),
            base: None,
            links: Vec::new(),
        };
        for entry in entries {
            batch.put_import(entry, &row).unwrap();
        }
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.import(entries[0]).unwrap(), Some(row.clone()));
        assert_eq!(snapshot.imported_as("les-1", 5).unwrap(), entries);
        assert_eq!(snapshot.imported_from("root:1 a.md#", 5).unwrap(), entries);
        assert_eq!(snapshot.imported_as("les-2", 5).unwrap(), []);
        assert_eq!(snapshot.imports().unwrap().count(), 2);
        let moved = ImportRow { place: Some("root:1 b.md#".into()), ..row };
        let batch = store.batch(Durability::Durable).unwrap();
        batch.forget_import(entries[0]).unwrap();
        batch.put_import(entries[1], &moved).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.imported_as("les-1", 5).unwrap(), entries[1..]);
        assert_eq!(snapshot.imported_from("root:1 a.md#", 5).unwrap(), []);
        assert_eq!(snapshot.imported_from("root:1 b.md#", 5).unwrap(), entries[1..]);
        assert_eq!(snapshot.import(entries[0]).unwrap(), None);
    }
}
