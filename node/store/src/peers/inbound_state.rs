//! State of inbound replication: how far each peer's feed was read, and which records were refused.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types;
use super::super::shared_reads;
use super::super::snapshot::Snapshot;
use super::super::tables::{CURSORS, META, META_REFUSED, META_REREAD, REFUSALS, key, part, span};
use super::row_types::{FeedCursor, RefusalRow, offerer_key};
use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_federation::proto::Offerer;
use redb::ReadableTable;
use std::collections::BTreeSet;

/// Number of rows and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableSize {
    rows: u64,
    bytes: u64,
}

/// Most refusals stored per peer. All of them are read whenever the peer offers an unknown record
/// or compares.
const REFUSED: TableSize = TableSize { rows: 10_000, bytes: 4 * 1024 * 1024 };

impl Batch {
    pub fn put_cursor(&self, consumer: AuthorId, cursor: FeedCursor) -> Result<(), Error> {
        let mut table = self.transaction.open_table(CURSORS)?;
        table.insert(consumer.as_bytes(), &cursor.to_bytes())?;
        Ok(())
    }

    /// Makes the outbox of a peer be read from the start.
    pub fn drop_cursor(&self, consumer: AuthorId) -> Result<(), Error> {
        self.transaction.open_table(CURSORS)?.remove(consumer.as_bytes())?;
        self.transaction.open_table(META)?.remove(&meta_name(META_REREAD, consumer))?;
        Ok(())
    }

    /// Notes that a refused record of a peer would be accepted now. The outbox of the peer is to be
    /// read from the start, which needs a new session.
    pub fn request_reread(&self, peer: AuthorId) -> Result<(), Error> {
        self.put_meta(meta_name(META_REREAD, peer), peer.as_bytes())
    }

    /// The offers that may have refusals: of the peers that were read from, and of the peers with
    /// stored refusals.
    pub fn offers_read(&self) -> Result<BTreeSet<Offerer>, Error> {
        let mut offers = BTreeSet::new();
        for row in self.transaction.open_table(CURSORS)?.iter()? {
            let (peer, cursor) = row?;
            let store = FeedCursor::from_bytes(cursor.value()).store;
            offers.insert(Offerer { peer: AuthorId::from_bytes(*peer.value()), store });
        }
        for peer in self.peers()? {
            offers.extend(self.counted(peer)?.map(|(store, _)| Offerer { peer, store }));
        }
        Ok(offers)
    }

    /// Stores a refused header if it is the highest of its slot in this offer and the limit allows
    /// it. A refusal above the limit is not stored; its record is requested again when the two
    /// sides compare, a few times.
    pub fn note_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        self.keep_refusal(offer, slot, row, REFUSED)
    }

    /// Stores a refusal that the operator decided, regardless of the limit.
    pub fn put_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        self.keep_refusal(offer, slot, row, TableSize { rows: u64::MAX, bytes: u64::MAX })
    }

    fn keep_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
        max: TableSize,
    ) -> Result<(), Error> {
        let size = self.refused_size(offer)?;
        let at = key::<32>(&[&offerer_key(offer), &slot]);
        let mut table = self.transaction.open_table(REFUSALS)?;
        let held: Option<RefusalRow> = shared_reads::row("refusals", &table, &at)?;
        // At the same version a final refusal replaces a provisional one, since the record was
        // requested again in between.
        let rank = |row: &RefusalRow| (row.counter, row.digest, !row.is_unknown);
        if held.is_some_and(|held| rank(&held) >= rank(row)) {
            return Ok(());
        }
        let replaced = table.get(&at)?.map(|row| row.value().len() as u64);
        let bytes = row_types::encode(row);
        let size = TableSize {
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

    /// The size of the refusals stored for an offer. A peer can rename its store at will, so as
    /// soon as a record of another store is refused, the refusals of the previous store are
    /// removed.
    fn refused_size(&self, offer: Offerer) -> Result<TableSize, Error> {
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
        let mut size = TableSize { rows: 0, bytes: 0 };
        for row in table.range::<&[u8; 32]>(&first..=&last)? {
            size =
                TableSize { rows: size.rows + 1, bytes: size.bytes + row?.1.value().len() as u64 };
        }
        Ok(size)
    }

    /// The store of a peer with stored refusals, and their size.
    fn counted(&self, peer: AuthorId) -> Result<Option<(StoreId, TableSize)>, Error> {
        let meta = self.transaction.open_table(META)?;
        let row = meta.get(&refused_name(peer))?;
        Ok(row.and_then(|row| size_of(row.value())))
    }

    fn put_refused_size(&self, offer: Offerer, size: TableSize) -> Result<(), Error> {
        let (count, bytes) = (size.rows.to_be_bytes(), size.bytes.to_be_bytes());
        let row: [u8; 32] = key(&[offer.store.as_bytes(), &count, &bytes]);
        self.put_meta(refused_name(offer.peer), &row)
    }

    /// Removes refusals whose cause is gone or whose record the store no longer holds. Unreadable
    /// rows are removed as well. Returns whether any was removed.
    pub fn drop_refusals(
        &self,
        offer: Offerer,
        is_over: impl Fn(&RefusalRow) -> bool,
    ) -> Result<bool, Error> {
        let (first, last) = span::<32>(&offerer_key(offer));
        let mut table = self.transaction.open_table(REFUSALS)?;
        let (mut left, mut is_any) = (TableSize { rows: 0, bytes: 0 }, false);
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, row| {
            let is_kept =
                row_types::decode::<RefusalRow>("refusals", row).is_ok_and(|row| !is_over(&row));
            is_any |= !is_kept;
            left.rows += u64::from(is_kept);
            left.bytes += if is_kept { row.len() as u64 } else { 0 };
            is_kept
        })?;
        drop(table);
        match self.counted(offer.peer)? {
            Some((store, _)) if store == offer.store => self.put_refused_size(offer, left)?,
            _ => {}
        }
        Ok(is_any)
    }
}

impl Snapshot {
    /// The peers whose outbox is to be read from the start.
    pub fn peers_to_reread(&self) -> Result<Vec<AuthorId>, Error> {
        let (first, last) = span::<8>(&[META_REREAD]);
        let meta = self.transaction.open_table(META)?;
        let rows = meta.range::<&[u8; 8]>(&first..=&last)?;
        let peers = rows.map(|row| Ok(AuthorId::from_slice(row?.1.value())));
        Ok(peers.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// The offers of a peer that may have refusals: the store it was read from, and the store with
    /// stored refusals. A power cut may leave one without the other.
    pub fn offers_of(&self, peer: AuthorId) -> Result<BTreeSet<Offerer>, Error> {
        let read = self.cursor(peer)?.map(|cursor| cursor.store);
        let meta = self.transaction.open_table(META)?;
        let refused = meta.get(&refused_name(peer))?.and_then(|row| size_of(row.value()));
        let stores = read.into_iter().chain(refused.map(|(store, _)| store));
        Ok(stores.map(|store| Offerer { peer, store }).collect())
    }
}

fn size_of(row: &[u8]) -> Option<(StoreId, TableSize)> {
    let number = |from: usize| u64::from_be_bytes(part(row, from));
    (row.len() == 32).then(|| {
        (StoreId::from_bytes(part(row, 0)), TableSize { rows: number(16), bytes: number(24) })
    })
}

/// The meta name under which the size of a peer's refusals is stored.
fn refused_name(peer: AuthorId) -> [u8; 8] {
    meta_name(META_REFUSED, peer)
}

/// A name in `meta` for a peer.
fn meta_name(prefix: u8, peer: AuthorId) -> [u8; 8] {
    let hash = FieldHasher::new(Context::Slot).field(peer.as_bytes()).finish_short();
    key(&[&[prefix], &hash[..7]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};
    use klnode_crdt::ids::Digest;
    use klnode_crdt::signing_key::Signature;

    fn offer(peer: u8, store: u8) -> Offerer {
        Offerer { peer: AuthorId::from_bytes([peer; 32]), store: StoreId::from_bytes([store; 16]) }
    }

    /// A refusal of a slot, with a header of the given size.
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

    /// The number of stored rows, which must equal the counter.
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
    fn refusals_per_peer_are_limited() {
        let (store, peer) = (Store::in_memory(), offer(1, 1));
        let batch = store.batch(Durability::Durable).unwrap();
        note(&batch, peer, 0..REFUSED.rows + 2, 1);
        assert_eq!(kept(&batch, peer), REFUSED.rows);
        let (slot, row) = refusal(3, 1);
        batch.note_refusal(peer, slot, &RefusalRow { counter: 2, ..row }).unwrap();
        assert_eq!(kept(&batch, peer), REFUSED.rows, "a replacement is always stored");
        let (slot, row) = refusal(REFUSED.rows + 2, 1);
        batch.put_refusal(peer, slot, &row).unwrap();
        assert_eq!(kept(&batch, peer), REFUSED.rows + 1, "and so is an operator's decision");
        note(&batch, offer(2, 1), 0..2, 1);
        assert_eq!(kept(&batch, offer(2, 1)), 2, "another peer has its own limit");
        batch
            .drop_refusals(peer, |row| row.reason == "number 7" || row.reason == "number 8")
            .unwrap();
        note(&batch, peer, 20_000..20_005, 1);
        assert_eq!(kept(&batch, peer), REFUSED.rows, "removed rows make room");
        // Long headers reach the byte limit before the row limit.
        note(&batch, offer(3, 1), 0..200, 32 * 1024);
        let rows = kept(&batch, offer(3, 1));
        assert!(rows > 100 && rows * 32 * 1024 <= REFUSED.bytes, "{rows} rows");
    }

    #[test]
    fn renaming_its_store_gives_a_peer_no_more_room() {
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
