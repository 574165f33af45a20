//! What is looked at beside a record: what its author says of its entry, in some facets, which it is
//! merged with; what others claim; and how much of it all there is.
//!
//! There may be many of them, and each may be large. How many there are is told by their keys, and which
//! takes the place of which by their headers.

use super::batch::Batch;
use super::error::Error;
use super::read;
use super::rows::Seq;
use super::snapshot::Snapshot;
use super::tables::{HELD, HeldKey, RECORDS, key, part, span};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use redb::ReadableTable;
use std::collections::BTreeMap;

/// How the keys in `held` begin of what an author says of an entry in a facet.
fn prefix(entry: EntryId, author: AuthorId, facet: Facet) -> [u8; 49] {
    key(&[entry.as_bytes(), author.as_bytes(), &[facet.code()]])
}

/// The names of what an author says of an entry, facet by facet, each in order.
fn names(
    held: &impl read::Held,
    (entry, author, facets): (EntryId, AuthorId, &[Facet]),
) -> Result<Vec<Digest>, Error> {
    let mut names = Vec::new();
    for facet in facets {
        let prefix = prefix(entry, author, *facet);
        for place in read::places_of(held, &prefix)? {
            names.push(place?.1);
        }
    }
    Ok(names)
}

impl Batch {
    /// What an author's records on an entry are called, without a look at them.
    pub(crate) fn held_names(
        &self,
        at: (EntryId, AuthorId, &[Facet]),
    ) -> Result<Vec<Digest>, Error> {
        names(&self.transaction.open_table(HELD)?, at)
    }

    /// The headers of those in one facet that are whole, in the order of their names.
    pub(crate) fn held_headers(
        &self,
        (entry, author, facet): (EntryId, AuthorId, Facet),
    ) -> Result<Vec<SignedHeader>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        read::headers_under(&held, &records, &prefix(entry, author, facet))
    }

    /// The records themselves. What is damaged is dropped: it counts as not held, so that a whole one
    /// can take its place; what a newer one covers is never brought again. Told is what was dropped.
    pub(crate) fn whole_holding(
        &self,
        (entry, author, facets): (EntryId, AuthorId, &[Facet]),
    ) -> Result<(Holding, Vec<Digest>), Error> {
        let (mut whole, mut damaged) = (Vec::new(), Vec::<HeldKey>::new());
        {
            let held = self.transaction.open_table(HELD)?;
            let records = self.transaction.open_table(RECORDS)?;
            for facet in facets {
                let prefix = prefix(entry, author, *facet);
                for place in read::places_of(&held, &prefix)? {
                    let (seq, digest) = place?;
                    match Error::unless_damaged(read::record_at(&records, seq, digest))? {
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
        Ok((Holding::from_held(whole.into_iter()), dropped))
    }

    /// What is claimed of an entry, by whomever. What anyone has counted is not read: that says nothing,
    /// and may be long.
    pub(crate) fn claims(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let mut claims = Vec::new();
        for row in held.range::<&HeldKey>(&first..=&last)? {
            let (at, seq) = row?;
            if at.value()[48] == Facet::Claims.code() {
                let seq = Seq(u64::from_be_bytes(*seq.value()));
                let digest = Digest::from_bytes(part(at.value(), 49));
                claims.push(read::record_at(&records, seq, digest)?);
            }
        }
        Ok(claims)
    }

    /// How many bytes of an entry's records are each author's. None of them is decoded.
    pub(crate) fn bytes_by_author(&self, entry: EntryId) -> Result<BTreeMap<AuthorId, u64>, Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let mut bytes = BTreeMap::<AuthorId, u64>::new();
        for row in held.range::<&HeldKey>(&first..=&last)? {
            let (at, seq) = row?;
            let length = records.get(seq.value())?.map_or(0, |row| row.value().len());
            let author = AuthorId::from_bytes(part(at.value(), 16));
            *bytes.entry(author).or_default() += length as u64;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
impl Batch {
    /// Spoils a record where it stands.
    pub(crate) fn spoil(&self, digest: Digest) -> Result<(), Error> {
        use crate::store::tables::DIGESTS;
        let places = self.transaction.open_table(DIGESTS)?;
        let seq = places.get(digest.as_bytes())?.map(|seq| *seq.value());
        let seq = seq.expect("the record is held");
        let mut records = self.transaction.open_table(RECORDS)?;
        records.insert(&seq, b"spoiled".as_slice())?;
        Ok(())
    }

    /// Puts a record in whose author has signed a payload that means nothing.
    pub(crate) fn put_unreadable(
        &self,
        header: &klnode_crdt::header::Header,
        key_of_author: &klnode_crdt::key::SecretKey,
    ) -> Result<(), Error> {
        use crate::store::rows;
        use crate::store::tables::{DIGESTS, META_HEAD};
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
        self.transaction.open_table(RECORDS)?.insert(&seq, rows::encode(&row).as_slice())?;
        self.transaction.open_table(HELD)?.insert(&at, &seq)?;
        self.transaction.open_table(DIGESTS)?.insert(signed.digest().as_bytes(), &seq)?;
        Ok(())
    }
}

impl Snapshot {
    /// How many records an author has on an entry.
    pub(crate) fn held_count(&self, at: (EntryId, AuthorId, &[Facet])) -> Result<usize, Error> {
        Ok(names(self.held()?, at)?.len())
    }

    /// The header of a record that is held, whether or not the rest of it is whole.
    pub(crate) fn header_of(&self, digest: Digest) -> Result<Option<SignedHeader>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        read::header_alone(self.records()?, seq, digest).map(Some)
    }

    /// Whose a record is that is held and whole.
    pub(crate) fn author_of(&self, digest: Digest) -> Result<Option<AuthorId>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        let header = Error::unless_damaged(read::header_at(self.records()?, seq, digest))?;
        Ok(header.map(|signed| signed.header().author))
    }
}
