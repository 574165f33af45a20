//! Reads that a snapshot and a batch share: the same rows, seen from either side of a commit.

use super::error::Error;
use super::rows::{self, PairRow, RecordRow, Seq, UseRow, ViewRow};
use super::tables::{HeldKey, key, part, span};
use klnode_crdt::header::Facet;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use redb::ReadableTable;

/// `records`, from either side.
pub(super) trait Records: ReadableTable<&'static [u8; 8], &'static [u8]> {}
impl<T: ReadableTable<&'static [u8; 8], &'static [u8]>> Records for T {}

/// `held`, from either side.
pub(super) trait Held: ReadableTable<&'static HeldKey, &'static [u8; 8]> {}
impl<T: ReadableTable<&'static HeldKey, &'static [u8; 8]>> Held for T {}

/// Reads a live record. Its header and payload are checked against each other; whoever knows the
/// digest it should have checks that too.
pub(super) fn record(seq: Seq, row: &[u8]) -> Result<Record, Error> {
    let row: RecordRow = rows::decode("records", row)?;
    row.read().map_err(Error::refused(format!("record number {}", seq.0)))
}

/// Reads the record that another table says is at a sequence number.
pub(super) fn record_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<Record, Error> {
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(format!("record {digest}"), "it is missing"))?;
    let record = record(seq, row.value())?;
    if record.digest() == digest {
        return Ok(record);
    }
    Err(Error::damaged(format!("record {digest}"), "another record is in its place"))
}

/// What becomes of a record that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// It is an error.
    Told,
    /// It counts as not held.
    PassedOver,
}

/// The live records whose place in `held` begins with a prefix, with their sequence numbers.
pub(super) fn records_of(
    held: &impl Held,
    records: &impl Records,
    prefix: &[u8],
    damage: Damage,
) -> Result<Vec<(Seq, Record)>, Error> {
    let (first, last) = span::<81>(prefix);
    let mut found = Vec::new();
    for row in held.range::<&HeldKey>(&first..=&last)? {
        let (at, seq) = row?;
        let seq = Seq(u64::from_be_bytes(*seq.value()));
        let digest = Digest::from_bytes(part(at.value(), 49));
        let read = record_at(records, seq, digest);
        let record = match damage {
            Damage::Told => Some(read?),
            Damage::PassedOver => Error::unless_damaged(read)?,
        };
        found.extend(record.map(|record| (seq, record)));
    }
    Ok(found)
}

/// One author's live records on one entry, in these facets.
pub(super) fn holding(
    held: &impl Held,
    records: &impl Records,
    entry: EntryId,
    author: AuthorId,
    facets: &[Facet],
    damage: Damage,
) -> Result<Holding, Error> {
    let mut found = Vec::new();
    for facet in facets {
        let prefix: [u8; 49] = key(&[entry.as_bytes(), author.as_bytes(), &[facet.code()]]);
        found.extend(records_of(held, records, &prefix, damage)?);
    }
    Ok(Holding::from_held(found.into_iter().map(|(_, record)| record)))
}

/// The tombstone of an entry.
pub(super) fn tombstone(
    tombstones: &impl ReadableTable<&'static [u8; 16], &'static [u8; 8]>,
    records: &impl Records,
    entry: EntryId,
) -> Result<Option<Record>, Error> {
    let Some(seq) = tombstones.get(entry.as_bytes())? else { return Ok(None) };
    let seq = Seq(u64::from_be_bytes(*seq.value()));
    let what = || format!("the tombstone of {entry}");
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(what(), "it is missing"))?;
    let record = record(seq, row.value())?;
    if record.entry() == entry {
        return Ok(Some(record));
    }
    Err(Error::damaged(what(), "another record is in its place"))
}

/// The view row of an entry.
pub(super) fn view_row(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<Option<ViewRow>, Error> {
    let Some(row) = table.get(entry.as_bytes())? else { return Ok(None) };
    rows::decode("views", row.value()).map(Some)
}

/// How an entry was used; nothing if it never was.
pub(super) fn uses(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<UseRow, Error> {
    match table.get(entry.as_bytes())? {
        Some(row) => rows::decode("uses", row.value()),
        None => Ok(UseRow::default()),
    }
}

/// How strongly two entries belong together.
pub(super) fn pair(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    one: EntryId,
    two: EntryId,
) -> Result<Option<PairRow>, Error> {
    let row = table.get(&key::<32>(&[one.as_bytes(), two.as_bytes()]))?;
    row.map(|row| rows::decode("pairs", row.value())).transpose()
}
