//! Reads that a snapshot and a batch share: the same rows, seen from either side of a commit.

use super::error::Error;
use super::rows::{self, Seq, ViewRow};
use super::tables::{RecordKey, part, span};
use klnode_crdt::header::Facet;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use redb::ReadableTable;

/// A live record and the moment it was committed.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) seq: Seq,
    pub(super) record: Record,
}

/// Reads a record and checks that it is the one its key names.
pub(super) fn stored(key: &RecordKey, value: &[u8]) -> Result<Stored, Error> {
    let digest = Digest::from_bytes(part(key, 49));
    let what = || format!("record {digest}");
    let (seq, raw) = rows::decode_record("records", value)?;
    let record = Record::read_back(&raw).map_err(Error::refused(what()))?;
    if record.digest() != digest || record.entry().as_bytes() != &part::<16>(key, 0) {
        return Err(Error::damaged(what(), "its header is not the one that was stored"));
    }
    Ok(Stored { seq, record })
}

/// The live records of one entry, of one author if given.
pub(super) fn records(
    table: &impl ReadableTable<&'static RecordKey, &'static [u8]>,
    entry: EntryId,
    author: Option<AuthorId>,
) -> Result<Vec<Stored>, Error> {
    let mut prefix = entry.as_bytes().to_vec();
    prefix.extend(author.iter().flat_map(|author| author.as_bytes()));
    let (first, last) = span::<81>(&prefix);
    let mut found = Vec::new();
    for row in table.range::<&RecordKey>(&first..=&last)? {
        let (key, value) = row?;
        found.push(stored(key.value(), value.value())?);
    }
    Ok(found)
}

/// One author's live records on one entry.
pub(super) fn holding(
    table: &impl ReadableTable<&'static RecordKey, &'static [u8]>,
    entry: EntryId,
    author: AuthorId,
) -> Result<Holding, Error> {
    let records = records(table, entry, Some(author))?;
    Ok(Holding::from_held(records.into_iter().map(|stored| stored.record)))
}

/// The tombstone of an entry.
pub(super) fn tombstone(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<Option<Stored>, Error> {
    let Some(row) = table.get(entry.as_bytes())? else { return Ok(None) };
    let (seq, raw) = rows::decode_record("tombstones", row.value())?;
    let record =
        Record::read_back(&raw).map_err(Error::refused(format!("the tombstone of {entry}")))?;
    if record.entry() != entry || record.header().facet != Facet::Tombstone {
        return Err(Error::damaged(format!("the tombstone of {entry}"), "it is another record"));
    }
    Ok(Some(Stored { seq, record }))
}

/// The view row of an entry.
pub(super) fn view_row(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<Option<ViewRow>, Error> {
    let Some(row) = table.get(entry.as_bytes())? else { return Ok(None) };
    rows::decode("views", row.value()).map(Some)
}
