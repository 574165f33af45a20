//! Receipts: what a peer is known to have erased of a forgotten entry, and what it is to hear.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::read;
use super::super::rows;
use super::super::tables::{OWED, RECEIPTS, key};
use super::rows::ReceiptRow;
use klnode_crdt::ids::{AuthorId, EntryId};
use redb::ReadableTable;

impl Batch {
    pub(crate) fn receipt(&self, peer: AuthorId, entry: EntryId) -> Result<ReceiptRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        let row = read::row("receipts", &self.transaction.open_table(RECEIPTS)?, &at)?;
        Ok(row.unwrap_or_default())
    }

    pub(crate) fn put_receipt(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReceiptRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        self.transaction.open_table(RECEIPTS)?.insert(&at, rows::encode(&row).as_slice())?;
        let mut owed = self.transaction.open_table(OWED)?;
        if row.is_due {
            owed.insert(&at, 0)?;
        } else {
            owed.remove(&at)?;
        }
        Ok(())
    }

    /// Lists what is due of the receipts that an earlier version kept.
    pub(in crate::store) fn list_owed(&self) -> Result<(), Error> {
        let receipts = self.transaction.open_table(RECEIPTS)?;
        let mut owed = self.transaction.open_table(OWED)?;
        for row in receipts.iter()? {
            let (at, row) = row?;
            // A damaged one keeps nobody from the rest of the store.
            let row = Error::unless_damaged(rows::decode::<ReceiptRow>("receipts", row.value()))?;
            if row.is_some_and(|row| row.is_due) {
                owed.insert(at.value(), 0)?;
            }
        }
        Ok(())
    }

    /// Notes that a peer brought a tombstone, and is to hear what became of it.
    pub(crate) fn owe_receipt(&self, peer: AuthorId, entry: EntryId) -> Result<(), Error> {
        let row = self.receipt(peer, entry)?;
        self.put_receipt(peer, entry, ReceiptRow { is_upstream: true, is_due: true, ..row })
    }

    /// Whoever brought the tombstone is to hear that more have erased the entry.
    pub(crate) fn renew_receipts(&self, entry: EntryId) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.receipt(peer, entry)?;
            if row.is_upstream {
                self.put_receipt(peer, entry, ReceiptRow { is_due: true, ..row })?;
            }
        }
        Ok(())
    }
}
