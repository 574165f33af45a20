//! Reads that snapshots and batches share.

use super::error::Error;
use super::row_types::{self, PairRow, RecordRow, Seq, UseRow, ViewRow};
use super::tables::{HeldKey, key, part, span};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::signing_key::Signature;
use redb::ReadableTable;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The table `records`, of a snapshot or a batch.
pub(super) trait Records: ReadableTable<&'static [u8; 8], &'static [u8]> {}
impl<T: ReadableTable<&'static [u8; 8], &'static [u8]>> Records for T {}

/// The table `held`, of a snapshot or a batch.
pub(super) trait HeldRows: ReadableTable<&'static HeldKey, &'static [u8; 8]> {}
impl<T: ReadableTable<&'static HeldKey, &'static [u8; 8]>> HeldRows for T {}

/// Reads a live record and checks header and payload against each other. A caller that knows the
/// expected digest checks that too.
pub(super) fn record(seq: Seq, row: &[u8]) -> Result<Record, Error> {
    let row: RecordRow = row_types::decode("records", row)?;
    row.read(seq)
}

/// Reads the record that another table places at a feed position.
pub(super) fn record_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<Record, Error> {
    Ok(checked_at(records, seq, digest)?.0)
}

/// Reads a record that will be sent to a peer. A row of an earlier version has no checksum, so its
/// signature is verified.
pub(super) fn record_to_send(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<Record, Error> {
    let (record, has_check) = checked_at(records, seq, digest)?;
    if !has_check {
        let what = || format!("record {digest}");
        Record::verify(&record.to_raw()).map_err(Error::to_damage(what))?;
    }
    Ok(record)
}

/// A record, and whether its row has a checksum.
fn checked_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<(Record, bool), Error> {
    let row = row_at(records, seq, digest)?;
    let has_check = row.has_check();
    let record = row.read(seq)?;
    check_place(record.digest(), digest)?;
    Ok((record, has_check))
}

/// The header of an intact record.
pub(super) fn header_at(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<SignedHeader, Error> {
    let signed = row_at(records, seq, digest)?.read_header(seq)?;
    check_place(signed.digest(), digest)?;
    Ok(signed)
}

/// The first fields of a record row. The rest may be large.
#[derive(Deserialize)]
struct RecordHead {
    #[serde(rename = "h", with = "serde_bytes")]
    header: Vec<u8>,
    #[serde(rename = "s")]
    signature: Signature,
}

/// The header of a record, even if the rest of the record is damaged.
pub(super) fn header_alone(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<SignedHeader, Error> {
    let what = || format!("record {digest}");
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(what(), "it is missing"))?;
    let RecordHead { header, signature } = row_types::decode("records", row.value())?;
    let signed = SignedHeader::read_back(&header, signature).map_err(Error::to_damage(what))?;
    check_place(signed.digest(), digest)?;
    Ok(signed)
}

fn row_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<RecordRow, Error> {
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(format!("record {digest}"), "it is missing"))?;
    row_types::decode("records", row.value())
}

fn check_place(found: Digest, expected: Digest) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::damaged(format!("record {expected}"), "another record is at its position"))
}

/// How to treat a damaged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Return an error.
    Told,
    /// Treat the record as missing.
    PassedOver,
}

/// The live records whose key in `held` begins with a prefix, with their feed positions.
pub(super) fn records_of(
    held: &impl HeldRows,
    records: &impl Records,
    prefix: &[u8],
    damage: Damage,
) -> Result<Vec<(Seq, Record)>, Error> {
    let mut found = Vec::new();
    for place in places_of(held, prefix)? {
        let (seq, digest) = place?;
        let read = record_at(records, seq, digest);
        let record = match damage {
            Damage::Told => Some(read?),
            Damage::PassedOver => Error::unless_damaged(read)?,
        };
        found.extend(record.map(|record| (seq, record)));
    }
    Ok(found)
}

/// The live records of an entry, except the edits of its document, of which there may be thousands.
pub(super) fn state_records(
    held: &impl HeldRows,
    records: &impl Records,
    entry: EntryId,
    damage: Damage,
) -> Result<Vec<Record>, Error> {
    let (first, last) = span::<81>(entry.as_bytes());
    let mut found = Vec::new();
    for row in held.range::<&HeldKey>(&first..=&last)? {
        let (at, seq) = row?;
        if at.value()[48] == Facet::Edit.code() {
            continue;
        }
        let seq = Seq(u64::from_be_bytes(*seq.value()));
        let read = record_at(records, seq, Digest::from_bytes(part(at.value(), 49)));
        found.extend(match damage {
            Damage::Told => Some(read?),
            Damage::PassedOver => Error::unless_damaged(read)?,
        });
    }
    Ok(found)
}

/// The intact headers of the live records whose key in `held` begins with a prefix.
pub(super) fn headers_under(
    held: &impl HeldRows,
    records: &impl Records,
    prefix: &[u8],
) -> Result<Vec<SignedHeader>, Error> {
    let mut found = Vec::new();
    for place in places_of(held, prefix)? {
        let (seq, digest) = place?;
        found.extend(Error::unless_damaged(header_at(records, seq, digest))?);
    }
    Ok(found)
}

/// Feed positions and digests of the records whose key in `held` begins with a prefix.
pub(super) fn places_of(
    held: &impl HeldRows,
    prefix: &[u8],
) -> Result<impl Iterator<Item = Result<(Seq, Digest), Error>>, Error> {
    let (first, last) = span::<81>(prefix);
    let rows = held.range::<&HeldKey>(&first..=&last)?;
    Ok(rows.map(|row| {
        let (at, seq) = row?;
        let seq = Seq(u64::from_be_bytes(*seq.value()));
        Ok((seq, Digest::from_bytes(part(at.value(), 49))))
    }))
}

/// The next author after another, by key, with a record on an entry.
pub(super) fn author_after(
    held: &impl HeldRows,
    entry: EntryId,
    after: Option<AuthorId>,
) -> Result<Option<AuthorId>, Error> {
    let (mut first, last) = span::<81>(entry.as_bytes());
    if let Some(after) = after {
        // Beyond every facet and digest of that author, since no facet has the code 255.
        first[16..48].copy_from_slice(after.as_bytes());
        first[48..].fill(0xFF);
    }
    let next = held.range::<&HeldKey>(&first..=&last)?.next().transpose()?;
    Ok(next.map(|(at, _)| AuthorId::from_bytes(part(at.value(), 16))))
}

/// One author's live records on an entry in these facets.
pub(super) fn holding(
    held: &impl HeldRows,
    records: &impl Records,
    entry: EntryId,
    author: AuthorId,
    facets: &[Facet],
    damage: Damage,
) -> Result<LiveRecords, Error> {
    let mut found = Vec::new();
    for facet in facets {
        let prefix: [u8; 49] = key(&[entry.as_bytes(), author.as_bytes(), &[facet.code()]]);
        found.extend(records_of(held, records, &prefix, damage)?);
    }
    Ok(LiveRecords::from_held(found.into_iter().map(|(_, record)| record)))
}

/// Position of the newest record that can change an entry's text; tallies cannot.
pub(super) fn text_seq(held: &impl HeldRows, entry: EntryId) -> Result<Seq, Error> {
    let (first, last) = span::<81>(entry.as_bytes());
    let mut newest = Seq(0);
    for row in held.range::<&HeldKey>(&first..=&last)? {
        let (at, seq) = row?;
        if at.value()[48] != Facet::Tally.code() {
            newest = newest.max(Seq(u64::from_be_bytes(*seq.value())));
        }
    }
    Ok(newest)
}

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
    Err(Error::damaged(what(), "another record is at its position"))
}

/// A row of a table; `None` if it is missing.
pub(super) fn row<T: DeserializeOwned, const N: usize>(
    name: &str,
    table: &impl ReadableTable<&'static [u8; N], &'static [u8]>,
    at: &[u8; N],
) -> Result<Option<T>, Error> {
    table.get(at)?.map(|row| row_types::decode(name, row.value())).transpose()
}

pub(super) fn view_row(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<Option<ViewRow>, Error> {
    row("views", table, entry.as_bytes())
}

/// Usage data of an entry; the default if it was never used.
pub(super) fn uses(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<UseRow, Error> {
    Ok(row("uses", table, entry.as_bytes())?.unwrap_or_default())
}

/// The co-occurrence weight of two entries.
pub(super) fn pair(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    one: EntryId,
    two: EntryId,
) -> Result<Option<PairRow>, Error> {
    row("pairs", table, &key::<32>(&[one.as_bytes(), two.as_bytes()]))
}
