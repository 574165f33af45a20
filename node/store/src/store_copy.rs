//! Copies a store row by row from a snapshot into an empty database: for backups, for restores, and
//! to replace a store in which data was erased.
//!
//! It copies rows instead of pages, so that erased data remaining in unused pages is not copied.
//! The source is only read, so its writer continues while a backup is made.

use super::batch::{Batch, Durability};
use super::error::Error;
use super::maintenance_journal;
use super::row_types::Seq;
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{
    CALLERS, CHECKOUTS, CURSORS, DIGESTS, DISMISSED, DISTANCES, DOCUMENTS, EDITS, EPOCHS,
    EQUIVOCATIONS, FINDINGS, HEADS, HELD, IMPORT_IDS, IMPORTS, INVITATIONS, LEDGER, META,
    META_ERASED, META_FORETOLD, META_REFUSED, META_REREAD, OUTCOMES, OUTGOING, OVERLAYS, OWED,
    PAIRS, PARTS, PEERS, PRIMED, PROMOTIONS, QUARANTINE, QUEUED, RECEIPTS, RECORDS, REFUSALS,
    RELEASES, REMOVALS, SAME, SERVICES, SESSIONS, STRETCHES, SUBJECTS, SUCCESSORS, TASKS,
    TOMBSTONES, UNSETTLED, UPKEEP, USAGE, USES, VIEWS, WORKSPACES, part,
};
use klnode_crdt::ids::EntryId;
use redb::{
    Database, Key, ReadableTable, ReadableTableMetadata, TableDefinition, TableHandle, Value,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Progress callback: gets the rows done and the total, and may cancel.
pub type ProgressWatch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Bytes per commit of a copy.
const COMMIT_BYTES: usize = 16 * 1024 * 1024;
/// Rows between two progress reports.
const WATCH_ROWS: u64 = 256;

/// Reports progress. Returns [`Error::Abandoned`] if the callback cancels.
pub(super) fn report_progress(
    watch: ProgressWatch<'_>,
    done: u64,
    total: u64,
) -> Result<(), Error> {
    match watch(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Abandoned),
    }
}

/// Data to leave out of a copy.
#[derive(Debug, Default)]
pub(super) struct OmittedData {
    /// All data of these entries except their view rows, which contain no text.
    pub(super) entries: BTreeSet<EntryId>,
    /// Peers and the data exchanged with them, because the copy belongs to another node.
    pub(super) peers: bool,
    /// Invitation tickets, because one that was used after the snapshot would be valid again.
    pub(super) tickets: bool,
}

/// Copies every table into an empty database.
pub(super) fn copy(
    from: &Snapshot,
    to: &Database,
    without: &OmittedData,
    watch: ProgressWatch<'_>,
) -> Result<(), Error> {
    let OmittedData { entries: without, peers: is_alone, tickets } = without;
    let batch = Batch::begin(to, Durability::Durable)?;
    batch.open_all()?;
    batch.commit()?;
    let total = total_rows(from)?;
    let mut copy = TableCopy { from, to, watch, done: 0, total, tables: BTreeSet::new() };
    let of = |key: &[u8]| without.contains(&EntryId::from_bytes(part(key, 0)));
    // Positions of omitted records, to omit rows that refer to them.
    let mut left_out = BTreeSet::new();
    copy.table(META, |name, _| Ok(!is_left_out(name, *is_alone)))?;
    copy.table(RECORDS, |seq, row| {
        if without.is_empty() {
            return Ok(true);
        }
        let seq = *seq;
        let record = shared_reads::record(Seq(u64::from_be_bytes(seq)), row)?;
        let keep = !without.contains(&record.entry());
        if !keep {
            left_out.insert(seq);
        }
        Ok(keep)
    })?;
    copy.table(HELD, |key, _| Ok(!of(key)))?;
    copy.table(DIGESTS, |_, seq| Ok(!left_out.contains(seq)))?;
    copy.table(VIEWS, |_, _| Ok(true))?;
    copy.table(EPOCHS, |_, _| Ok(true))?;
    copy.table(TOMBSTONES, |key, _| Ok(!of(key)))?;
    copy.table(EQUIVOCATIONS, |_, _| Ok(true))?;
    copy.table(QUARANTINE, |key, _| Ok(!of(key)))?;
    copy.table(RELEASES, |_, _| Ok(!is_alone))?;
    copy.table(OUTGOING, |_, _| Ok(!is_alone))?;
    copy.table(QUEUED, |_, _| Ok(!is_alone))?;
    copy.table(HEADS, |_, _| Ok(!is_alone))?;
    copy.table(STRETCHES, |_, _| Ok(!is_alone))?;
    copy.table(PEERS, |_, _| Ok(!is_alone))?;
    copy.table(WORKSPACES, |_, _| Ok(true))?;
    copy.table(INVITATIONS, |_, _| Ok(!tickets))?;
    copy.table(DISTANCES, |_, _| Ok(!is_alone))?;
    copy.table(OUTCOMES, |_, _| Ok(true))?;
    copy.table(RECEIPTS, |_, _| Ok(!is_alone))?;
    copy.table(OWED, |_, _| Ok(!is_alone))?;
    copy.table(TASKS, |_, _| Ok(true))?;
    copy.table(PARTS, |_, _| Ok(true))?;
    copy.findings(without)?;
    copy.table(REFUSALS, |_, _| Ok(!is_alone))?;
    copy.table(CURSORS, |_, _| Ok(!is_alone))?;
    copy.table(OVERLAYS, |key, _| Ok(!of(key)))?;
    copy.table(LEDGER, |_, _| Ok(true))?;
    copy.table(USES, |key, _| Ok(!of(key)))?;
    copy.table(PAIRS, |key, _| Ok(!of(key) && !of(&key[16..])))?;
    copy.table(CHECKOUTS, |_, _| Ok(true))?;
    copy.table(PROMOTIONS, |key, _| Ok(!of(key)))?;
    copy.table(SUCCESSORS, |key, _| Ok(!of(key) && !of(&key[16..])))?;
    copy.table(SAME, |key, _| Ok(!of(key) && !of(&key[16..])))?;
    copy.table(UPKEEP, |_, row| maintenance_journal::is_about_none(row, without))?;
    copy.table(SUBJECTS, |key, _| Ok(!of(&key[1..]) && !of(&key[17..])))?;
    copy.table(SERVICES, |_, _| Ok(true))?;
    copy.table(REMOVALS, |_, _| Ok(true))?;
    copy.table(EDITS, |key, _| Ok(!of(key)))?;
    copy.table(DOCUMENTS, |key, _| Ok(!of(key)))?;
    copy.table(IMPORTS, |key, _| Ok(!of(key)))?;
    copy.table(IMPORT_IDS, |key, _| Ok(!of(&key[16..])))?;
    copy.table(CALLERS, |seq, _| Ok(!left_out.contains(seq)))?;
    copy.table(SESSIONS, |_, _| Ok(true))?;
    copy.table(PRIMED, |key, _| Ok(!of(&key[16..])))?;
    copy.table(USAGE, |_, _| Ok(true))?;
    copy.table(DISMISSED, |_, _| Ok(true))?;
    copy.finish()
}

/// Whether a meta row is not copied: the copy contains no erased bytes, and without peers their
/// counters have no meaning.
fn is_left_out(name: &[u8; 8], is_alone: bool) -> bool {
    let is_of_peers = [META_REFUSED, META_FORETOLD, META_REREAD].contains(&name[0]);
    *name == META_ERASED || (is_alone && is_of_peers)
}

struct TableCopy<'a> {
    from: &'a Snapshot,
    to: &'a Database,
    watch: ProgressWatch<'a>,
    done: u64,
    total: u64,
    tables: BTreeSet<String>,
}

impl TableCopy<'_> {
    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        mut keep: impl FnMut(K::SelfType<'_>, V::SelfType<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.tables.insert(table.name().to_owned());
        let source = self.from.transaction.open_table(table)?;
        let mut rows = source.iter()?.peekable();
        while rows.peek().is_some() {
            let batch = Batch::begin(self.to, Durability::Durable)?;
            let mut target = batch.transaction.open_table(table)?;
            let mut bytes = 0;
            while bytes < COMMIT_BYTES {
                let Some((key, value)) = rows.next().transpose()? else { break };
                if keep(key.value(), value.value())? {
                    bytes += V::as_bytes(&value.value()).as_ref().len();
                    target.insert(key.value(), value.value())?;
                }
                self.done += 1;
                if self.done.is_multiple_of(WATCH_ROWS) {
                    report_progress(self.watch, self.done, self.total)?;
                }
            }
            drop(target);
            batch.commit()?;
        }
        Ok(())
    }

    /// Copies the findings, except those that went into omitted entries.
    fn findings(&mut self, without: &BTreeSet<EntryId>) -> Result<(), Error> {
        let dropped = match without.is_empty() {
            true => BTreeSet::new(),
            false => self.from.findings_quoting(without)?,
        };
        self.table(FINDINGS, |at, _| Ok(!dropped.contains(at)))?;
        self.table(UNSETTLED, |at, _| Ok(!dropped.contains(at)))
    }

    /// A table that is not copied would be lost silently, so an unknown one is an error.
    fn finish(self) -> Result<(), Error> {
        for table in self.from.transaction.list_tables()? {
            if !self.tables.contains(table.name()) {
                let what = format!("table {}", table.name());
                return Err(Error::damaged(what, "this version does not know the table"));
            }
        }
        report_progress(self.watch, self.total, self.total)
    }
}

fn total_rows(from: &Snapshot) -> Result<u64, Error> {
    let mut total = 0;
    for table in from.transaction.list_tables()? {
        total += from.transaction.open_untyped_table(table)?.len()?;
    }
    Ok(total)
}
