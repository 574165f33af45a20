//! A read-only view of one commit: lock-free, streaming reads while the writer continues.
//!
//! No method loads the whole store; long results are iterators.

mod table_cache;

use super::error::Error;
use super::open_file::OpenFile;
use super::row_types::{
    self, CallerRow, MarksRow, PairRow, QuarantineRow, Seq, ServedRow, UseRow, ViewRow,
};
use super::shared_reads::{self, Damage};
use super::tables::{
    CALLERS, DIGESTS, EPOCHS, EQUIVOCATIONS, HeldKey, LEDGER, META, META_AUTHOR, META_ERASED,
    META_HEAD, QUARANTINE, part,
};
use klnode_crdt::equivocation::{EquivocationProof, RawProof};
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::live_records::{EntryRecords, LiveRecords};
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::time::WallTime;
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table_cache::TableCache;

/// An immutable view of the store.
pub struct Snapshot {
    pub(super) transaction: ReadTransaction,
    opened: TableCache,
    head: Seq,
    /// Dropped last: after a rewrite the old file is closed with its last reader.
    _file: Arc<OpenFile>,
}

/// Sizes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCounts {
    /// Number of entries, including forgotten ones.
    pub entries: u64,
    /// Number of entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Number of live records.
    pub records: u64,
}

/// A row of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// The position in the feed.
    pub seq: Seq,
    /// The record committed there.
    pub record: Record,
}

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction, file: Arc<OpenFile>) -> Result<Self, Error> {
        let meta = transaction.open_table(META)?;
        let head = meta.get(&META_HEAD)?;
        let bytes = head.as_ref().map(redb::AccessGuard::value).filter(|head| head.len() == 8);
        let bytes = bytes.ok_or_else(|| Error::damaged("the head of the feed", "it is missing"))?;
        let head = Seq(u64::from_be_bytes(part(bytes, 0)));
        Ok(Self { transaction, opened: TableCache::default(), head, _file: file })
    }

    /// The author the store belongs to; unknown if only an earlier version has written it.
    pub fn author(&self) -> Result<Option<AuthorId>, Error> {
        let meta = self.transaction.open_table(META)?;
        let Some(author) = meta.get(&META_AUTHOR)? else { return Ok(None) };
        let read = AuthorId::from_slice(author.value());
        read.map(Some).ok_or_else(|| Error::damaged("the author of the store", "it is no key"))
    }

    /// The newest feed position.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// The records committed after a position, in order.
    pub fn changes_since(
        &self,
        seq: Seq,
    ) -> Result<impl Iterator<Item = Result<FeedRow, Error>> + use<>, Error> {
        let first = seq.0.saturating_add(1).to_be_bytes();
        let rows = self.records()?.range::<&[u8; 8]>(&first..)?;
        Ok(rows.map(|row| {
            let (seq, row) = row?;
            let seq = Seq(u64::from_be_bytes(*seq.value()));
            Ok(FeedRow { seq, record: shared_reads::record(seq, row.value())? })
        }))
    }

    /// The first feed position of each process start, in order.
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

    /// The time of each process start, in feed order.
    pub fn epoch_times(
        &self,
    ) -> Result<impl Iterator<Item = Result<WallTime, Error>> + use<>, Error> {
        let rows = self.transaction.open_table(EPOCHS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.map(|row| Ok(WallTime::from_millis(u64::from_be_bytes(*row?.1.value())))))
    }

    /// The current or last process start.
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

    /// The entries whose id lies between two ids, both included.
    pub fn entries_between(
        &self,
        first: [u8; 16],
        last: [u8; 16],
    ) -> Result<impl Iterator<Item = Result<(EntryId, ViewRow), Error>> + use<>, Error> {
        let rows = self.views()?.range::<&[u8; 16]>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (entry, row) = row?;
            Ok((EntryId::from_bytes(*entry.value()), row_types::decode("views", row.value())?))
        }))
    }

    /// The number of entries, including forgotten ones.
    pub fn entry_count(&self) -> Result<u64, Error> {
        Ok(self.views()?.len()?)
    }

    /// Whether unused pages may still contain erased data.
    pub fn has_erased(&self) -> Result<bool, Error> {
        let meta = self.transaction.open_table(META)?;
        Ok(meta.get(&META_ERASED)?.is_some())
    }

    /// The number of entries of which only a tombstone is left.
    pub fn forgotten_count(&self) -> Result<u64, Error> {
        Ok(self.tombstones()?.len()?)
    }

    /// The sizes of the store.
    pub fn counts(&self) -> Result<StoreCounts, Error> {
        Ok(StoreCounts {
            entries: self.entry_count()?,
            forgotten: self.forgotten_count()?,
            records: self.records()?.len()?,
        })
    }

    /// The entries of which only a tombstone is left, by id.
    pub fn forgotten(&self) -> Result<impl Iterator<Item = Result<EntryId, Error>> + use<>, Error> {
        let rows = self.tombstones()?.range::<&[u8; 16]>(..)?;
        Ok(rows.map(|row| Ok(EntryId::from_bytes(*row?.0.value()))))
    }

    /// The view row of an entry; `None` if this node has no record of it.
    pub fn view_row(&self, entry: EntryId) -> Result<Option<ViewRow>, Error> {
        shared_reads::view_row(self.views()?, entry)
    }

    /// The position of the newest record that can change an entry's text.
    pub fn text_seq(&self, entry: EntryId) -> Result<Seq, Error> {
        shared_reads::text_seq(self.held()?, entry)
    }

    /// All records of an entry, except the edits of its document.
    pub fn entry(&self, entry: EntryId) -> Result<EntryRecords, Error> {
        if let Some(tombstone) = self.tombstone(entry)? {
            return Ok(EntryRecords::Forgotten(Box::new(tombstone)));
        }
        let mut authors = BTreeMap::<AuthorId, Vec<Record>>::new();
        let (held, records) = (self.held()?, self.records()?);
        for record in shared_reads::state_records(held, records, entry, Damage::Told)? {
            authors.entry(record.author()).or_default().push(record);
        }
        let holdings = authors
            .into_iter()
            .map(|(by, records)| (by, LiveRecords::from_held(records.into_iter())));
        Ok(EntryRecords::Live(holdings.collect()))
    }

    /// All live records of an entry, including its tombstone, with their feed positions.
    pub fn places(&self, entry: EntryId) -> Result<Vec<(Seq, Record)>, Error> {
        let held = self.held()?;
        let records = self.records()?;
        shared_reads::records_of(held, records, entry.as_bytes(), Damage::Told)
    }

    /// All authors with a record on an entry, from the keys alone.
    pub fn authors(&self, entry: EntryId) -> Result<Vec<AuthorId>, Error> {
        let held = self.held()?;
        let mut authors = Vec::new();
        while let Some(author) = shared_reads::author_after(held, entry, authors.last().copied())? {
            authors.push(author);
        }
        Ok(authors)
    }

    /// The intact records of an entry, except the edits of its document; damaged ones count as
    /// missing.
    pub fn whole_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let held = self.held()?;
        let records = self.records()?;
        shared_reads::state_records(held, records, entry, Damage::PassedOver)
    }

    /// The headers of an entry's intact records.
    pub fn whole_headers(&self, entry: EntryId) -> Result<Vec<SignedHeader>, Error> {
        shared_reads::headers_under(self.held()?, self.records()?, entry.as_bytes())
    }

    /// The caller that caused the record at a position, if it was written here.
    pub fn caller(&self, seq: Seq) -> Result<Option<CallerRow>, Error> {
        shared_reads::row("callers", &self.transaction.open_table(CALLERS)?, &seq.0.to_be_bytes())
    }

    /// One author's records on an entry, except its edits.
    pub fn holding(&self, entry: EntryId, author: AuthorId) -> Result<LiveRecords, Error> {
        let held = self.held()?;
        let records = self.records()?;
        shared_reads::holding(held, records, entry, author, &Facet::OF_ENTRY, Damage::Told)
    }

    /// The feed position of the live record with this digest.
    pub(super) fn seq_of(&self, digest: Digest) -> Result<Option<Seq>, Error> {
        let seq = self.transaction.open_table(DIGESTS)?.get(digest.as_bytes())?;
        Ok(seq.map(|seq| Seq(u64::from_be_bytes(*seq.value()))))
    }

    /// The live record with this digest.
    pub fn record(&self, digest: Digest) -> Result<Option<Record>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        shared_reads::record_at(self.records()?, seq, digest).map(Some)
    }

    /// The live record with this digest, with a verified signature: a peer would blame this node
    /// for an invalid one.
    pub fn record_to_send(&self, digest: Digest) -> Result<Option<Record>, Error> {
        let Some(seq) = self.seq_of(digest)? else { return Ok(None) };
        shared_reads::record_to_send(self.records()?, seq, digest).map(Some)
    }

    /// Whether a record is stored as completely as possible. A record that arrived without its
    /// payload, or was damaged since, is still wanted.
    pub fn holds(&self, digest: Digest) -> Result<bool, Error> {
        let record = Error::unless_damaged(self.record(digest))?.flatten();
        Ok(record.is_some_and(|record| record.absence() != Some(Absence::Stripped)))
    }

    /// The tombstone of an entry; `None` if it was not forgotten.
    pub fn tombstone(&self, entry: EntryId) -> Result<Option<Record>, Error> {
        shared_reads::tombstone(self.tombstones()?, self.records()?, entry)
    }

    /// The proof that an author equivocated.
    pub fn equivocation(&self, author: AuthorId) -> Result<Option<EquivocationProof>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        let Some(row) = table.get(author.as_bytes())? else { return Ok(None) };
        let raw: RawProof = row_types::decode("equivocations", row.value())?;
        EquivocationProof::verify(&raw)
            .map(Some)
            .map_err(Error::to_damage(|| "a proof of equivocation"))
    }

    /// All authors with a proof of equivocation.
    pub fn convicted_authors(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// The authors among these with a proof of equivocation. The cost does not depend on how many
    /// others peers have convicted.
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

    /// All quarantined records.
    pub fn quarantine(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Digest, QuarantineRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            let digest = Digest::from_bytes(part(at.value(), 49));
            Ok((digest, row_types::decode("quarantine", row.value())?))
        }))
    }

    /// The number of quarantined records.
    pub fn quarantined_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(QUARANTINE)?.len()?)
    }

    /// The operator's marks on an entry.
    pub fn overlay(&self, entry: EntryId) -> Result<MarksRow, Error> {
        Ok(shared_reads::row("overlays", self.overlay_rows()?, entry.as_bytes())?
            .unwrap_or_default())
    }

    /// The serving log, newest row first.
    pub fn serving_log(
        &self,
    ) -> Result<impl Iterator<Item = Result<(WallTime, ServedRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(LEDGER)?.range::<&[u8; 16]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            let at = WallTime::from_millis(u64::from_be_bytes(part(at.value(), 0)));
            Ok((at, row_types::decode("ledger", row.value())?))
        }))
    }

    /// Usage data of an entry.
    pub fn uses(&self, entry: EntryId) -> Result<UseRow, Error> {
        shared_reads::uses(self.use_rows()?, entry)
    }

    /// The co-occurrence weight of two entries.
    pub fn pair(&self, one: EntryId, two: EntryId) -> Result<Option<PairRow>, Error> {
        shared_reads::pair(self.pair_rows()?, one, two)
    }
}
