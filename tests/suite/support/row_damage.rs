//! Deliberate damage to rows of a store: on an in-memory disk, in a node of a cluster, in the file
//! of a home.

use klnode_crdt::record::Record;
use klnode_tests::cluster::Cluster;
use klnode_tests::disk::Disk;
use klnode_tests::test_engine::Node;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

/// Table of the records.
pub(crate) const RECORDS: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("records");

/// The row of a record, found by its signature.
fn row_of(disk: &Disk, signature: &[u8; 64]) -> ([u8; 8], Vec<u8>) {
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let rows = database.begin_read().unwrap().open_table(RECORDS).unwrap();
    let is_it = |row: &[u8]| row.windows(64).any(|part| part == signature);
    let rows = rows.iter().unwrap().map(|row| row.unwrap());
    let mut rows = rows.map(|(at, row)| (*at.value(), row.value().to_vec()));
    rows.find(|(_, row)| is_it(row)).expect("it is held")
}

/// Changes a byte of the row of a record; returns the length of the row.
pub(crate) fn damage(disk: &Disk, record: &Record, at: usize) -> usize {
    let (seq, mut row) = row_of(disk, record.to_raw().signature.as_bytes());
    let at = at % row.len();
    row[at] ^= 0x20;
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(RECORDS).unwrap().insert(&seq, row.as_slice()).unwrap();
    transaction.commit().unwrap();
    row.len()
}

/// Stops a node, damages a byte of a record, and restarts it.
pub(crate) fn strike(nodes: &mut Cluster, at: usize, record: &Record, byte: usize) -> usize {
    nodes.crash(at);
    let disk = nodes.disk(at);
    let length = damage(&disk, record, byte);
    nodes.restart_on(at, disk);
    length
}

/// Replaces a row with invalid bytes.
pub(crate) fn spoil(disk: &Disk, table: &str, at: &[u8; 16]) {
    let table: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new(table);
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(at, &[1, 0x80][..]).unwrap();
    transaction.commit().unwrap();
}

/// The disk of a stopped node.
pub(crate) fn stopped(node: Node) -> Disk {
    let Node { engine, medium, .. } = node;
    drop(engine);
    medium.disk().fork()
}

/// Flips a byte of the row in a store's file that contains these bytes.
pub(crate) fn strike_file(home: &Path, says: &[u8]) {
    let database = Database::open(home.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(RECORDS).unwrap();
        let is_it = |row: &[u8]| row.windows(says.len()).any(|part| part == says);
        let all: Vec<([u8; 8], Vec<u8>)> = rows
            .iter()
            .unwrap()
            .map(|row| row.unwrap())
            .map(|(at, row)| (*at.value(), row.value().to_vec()))
            .collect();
        let (at, mut row) = all.into_iter().find(|(_, row)| is_it(row)).expect("it is held");
        let place = row.windows(says.len()).position(|part| part == says).unwrap();
        row[place] ^= 0x20;
        rows.insert(&at, row.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}
