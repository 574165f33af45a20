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
}

/// The first part of the key of an id. Ids have any length, and keys of the store a fixed one.
fn id_hash(id: &str) -> [u8; 16] {
    let hash = blake3::derive_key("klnode v1 imported id", id.as_bytes());
    part(&hash, 0)
}

impl Snapshot {
    /// The words of the file that an entry was imported from.
    pub fn import(&self, entry: EntryId) -> Result<Option<ImportRow>, Error> {
        shared_reads::row("imports", &self.transaction.open_table(IMPORTS)?, entry.as_bytes())
    }

    /// The entries that this node imported under an id, at most `limit`.
    pub fn imported_as(&self, id: &str, limit: usize) -> Result<Vec<EntryId>, Error> {
        let table = self.transaction.open_table(IMPORT_IDS)?;
        let (first, last) = span::<32>(&id_hash(id));
        let rows = table.range::<&[u8; 32]>(&first..=&last)?.take(limit);
        rows.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 16)))).collect()
    }
}

impl Batch {
    /// The words of the file that an entry was imported from.
    pub fn import(&self, entry: EntryId) -> Result<Option<ImportRow>, Error> {
        shared_reads::row("imports", &self.transaction.open_table(IMPORTS)?, entry.as_bytes())
    }

    /// Stores the words of a file.
    pub fn put_import(&self, entry: EntryId, row: &ImportRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(IMPORTS)?;
        table.insert(entry.as_bytes(), encode(row).as_slice())?;
        if let Some(id) = &row.id {
            let mut ids = self.transaction.open_table(IMPORT_IDS)?;
            ids.insert(&key::<32>(&[&id_hash(id), entry.as_bytes()]), 0)?;
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
            Some(ImportRow { id: Some(id), .. }) => {
                ids.remove(&key::<32>(&[&id_hash(&id), entry.as_bytes()]))?;
            }
            Some(_) => {}
            // The id is unknown if the row is damaged.
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
        let row = ImportRow { id: Some("les-1".into()), words: "{}".into() };
        for entry in entries {
            batch.put_import(entry, &row).unwrap();
        }
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.import(entries[0]).unwrap(), Some(row));
        assert_eq!(snapshot.imported_as("les-1", 5).unwrap(), entries);
        assert_eq!(snapshot.imported_as("les-2", 5).unwrap(), []);
        let batch = store.batch(Durability::Durable).unwrap();
        batch.forget_import(entries[0]).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.imported_as("les-1", 5).unwrap(), entries[1..]);
        assert_eq!(snapshot.import(entries[0]).unwrap(), None);
    }
}
