//! What one commit left: reads without locks, streaming, while the writer goes on.
//!
//! Nothing here loads the whole store: what may be long is an iterator.

use super::error::Error;
use super::open::OpenFile;
use super::opened::Opened;
use super::read::{self, Damage};
use super::rows::{
    self, CallerRow, OverlayRow, PairRow, QuarantineRow, Seq, ServedRow, UseRow, ViewRow,
};
use super::tables::{
    CALLERS, DIGESTS, EPOCHS, EQUIVOCATIONS, HeldKey, LEDGER, META, META_AUTHOR, META_ERASED,
    META_HEAD, QUARANTINE, part,
};
use klnode_crdt::equivocation::{Proof, RawProof};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::holding::{EntryRecords, Holding};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::time::WallTime;
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An immutable view of the store.
pub struct Snapshot {
    pub(super) transaction: ReadTransaction,
    pub(super) opened: Opened,
    head: Seq,
    /// Let go last: it is closed with its last reader once the store was written anew.
    _file: Arc<OpenFile>,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Entries, forgotten ones included.
    pub entries: u64,
    /// Entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Live records.
    pub records: u64,
}

/// One row of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub seq: Seq,
    /// By which record.
    pub record: Record,
}

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction, file: Arc<OpenFile>) -> Result<Self, Error> {
        let meta = transaction.open_table(META)?;
        let head = meta.get(&META_HEAD)?;
        let bytes = head.as_ref().map(redb::AccessGuard::value).filter(|head| head.len() == 8);
        let bytes = bytes.ok_or_else(|| Error::damaged("the head of the feed", "it is missing"))?;
        let head = Seq(u64::from_be_bytes(part(bytes, 0)));
        Ok(Self { transaction, opened: Opened::default(), head, _file: file })
    }

    /// Whose store it is; not yet known of one that only an earlier version has written.
    pub fn author(&self) -> Result<Option<AuthorId>, Error> {
        let meta = self.transaction.open_table(META)?;
        let Some(author) = meta.get(&META_AUTHOR)? else { return Ok(None) };
        let read = AuthorId::from_slice(author.value());
        read.map(Some).ok_or_else(|| Error::damaged("the author of the store", "it is no key"))
    }

    /// The newest position of the feed.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// What was committed after a position, in order.
    pub fn changes_since(
        &self,
        seq: Seq,
    ) -> Result<impl Iterator<Item = Result<Change, Error>> + use<>, Error> {
        let first = seq.0.saturating_add(1).to_be_bytes();
        let rows = self.records()?.range::<&[u8; 8]>(&first..)?;
        Ok(rows.map(|row| {
            let (seq, row) = row?;
            let seq = Seq(u64::from_be_bytes(*seq.value()));
            Ok(Change { seq, record: read::record(seq, row.value())? })
        }))
    }

    /// Where each process start began in the feed, by position.
    pub fn epochs(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Seq, Boot), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(EPOCHS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.map(|row| {
            let (at, _) = row?;
            let first = Seq(u64::from_be_bytes(part(at.value(), 0)));
            Ok((first, Boot(u64::from_be_bytes(part(at.value(), 8)))))
        }))
    }

    /// When each process start took over, in the order of the feed.
    pub(crate) fn epoch_times(
        &self,
    ) -> Result<impl Iterator<Item = Result<WallTime, Error>> + use<>, Error> {
        let rows = self.transaction.open_table(EPOCHS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.map(|row| Ok(WallTime::from_millis(u64::from_be_bytes(*row?.1.value())))))
    }

    /// The process start that writes now, or wrote last.
    pub fn newest_epoch(&self) -> Result<Option<Boot>, Error> {
        let epochs = self.transaction.open_table(EPOCHS)?;
        let newest = epochs.last()?;
        Ok(newest.map(|(at, _)| Boot(u64::from_be_bytes(part(at.value(), 8)))))
    }

    /// All entries with their view rows, by id.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<(EntryId, ViewRow), Error>> + use<>, Error> {
        self.entries_between([0; 16], [0xFF; 16])
    }

    /// Entries whose id lies between two, both included.
    pub fn entries_between(
        &self,
        first: [u8; 16],
        last: [u8; 16],
    ) -> Result<impl Iterator<Item = Result<(EntryId, ViewRow), Error>> + use<>, Error> {
        let rows = self.views()?.range::<&[u8; 16]>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (entry, row) = row?;
            Ok((EntryId::from_bytes(*entry.value()), rows::decode("views", row.value())?))
        }))
    }

    /// How many entries there are, forgotten ones included.
    pub fn entry_count(&self) -> Result<u64, Error> {
        Ok(self.views()?.len()?)
    }

    /// Whether something was erased of which pages that nothing uses may still tell.
    pub fn has_erased(&self) -> Result<bool, Error> {
        let meta = self.transaction.open_table(META)?;
        Ok(meta.get(&META_ERASED)?.is_some())
    }

    /// How many entries of which only a tombstone is left.
    pub fn forgotten_count(&self) -> Result<u64, Error> {
        Ok(self.tombstones()?.len()?)
    }

    /// How much there is.
    pub fn counts(&self) -> Result<Counts, Error> {
        Ok(Counts {
            entries: self.entry_count()?,
            forgotten: self.forgotten_count()?,
            records: self.records()?.len()?,
        })
    }

    /// Entries of which only a tombstone is left, by id.
    pub fn forgotten(&self) -> Result<impl Iterator<Item = Result<EntryId, Error>> + use<>, Error> {
        let rows = self.tombstones()?.range::<&[u8; 16]>(..)?;
        Ok(rows.map(|row| Ok(EntryId::from_bytes(*row?.0.value()))))
    }

    /// The view row of an entry.
    pub fn view_row(&self, entry: EntryId) -> Result<Option<ViewRow>, Error> {
        read::view_row(self.views()?, entry)
    }

    /// Where the newest record stands that can change what an entry says.
    pub fn text_seq(&self, entry: EntryId) -> Result<Seq, Error> {
        read::text_seq(self.held()?, entry)
    }

    /// All records of an entry.
    pub fn entry(&self, entry: EntryId) -> Result<EntryRecords, Error> {
        if let Some(tombstone) = self.tombstone(entry)? {
            return Ok(EntryRecords::Forgotten(Box::new(tombstone)));
        }
        let mut authors = BTreeMap::<AuthorId, Vec<Record>>::new();
        let (held, records) = (self.held()?, self.records()?);
        for (_, record) in read::records_of(held, records, entry.as_bytes(), Damage::Told)? {
            authors.entry(record.author()).or_default().push(record);
        }
        let holdings =
            authors.into_iter().map(|(by, records)| (by, Holding::from_held(records.into_iter())));
        Ok(EntryRecords::Live(holdings.collect()))
    }

    /// All live records of an entry, its tombstone included, each with its place in the feed.
    pub fn places(&self, entry: EntryId) -> Result<Vec<(Seq, Record)>, Error> {
        let held = self.held()?;
        let records = self.records()?;
        read::records_of(held, records, entry.as_bytes(), Damage::Told)
    }

    /// Everyone of whom anything is held about an entry, told without reading it.
    pub fn authors(&self, entry: EntryId) -> Result<Vec<AuthorId>, Error> {
        let held = self.held()?;
        let mut authors = Vec::new();
        while let Some(author) = read::author_after(held, entry, authors.last().copied())? {
            authors.push(author);
        }
        Ok(authors)
    }

    /// The same records as far as they are whole: what is damaged counts as not held.
    pub fn whole_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let held = self.held()?;
        let records = self.records()?;
        let found = read::records_of(held, records, entry.as_bytes(), Damage::PassedOver)?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// The headers of these.
    pub fn whole_headers(&self, entry: EntryId) -> Result<Vec<SignedHeader>, Error> {
        read::headers_under(self.held()?, self.records()?, entry.as_bytes())
    }

    /// Who asked for the record at a position, if it was written here.
    pub fn caller(&self, seq: Seq) -> Result<Option<CallerRow>, Error> {
        read::row("callers", &self.transaction.open_table(CALLERS)?, &seq.0.to_be_bytes())
    }

    /// One author's records on an entry.
    pub fn holding(&self, entry: EntryId, author: AuthorId) -> Result<Holding, Error> {
        let held = self.held()?;
        let records = self.records()?;
        read::holding(held, records, entry, author, &Facet::ALL, Damage::Told)
    }

    /// Where the record with this digest stands, if it is live.
    pub(super) fn seq_of(&self, digest: Digest) -> Result<Option<Seq>, Error> {
        let seq = self.transaction.open_table(DIGESTS)?.get(digest.as_bytes())?;
        Ok(seq.map(|seq| Seq(u64::from_be_bytes(*seq.value()))))
    }

    /// The record with this digest, if it is live.
    pub fn record(&self, digest: Digest) -> Result<Option<Record>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        read::record_at(self.records()?, seq, digest).map(Some)
    }

    /// The same, if it is whole to its signature: a peer would hold anything else against us.
    pub fn record_to_send(&self, digest: Digest) -> Result<Option<Record>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        read::record_to_send(self.records()?, seq, digest).map(Some)
    }

    /// Whether a record is held and whole as far as it can be: one that came without its payload
    /// is still wanted, and so is one that was damaged since.
    pub fn holds(&self, digest: Digest) -> Result<bool, Error> {
        let record = Error::unless_damaged(self.record(digest))?.flatten();
        Ok(record.is_some_and(|record| record.absence() != Some(Absence::Stripped)))
    }

    /// The tombstone of an entry.
    pub fn tombstone(&self, entry: EntryId) -> Result<Option<Record>, Error> {
        read::tombstone(self.tombstones()?, self.records()?, entry)
    }

    /// The proof that an author equivocated.
    pub fn equivocation(&self, author: AuthorId) -> Result<Option<Proof>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        let Some(row) = table.get(author.as_bytes())? else { return Ok(None) };
        let raw: RawProof = rows::decode("equivocations", row.value())?;
        Proof::verify(&raw).map(Some).map_err(Error::refused(|| "a proof of equivocation"))
    }

    /// Authors that are proved to have equivocated.
    pub fn convicted(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// Which of some authors are proved to have equivocated: what it takes does not grow with whomever
    /// else peers convict.
    pub(crate) fn convicted_among(
        &self,
        authors: &BTreeSet<AuthorId>,
    ) -> Result<BTreeSet<AuthorId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        let mut convicted = BTreeSet::new();
        for author in authors {
            if table.get(author.as_bytes())?.is_some() {
                convicted.insert(*author);
            }
        }
        Ok(convicted)
    }

    /// Records that wait for the operator.
    pub fn quarantine(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Digest, QuarantineRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            let digest = Digest::from_bytes(part(at.value(), 49));
            Ok((digest, rows::decode("quarantine", row.value())?))
        }))
    }

    /// How many records wait for the operator.
    pub fn quarantined_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(QUARANTINE)?.len()?)
    }

    /// The operator's marks on an entry.
    pub fn overlay(&self, entry: EntryId) -> Result<OverlayRow, Error> {
        Ok(read::row("overlays", self.overlay_rows()?, entry.as_bytes())?.unwrap_or_default())
    }

    /// What was served, the newest first.
    pub fn served(
        &self,
    ) -> Result<impl Iterator<Item = Result<(WallTime, ServedRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(LEDGER)?.range::<&[u8; 16]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            let at = WallTime::from_millis(u64::from_be_bytes(part(at.value(), 0)));
            Ok((at, rows::decode("ledger", row.value())?))
        }))
    }

    /// How an entry was used.
    pub fn uses(&self, entry: EntryId) -> Result<UseRow, Error> {
        read::uses(self.use_rows()?, entry)
    }

    /// How strongly two entries belong together.
    pub fn pair(&self, one: EntryId, two: EntryId) -> Result<Option<PairRow>, Error> {
        read::pair(self.pair_rows()?, one, two)
    }
}
