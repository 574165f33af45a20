//! One write transaction: the only place where anything is written.
//!
//! A batch is committed whole or not at all. Its methods put and remove rows; which ones, the
//! engine decides.

use super::error::Error;
use super::read::{self, Damage};
use super::rows::{
    self, CallerRow, OverlayRow, PairRow, QuarantineRow, RecordRow, Seq, ServedRow, UseRow, ViewRow,
};
use super::tables::{
    CALLERS, CHECKOUTS, CURSORS, DIGESTS, DISTANCES, EPOCHS, EQUIVOCATIONS, FINDINGS, HEADS, HELD,
    HeldKey, INVITATIONS, LEDGER, LEDGER_ROWS_MAX, META, META_AUTHOR, META_ERASED, META_HEAD,
    OUTCOMES, OUTGOING, OVERLAYS, OWED, PAIRS, PARTS, PEERS, PRIMED, PROMOTIONS, QUARANTINE,
    QUEUED, RECEIPTS, RECORDS, REFUSALS, RELEASES, SAME, SERVICES, SESSIONS, STRETCHES, SUBJECTS,
    SUCCESSORS, TASKS, TOMBSTONES, UNSETTLED, UPKEEP, USAGE, USES, VIEWS, WORKSPACES, held_key,
    key, part, span,
};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::header::Facet;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::version::Version;
use redb::{Database, ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// When a commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it returns.
    Durable,
    /// When it returns, in two phases: for bytes that came from others, who could craft them so
    /// that a torn write looks whole.
    DurableForeign,
    /// With a later durable one.
    Deferred,
}

/// Records that wait for the operator, of all peers together: all of them are looked at whenever a
/// peer offers something.
const WAITING_MAX: u64 = 10_000;

/// Of these, what one peer has brought: it takes nobody else's room.
pub(crate) const WAITING_OF_PEER_MAX: u64 = 1_000;

/// Whether a record was put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// It waits.
    Kept,
    /// Too many of the same author and entry wait already, or of the same peer, or of all.
    Full,
}

/// An open write transaction.
pub struct Batch {
    pub(super) transaction: WriteTransaction,
    /// Entries forgotten in it, of which what is kept of use still tells.
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

    /// Makes the batch durable. On an error it is in doubt: it may turn out to be there when the
    /// store is opened again.
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.wipe_forgotten()?;
        Ok(self.transaction.commit()?)
    }

    pub(super) fn open_all(&self) -> Result<(), Error> {
        let t = &self.transaction;
        t.open_table(META)?;
        t.open_table(RECORDS)?;
        t.open_table(DIGESTS)?;
        t.open_table(VIEWS)?;
        t.open_table(HELD)?;
        t.open_table(EPOCHS)?;
        t.open_table(TOMBSTONES)?;
        t.open_table(EQUIVOCATIONS)?;
        t.open_table(QUARANTINE)?;
        t.open_table(RELEASES)?;
        t.open_table(OUTGOING)?;
        t.open_table(QUEUED)?;
        t.open_table(HEADS)?;
        t.open_table(STRETCHES)?;
        t.open_table(PEERS)?;
        t.open_table(WORKSPACES)?;
        t.open_table(INVITATIONS)?;
        t.open_table(DISTANCES)?;
        t.open_table(OUTCOMES)?;
        t.open_table(RECEIPTS)?;
        t.open_table(OWED)?;
        t.open_table(REFUSALS)?;
        t.open_table(CURSORS)?;
        t.open_table(OVERLAYS)?;
        t.open_table(LEDGER)?;
        t.open_table(USES)?;
        t.open_table(PAIRS)?;
        t.open_table(TASKS)?;
        t.open_table(PARTS)?;
        t.open_table(CHECKOUTS)?;
        t.open_table(PROMOTIONS)?;
        t.open_table(SUCCESSORS)?;
        t.open_table(FINDINGS)?;
        t.open_table(UNSETTLED)?;
        t.open_table(CALLERS)?;
        t.open_table(SESSIONS)?;
        t.open_table(PRIMED)?;
        t.open_table(USAGE)?;
        t.open_table(SAME)?;
        t.open_table(UPKEEP)?;
        t.open_table(SUBJECTS)?;
        t.open_table(SERVICES)?;
        Ok(())
    }

    pub(super) fn put_meta(&self, name: [u8; 8], value: &[u8]) -> Result<(), Error> {
        self.transaction.open_table(META)?.insert(&name, value)?;
        Ok(())
    }

    /// The store belongs to whoever takes it over first.
    pub(crate) fn belong_to(&self, author: AuthorId) -> Result<(), Error> {
        let mut meta = self.transaction.open_table(META)?;
        let is_known = meta.get(&META_AUTHOR)?.is_some();
        if !is_known {
            meta.insert(&META_AUTHOR, &author.as_bytes()[..])?;
        }
        Ok(())
    }

    /// The store belongs to this author from now on, or to whoever takes it over next.
    pub(super) fn hand_over(&self, author: Option<AuthorId>) -> Result<(), Error> {
        let mut meta = self.transaction.open_table(META)?;
        match author {
            Some(author) => meta.insert(&META_AUTHOR, &author.as_bytes()[..])?,
            None => meta.remove(&META_AUTHOR)?,
        };
        Ok(())
    }

    /// The newest position of the feed. The number is kept apart because the newest record may
    /// have gone; it is never trusted to be less than what stands in the feed.
    pub(crate) fn head(&self) -> Result<Seq, Error> {
        let meta = self.transaction.open_table(META)?;
        let head = meta.get(&META_HEAD)?;
        let bytes = head.as_ref().map(redb::AccessGuard::value).filter(|head| head.len() == 8);
        let bytes = bytes.ok_or_else(|| Error::damaged("the head of the feed", "it is missing"))?;
        let kept = u64::from_be_bytes(part(bytes, 0));
        let records = self.transaction.open_table(RECORDS)?;
        let newest = records.last()?.map_or(0, |(seq, _)| u64::from_be_bytes(*seq.value()));
        Ok(Seq(kept.max(newest)))
    }

    /// Notes that a process start begins here in the feed.
    pub(crate) fn begin_epoch(&self, boot: Boot, now: WallTime) -> Result<(), Error> {
        let first = self.head()?.0 + 1;
        let at = key(&[&first.to_be_bytes(), &boot.0.to_be_bytes()]);
        let mut epochs = self.transaction.open_table(EPOCHS)?;
        epochs.insert(&at, &now.as_millis().to_be_bytes())?;
        Ok(())
    }

    // Reads within the transaction.

    /// One author's records on an entry, in these facets.
    pub(crate) fn holding(
        &self,
        entry: EntryId,
        author: AuthorId,
        facets: &[Facet],
        damage: Damage,
    ) -> Result<Holding, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        read::holding(&held, &records, entry, author, facets, damage)
    }

    /// Where the newest record stands that can change what an entry says.
    pub(crate) fn text_seq(&self, entry: EntryId) -> Result<Seq, Error> {
        read::text_seq(&self.transaction.open_table(HELD)?, entry)
    }

    pub(crate) fn records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let found = read::records_of(&held, &records, entry.as_bytes(), Damage::Told)?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// What is held of an entry, joined.
    pub(crate) fn entry(&self, entry: EntryId) -> Result<Entry, Error> {
        Ok(Entry::assemble(self.records(entry)?.iter()))
    }

    /// The records without what is damaged.
    pub(crate) fn whole_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let found = read::records_of(&held, &records, entry.as_bytes(), Damage::PassedOver)?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    pub(crate) fn tombstone(&self, entry: EntryId) -> Result<Option<Record>, Error> {
        let tombstones = self.transaction.open_table(TOMBSTONES)?;
        read::tombstone(&tombstones, &self.transaction.open_table(RECORDS)?, entry)
    }

    pub(crate) fn view_row(&self, entry: EntryId) -> Result<Option<ViewRow>, Error> {
        read::view_row(&self.transaction.open_table(VIEWS)?, entry)
    }

    /// A record that waits, by its digest. Reads the whole quarantine: operators ask rarely.
    pub(crate) fn quarantined(&self, digest: Digest) -> Result<Option<QuarantineRow>, Error> {
        let table = self.transaction.open_table(QUARANTINE)?;
        for row in table.iter()? {
            let (at, row) = row?;
            if at.value()[49..] == digest.as_bytes()[..] {
                return rows::decode("quarantine", row.value()).map(Some);
            }
        }
        Ok(None)
    }

    // Records, and what follows from them.

    /// Puts a live record in, at the end of the feed.
    pub(crate) fn put_record(&self, record: &Record) -> Result<Seq, Error> {
        let seq = Seq(self.head()?.0 + 1);
        let at = seq.0.to_be_bytes();
        self.put_meta(META_HEAD, &at)?;
        let row = rows::encode(&RecordRow::new(record));
        if self.transaction.open_table(RECORDS)?.insert(&at, row.as_slice())?.is_some() {
            return Err(Error::damaged("the head of the feed", "it points at a record"));
        }
        self.transaction.open_table(HELD)?.insert(&held_key(record), &at)?;
        self.transaction.open_table(DIGESTS)?.insert(record.digest().as_bytes(), &at)?;
        Ok(seq)
    }

    /// Takes a record's payload away and leaves the rest in its place.
    pub(crate) fn erase_payload(&self, record: &Record) -> Result<(), Error> {
        let held = self.transaction.open_table(HELD)?;
        let seq = held.get(&held_key(record))?.ok_or_else(|| {
            Error::damaged(format!("record {}", record.digest()), "its place is not known")
        })?;
        let row = rows::encode(&RecordRow::new(&record.clone().erased()));
        let mut records = self.transaction.open_table(RECORDS)?;
        blot(&mut records, seq.value())?;
        records.insert(seq.value(), row.as_slice())?;
        self.put_meta(META_ERASED, &[])
    }

    /// Drops a live record and its place in the feed, and returns that place.
    pub(crate) fn drop_record(&self, record: &Record) -> Result<Option<Seq>, Error> {
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

    /// Works by keys alone, so that a damaged record goes like any other.
    pub(super) fn drop_held(&self, keys: &[HeldKey]) -> Result<(), Error> {
        let (mut held, mut records, mut digests, mut callers) = (
            self.transaction.open_table(HELD)?,
            self.transaction.open_table(RECORDS)?,
            self.transaction.open_table(DIGESTS)?,
            self.transaction.open_table(CALLERS)?,
        );
        for key in keys {
            if let Some(seq) = held.get(key)? {
                blot(&mut records, seq.value())?;
            }
        }
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

    /// Erases all that is held of an entry and leaves its tombstone.
    pub(crate) fn put_tombstone(&self, tombstone: &Record, row: &ViewRow) -> Result<Seq, Error> {
        let entry = tombstone.entry();
        let held = self.held_keys(entry)?;
        self.drop_held(&held)?;
        self.put_overlay(entry, &OverlayRow::default())?;
        self.drop_quarantined_under(entry.as_bytes())?;
        self.forget_places(entry)?;
        // What was never held, or is forgotten already, has left nothing to look for, and nothing for
        // which the store would have to be written anew: anyone makes up such tombstones.
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

    pub(crate) fn put_view_row(&self, entry: EntryId, row: &ViewRow) -> Result<(), Error> {
        let mut views = self.transaction.open_table(VIEWS)?;
        views.insert(entry.as_bytes(), rows::encode(row).as_slice())?;
        Ok(())
    }

    /// One proof convicts: it takes the place of another.
    pub(crate) fn put_proof(&self, proof: &Proof) -> Result<(), Error> {
        let mut table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.insert(proof.author().as_bytes(), rows::encode(&proof.to_raw()).as_slice())?;
        Ok(())
    }

    // Quarantine.

    /// How many records wait.
    pub(crate) fn quarantined_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(QUARANTINE)?.len()?)
    }

    /// Puts a record aside, if its author has not too many waiting there already, and there is room for
    /// one more of who brings it. What it covers waits no longer, and leaves room.
    pub(crate) fn put_quarantined(
        &self,
        record: &Record,
        row: &QuarantineRow,
        has_room: bool,
    ) -> Result<Waiting, Error> {
        let at = held_key(record);
        let beside = self.quarantined_beside(&at)?;
        if beside.iter().any(|(other, _)| *other == at) {
            return Ok(Waiting::Kept);
        }
        let mut table = self.transaction.open_table(QUARANTINE)?;
        let (version, mut covered) = (record.version(), 0);
        for (other, waiting) in &beside {
            if waiting.as_ref().is_some_and(|waiting| version.covers(waiting)) {
                blot(&mut table, other)?;
                table.remove(other)?;
                self.unqueue_waiting(other)?;
                covered += 1;
            }
        }
        let is_full = beside.len() - covered >= LIVE_SLOTS_MAX
            || table.len()? >= WAITING_MAX
            || (covered == 0 && !has_room);
        if !is_full {
            table.insert(&at, rows::encode(row).as_slice())?;
        }
        Ok(if is_full { Waiting::Full } else { Waiting::Kept })
    }

    /// What waits in the same facet of the same author and entry: where, and its place among their
    /// records as far as that can be read.
    fn quarantined_beside(&self, at: &HeldKey) -> Result<Vec<(HeldKey, Option<Version>)>, Error> {
        let (first, last) = span::<81>(&at[..49]);
        let table = self.transaction.open_table(QUARANTINE)?;
        let mut beside = Vec::new();
        for row in table.range::<&HeldKey>(&first..=&last)? {
            let (at, row) = row?;
            let row: Option<QuarantineRow> =
                Error::unless_damaged(rows::decode("quarantine", row.value()))?;
            let signed = row.and_then(|row| Record::header_back(&row.record).ok());
            beside.push((*at.value(), signed.map(|signed| signed.version())));
        }
        Ok(beside)
    }

    /// Takes a record out of quarantine.
    pub(crate) fn drop_quarantined(&self, record: &Record) -> Result<(), Error> {
        let mut table = self.transaction.open_table(QUARANTINE)?;
        blot(&mut table, &held_key(record))?;
        table.remove(&held_key(record))?;
        drop(table);
        self.unqueue_waiting(&held_key(record))?;
        self.put_meta(META_ERASED, &[])
    }

    /// Takes everything out of quarantine whose place begins with a prefix.
    pub(crate) fn drop_quarantined_under(&self, prefix: &[u8]) -> Result<(), Error> {
        let (first, last) = span::<81>(prefix);
        let mut table = self.transaction.open_table(QUARANTINE)?;
        let rows = table.range::<&HeldKey>(&first..=&last)?;
        let waiting: Vec<HeldKey> =
            rows.map(|row| Ok(*row?.0.value())).collect::<Result<_, Error>>()?;
        if waiting.is_empty() {
            return Ok(());
        }
        for at in &waiting {
            blot(&mut table, at)?;
        }
        table.retain_in::<&HeldKey, _>(&first..=&last, |_, _| false)?;
        drop(table);
        for at in &waiting {
            self.unqueue_waiting(at)?;
        }
        self.put_meta(META_ERASED, &[])
    }

    /// Who brought what waited is forgotten with it, unless it is held by now.
    fn unqueue_waiting(&self, at: &HeldKey) -> Result<(), Error> {
        let digest = part::<32>(at, 49);
        let is_held = self.transaction.open_table(DIGESTS)?.get(&digest)?.is_some();
        if is_held { Ok(()) } else { self.unqueue(&digest) }
    }

    // Local facts.

    pub(crate) fn overlay(&self, entry: EntryId) -> Result<OverlayRow, Error> {
        let table = self.transaction.open_table(OVERLAYS)?;
        Ok(read::row("overlays", &table, entry.as_bytes())?.unwrap_or_default())
    }

    pub(crate) fn put_overlay(&self, entry: EntryId, row: &OverlayRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(OVERLAYS)?;
        blot(&mut table, entry.as_bytes())?;
        if *row == OverlayRow::default() {
            table.remove(entry.as_bytes())?;
        } else {
            table.insert(entry.as_bytes(), rows::encode(row).as_slice())?;
        }
        Ok(())
    }

    pub(crate) fn append_served(&self, at: WallTime, row: &ServedRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(LEDGER)?;
        let (first, last) = span::<16>(&at.as_millis().to_be_bytes());
        let newest = table.range::<&[u8; 16]>(&first..=&last)?.next_back();
        let number = match newest.transpose()? {
            Some((key, _)) => u64::from_be_bytes(part(key.value(), 8)) + 1,
            None => 0,
        };
        let at = key(&[&at.as_millis().to_be_bytes(), &number.to_be_bytes()]);
        table.insert(&at, rows::encode(row).as_slice())?;
        while table.len()? > LEDGER_ROWS_MAX {
            table.pop_first()?;
        }
        Ok(())
    }

    /// How an entry was used.
    pub(crate) fn uses(&self, entry: EntryId) -> Result<UseRow, Error> {
        read::uses(&self.transaction.open_table(USES)?, entry)
    }

    pub(crate) fn put_uses(&self, entry: EntryId, row: UseRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(USES)?;
        table.insert(entry.as_bytes(), rows::encode(&row).as_slice())?;
        Ok(())
    }

    /// How strongly two entries belong together.
    pub(crate) fn pair(&self, one: EntryId, two: EntryId) -> Result<Option<PairRow>, Error> {
        read::pair(&self.transaction.open_table(PAIRS)?, one, two)
    }

    pub(crate) fn put_pair(&self, one: EntryId, two: EntryId, row: PairRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PAIRS)?;
        for (from, to) in [(one, two), (two, one)] {
            let at = key::<32>(&[from.as_bytes(), to.as_bytes()]);
            table.insert(&at, rows::encode(&row).as_slice())?;
        }
        Ok(())
    }

    /// Notes who asked for what was put into the feed after a position, as far as it is there
    /// still: a record may be covered by the next of the same command.
    pub(crate) fn put_caller(&self, after: Seq, caller: CallerRow) -> Result<(), Error> {
        let records = self.transaction.open_table(RECORDS)?;
        let mut callers = self.transaction.open_table(CALLERS)?;
        let first = after.0.saturating_add(1).to_be_bytes();
        for row in records.range::<&[u8; 8]>(&first..)? {
            callers.insert(row?.0.value(), rows::encode(&caller).as_slice())?;
        }
        Ok(())
    }
}

/// Overwrites a row's value at its full length, before it is removed or becomes shorter. A page that
/// this transaction has written to before is changed in place, and what becomes shorter there leaves its
/// end behind; where several rows go, all are overwritten before any of them moves the others.
pub(super) fn blot<const N: usize>(
    table: &mut Table<'_, &'static [u8; N], &'static [u8]>,
    at: &[u8; N],
) -> Result<(), Error> {
    let length = table.get(at)?.map(|row| row.value().len());
    if let Some(length) = length {
        table.insert(at, vec![0; length].as_slice())?;
    }
    Ok(())
}
