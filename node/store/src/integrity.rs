//! Integrity check: verifies the signature of every record and the consistency of all tables.
//!
//! The check repairs nothing. It names each row that is damaged or contradicts another table.

use super::checkouts::{CheckoutRow, PromotionRow};
use super::daily_usage::UsageRow;
use super::dismissed_insights::DismissedInsightRow;
use super::documents::DocumentRow;
use super::error::Error;
use super::imports::ImportRow;
use super::maintenance_journal::{MaintenanceRow, ServiceRow};
use super::peers::RemovalRow;
use super::row_types::{self, MarksRow, QuarantineRow, Seq, ServedRow, ViewRow};
use super::served_sessions::SessionRow;
use super::shared_reads;
use super::snapshot::{FeedRow, Snapshot};
use super::store_copy::{ProgressWatch, report_progress};
use super::tables::{
    CHECKOUTS, DISMISSED, EQUIVOCATIONS, HELD, HeldKey, IMPORTS, LEDGER, OVERLAYS, PARTS,
    PROMOTIONS, QUARANTINE, RECORDS, REMOVALS, SERVICES, SESSIONS, TASKS, TOMBSTONES, UPKEEP,
    USAGE, VIEWS, each_table, held_key, part, span,
};
use super::tasks::{PartRow, TaskRow};
use klnode_crdt::equivocation::{EquivocationProof, RawProof};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_crdt::time::Hlc;
use redb::{ReadableTable, ReadableTableMetadata, TableError};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Most damaged rows that are listed; further ones are only counted.
const DAMAGE_MAX: usize = 100;
/// Rows between two progress reports.
const WATCH_ROWS: u64 = 64;

/// The result of an integrity check.
#[derive(Debug, Default)]
pub struct IntegrityReport {
    /// Number of entries, including forgotten ones.
    pub entries: u64,
    /// Number of entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Number of live records.
    pub records: u64,
    /// Number of quarantined records.
    pub quarantined: u64,
    /// Authors convicted of equivocation.
    pub equivocating: Vec<AuthorId>,
    /// The latest stamp of all records, with its author.
    pub newest: Option<(Hlc, AuthorId)>,
    /// The damage found, up to a limit.
    pub damage: Vec<Error>,
    /// Number of damaged rows.
    pub damaged: u64,
    /// Entries with a damaged record, up to a limit.
    pub touched: BTreeSet<EntryId>,
}

impl IntegrityReport {
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
    /// Verifies every record through each table that refers to it, and returns the damage found.
    pub fn check(&self) -> Result<Vec<Error>, Error> {
        Ok(self.examine(&mut |_, _| ControlFlow::Continue(()))?.damage)
    }

    /// Like [`Self::check`], with counts and progress reports.
    pub fn examine(&self, watch: ProgressWatch<'_>) -> Result<IntegrityReport, Error> {
        let mut found =
            IntegrityReport { entries: self.entry_count()?, ..IntegrityReport::default() };
        let (records, held) =
            (self.transaction.open_table(RECORDS)?, self.transaction.open_table(HELD)?);
        let total = records.len()? + held.len()? + found.entries;
        let mut done = 0;
        let mut step = |found: &mut IntegrityReport, checked| {
            done += 1;
            if done % WATCH_ROWS == 0 {
                report_progress(watch, done, total)?;
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
            let checked = shared_reads::record_at(&records, seq, digest).map(|_| ());
            if matches!(checked, Err(Error::Damaged { .. })) {
                found.touch(EntryId::from_bytes(part(at.value(), 0)));
            }
            step(&mut found, checked)?;
        }
        for row in self.transaction.open_table(VIEWS)?.iter()? {
            let (entry, row) = row?;
            let entry = EntryId::from_bytes(*entry.value());
            let checked = row_types::decode::<ViewRow>("views", row.value())
                .and_then(|row| self.check_view(entry, &row, &mut found));
            step(&mut found, checked)?;
        }
        self.check_other_tables(&mut found)?;
        self.read_all_tables()?;
        report_progress(watch, total, total)?;
        Ok(found)
    }

    /// Reads every row of every table. Damage to the description of a table or to its inner pages
    /// is an error of the store, however few rows a check reads.
    fn read_all_tables(&self) -> Result<(), Error> {
        macro_rules! read {
            ($table:expr) => {
                match self.transaction.open_table($table) {
                    Ok(table) => table.iter()?.try_for_each(|row| row.map(|_| ()))?,
                    // A store of an older schema, read before it is upgraded.
                    Err(TableError::TableDoesNotExist(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            };
        }
        each_table!(read);
        Ok(())
    }

    fn check_record(&self, change: &FeedRow, found: &mut IntegrityReport) -> Result<(), Error> {
        let FeedRow { seq, record } = change;
        found.records += 1;
        let stamp = (record.header().stamp, record.author());
        found.newest = found.newest.max(Some(stamp));
        Record::verify(&record.to_raw())
            .inspect_err(|_| found.touch(record.entry()))
            .map_err(Error::to_damage(|| format!("record number {}", seq.0)))?;
        let damaged = |detail| Err(Error::damaged(format!("record {}", record.digest()), detail));
        if self.head() < *seq {
            return damaged("its position is beyond the head of the feed");
        }
        let held = self.transaction.open_table(HELD)?.get(&held_key(record))?;
        if held.is_none_or(|held| *held.value() != seq.0.to_be_bytes()) {
            return damaged("it is not found by its entry");
        }
        if !self.is_edit_listed(record)? {
            return damaged("it is not found by its number");
        }
        match self.record(record.digest())? {
            Some(found) if found == *record => Ok(()),
            _ => damaged("it is not found by its digest"),
        }
    }

    fn check_view(
        &self,
        entry: EntryId,
        row: &ViewRow,
        found: &mut IntegrityReport,
    ) -> Result<(), Error> {
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
                damaged("the record that forgets it is no tombstone")
            }
            Some(_) if !row.is_forgotten => {
                damaged("it has a tombstone but is not marked as forgotten")
            }
            None if row.is_forgotten => damaged("its tombstone is missing"),
            _ => Ok(()),
        }
    }

    /// Checks the tables without records, and those with records kept apart from the feed.
    fn check_other_tables(&self, found: &mut IntegrityReport) -> Result<(), Error> {
        let views = self.transaction.open_table(VIEWS)?;
        let has_view = |what: &str, entry: [u8; 16]| match views.get(&entry)? {
            Some(_) => Ok(()),
            None => {
                let entry = EntryId::from_bytes(entry);
                Err(Error::damaged(format!("the {what} of {entry}"), "the entry is not stored"))
            }
        };
        for row in self.transaction.open_table(TOMBSTONES)?.iter()? {
            found.note(has_view("tombstone", *row?.0.value()))?;
        }
        for row in self.transaction.open_table(OVERLAYS)?.iter()? {
            let (entry, row) = row?;
            let read = row_types::decode::<MarksRow>("overlays", row.value());
            found.note(read.and_then(|_| has_view("mark", *entry.value())))?;
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
            found.note(row_types::decode::<ServedRow>("ledger", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(TASKS)?.iter()? {
            found.note(row_types::decode::<TaskRow>("tasks", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(PARTS)?.iter()? {
            found.note(row_types::decode::<PartRow>("parts", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(SESSIONS)?.iter()? {
            found.note(row_types::decode::<SessionRow>("sessions", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(USAGE)?.iter()? {
            found.note(row_types::decode::<UsageRow>("usage", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(CHECKOUTS)?.iter()? {
            found
                .note(row_types::decode::<CheckoutRow>("checkouts", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(PROMOTIONS)?.iter()? {
            let (entry, row) = row?;
            let read = row_types::decode::<PromotionRow>("promotions", row.value());
            found.note(read.and_then(|_| has_view("promotion", *entry.value())))?;
        }
        self.check_findings(|checked| found.note(checked))?;
        self.check_maintenance(found)
    }

    fn check_maintenance(&self, found: &mut IntegrityReport) -> Result<(), Error> {
        for row in self.transaction.open_table(UPKEEP)?.iter()? {
            found
                .note(row_types::decode::<MaintenanceRow>("upkeep", row?.1.value()).map(|_| ()))?;
        }
        for row in self.documents_table()?.range::<&[u8; 16]>(..)? {
            found
                .note(row_types::decode::<DocumentRow>("documents", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(REMOVALS)?.iter()? {
            found.note(row_types::decode::<RemovalRow>("removals", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(DISMISSED)?.iter()? {
            found.note(
                row_types::decode::<DismissedInsightRow>("dismissed", row?.1.value()).map(|_| ()),
            )?;
        }
        for row in self.transaction.open_table(IMPORTS)?.iter()? {
            found.note(row_types::decode::<ImportRow>("imports", row?.1.value()).map(|_| ()))?;
        }
        for row in self.transaction.open_table(SERVICES)?.iter()? {
            found.note(row_types::decode::<ServiceRow>("services", row?.1.value()).map(|_| ()))?;
        }
        Ok(())
    }
}

fn check_proof(author: AuthorId, row: &[u8]) -> Result<(), Error> {
    let what = || format!("the proof against {author}");
    let raw: RawProof = row_types::decode("equivocations", row)?;
    let proof = EquivocationProof::verify(&raw).map_err(Error::to_damage(what))?;
    if proof.author() == author {
        return Ok(());
    }
    Err(Error::damaged(what(), "it convicts another author"))
}

fn check_quarantined(at: &HeldKey, row: &[u8]) -> Result<(), Error> {
    let row: QuarantineRow = row_types::decode("quarantine", row)?;
    let record =
        Record::verify(&row.record).map_err(Error::to_damage(|| "a record in quarantine"))?;
    if held_key(&record) == *at {
        return Ok(());
    }
    Err(Error::damaged("a record in quarantine", "it is stored under another record's key"))
}
