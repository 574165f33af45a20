//! Reads everything and says what is wrong: every record against its signature, every table against
//! the others.
//!
//! Nothing is mended here. A table that contradicts another is named, with the row.

use super::copy::{Watch, tell};
use super::error::Error;
use super::places::{CheckoutRow, PromotionRow};
use super::read;
use super::rows::{self, OverlayRow, QuarantineRow, Seq, ServedRow, ViewRow};
use super::sessions::SessionRow;
use super::snapshot::{Change, Snapshot};
use super::tables::{
    CHECKOUTS, EQUIVOCATIONS, HELD, HeldKey, LEDGER, OVERLAYS, PARTS, PROMOTIONS, QUARANTINE,
    RECORDS, SERVICES, SESSIONS, TASKS, TOMBSTONES, UPKEEP, USAGE, VIEWS, held_key, part, span,
};
use super::tasks::{PartRow, TaskRow};
use super::upkeep::{ServiceRow, UpkeepRow};
use super::usage::UsageRow;
use klnode_crdt::equivocation::{Proof, RawProof};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_crdt::time::Hlc;
use redb::{ReadableTable, ReadableTableMetadata};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Damaged rows that are told one by one; the rest is counted.
const DAMAGE_MAX: usize = 100;
/// Rows between two words to whoever watches.
const WATCH_ROWS: u64 = 64;

/// What was found.
#[derive(Debug, Default)]
pub struct Examined {
    /// Entries, forgotten ones included.
    pub entries: u64,
    /// Entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Live records.
    pub records: u64,
    /// Records that wait for the operator.
    pub quarantined: u64,
    /// Authors convicted of contradicting themselves.
    pub equivocating: Vec<AuthorId>,
    /// The stamp that lies furthest ahead, and whose.
    pub newest: Option<(Hlc, AuthorId)>,
    /// What is damaged, up to a limit.
    pub damage: Vec<Error>,
    /// How much is damaged.
    pub damaged: u64,
    /// Entries of which a record is damaged, up to a limit.
    pub touched: BTreeSet<EntryId>,
}

impl Examined {
    fn touch(&mut self, entry: EntryId) {
        if self.touched.len() < DAMAGE_MAX {
            self.touched.insert(entry);
        }
    }

    pub(super) fn note(&mut self, checked: Result<(), Error>) -> Result<(), Error> {
        match checked {
            Ok(()) => Ok(()),
            Err(damage @ Error::Damaged { .. }) => {
                self.damaged += 1;
                if self.damage.len() < DAMAGE_MAX {
                    self.damage.push(damage);
                }
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }
}

impl Snapshot {
    /// Reads and verifies every record, from each table that names it: what it returns is damage.
    pub fn check(&self) -> Result<Vec<Error>, Error> {
        Ok(self.examine(&mut |_, _| ControlFlow::Continue(()))?.damage)
    }

    /// The same, with counts, told to whoever watches.
    pub fn examine(&self, watch: Watch<'_>) -> Result<Examined, Error> {
        let mut found = Examined { entries: self.entry_count()?, ..Examined::default() };
        let (records, held) =
            (self.transaction.open_table(RECORDS)?, self.transaction.open_table(HELD)?);
        let total = records.len()? + held.len()? + found.entries;
        let mut done = 0;
        let mut step = |found: &mut Examined, checked| {
            done += 1;
            if done % WATCH_ROWS == 0 {
                tell(watch, done, total)?;
            }
            found.note(checked)
        };
        for change in self.changes_since(Seq(0))? {
            let checked = change.and_then(|change| self.check_record(&change, &mut found));
            step(&mut found, checked)?;
        }
        for row in held.iter()? {
            let (at, seq) = row?;
            let seq = Seq(u64::from_be_bytes(*seq.value()));
            let digest = Digest::from_bytes(part(at.value(), 49));
            let checked = read::record_at(&records, seq, digest).map(|_| ());
            if matches!(checked, Err(Error::Damaged { .. })) {
                found.touch(EntryId::from_bytes(part(at.value(), 0)));
            }
            step(&mut found, checked)?;
        }
        for row in self.transaction.open_table(VIEWS)?.iter()? {
            let (entry, row) = row?;
            let entry = EntryId::from_bytes(*entry.value());
            let checked = rows::decode::<ViewRow>("views", row.value())
                .and_then(|row| self.check_view(entry, &row, &mut found));
            step(&mut found, checked)?;
        }
        self.check_beside(&mut found)?;
        tell(watch, total, total)?;
        Ok(found)
    }

    fn check_record(&self, change: &Change, found: &mut Examined) -> Result<(), Error> {
        let Change { seq, record } = change;
        found.records += 1;
        let stamp = (record.header().stamp, record.author());
        found.newest = found.newest.max(Some(stamp));
        Record::verify(&record.to_raw())
            .inspect_err(|_| found.touch(record.entry()))
            .map_err(Error::refused(|| format!("record number {}", seq.0)))?;
        let damaged = |detail| Err(Error::damaged(format!("record {}", record.digest()), detail));
        if self.head() < *seq {
            return damaged("it stands beyond the head of the feed");
        }
        let held = self.transaction.open_table(HELD)?.get(&held_key(record))?;
        if held.is_none_or(|held| *held.value() != seq.0.to_be_bytes()) {
            return damaged("it is not found by its entry");
        }
        match self.record(record.digest())? {
            Some(found) if found == *record => Ok(()),
            _ => damaged("it is not found by its digest"),
        }
    }

    fn check_view(&self, entry: EntryId, row: &ViewRow, found: &mut Examined) -> Result<(), Error> {
        found.forgotten += u64::from(row.is_forgotten);
        let damaged = |detail: &str| Err(Error::damaged(format!("the view of {entry}"), detail));
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let count = held.range::<&HeldKey>(&first..=&last)?.count();
        if count != row.records as usize {
            return damaged(&format!("it counts {} records, not {count}", row.records));
        }
        match self.tombstone(entry)? {
            Some(tombstone) if tombstone.header().facet != Facet::Tombstone => {
                damaged("what forgets it is no tombstone")
            }
            Some(_) if !row.is_forgotten => damaged("it is shown and forgotten"),
            None if row.is_forgotten => damaged("its tombstone is missing"),
            _ => Ok(()),
        }
    }

    /// The tables that hold no records, or records that are kept apart.
    fn check_beside(&self, found: &mut Examined) -> Result<(), Error> {
        let views = self.transaction.open_table(VIEWS)?;
        let has_view = |what: &str, entry: [u8; 16]| match views.get(&entry)? {
            Some(_) => Ok(()),
            None => {
                let entry = EntryId::from_bytes(entry);
                Err(Error::damaged(format!("the {what} of {entry}"), "the entry is not held"))
            }
        };
        for row in self.transaction.open_table(TOMBSTONES)?.iter()? {
            found.note(has_view("tombstone", *row?.0.value()))?;
        }
        for row in self.transaction.open_table(OVERLAYS)?.iter()? {
            let (entry, row) = row?;
            let read = rows::decode::<OverlayRow>("overlays", row.value());
            found.note(read.and_then(|_| has_view("overlay", *entry.value())))?;
        }
        for row in self.transaction.open_table(EQUIVOCATIONS)?.iter()? {
            let (author, row) = row?;
            let author = AuthorId::from_bytes(*author.value());
            found.equivocating.push(author);
            found.note(check_proof(author, row.value()))?;
        }
        for row in self.transaction.open_table(QUARANTINE)?.iter()? {
            let (at, row) = row?;
            found.quarantined += 1;
            found.note(check_quarantined(at.value(), row.value()))?;
        }
        self.check_outboxes(found)?;
        for row in self.transaction.open_table(LEDGER)?.iter()? {
            found.note(rows::decode::<ServedRow>("ledger", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(TASKS)?.iter()? {
            found.note(rows::decode::<TaskRow>("tasks", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(PARTS)?.iter()? {
            found.note(rows::decode::<PartRow>("parts", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(SESSIONS)?.iter()? {
            found.note(rows::decode::<SessionRow>("sessions", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(USAGE)?.iter()? {
            found.note(rows::decode::<UsageRow>("usage", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(CHECKOUTS)?.iter()? {
            found.note(rows::decode::<CheckoutRow>("checkouts", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(PROMOTIONS)?.iter()? {
            let (entry, row) = row?;
            let read = rows::decode::<PromotionRow>("promotions", row.value());
            found.note(read.and_then(|_| has_view("promotion", *entry.value())))?;
        }
        self.check_findings(|checked| found.note(checked))?;
        self.check_upkeep(found)
    }

    fn check_upkeep(&self, found: &mut Examined) -> Result<(), Error> {
        for row in self.transaction.open_table(UPKEEP)?.iter()? {
            found.note(rows::decode::<UpkeepRow>("upkeep", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(SERVICES)?.iter()? {
            found.note(rows::decode::<ServiceRow>("services", row?.1.value()).map(|_| ()))?;
        }
        Ok(())
    }
}

fn check_proof(author: AuthorId, row: &[u8]) -> Result<(), Error> {
    let what = || format!("the proof against {author}");
    let raw: RawProof = rows::decode("equivocations", row)?;
    let proof = Proof::verify(&raw).map_err(Error::refused(what))?;
    if proof.author() == author {
        return Ok(());
    }
    Err(Error::damaged(what(), "it convicts another"))
}

fn check_quarantined(at: &HeldKey, row: &[u8]) -> Result<(), Error> {
    let row: QuarantineRow = rows::decode("quarantine", row)?;
    let record =
        Record::verify(&row.record).map_err(Error::refused(|| "a record in quarantine"))?;
    if held_key(&record) == *at {
        return Ok(());
    }
    Err(Error::damaged("a record in quarantine", "it is under another's name"))
}
