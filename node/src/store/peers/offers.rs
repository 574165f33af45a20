//! What peers offered: how far each was read, and what of it was refused.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::read;
use super::super::rows;
use super::super::tables::{CURSORS, REFUSALS, key, span};
use super::rows::{Cursor, RefusalRow, offerer_key};
use klnode_crdt::ids::AuthorId;
use klnode_federation::proto::Offerer;
use redb::ReadableTable;

impl Batch {
    pub(crate) fn put_cursor(&self, consumer: AuthorId, cursor: Cursor) -> Result<(), Error> {
        let mut table = self.transaction.open_table(CURSORS)?;
        table.insert(consumer.as_bytes(), &cursor.to_bytes())?;
        Ok(())
    }

    pub(crate) fn drop_cursor(&self, consumer: AuthorId) -> Result<(), Error> {
        self.transaction.open_table(CURSORS)?.remove(consumer.as_bytes())?;
        Ok(())
    }

    /// Who has been read from, and what each calls its store.
    pub(crate) fn offers_read(&self) -> Result<Vec<Offerer>, Error> {
        let table = self.transaction.open_table(CURSORS)?;
        let offers = table.iter()?.map(|row| {
            let (peer, cursor) = row?;
            let store = Cursor::from_bytes(cursor.value()).store;
            Ok(Offerer { peer: AuthorId::from_bytes(*peer.value()), store })
        });
        offers.collect()
    }

    /// Keeps a refused header, if it is the highest of its slot where it was offered.
    pub(crate) fn put_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        let at = key::<32>(&[&offerer_key(offer), &slot]);
        let mut table = self.transaction.open_table(REFUSALS)?;
        let held: Option<RefusalRow> = read::row("refusals", &table, &at)?;
        if held.is_none_or(|held| (held.counter, held.digest) < (row.counter, row.digest)) {
            table.insert(&at, rows::encode(row).as_slice())?;
        }
        Ok(())
    }

    /// Forgets that these were refused: the cause was lifted, or the store has them no longer. A row
    /// that cannot be read goes as well.
    pub(crate) fn drop_refusals(
        &self,
        offer: Offerer,
        is_over: impl Fn(&RefusalRow) -> bool,
    ) -> Result<(), Error> {
        let (first, last) = span::<32>(&offerer_key(offer));
        let mut table = self.transaction.open_table(REFUSALS)?;
        let is_kept = |row: &[u8]| {
            rows::decode::<RefusalRow>("refusals", row).is_ok_and(|row| !is_over(&row))
        };
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, row| is_kept(row))?;
        Ok(())
    }
}
