//! Receipts: whether a peer has erased a forgotten entry, and which receipts it is still owed.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types;
use super::super::shared_reads;
use super::super::tables::{OWED, RECEIPTS, key};
use super::row_types::ReceiptRow;
use klnode_crdt::ids::{AuthorId, EntryId};
use redb::ReadableTable;

impl Batch {
    pub fn receipt(&self, peer: AuthorId, entry: EntryId) -> Result<ReceiptRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        let row = shared_reads::row("receipts", &self.transaction.open_table(RECEIPTS)?, &at)?;
        Ok(row.unwrap_or_default())
    }

    pub fn put_receipt(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReceiptRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        self.transaction.open_table(RECEIPTS)?.insert(&at, row_types::encode(&row).as_slice())?;
        let mut owed = self.transaction.open_table(OWED)?;
        if row.is_due {
            owed.insert(&at, 0)?;
        } else {
            owed.remove(&at)?;
        }
        Ok(())
    }

    /// Collects the owed receipts from the table of an earlier version.
    pub(crate) fn list_owed(&self) -> Result<(), Error> {
        let receipts = self.transaction.open_table(RECEIPTS)?;
        let mut owed = self.transaction.open_table(OWED)?;
        for row in receipts.iter()? {
            let (at, row) = row?;
            // A damaged row must not prevent opening the store.
            let row =
                Error::unless_damaged(row_types::decode::<ReceiptRow>("receipts", row.value()))?;
            if row.is_some_and(|row| row.is_due) {
                owed.insert(at.value(), 0)?;
            }
        }
        Ok(())
    }

    /// Notes that a peer delivered a tombstone and is owed a receipt.
    pub fn owe_receipt(&self, peer: AuthorId, entry: EntryId) -> Result<(), Error> {
        let row = self.receipt(peer, entry)?;
        self.put_receipt(peer, entry, ReceiptRow { is_upstream: true, is_due: true, ..row })
    }

    /// Marks receipts as owed again to the peers that delivered the tombstone, because more nodes
    /// have erased the entry.
    pub fn renew_receipts(&self, entry: EntryId) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.receipt(peer, entry)?;
            if row.is_upstream {
                self.put_receipt(peer, entry, ReceiptRow { is_due: true, ..row })?;
            }
        }
        Ok(())
    }
}
