//! A write transaction, the only place where the store is written.
//!
//! A batch is committed atomically. Its methods insert and remove rows; the engine decides which.

use super::error::Error;
use super::row_types::{
    self, CallerRow, MarksRow, PairRow, QuarantineRow, RecordRow, Seq, ServedRow, UseRow, ViewRow,
};
use super::shared_reads::{self, Damage};
use super::tables::{
    CALLERS, DIGESTS, EPOCHS, EQUIVOCATIONS, HELD, HeldKey, LEDGER, LEDGER_ROWS_MAX, META,
    META_AUTHOR, META_ERASED, META_HEAD, OVERLAYS, PAIRS, QUARANTINE, RECORDS, TOMBSTONES, USES,
    VIEWS, each_table, held_key, key, part, span,
};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::version_vector::VersionVector;
use redb::{Database, ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// When a commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On disk when the commit returns.
    Durable,
    /// On disk when the commit returns, with a two-phase commit. For foreign bytes, whose author
    /// could craft them so that a torn write passes as complete.
    DurableForeign,
    /// On disk with a later durable commit.
    Deferred,
}

/// Most quarantined records over all peers. All of them are read whenever a peer offers records.
const WAITING_MAX: u64 = 10_000;

/// Most quarantined records delivered by one peer, so that it cannot use up the room of others.
pub const WAITING_OF_PEER_MAX: u64 = 1_000;

/// Whether a record was put into quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineResult {
    /// The record is in quarantine.
    Kept,
    /// Too many records of the same author and entry, of the same peer, or in all, are in
    /// quarantine.
    Full,
}

/// An open write transaction.
pub struct Batch {
    pub(super) transaction: WriteTransaction,
    /// Entries forgotten in this transaction whose usage data is not wiped yet.
    pub(super) forgotten: RefCell<BTreeSet<EntryId>>,
}

impl Batch {
    pub(super) fn begin(database: &Database, durability: Durability) -> Result<Self, Error> {
        let mut transaction = database.begin_write()?;
        match durability {
            Durability::Durable => {}
            Durability::DurableForeign => transaction.set_two_phase_commit(true),
            Durability::Deferred => transaction
                .set_durability(redb::Durability::None)
                .map_err(|error| Error::damaged("the transaction", &error))?,
        }
        Ok(Self { transaction, forgotten: RefCell::default() })
    }

    /// Commits the batch. After an error the outcome is unknown until the store is reopened.
    pub fn commit(self) -> Result<(), Error> {
        self.wipe_forgotten()?;
        Ok(self.transaction.commit()?)
    }

    pub(super) fn open_all(&self) -> Result<(), Error> {
        macro_rules! open {
            ($table:expr) => {
                self.transaction.open_table($table)?;
            };
        }
        each_table!(open);
        Ok(())
    }

    pub(super) fn put_meta(&self, name: [u8; 8], value: &[u8]) -> Result<(), Error> {
        self.transaction.open_table(META)?.insert(&name, value)?;
        Ok(())
    }

    /// Assigns the store to an author, unless it has an owner.
    pub fn belong_to(&self, author: AuthorId) -> Result<(), Error> {
        let mut meta = self.transaction.open_table(META)?;
        let is_known = meta.get(&META_AUTHOR)?.is_some();
        if !is_known {
            meta.insert(&META_AUTHOR, &author.as_bytes()[..])?;
        }
        Ok(())
    }

    /// Assigns the store to an author, or with `None` to the next node that opens it.
    pub(super) fn hand_over(&self, author: Option<AuthorId>) -> Result<(), Error> {
        let mut meta = self.transaction.open_table(META)?;
        match author {
            Some(author) => meta.insert(&META_AUTHOR, &author.as_bytes()[..])?,
            None => meta.remove(&META_AUTHOR)?,
        };
        Ok(())
    }

    /// The newest feed position. It is stored separately because the newest record may have been
    /// dropped; the larger of the stored number and the last record wins.
    pub fn head(&self) -> Result<Seq, Error> {
        let meta = self.transaction.open_table(META)?;
        let head = meta.get(&META_HEAD)?;
        let bytes = head.as_ref().map(redb::AccessGuard::value).filter(|head| head.len() == 8);
        let bytes = bytes.ok_or_else(|| Error::damaged("the head of the feed", "it is missing"))?;
        let kept = u64::from_be_bytes(part(bytes, 0));
        let records = self.transaction.open_table(RECORDS)?;
        let newest = records.last()?.map_or(0, |(seq, _)| u64::from_be_bytes(*seq.value()));
        Ok(Seq(kept.max(newest)))
    }

    /// Notes that the records of a process start begin here in the feed.
    pub fn begin_epoch(&self, boot: Boot, now: WallTime) -> Result<(), Error> {
        let first = self.head()?.0 + 1;
        let at = key(&[&first.to_be_bytes(), &boot.0.to_be_bytes()]);
        let mut epochs = self.transaction.open_table(EPOCHS)?;
        epochs.insert(&at, &now.as_millis().to_be_bytes())?;
        Ok(())
    }

    // Reads within the transaction.

    /// One author's records on an entry in these facets.
    pub fn holding(
        &self,
        entry: EntryId,
        author: AuthorId,
        facets: &[Facet],
        damage: Damage,
    ) -> Result<LiveRecords, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        shared_reads::holding(&held, &records, entry, author, facets, damage)
    }

    /// The position of the newest record that can change an entry's text.
    pub fn text_seq(&self, entry: EntryId) -> Result<Seq, Error> {
        shared_reads::text_seq(&self.transaction.open_table(HELD)?, entry)
    }

    /// The digests of all records of an entry, from the keys alone.
    pub(crate) fn digests_of(&self, entry: EntryId) -> Result<Vec<Digest>, Error> {
        let keys = self.held_keys(entry)?;
        Ok(keys.iter().map(|at| Digest::from_bytes(part(at, 49))).collect())
    }

    /// An entry joined from its records.
    pub fn entry(&self, entry: EntryId) -> Result<Entry, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let found = shared_reads::state_records(&held, &records, entry, Damage::Told)?;
        Ok(Entry::assemble(found.iter()))
    }

    /// The intact records of an entry, except the edits of its document.
    pub fn whole_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        shared_reads::state_records(&held, &records, entry, Damage::PassedOver)
    }

    pub fn tombstone(&self, entry: EntryId) -> Result<Option<Record>, Error> {
        let tombstones = self.transaction.open_table(TOMBSTONES)?;
        shared_reads::tombstone(&tombstones, &self.transaction.open_table(RECORDS)?, entry)
    }

    pub fn view_row(&self, entry: EntryId) -> Result<Option<ViewRow>, Error> {
        shared_reads::view_row(&self.transaction.open_table(VIEWS)?, entry)
    }

    /// A quarantined record by its digest. Scans the whole quarantine, since operators ask rarely.
    pub fn quarantined(&self, digest: Digest) -> Result<Option<QuarantineRow>, Error> {
        let table = self.transaction.open_table(QUARANTINE)?;
        for row in table.iter()? {
            let (at, row) = row?;
            if at.value()[49..] == digest.as_bytes()[..] {
                return row_types::decode("quarantine", row.value()).map(Some);
            }
        }
        Ok(None)
    }

    // Records and their indexes.

    /// Appends a live record to the feed.
    pub fn put_record(&self, record: &Record) -> Result<Seq, Error> {
        let seq = Seq(self.head()?.0 + 1);
        let at = seq.0.to_be_bytes();
        self.put_meta(META_HEAD, &at)?;
        let row = row_types::encode(&RecordRow::new(record));
        if self.transaction.open_table(RECORDS)?.insert(&at, row.as_slice())?.is_some() {
            return Err(Error::damaged("the head of the feed", "it points at a record"));
        }
        self.transaction.open_table(HELD)?.insert(&held_key(record), &at)?;
        self.transaction.open_table(DIGESTS)?.insert(record.digest().as_bytes(), &at)?;
        self.list_edit(record)?;
        Ok(seq)
    }

    /// Erases a record's payload and keeps the header in place.
    pub fn erase_payload(&self, record: &Record) -> Result<(), Error> {
        let held = self.transaction.open_table(HELD)?;
        let seq = held.get(&held_key(record))?.ok_or_else(|| {
            Error::damaged(format!("record {}", record.digest()), "its place is not known")
        })?;
        let row = row_types::encode(&RecordRow::new(&record.clone().erased()));
        let mut records = self.transaction.open_table(RECORDS)?;
        overwrite(&mut records, seq.value())?;
        records.insert(seq.value(), row.as_slice())?;
        self.put_meta(META_ERASED, &[])
    }

    /// Removes a live record from the feed, and returns its position.
    pub fn drop_record(&self, record: &Record) -> Result<Option<Seq>, Error> {
        let key = held_key(record);
        let held = self.transaction.open_table(HELD)?;
        let seq = held.get(&key)?.map(|seq| Seq(u64::from_be_bytes(*seq.value())));
        drop(held);
        self.drop_held(&[key])?;
        Ok(seq)
    }

    fn held_keys(&self, entry: EntryId) -> Result<Vec<HeldKey>, Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let rows = held.range::<&HeldKey>(&first..=&last)?;
        rows.map(|row| Ok(*row?.0.value())).collect()
    }

    /// Uses only keys, so that a damaged record can be removed like any other.
    pub(super) fn drop_held(&self, keys: &[HeldKey]) -> Result<(), Error> {
        let (mut held, mut records, mut digests, mut callers) = (
            self.transaction.open_table(HELD)?,
            self.transaction.open_table(RECORDS)?,
            self.transaction.open_table(DIGESTS)?,
            self.transaction.open_table(CALLERS)?,
        );
        for key in keys {
            if let Some(seq) = held.get(key)? {
                overwrite(&mut records, seq.value())?;
            }
        }
        self.unlist_edits(keys)?;
        for key in keys {
            if let Some(seq) = held.remove(key)? {
                records.remove(seq.value())?;
                callers.remove(seq.value())?;
            }
            let digest = part::<32>(key, 49);
            digests.remove(&digest)?;
            self.unqueue(&digest)?;
        }
        Ok(())
    }

    /// Erases all records of an entry and stores its tombstone.
    pub fn put_tombstone(&self, tombstone: &Record, row: &ViewRow) -> Result<Seq, Error> {
        let entry = tombstone.entry();
        let held = self.held_keys(entry)?;
        self.drop_held(&held)?;
        self.drop_document(entry)?;
        self.put_overlay(entry, &MarksRow::default())?;
        self.drop_quarantined_under(entry.as_bytes())?;
        self.forget_places(entry)?;
        // An entry that was never stored, or is forgotten already, leaves no usage data and no
        // bytes that would require a rewrite of the store. Anyone can make up such tombstones, so
        // this must stay cheap.
        let is_shown = self.view_row(entry)?.is_some_and(|row| !row.is_forgotten);
        if is_shown || held.iter().any(|at| at[48] != Facet::Tombstone.code()) {
            self.put_meta(META_ERASED, &[])?;
        }
        if is_shown {
            self.forget_uses(entry)?;
        }
        let seq = self.put_record(tombstone)?;
        let mut tombstones = self.transaction.open_table(TOMBSTONES)?;
        tombstones.insert(entry.as_bytes(), &seq.0.to_be_bytes())?;
        let mut row = row.clone();
        (row.records, row.seq, row.is_forgotten) = (1, seq, true);
        self.put_view_row(entry, &row)?;
        Ok(seq)
    }

    pub fn put_view_row(&self, entry: EntryId, row: &ViewRow) -> Result<(), Error> {
        let mut views = self.transaction.open_table(VIEWS)?;
        views.insert(entry.as_bytes(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// Stores an equivocation proof. One proof per author is enough, so it replaces an earlier one.
    pub fn put_proof(&self, proof: &EquivocationProof) -> Result<(), Error> {
        let mut table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.insert(proof.author().as_bytes(), row_types::encode(&proof.to_raw()).as_slice())?;
        Ok(())
    }

    // Quarantine.

    /// The number of quarantined records.
    pub fn quarantined_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(QUARANTINE)?.len()?)
    }

    /// Puts a record into quarantine if the limits of its author and its delivering peer allow it.
    /// Quarantined records that it covers are removed and free their place.
    pub fn put_quarantined(
        &self,
        record: &Record,
        row: &QuarantineRow,
        has_room: bool,
    ) -> Result<QuarantineResult, Error> {
        let at = held_key(record);
        let beside = self.quarantined_beside(&at)?;
        if beside.iter().any(|(other, _)| *other == at) {
            return Ok(QuarantineResult::Kept);
        }
        let mut table = self.transaction.open_table(QUARANTINE)?;
        let (version, mut covered) = (record.version(), 0);
        for (other, waiting) in &beside {
            if waiting.as_ref().is_some_and(|waiting| version.covers(waiting)) {
                overwrite(&mut table, other)?;
                table.remove(other)?;
                self.unqueue_waiting(other)?;
                covered += 1;
            }
        }
        let is_full = beside.len() - covered >= LIVE_SLOTS_MAX
            || table.len()? >= WAITING_MAX
            || (covered == 0 && !has_room);
        if !is_full {
            table.insert(&at, row_types::encode(row).as_slice())?;
        }
        Ok(if is_full { QuarantineResult::Full } else { QuarantineResult::Kept })
    }

    /// Quarantined records of the same author, entry and facet, each with its version if readable.
    fn quarantined_beside(
        &self,
        at: &HeldKey,
    ) -> Result<Vec<(HeldKey, Option<VersionVector>)>, Error> {
        let (first, last) = span::<81>(&at[..49]);
        let table = self.transaction.open_table(QUARANTINE)?;
        let mut beside = Vec::new();
        for row in table.range::<&HeldKey>(&first..=&last)? {
            let (at, row) = row?;
            let row: Option<QuarantineRow> =
                Error::unless_damaged(row_types::decode("quarantine", row.value()))?;
            let signed = row.and_then(|row| Record::header_back(&row.record).ok());
            beside.push((*at.value(), signed.map(|signed| signed.version())));
        }
        Ok(beside)
    }

    /// Removes a record from quarantine.
    pub fn drop_quarantined(&self, record: &Record) -> Result<(), Error> {
        let mut table = self.transaction.open_table(QUARANTINE)?;
        overwrite(&mut table, &held_key(record))?;
        table.remove(&held_key(record))?;
        drop(table);
        self.unqueue_waiting(&held_key(record))?;
        self.put_meta(META_ERASED, &[])
    }

    /// Removes all quarantined records whose key begins with a prefix.
    pub fn drop_quarantined_under(&self, prefix: &[u8]) -> Result<(), Error> {
        let (first, last) = span::<81>(prefix);
        let mut table = self.transaction.open_table(QUARANTINE)?;
        let rows = table.range::<&HeldKey>(&first..=&last)?;
        let waiting: Vec<HeldKey> =
            rows.map(|row| Ok(*row?.0.value())).collect::<Result<_, Error>>()?;
        if waiting.is_empty() {
            return Ok(());
        }
        for at in &waiting {
            overwrite(&mut table, at)?;
        }
        table.retain_in::<&HeldKey, _>(&first..=&last, |_, _| false)?;
        drop(table);
        for at in &waiting {
            self.unqueue_waiting(at)?;
        }
        self.put_meta(META_ERASED, &[])
    }

    /// Forgets which peers delivered a record that left quarantine, unless the record is stored
    /// now.
    fn unqueue_waiting(&self, at: &HeldKey) -> Result<(), Error> {
        let digest = part::<32>(at, 49);
        let is_held = self.transaction.open_table(DIGESTS)?.get(&digest)?.is_some();
        if is_held { Ok(()) } else { self.unqueue(&digest) }
    }

    // Local data.

    pub fn overlay(&self, entry: EntryId) -> Result<MarksRow, Error> {
        let table = self.transaction.open_table(OVERLAYS)?;
        Ok(shared_reads::row("overlays", &table, entry.as_bytes())?.unwrap_or_default())
    }

    pub fn put_overlay(&self, entry: EntryId, row: &MarksRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(OVERLAYS)?;
        overwrite(&mut table, entry.as_bytes())?;
        if *row == MarksRow::default() {
            table.remove(entry.as_bytes())?;
        } else {
            table.insert(entry.as_bytes(), row_types::encode(row).as_slice())?;
        }
        Ok(())
    }

    pub fn append_served(&self, at: WallTime, row: &ServedRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(LEDGER)?;
        let (first, last) = span::<16>(&at.as_millis().to_be_bytes());
        let newest = table.range::<&[u8; 16]>(&first..=&last)?.next_back();
        let number = match newest.transpose()? {
            Some((key, _)) => u64::from_be_bytes(part(key.value(), 8)) + 1,
            None => 0,
        };
        let at = key(&[&at.as_millis().to_be_bytes(), &number.to_be_bytes()]);
        table.insert(&at, row_types::encode(row).as_slice())?;
        while table.len()? > LEDGER_ROWS_MAX {
            table.pop_first()?;
        }
        Ok(())
    }

    /// Usage data of an entry.
    pub fn uses(&self, entry: EntryId) -> Result<UseRow, Error> {
        shared_reads::uses(&self.transaction.open_table(USES)?, entry)
    }

    pub fn put_uses(&self, entry: EntryId, row: UseRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(USES)?;
        table.insert(entry.as_bytes(), row_types::encode(&row).as_slice())?;
        Ok(())
    }

    /// The co-occurrence weight of two entries.
    pub fn pair(&self, one: EntryId, two: EntryId) -> Result<Option<PairRow>, Error> {
        shared_reads::pair(&self.transaction.open_table(PAIRS)?, one, two)
    }

    pub fn put_pair(&self, one: EntryId, two: EntryId, row: PairRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PAIRS)?;
        for (from, to) in [(one, two), (two, one)] {
            let at = key::<32>(&[from.as_bytes(), to.as_bytes()]);
            table.insert(&at, row_types::encode(&row).as_slice())?;
        }
        Ok(())
    }

    /// Stores the caller for all records after a feed position. Records of the command that a later
    /// one covered are gone already.
    pub fn put_caller(&self, after: Seq, caller: CallerRow) -> Result<(), Error> {
        let records = self.transaction.open_table(RECORDS)?;
        let mut callers = self.transaction.open_table(CALLERS)?;
        let first = after.0.saturating_add(1).to_be_bytes();
        for row in records.range::<&[u8; 8]>(&first..)? {
            callers.insert(row?.0.value(), row_types::encode(&caller).as_slice())?;
        }
        Ok(())
    }
}

/// Overwrites a row's value at full length before it is removed or shortened. redb changes a page
/// in place if this transaction has already written to it, and a shortened value leaves its tail
/// behind. If several rows are removed, overwrite all of them before the first removal moves the
/// others.
pub(super) fn overwrite<const N: usize>(
    table: &mut Table<'_, &'static [u8; N], &'static [u8]>,
    at: &[u8; N],
) -> Result<(), Error> {
    let length = table.get(at)?.map(|row| row.value().len());
    if let Some(length) = length {
        table.insert(at, vec![0; length].as_slice())?;
    }
    Ok(())
}
