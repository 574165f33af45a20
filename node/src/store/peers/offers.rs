//! What peers offered: how far each was read, and what of it was refused.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::read;
use super::super::rows;
use super::super::snapshot::Snapshot;
use super::super::tables::{CURSORS, META, META_REFUSED, REFUSALS, key, part, span};
use super::rows::{Cursor, RefusalRow, offerer_key};
use klnode_crdt::digest::{Context, Fields};
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_federation::proto::Offerer;
use redb::ReadableTable;
use std::collections::BTreeSet;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    rows: u64,
    bytes: u64,
}

/// What is kept of one peer's refused records at most. All of it is gone through whenever the peer
/// offers something unknown, or compares.
const REFUSED: Size = Size { rows: 10_000, bytes: 4 * 1024 * 1024 };

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

    /// Keeps a refused header, if it is the highest of its slot where it was offered, and there is room.
    /// What finds none is not asked for again before the two sides compare, and a few times then.
    pub(crate) fn note_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        self.keep_refusal(offer, slot, row, REFUSED)
    }

    /// The same of what the operator has decided: for that there is always room.
    pub(crate) fn put_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        self.keep_refusal(offer, slot, row, Size { rows: u64::MAX, bytes: u64::MAX })
    }

    fn keep_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
        max: Size,
    ) -> Result<(), Error> {
        let size = self.refused_size(offer)?;
        let at = key::<32>(&[&offerer_key(offer), &slot]);
        let mut table = self.transaction.open_table(REFUSALS)?;
        let held: Option<RefusalRow> = read::row("refusals", &table, &at)?;
        // One that stands in any case goes before one that stands until more is known: it was asked for
        // again.
        let rank = |row: &RefusalRow| (row.counter, row.digest, !row.is_unknown);
        if held.is_some_and(|held| rank(&held) >= rank(row)) {
            return Ok(());
        }
        let replaced = table.get(&at)?.map(|row| row.value().len() as u64);
        let bytes = rows::encode(row);
        let size = Size {
            rows: size.rows + u64::from(replaced.is_none()),
            bytes: size.bytes.saturating_sub(replaced.unwrap_or(0)) + bytes.len() as u64,
        };
        if size.rows <= max.rows && size.bytes <= max.bytes {
            table.insert(&at, bytes.as_slice())?;
            drop(table);
            self.put_refused_size(offer, size)?;
        }
        Ok(())
    }

    /// How much is kept of what was refused where it was offered. A peer calls its store what it likes:
    /// as soon as something is refused of another one, what was refused of the one before goes.
    fn refused_size(&self, offer: Offerer) -> Result<Size, Error> {
        if let Some((store, size)) = self.counted(offer.peer)? {
            if store == offer.store {
                return Ok(size);
            }
            let (first, last) = span::<32>(&offerer_key(Offerer { store, ..offer }));
            let mut table = self.transaction.open_table(REFUSALS)?;
            table.retain_in::<&[u8; 32], _>(&first..=&last, |_, _| false)?;
        }
        let (first, last) = span::<32>(&offerer_key(offer));
        let table = self.transaction.open_table(REFUSALS)?;
        let mut size = Size { rows: 0, bytes: 0 };
        for row in table.range::<&[u8; 32]>(&first..=&last)? {
            size = Size { rows: size.rows + 1, bytes: size.bytes + row?.1.value().len() as u64 };
        }
        Ok(size)
    }

    /// Of which store of a peer something is kept, and how much.
    fn counted(&self, peer: AuthorId) -> Result<Option<(StoreId, Size)>, Error> {
        let meta = self.transaction.open_table(META)?;
        let row = meta.get(&refused_name(peer))?;
        Ok(row.and_then(|row| size_of(row.value())))
    }

    fn put_refused_size(&self, offer: Offerer, size: Size) -> Result<(), Error> {
        let (count, bytes) = (size.rows.to_be_bytes(), size.bytes.to_be_bytes());
        let row: [u8; 32] = key(&[offer.store.as_bytes(), &count, &bytes]);
        self.put_meta(refused_name(offer.peer), &row)
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
        let mut left = Size { rows: 0, bytes: 0 };
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, row| {
            let is_kept =
                rows::decode::<RefusalRow>("refusals", row).is_ok_and(|row| !is_over(&row));
            left.rows += u64::from(is_kept);
            left.bytes += if is_kept { row.len() as u64 } else { 0 };
            is_kept
        })?;
        drop(table);
        match self.counted(offer.peer)? {
            Some((store, _)) if store == offer.store => self.put_refused_size(offer, left),
            _ => Ok(()),
        }
    }
}

impl Snapshot {
    /// What stands in the way of a peer's records: the store that it was read from, and the one of which
    /// something was refused. A power cut may leave one without the other.
    pub fn offers_of(&self, peer: AuthorId) -> Result<BTreeSet<Offerer>, Error> {
        let read = self.cursor(peer)?.map(|cursor| cursor.store);
        let meta = self.transaction.open_table(META)?;
        let refused = meta.get(&refused_name(peer))?.and_then(|row| size_of(row.value()));
        let stores = read.into_iter().chain(refused.map(|(store, _)| store));
        Ok(stores.map(|store| Offerer { peer, store }).collect())
    }
}

fn size_of(row: &[u8]) -> Option<(StoreId, Size)> {
    let number = |from: usize| u64::from_be_bytes(part(row, from));
    (row.len() == 32)
        .then(|| (StoreId::from_bytes(part(row, 0)), Size { rows: number(16), bytes: number(24) }))
}

/// The name under which is counted what is kept of a peer's refused records.
fn refused_name(peer: AuthorId) -> [u8; 8] {
    let hash = Fields::new(Context::Slot).field(peer.as_bytes()).finish_short();
    key(&[&[META_REFUSED], &hash[..7]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Store};
    use klnode_crdt::ids::Digest;
    use klnode_crdt::key::Signature;

    fn offer(peer: u8, store: u8) -> Offerer {
        Offerer { peer: AuthorId::from_bytes([peer; 32]), store: StoreId::from_bytes([store; 16]) }
    }

    /// A refusal of a slot, with a header of so many bytes.
    fn refusal(number: u64, bytes: usize) -> ([u8; 16], RefusalRow) {
        let mut slot = [0; 16];
        slot[..8].copy_from_slice(&number.to_be_bytes());
        let row = RefusalRow {
            header: vec![0; bytes],
            signature: Signature::from_bytes([0; 64]),
            counter: 1,
            digest: Digest::from_bytes([7; 32]),
            reason: format!("number {number}"),
            is_unknown: false,
        };
        (slot, row)
    }

    fn note(batch: &Batch, offer: Offerer, numbers: std::ops::Range<u64>, bytes: usize) {
        for (slot, row) in numbers.map(|number| refusal(number, bytes)) {
            batch.note_refusal(offer, slot, &row).unwrap();
        }
    }

    /// How many rows there are, which must be what is counted.
    fn kept(batch: &Batch, offer: Offerer) -> u64 {
        let (first, last) = span::<32>(&offerer_key(offer));
        let table = batch.transaction.open_table(REFUSALS).unwrap();
        let rows = table.range::<&[u8; 32]>(&first..=&last).unwrap().count() as u64;
        drop(table);
        match batch.counted(offer.peer).unwrap() {
            Some((store, size)) if store == offer.store => assert_eq!(size.rows, rows),
            _ => assert_eq!(rows, 0),
        }
        rows
    }

    #[test]
    fn so_much_is_kept_of_what_was_refused_of_one_peer() {
        let (store, peer) = (Store::in_memory(), offer(1, 1));
        let batch = store.batch(Durability::Durable).unwrap();
        note(&batch, peer, 0..REFUSED.rows + 2, 1);
        assert_eq!(kept(&batch, peer), REFUSED.rows);
        let (slot, row) = refusal(3, 1);
        batch.note_refusal(peer, slot, &RefusalRow { counter: 2, ..row }).unwrap();
        assert_eq!(kept(&batch, peer), REFUSED.rows, "what replaces another finds room");
        let (slot, row) = refusal(REFUSED.rows + 2, 1);
        batch.put_refusal(peer, slot, &row).unwrap();
        assert_eq!(kept(&batch, peer), REFUSED.rows + 1, "and what the operator has decided");
        note(&batch, offer(2, 1), 0..2, 1);
        assert_eq!(kept(&batch, offer(2, 1)), 2, "another peer has room of its own");
        batch
            .drop_refusals(peer, |row| row.reason == "number 7" || row.reason == "number 8")
            .unwrap();
        note(&batch, peer, 20_000..20_005, 1);
        assert_eq!(kept(&batch, peer), REFUSED.rows, "as much as there is room again");
        // Long headers have an end before there are many of them.
        note(&batch, offer(3, 1), 0..200, 32 * 1024);
        let rows = kept(&batch, offer(3, 1));
        assert!(rows > 100 && rows * 32 * 1024 <= REFUSED.bytes, "{rows} rows");
    }

    #[test]
    fn a_peer_that_calls_its_store_something_else_has_no_more_room_for_it() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        note(&batch, offer(1, 1), 0..5, 1);
        note(&batch, offer(2, 1), 0..5, 1);
        note(&batch, offer(1, 2), 0..3, 1);
        assert_eq!(
            [(1, 1), (1, 2), (2, 1)].map(|(peer, at)| kept(&batch, offer(peer, at))),
            [0, 3, 5]
        );
    }
}
