//! Tables that a snapshot reads for every entry, each opened once.
//!
//! Opening a table looks its name up in redb's own table, which takes longer than reading one row.
//! A query reads two dozen entries from eight tables and would spend a quarter of its time on that.
//! A sweep checks the release of every entry to every peer.

use super::Snapshot;
use crate::error::Error;
use crate::tables::{
    DOCUMENTS, HELD, HeldKey, OVERLAYS, PAIRS, RECORDS, RELEASES, SAME, TOMBSTONES, USES, VIEWS,
};
use redb::{Key, ReadOnlyTable, ReadTransaction, TableDefinition, Value};
use std::sync::OnceLock;

/// A table of byte rows with fixed-width keys.
type ByteTable<const KEY: usize> = ReadOnlyTable<&'static [u8; KEY], &'static [u8]>;
/// A table of feed positions.
type FeedPositions<K> = ReadOnlyTable<&'static K, &'static [u8; 8]>;

/// The tables opened so far.
#[derive(Default)]
pub(super) struct TableCache {
    views: OnceLock<ByteTable<16>>,
    held: OnceLock<FeedPositions<HeldKey>>,
    records: OnceLock<ByteTable<8>>,
    tombstones: OnceLock<FeedPositions<[u8; 16]>>,
    uses: OnceLock<ByteTable<16>>,
    overlays: OnceLock<ByteTable<16>>,
    pairs: OnceLock<ByteTable<32>>,
    same: OnceLock<ReadOnlyTable<&'static [u8; 32], u8>>,
    releases: OnceLock<ByteTable<48>>,
    documents: OnceLock<ByteTable<16>>,
}

/// Returns the table, and opens it on first use.
fn once<'a, K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    place: &'a OnceLock<ReadOnlyTable<K, V>>,
    name: TableDefinition<'_, K, V>,
) -> Result<&'a ReadOnlyTable<K, V>, Error> {
    match place.get() {
        Some(table) => Ok(table),
        None => {
            let table = transaction.open_table(name)?;
            Ok(place.get_or_init(|| table))
        }
    }
}

impl Snapshot {
    pub(crate) fn views(&self) -> Result<&ByteTable<16>, Error> {
        once(&self.transaction, &self.opened.views, VIEWS)
    }

    pub(crate) fn held(&self) -> Result<&FeedPositions<HeldKey>, Error> {
        once(&self.transaction, &self.opened.held, HELD)
    }

    pub(crate) fn records(&self) -> Result<&ByteTable<8>, Error> {
        once(&self.transaction, &self.opened.records, RECORDS)
    }

    pub(crate) fn tombstones(&self) -> Result<&FeedPositions<[u8; 16]>, Error> {
        once(&self.transaction, &self.opened.tombstones, TOMBSTONES)
    }

    pub(crate) fn use_rows(&self) -> Result<&ByteTable<16>, Error> {
        once(&self.transaction, &self.opened.uses, USES)
    }

    pub(crate) fn overlay_rows(&self) -> Result<&ByteTable<16>, Error> {
        once(&self.transaction, &self.opened.overlays, OVERLAYS)
    }

    pub(crate) fn pair_rows(&self) -> Result<&ByteTable<32>, Error> {
        once(&self.transaction, &self.opened.pairs, PAIRS)
    }

    pub(crate) fn same(&self) -> Result<&ReadOnlyTable<&'static [u8; 32], u8>, Error> {
        once(&self.transaction, &self.opened.same, SAME)
    }

    pub(crate) fn documents_table(&self) -> Result<&ByteTable<16>, Error> {
        once(&self.transaction, &self.opened.documents, DOCUMENTS)
    }

    pub(crate) fn release_rows(&self) -> Result<&ByteTable<48>, Error> {
        once(&self.transaction, &self.opened.releases, RELEASES)
    }
}
