//! Erases the usage data of forgotten entries.
//!
//! Much usage data is stored under other keys than the entry's, so whole tables have to be scanned.
//! The scan runs once for all entries that a transaction forgets: a peer that sends entries and
//! then as many tombstones must not make the writer scan the serving log for each.

use super::batch::{Batch, overwrite};
use super::error::Error;
use super::row_types::{self, ServedRow};
use super::tables::{LEDGER, PAIRS, USES, key, part, span};
use klnode_crdt::ids::EntryId;
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Batch {
    /// Removes the usage data stored under a forgotten entry's key, and queues the entry for the
    /// next [`Self::wipe_forgotten`].
    pub(super) fn forget_uses(&self, entry: EntryId) -> Result<(), Error> {
        self.transaction.open_table(USES)?.remove(entry.as_bytes())?;
        self.forget_import(entry)?;
        self.forget_same(entry)?;
        let mut pairs = self.transaction.open_table(PAIRS)?;
        let (first, last) = span::<32>(entry.as_bytes());
        let mut others = Vec::new();
        for row in pairs.range::<&[u8; 32]>(&first..=&last)? {
            others.push(part::<16>(row?.0.value(), 16));
        }
        for other in others {
            pairs.remove(&key::<32>(&[entry.as_bytes(), &other]))?;
            pairs.remove(&key::<32>(&[&other, entry.as_bytes()]))?;
        }
        self.forgotten.borrow_mut().insert(entry);
        Ok(())
    }

    /// Scans the tables with other keys, once for all entries forgotten since the last scan. A
    /// commit runs it; readers of usage data within the transaction call it first. Returns the
    /// number of scanned rows.
    pub fn wipe_forgotten(&self) -> Result<u64, Error> {
        let gone = self.forgotten.take();
        if gone.is_empty() {
            return Ok(0);
        }
        Ok(self.forget_parts(&gone)?
            + self.forget_primed(&gone)?
            + self.forget_findings(&gone)?
            + self.forget_maintenance(&gone)?
            + self.forget_succession(&gone)?
            + self.forget_served(&gone)?)
    }

    /// Removes forgotten entries from the serving log, with the text of the queries they answered.
    fn forget_served(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut ledger = self.transaction.open_table(LEDGER)?;
        let (mut quoting, mut looked) = (Vec::new(), 0);
        for row in ledger.iter()? {
            let (at, row) = row?;
            looked += 1;
            // An unreadable row may quote anything, so all of it is dropped.
            let row: Option<ServedRow> =
                Error::unless_damaged(row_types::decode("ledger", row.value()))?;
            let row = row.unwrap_or_default();
            if row == ServedRow::default() || row.entries.iter().any(|of| gone.contains(of)) {
                quoting.push((*at.value(), row));
            }
        }
        for (at, _) in &quoting {
            overwrite(&mut ledger, at)?;
        }
        for (at, mut row) in quoting {
            row.entries.retain(|served| !gone.contains(served));
            row.query.clear();
            ledger.insert(&at, row_types::encode(&row).as_slice())?;
        }
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_types::{Seq, ViewRow};
    use crate::served_sessions::Recipient;
    use crate::{Durability, Store};
    use klnode_crdt::entry_origin::{Memory, Origin};
    use klnode_crdt::ids::{Boot, Nonce, WorkspaceId};
    use klnode_crdt::live_records::LiveRecords;
    use klnode_crdt::record::Record;
    use klnode_crdt::record_builder::RecordBuilder;
    use klnode_crdt::signing_key::SecretKey;
    use klnode_crdt::time::{Hlc, WallTime};
    use klnode_crdt::tombstone::{Grounds, Tombstone};
    use klnode_home::CallerLabel;

    const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);

    /// A tombstone by the entry's creator.
    fn tombstone(number: u8) -> Record {
        let (key, stamp) = (SecretKey::from_bytes(&[7; 32]), Hlc::new(NOW, u16::from(number)));
        let (creator, nonce) = (key.author(), Nonce::from_bytes([number; 16]));
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        let origin = Origin::Created { creator, stamp, nonce, workspace, memory };
        let (entry, own) = (origin.id(), LiveRecords::default());
        let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
        writer.forget(Tombstone { origin, grounds: Grounds::Origin }, stamp).unwrap()
    }

    /// A store in which each of these entries was served in a session, with its own query.
    fn served(entries: &[EntryId]) -> Store {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session = CallerLabel::parse("session").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            let query = format!("question {number}");
            let row = ServedRow { query, entries: vec![*entry], ..ServedRow::default() };
            batch.append_served(NOW, &row).unwrap();
            batch.put_view_row(*entry, &ViewRow::new(NOW)).unwrap();
            batch.put_successor(entries[0], *entry).unwrap();
        }
        batch.mark_served(Recipient::session(&session), entries, NOW).unwrap();
        batch.commit().unwrap();
        store
    }

    #[test]
    fn usage_data_is_scanned_once_for_all_forgotten_entries() {
        let tombstones: Vec<Record> = (0..40).map(tombstone).collect();
        let entries: Vec<EntryId> = tombstones.iter().map(Record::entry).collect();
        let store = served(&entries);
        let batch = store.batch(Durability::Durable).unwrap();
        for tombstone in &tombstones[..30] {
            batch.put_tombstone(tombstone, &ViewRow::new(NOW)).unwrap();
        }
        // Forty rows of the serving log and forty of the session. The successors of the first entry
        // went with its tombstone.
        assert_eq!(batch.wipe_forgotten().unwrap(), 80);
        assert_eq!(batch.wipe_forgotten().unwrap(), 0, "there is nothing left to do");
        // A tombstone of an entry that was never stored causes no scan.
        batch.put_tombstone(&tombstone(99), &ViewRow::new(NOW)).unwrap();
        assert_eq!(batch.wipe_forgotten().unwrap(), 0);
        // Nor does a second tombstone.
        batch.put_tombstone(&tombstones[3], &ViewRow::new(NOW)).unwrap();
        assert_eq!(batch.wipe_forgotten().unwrap(), 0);
        batch.put_tombstone(&tombstones[30], &ViewRow::new(NOW)).unwrap();
        batch.commit().unwrap();
        let batch = store.batch(Durability::Durable).unwrap();
        assert_eq!(batch.head().unwrap(), Seq(33));
        let ledger = batch.transaction.open_table(LEDGER).unwrap();
        let rows = ledger.iter().unwrap().map(|row| {
            let (_, row) = row.unwrap();
            row_types::decode::<ServedRow>("ledger", row.value()).unwrap()
        });
        let rows: Vec<ServedRow> = rows.collect();
        assert_eq!(rows.len(), 40);
        for (number, row) in rows.iter().enumerate() {
            let is_left = number > 30;
            assert_eq!((row.query.is_empty(), row.entries.len()), (!is_left, is_left.into()));
        }
        let session = CallerLabel::parse("session").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(
                batch.is_primed(Recipient::session(&session), *entry).unwrap(),
                number > 30,
                "{number}"
            );
        }
    }
}
