//! Reads of an author's records on an entry: names, headers, records and sizes.
//!
//! An author may have many records, and each may be large. Their keys are enough to count them, and
//! their headers to decide which one covers which.

use super::batch::Batch;
use super::error::Error;
use super::row_types::Seq;
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{DIGESTS, HELD, HeldKey, RECORDS, key, part, span};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use redb::ReadableTable;
use std::collections::BTreeMap;

/// Prefix of the keys in `held` for an author's records on an entry in one facet.
fn prefix(entry: EntryId, author: AuthorId, facet: Facet) -> [u8; 49] {
    key(&[entry.as_bytes(), author.as_bytes(), &[facet.code()]])
}

/// The digests of an author's records on an entry, facet by facet, each facet in key order.
fn names(
    held: &impl shared_reads::HeldRows,
    (entry, author, facets): (EntryId, AuthorId, &[Facet]),
) -> Result<Vec<Digest>, Error> {
    let mut names = Vec::new();
    for facet in facets {
        let prefix = prefix(entry, author, *facet);
        for place in shared_reads::places_of(held, &prefix)? {
            names.push(place?.1);
        }
    }
    Ok(names)
}

impl Batch {
    /// The digests of an author's records on an entry, from the keys alone.
    pub fn held_names(&self, at: (EntryId, AuthorId, &[Facet])) -> Result<Vec<Digest>, Error> {
        names(&self.transaction.open_table(HELD)?, at)
    }

    /// The intact headers of an author's records in one facet, in the order of their digests.
    pub fn held_headers(
        &self,
        (entry, author, facet): (EntryId, AuthorId, Facet),
    ) -> Result<Vec<SignedHeader>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        shared_reads::headers_under(&held, &records, &prefix(entry, author, facet))
    }

    /// The intact records of an author on an entry, and the digests of damaged ones, which are
    /// dropped. A dropped record counts as missing, so that an intact copy can be stored again;
    /// peers do not send a copy of a covered record.
    pub fn whole_holding(
        &self,
        (entry, author, facets): (EntryId, AuthorId, &[Facet]),
    ) -> Result<(LiveRecords, Vec<Digest>), Error> {
        let (mut whole, mut damaged) = (Vec::new(), Vec::<HeldKey>::new());
        {
            let held = self.transaction.open_table(HELD)?;
            let records = self.transaction.open_table(RECORDS)?;
            for facet in facets {
                let prefix = prefix(entry, author, *facet);
                for place in shared_reads::places_of(&held, &prefix)? {
                    let (seq, digest) = place?;
                    match Error::unless_damaged(shared_reads::record_at(&records, seq, digest))? {
                        Some(record) => whole.push(record),
                        None => damaged.push(key(&[&prefix, digest.as_bytes()])),
                    }
                }
            }
        }
        if !damaged.is_empty() {
            self.drop_held(&damaged)?;
            if let Some(mut row) = self.view_row(entry)? {
                let dropped = u32::try_from(damaged.len()).unwrap_or(u32::MAX);
                row.records = row.records.saturating_sub(dropped);
                self.put_view_row(entry, &row)?;
            }
        }
        let dropped = damaged.iter().map(|at| Digest::from_bytes(part(at, 49))).collect();
        Ok((LiveRecords::from_held(whole.into_iter()), dropped))
    }

    /// The stored record with this digest.
    pub fn record(&self, digest: Digest) -> Result<Option<Record>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        shared_reads::record_at(&self.transaction.open_table(RECORDS)?, seq, digest).map(Some)
    }

    /// The header of a stored, intact record.
    pub fn header_of(&self, digest: Digest) -> Result<Option<SignedHeader>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        shared_reads::header_at(&self.transaction.open_table(RECORDS)?, seq, digest).map(Some)
    }

    fn seq_of(&self, digest: Digest) -> Result<Option<Seq>, Error> {
        let digests = self.transaction.open_table(DIGESTS)?;
        let seq = digests.get(digest.as_bytes())?;
        Ok(seq.map(|seq| Seq(u64::from_be_bytes(*seq.value()))))
    }

    /// The claims of all authors on an entry. Tallies are not read, since they contain no claims
    /// and may be long.
    pub fn claims(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let mut claims = Vec::new();
        for row in held.range::<&HeldKey>(&first..=&last)? {
            let (at, seq) = row?;
            if at.value()[48] == Facet::Claims.code() {
                let seq = Seq(u64::from_be_bytes(*seq.value()));
                let digest = Digest::from_bytes(part(at.value(), 49));
                claims.push(shared_reads::record_at(&records, seq, digest)?);
            }
        }
        Ok(claims)
    }

    /// The bytes that each author's records on an entry take, except edits, which have limits of their
    /// own. No record is decoded.
    pub fn bytes_by_author(&self, entry: EntryId) -> Result<BTreeMap<AuthorId, u64>, Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let mut bytes = BTreeMap::<AuthorId, u64>::new();
        for row in held.range::<&HeldKey>(&first..=&last)? {
            let (at, seq) = row?;
            if at.value()[48] == Facet::Edit.code() {
                continue;
            }
            let length = records.get(seq.value())?.map_or(0, |row| row.value().len());
            let author = AuthorId::from_bytes(part(at.value(), 16));
            *bytes.entry(author).or_default() += length as u64;
        }
        Ok(bytes)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Batch {
    /// Overwrites a stored record with invalid bytes.
    pub fn corrupt_record(&self, digest: Digest) -> Result<(), Error> {
        let places = self.transaction.open_table(DIGESTS)?;
        let seq = places.get(digest.as_bytes())?.map(|seq| *seq.value());
        let seq = seq.expect("the record is held");
        let mut records = self.transaction.open_table(RECORDS)?;
        records.insert(&seq, b"spoiled".as_slice())?;
        Ok(())
    }

    /// Stores a validly signed record whose payload cannot be decoded.
    pub fn put_unreadable(
        &self,
        header: &klnode_crdt::header::Header,
        key_of_author: &klnode_crdt::signing_key::SecretKey,
    ) -> Result<(), Error> {
        use crate::row_types;
        use crate::tables::META_HEAD;
        use klnode_crdt::digest;
        use klnode_crdt::record::RawRecord;
        let payload = b"\xc1".to_vec();
        let mut header = header.clone();
        header.payload_digest = digest::of(digest::Context::Payload, &payload);
        header.payload_bytes = 1;
        let signed = SignedHeader::seal(header, key_of_author);
        let (bytes, signature) = (signed.bytes().to_vec(), signed.signature());
        let row = RawRecord { header: bytes, signature, payload: Some(payload) };
        let seq = (self.head()?.0 + 1).to_be_bytes();
        self.put_meta(META_HEAD, &seq)?;
        let (entry, author) = (signed.header().entry, signed.header().author);
        let prefix = prefix(entry, author, signed.header().facet);
        let at: HeldKey = key(&[&prefix, signed.digest().as_bytes()]);
        self.transaction.open_table(RECORDS)?.insert(&seq, row_types::encode(&row).as_slice())?;
        self.transaction.open_table(HELD)?.insert(&at, &seq)?;
        self.transaction.open_table(DIGESTS)?.insert(signed.digest().as_bytes(), &seq)?;
        Ok(())
    }
}

impl Snapshot {
    /// The number of an author's records on an entry.
    pub fn held_count(&self, at: (EntryId, AuthorId, &[Facet])) -> Result<usize, Error> {
        Ok(names(self.held()?, at)?.len())
    }

    /// The header of a stored record, even if the rest of the record is damaged.
    pub fn header_of(&self, digest: Digest) -> Result<Option<SignedHeader>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        shared_reads::header_alone(self.records()?, seq, digest).map(Some)
    }

    /// The author of a stored, intact record.
    pub fn author_of(&self, digest: Digest) -> Result<Option<AuthorId>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        let header = Error::unless_damaged(shared_reads::header_at(self.records()?, seq, digest))?;
        Ok(header.map(|signed| signed.header().author))
    }
}
