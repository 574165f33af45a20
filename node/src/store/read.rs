//! Reads that a snapshot and a batch share: the same rows, seen from either side of a commit.

use super::error::Error;
use super::rows::{self, PairRow, RecordRow, Seq, UseRow, ViewRow};
use super::tables::{HeldKey, key, part, span};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::key::Signature;
use klnode_crdt::record::Record;
use redb::ReadableTable;
use serde::Deserialize;
use serde::de::DeserializeOwned;

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
    row.read(seq)
}

/// Reads the record that another table says is at a sequence number.
pub(super) fn record_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<Record, Error> {
    Ok(checked_at(records, seq, digest)?.0)
}

/// The same, for others to have: what an earlier version wrote has no check in its row, so that
/// only the signature tells whether it is whole.
pub(super) fn record_to_send(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<Record, Error> {
    let (record, has_check) = checked_at(records, seq, digest)?;
    if !has_check {
        let what = || format!("record {digest}");
        Record::verify(&record.to_raw()).map_err(Error::refused(what))?;
    }
    Ok(record)
}

/// A record, and whether its row has a check.
fn checked_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<(Record, bool), Error> {
    let row = row_at(records, seq, digest)?;
    let has_check = row.has_check();
    let record = row.read(seq)?;
    check_place(record.digest(), digest)?;
    Ok((record, has_check))
}

/// The header alone of a record that is whole.
pub(super) fn header_at(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<SignedHeader, Error> {
    let signed = row_at(records, seq, digest)?.read_header(seq)?;
    check_place(signed.digest(), digest)?;
    Ok(signed)
}

/// How the row of a record begins. What follows may be large.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "h", with = "serde_bytes")]
    header: Vec<u8>,
    #[serde(rename = "s")]
    signature: Signature,
}

/// The header of a record, whether or not the rest of it is whole.
pub(super) fn header_alone(
    records: &impl Records,
    seq: Seq,
    digest: Digest,
) -> Result<SignedHeader, Error> {
    let what = || format!("record {digest}");
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(what(), "it is missing"))?;
    let Head { header, signature } = rows::decode("records", row.value())?;
    let signed = SignedHeader::read_back(&header, signature).map_err(Error::refused(what))?;
    check_place(signed.digest(), digest)?;
    Ok(signed)
}

fn row_at(records: &impl Records, seq: Seq, digest: Digest) -> Result<RecordRow, Error> {
    let row = records.get(&seq.0.to_be_bytes())?;
    let row = row.ok_or_else(|| Error::damaged(format!("record {digest}"), "it is missing"))?;
    rows::decode("records", row.value())
}

fn check_place(found: Digest, expected: Digest) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::damaged(format!("record {expected}"), "another record is in its place"))
}

/// What becomes of a record that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
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

/// The headers of the live records whose place in `held` begins with a prefix, as far as these are
/// whole.
pub(super) fn headers_under(
    held: &impl Held,
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

/// Where the records stand whose place in `held` begins with a prefix, and what they are called.
pub(super) fn places_of(
    held: &impl Held,
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

/// The first author after another, by key, of whom anything is held about an entry.
pub(super) fn author_after(
    held: &impl Held,
    entry: EntryId,
    after: Option<AuthorId>,
) -> Result<Option<AuthorId>, Error> {
    let (mut first, last) = span::<81>(entry.as_bytes());
    if let Some(after) = after {
        // Behind every facet and digest of that author: no facet has such a number.
        first[16..48].copy_from_slice(after.as_bytes());
        first[48..].fill(0xFF);
    }
    let next = held.range::<&HeldKey>(&first..=&last)?.next().transpose()?;
    Ok(next.map(|(at, _)| AuthorId::from_bytes(part(at.value(), 16))))
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

/// The newest record that can change what an entry says: observations do not.
pub(super) fn text_seq(held: &impl Held, entry: EntryId) -> Result<Seq, Error> {
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

/// A row of a table, if it is there.
pub(super) fn row<T: DeserializeOwned, const N: usize>(
    name: &str,
    table: &impl ReadableTable<&'static [u8; N], &'static [u8]>,
    at: &[u8; N],
) -> Result<Option<T>, Error> {
    table.get(at)?.map(|row| rows::decode(name, row.value())).transpose()
}

/// The view row of an entry.
pub(super) fn view_row(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<Option<ViewRow>, Error> {
    row("views", table, entry.as_bytes())
}

/// How an entry was used; nothing if it never was.
pub(super) fn uses(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    entry: EntryId,
) -> Result<UseRow, Error> {
    Ok(row("uses", table, entry.as_bytes())?.unwrap_or_default())
}

/// How strongly two entries belong together.
pub(super) fn pair(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    one: EntryId,
    two: EntryId,
) -> Result<Option<PairRow>, Error> {
    row("pairs", table, &key::<32>(&[one.as_bytes(), two.as_bytes()]))
}
