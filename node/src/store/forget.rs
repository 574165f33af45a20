//! What is left of use when entries are forgotten: nothing.
//!
//! Much of it stands under other keys than the entry's, so that whole tables are gone through to find
//! it. That is done once for all entries that a transaction forgets: a peer that sends entries and
//! then as many tombstones must not have the writer read the ledger once for each of them.

use super::batch::{Batch, blot};
use super::error::Error;
use super::rows::{self, ServedRow};
use super::tables::{LEDGER, PAIRS, USES, key, part, span};
use klnode_crdt::ids::EntryId;
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Batch {
    /// Nothing that was asked or answered about a forgotten entry is left, some of it from the next
    /// [`Self::wipe_forgotten`] on.
    pub(super) fn forget_uses(&self, entry: EntryId) -> Result<(), Error> {
        self.transaction.open_table(USES)?.remove(entry.as_bytes())?;
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

    /// Goes through what tells of use and is not found by an entry, once for all entries forgotten
    /// since the last time. A commit does it; whoever reads of use before that asks for it. Returns
    /// how many rows were looked at.
    pub(crate) fn wipe_forgotten(&self) -> Result<u64, Error> {
        let gone = self.forgotten.take();
        if gone.is_empty() {
            return Ok(0);
        }
        Ok(self.forget_parts(&gone)?
            + self.forget_primed(&gone)?
            + self.forget_findings(&gone)?
            + self.forget_upkeep(&gone)?
            + self.forget_succession(&gone)?
            + self.forget_served(&gone)?)
    }

    /// The ledger quotes no question that a forgotten entry answered.
    fn forget_served(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut ledger = self.transaction.open_table(LEDGER)?;
        let (mut quoting, mut looked) = (Vec::new(), 0);
        for row in ledger.iter()? {
            let (at, row) = row?;
            looked += 1;
            // What cannot be read may quote anything: nothing of it is kept.
            let row: Option<ServedRow> =
                Error::unless_damaged(rows::decode("ledger", row.value()))?;
            let row = row.unwrap_or_default();
            if row == ServedRow::default() || row.entries.iter().any(|of| gone.contains(of)) {
                quoting.push((*at.value(), row));
            }
        }
        for (at, _) in &quoting {
            blot(&mut ledger, at)?;
        }
        for (at, mut row) in quoting {
            row.entries.retain(|served| !gone.contains(served));
            row.query.clear();
            ledger.insert(&at, rows::encode(&row).as_slice())?;
        }
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::label::Label;
    use crate::store::rows::{Seq, ViewRow};
    use crate::store::sessions::Recipient;
    use crate::store::{Durability, Store};
    use klnode_crdt::holding::Holding;
    use klnode_crdt::ids::{Boot, Nonce, WorkspaceId};
    use klnode_crdt::key::SecretKey;
    use klnode_crdt::origin::{Memory, Origin};
    use klnode_crdt::record::Record;
    use klnode_crdt::time::{Hlc, WallTime};
    use klnode_crdt::tombstone::{Grounds, Tombstone};
    use klnode_crdt::writer::Writer;

    const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);

    /// A tombstone by the entry's creator.
    fn tombstone(number: u8) -> Record {
        let (key, stamp) = (SecretKey::from_bytes(&[7; 32]), Hlc::new(NOW, u16::from(number)));
        let (creator, nonce) = (key.author(), Nonce::from_bytes([number; 16]));
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        let origin = Origin::Created { creator, stamp, nonce, workspace, memory };
        let (entry, own) = (origin.id(), Holding::default());
        let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
        writer.forget(Tombstone { origin, grounds: Grounds::Origin }, stamp).unwrap()
    }

    /// A store in which each of these entries was served in a session, with a question of its own.
    fn served(entries: &[EntryId]) -> Store {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session = Label::parse("session").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            let query = format!("question {number}");
            let row = ServedRow { query, entries: vec![*entry], ..ServedRow::default() };
            batch.append_served(NOW, &row).unwrap();
            batch.put_view_row(*entry, &ViewRow::new(NOW)).unwrap();
            batch.put_successor(entries[0], *entry).unwrap();
        }
        batch.prime(Recipient::session(&session), entries, NOW).unwrap();
        batch.commit().unwrap();
        store
    }

    #[test]
    fn what_is_kept_of_use_is_read_once_however_many_entries_are_forgotten() {
        let tombstones: Vec<Record> = (0..40).map(tombstone).collect();
        let entries: Vec<EntryId> = tombstones.iter().map(Record::entry).collect();
        let store = served(&entries);
        let batch = store.batch(Durability::Durable).unwrap();
        for tombstone in &tombstones[..30] {
            batch.put_tombstone(tombstone, &ViewRow::new(NOW)).unwrap();
        }
        // Forty rows of the ledger and forty of the session; what takes the first one's place went
        // with it.
        assert_eq!(batch.wipe_forgotten().unwrap(), 80);
        assert_eq!(batch.wipe_forgotten().unwrap(), 0, "there is nothing left to do");
        // What a peer forgets that was never held costs no look at all.
        batch.put_tombstone(&tombstone(99), &ViewRow::new(NOW)).unwrap();
        assert_eq!(batch.wipe_forgotten().unwrap(), 0);
        // Nor does what is forgotten again.
        batch.put_tombstone(&tombstones[3], &ViewRow::new(NOW)).unwrap();
        assert_eq!(batch.wipe_forgotten().unwrap(), 0);
        batch.put_tombstone(&tombstones[30], &ViewRow::new(NOW)).unwrap();
        batch.commit().unwrap();
        let batch = store.batch(Durability::Durable).unwrap();
        assert_eq!(batch.head().unwrap(), Seq(33));
        let ledger = batch.transaction.open_table(LEDGER).unwrap();
        let rows = ledger.iter().unwrap().map(|row| {
            let (_, row) = row.unwrap();
            rows::decode::<ServedRow>("ledger", row.value()).unwrap()
        });
        let rows: Vec<ServedRow> = rows.collect();
        assert_eq!(rows.len(), 40);
        for (number, row) in rows.iter().enumerate() {
            let is_left = number > 30;
            assert_eq!((row.query.is_empty(), row.entries.len()), (!is_left, is_left.into()));
        }
        let session = Label::parse("session").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(
                batch.is_primed(Recipient::session(&session), *entry).unwrap(),
                number > 30,
                "{number}"
            );
        }
    }
}
