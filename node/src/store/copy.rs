//! A store written anew, row by row, from one snapshot of another: for backups, for restoring, and
//! to take the place of a store in which something was erased.
//!
//! Rows are copied and not pages, so that what was erased, and lingers in pages that nothing uses,
//! stays behind. The source is only read: while a backup is made its writer goes on.

use super::batch::{Batch, Durability};
use super::error::Error;
use super::read;
use super::rows::Seq;
use super::snapshot::Snapshot;
use super::tables::{
    CALLERS, CHECKOUTS, CURSORS, DIGESTS, DISTANCES, EPOCHS, EQUIVOCATIONS, FINDINGS, HEADS, HELD,
    INVITATIONS, LEDGER, META, META_ERASED, META_FORETOLD, META_REFUSED, OUTCOMES, OUTGOING,
    OVERLAYS, OWED, PAIRS, PARTS, PEERS, PRIMED, PROMOTIONS, QUARANTINE, QUEUED, RECEIPTS, RECORDS,
    REFUSALS, RELEASES, SAME, SERVICES, SESSIONS, STRETCHES, SUBJECTS, SUCCESSORS, TASKS,
    TOMBSTONES, UNSETTLED, UPKEEP, USAGE, USES, VIEWS, WORKSPACES, part,
};
use super::upkeep;
use klnode_crdt::ids::EntryId;
use redb::{
    Database, Key, ReadableTable, ReadableTableMetadata, TableDefinition, TableHandle, Value,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Hears how much is done of how much, and may break off.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Bytes in one commit of a copy.
const COMMIT_BYTES: usize = 16 * 1024 * 1024;
/// Rows between two words to whoever watches.
const WATCH_ROWS: u64 = 256;

/// Tells whoever watches, and stops if that is wanted.
pub(super) fn tell(watch: Watch<'_>, done: u64, total: u64) -> Result<(), Error> {
    match watch(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Abandoned),
    }
}

/// What is left out of a copy.
#[derive(Debug, Default)]
pub(super) struct Without {
    /// Everything about these entries but their view rows, which hold no text.
    pub(super) entries: BTreeSet<EntryId>,
    /// Whom the node knows, and what passed between them: the copy is another node's, to whom none of
    /// them is anything.
    pub(super) peers: bool,
    /// Tickets: one that was used since the source was left would let somebody in again.
    pub(super) tickets: bool,
}

/// Copies every table into an empty database.
pub(super) fn copy(
    from: &Snapshot,
    to: &Database,
    without: &Without,
    watch: Watch<'_>,
) -> Result<(), Error> {
    let Without { entries: without, peers: is_alone, tickets } = without;
    let batch = Batch::begin(to, Durability::Durable)?;
    batch.open_all()?;
    batch.commit()?;
    let total = total_rows(from)?;
    let mut copy = Copy { from, to, watch, done: 0, total, tables: BTreeSet::new() };
    let of = |key: &[u8]| without.contains(&EntryId::from_bytes(part(key, 0)));
    // Positions of the records that are left out, to leave out what points at them.
    let mut left_out = BTreeSet::new();
    copy.table(META, |name, _| Ok(!is_left_out(name, *is_alone)))?;
    copy.table(RECORDS, |seq, row| {
        if without.is_empty() {
            return Ok(true);
        }
        let seq = *seq;
        let record = read::record(Seq(u64::from_be_bytes(seq)), row)?;
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
    copy.table(UPKEEP, |_, row| upkeep::is_about_none(row, without))?;
    copy.table(SUBJECTS, |key, _| Ok(!of(&key[1..]) && !of(&key[17..])))?;
    copy.table(SERVICES, |_, _| Ok(true))?;
    copy.table(CALLERS, |seq, _| Ok(!left_out.contains(seq)))?;
    copy.table(SESSIONS, |_, _| Ok(true))?;
    copy.table(PRIMED, |key, _| Ok(!of(&key[16..])))?;
    copy.table(USAGE, |_, _| Ok(true))?;
    copy.finish()
}

/// Whether something with this name is not copied: nothing was erased in the copy, and nobody has
/// brought anything to a node that knows nobody.
fn is_left_out(name: &[u8; 8], is_alone: bool) -> bool {
    let is_of_peers = [META_REFUSED, META_FORETOLD].contains(&name[0]);
    *name == META_ERASED || (is_alone && is_of_peers)
}

struct Copy<'a> {
    from: &'a Snapshot,
    to: &'a Database,
    watch: Watch<'a>,
    done: u64,
    total: u64,
    tables: BTreeSet<String>,
}

impl Copy<'_> {
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
                    tell(self.watch, self.done, self.total)?;
                }
            }
            drop(target);
            batch.commit()?;
        }
        Ok(())
    }

    /// Findings, but for those that went into what is left out.
    fn findings(&mut self, without: &BTreeSet<EntryId>) -> Result<(), Error> {
        let dropped = match without.is_empty() {
            true => BTreeSet::new(),
            false => self.from.findings_quoting(without)?,
        };
        self.table(FINDINGS, |at, _| Ok(!dropped.contains(at)))?;
        self.table(UNSETTLED, |at, _| Ok(!dropped.contains(at)))
    }

    /// A table that is not copied would be lost in silence.
    fn finish(self) -> Result<(), Error> {
        for table in self.from.transaction.list_tables()? {
            if !self.tables.contains(table.name()) {
                let what = format!("table {}", table.name());
                return Err(Error::damaged(what, "this version does not know it"));
            }
        }
        tell(self.watch, self.total, self.total)
    }
}

fn total_rows(from: &Snapshot) -> Result<u64, Error> {
    let mut total = 0;
    for table in from.transaction.list_tables()? {
        total += from.transaction.open_untyped_table(table)?.len()?;
    }
    Ok(total)
}
