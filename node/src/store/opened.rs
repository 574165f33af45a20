//! Tables that a snapshot reads for every entry, opened once each.
//!
//! To open a table is to look its name up in the store's own table, which takes longer than the one
//! row that is then read: a question reads two dozen entries from eight tables, and would spend a
//! quarter of its time on that. A sweep asks of every entry, for every peer, whether it is released.

use super::error::Error;
use super::snapshot::Snapshot;
use super::tables::{
    HELD, HeldKey, OVERLAYS, PAIRS, RECORDS, RELEASES, SAME, TOMBSTONES, USES, VIEWS,
};
use redb::{Key, ReadOnlyTable, ReadTransaction, TableDefinition, Value};
use std::sync::OnceLock;

/// A table of rows of bytes by a key of a fixed length.
type Rows<const KEY: usize> = ReadOnlyTable<&'static [u8; KEY], &'static [u8]>;
/// A table that names a place in the feed.
type Places<K> = ReadOnlyTable<&'static K, &'static [u8; 8]>;

/// What is open so far.
#[derive(Default)]
pub(super) struct Opened {
    views: OnceLock<Rows<16>>,
    held: OnceLock<Places<HeldKey>>,
    records: OnceLock<Rows<8>>,
    tombstones: OnceLock<Places<[u8; 16]>>,
    uses: OnceLock<Rows<16>>,
    overlays: OnceLock<Rows<16>>,
    pairs: OnceLock<Rows<32>>,
    same: OnceLock<ReadOnlyTable<&'static [u8; 32], u8>>,
    releases: OnceLock<Rows<48>>,
}

/// The table, opened if it is not yet.
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
    pub(super) fn views(&self) -> Result<&Rows<16>, Error> {
        once(&self.transaction, &self.opened.views, VIEWS)
    }

    pub(super) fn held(&self) -> Result<&Places<HeldKey>, Error> {
        once(&self.transaction, &self.opened.held, HELD)
    }

    pub(super) fn records(&self) -> Result<&Rows<8>, Error> {
        once(&self.transaction, &self.opened.records, RECORDS)
    }

    pub(super) fn tombstones(&self) -> Result<&Places<[u8; 16]>, Error> {
        once(&self.transaction, &self.opened.tombstones, TOMBSTONES)
    }

    pub(super) fn use_rows(&self) -> Result<&Rows<16>, Error> {
        once(&self.transaction, &self.opened.uses, USES)
    }

    pub(super) fn overlay_rows(&self) -> Result<&Rows<16>, Error> {
        once(&self.transaction, &self.opened.overlays, OVERLAYS)
    }

    pub(super) fn pair_rows(&self) -> Result<&Rows<32>, Error> {
        once(&self.transaction, &self.opened.pairs, PAIRS)
    }

    pub(super) fn same(&self) -> Result<&ReadOnlyTable<&'static [u8; 32], u8>, Error> {
        once(&self.transaction, &self.opened.same, SAME)
    }

    pub(super) fn release_rows(&self) -> Result<&Rows<48>, Error> {
        once(&self.transaction, &self.opened.releases, RELEASES)
    }
}
