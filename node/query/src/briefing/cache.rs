//! Cache of the view-row fields from which a briefing selects entries.
//!
//! A scan of all view rows takes time proportional to their number. Rows change only with the feed,
//! so after the first briefing only entries with new feed records are read again; if there are
//! none, the previous selection is reused. The cache holds no text, so forgetting an entry needs no
//! invalidation.

use klnode_crdt::entry_origin::Memory;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_store::row_types::{Seq, ViewRow};
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Reading one feed record costs about as much as scanning this many rows: if more has changed, the
/// cache is rebuilt by a full scan.
const ROWS_PER_CHANGE: u64 = 16;

/// The fields of one view row that the selection uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The sequence number of the newest change.
    pub(super) seq: u64,
    /// The time at which this node first stored the entry, in milliseconds since 1970.
    pub(super) seen: u64,
    /// Number of live records.
    pub(super) records: u32,
    /// The creator; `None` for an import.
    pub(super) creator: Option<AuthorId>,
}

/// The rows of one workspace.
pub(super) type WorkspaceRows = BTreeMap<EntryId, Row>;

/// The rows at the newest head that a briefing has used.
#[derive(Debug, Default)]
pub(crate) struct RowCache(Mutex<Option<RowsAtHead>>);

/// The rows at one head of the feed.
#[derive(Debug, PartialEq, Eq)]
struct RowsAtHead {
    head: Seq,
    entries: u64,
    workspaces: BTreeMap<WorkspaceId, WorkspaceRows>,
    /// The selection made from these rows, with the membership it was made for.
    chosen: BTreeMap<WorkspaceId, (MemberSets, Entries)>,
}

/// The authors whose claims count in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberSets {
    /// The keys of the owner's nodes.
    pub(super) mine: BTreeSet<AuthorId>,
    /// The keys of fellow members.
    pub(super) fellows: BTreeSet<AuthorId>,
}

type Entries = BTreeSet<EntryId>;

impl RowCache {
    /// Selects from the rows of a workspace at the head of `snapshot`.
    pub(super) fn choose(
        &self,
        snapshot: &Snapshot,
        workspace: WorkspaceId,
        members: &MemberSets,
        choose: impl FnOnce(&WorkspaceRows, &MemberSets) -> Result<Entries, Error>,
    ) -> Result<Entries, Error> {
        // A panic leaves the cache empty, never half-updated: it is taken out while it changes.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|all| all.head > snapshot.head()) {
            // Another thread with a newer snapshot was faster.
            drop(kept);
            return RowsAtHead::of(snapshot)?.choose(workspace, members, choose);
        }
        let mut all = match kept.take() {
            Some(all) => all.advance_to(snapshot)?,
            None => RowsAtHead::of(snapshot)?,
        };
        let chosen = all.choose(workspace, members, choose)?;
        *kept = Some(all);
        Ok(chosen)
    }
}

impl RowsAtHead {
    fn at(head: Seq) -> Self {
        let (workspaces, chosen) = (BTreeMap::new(), BTreeMap::new());
        Self { head, entries: 0, workspaces, chosen }
    }

    fn of(snapshot: &Snapshot) -> Result<Self, Error> {
        let mut all = Self::at(snapshot.head());
        for row in snapshot.entries()? {
            // A damaged row is skipped.
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            all.entries += 1;
            all.put(entry, &row);
        }
        Ok(all)
    }

    /// Updates the rows to a later head.
    fn advance_to(mut self, snapshot: &Snapshot) -> Result<Self, Error> {
        let behind = snapshot.head().0.saturating_sub(self.head.0);
        if behind == 0 {
            return Ok(self);
        }
        // If the feed is damaged, fall back to a full scan.
        let changed = match behind.saturating_mul(ROWS_PER_CHANGE) > self.entries {
            true => None,
            false => Error::unless_damaged(self.changed(snapshot))?,
        };
        let Some(changed) = changed else { return Self::of(snapshot) };
        for entry in changed {
            let row = match Error::unless_damaged(snapshot.view_row(entry))? {
                Some(Some(row)) => row,
                Some(None) => continue,
                // The row is damaged, so its workspace is unknown.
                None => return Self::of(snapshot),
            };
            // An entry id never moves to another workspace.
            if let Some(rows) = row.workspace.and_then(|id| self.workspaces.get_mut(&id)) {
                rows.remove(&entry);
            }
            self.put(entry, &row);
        }
        (self.head, self.entries) = (snapshot.head(), snapshot.entry_count()?);
        Ok(self)
    }

    /// Entries with new feed records.
    fn changed(&self, snapshot: &Snapshot) -> Result<BTreeSet<EntryId>, Error> {
        let changes = snapshot.changes_since(self.head)?;
        changes.map(|change| Ok(change?.record.entry())).collect()
    }

    fn put(&mut self, entry: EntryId, row: &ViewRow) {
        self.chosen.clear();
        let Some(workspace) = row.workspace.filter(|_| may_be_listed(entry, row)) else { return };
        let (seq, seen) = (row.seq.0, row.first_seen.as_millis());
        let kept = Row { seq, seen, records: row.records, creator: row.creator };
        self.workspaces.entry(workspace).or_default().insert(entry, kept);
    }

    fn choose(
        &mut self,
        workspace: WorkspaceId,
        members: &MemberSets,
        choose: impl FnOnce(&WorkspaceRows, &MemberSets) -> Result<Entries, Error>,
    ) -> Result<Entries, Error> {
        if let Some((of, chosen)) = self.chosen.get(&workspace)
            && of == members
        {
            return Ok(chosen.clone());
        }
        let Some(rows) = self.workspaces.get(&workspace) else { return Ok(Entries::new()) };
        let chosen = choose(rows, members)?;
        self.chosen.insert(workspace, (members.clone(), chosen.clone()));
        Ok(chosen)
    }
}

/// True if an entry may appear in a briefing, judged by its row.
fn may_be_listed(entry: EntryId, row: &ViewRow) -> bool {
    let is_internal = row.is_internal(entry);
    !row.is_forgotten && !is_internal && row.memory() != Some(Memory::Episodic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::entry_origin::Origin;
    use klnode_crdt::time::WallTime;
    use std::cell::Cell;

    #[test]
    fn a_selection_is_reused_for_the_same_rows_and_members() {
        let passes = Cell::new(0);
        let choose = |rows: &WorkspaceRows, _: &MemberSets| {
            passes.set(passes.get() + 1);
            Ok::<_, Error>(rows.keys().copied().collect::<Entries>())
        };
        let row = || {
            let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
            let (format, key) = ("lines".to_owned(), "1".to_owned());
            let mut row = ViewRow::new(WallTime::from_millis(1));
            row.learn(&Origin::Imported { workspace, memory, format, key });
            row
        };
        let entry = |number: u8| EntryId::from_bytes([number; 16]);
        let mut all = RowsAtHead::at(Seq(1));
        all.put(entry(1), &row());
        let authors = BTreeSet::from([AuthorId::from_bytes([1; 32])]);
        let alone = MemberSets { mine: authors.clone(), ..MemberSets::default() };
        let others = MemberSets { fellows: authors, ..MemberSets::default() };
        let main = WorkspaceId::MAIN;
        for _ in 0..2 {
            assert_eq!(all.choose(main, &alone, choose).unwrap(), Entries::from([entry(1)]));
        }
        assert_eq!(passes.get(), 1);
        all.choose(main, &others, choose).unwrap();
        assert_eq!(passes.get(), 2, "other members give another selection");
        all.put(entry(2), &row());
        let both = Entries::from([entry(1), entry(2)]);
        assert_eq!(all.choose(main, &others, choose).unwrap(), both);
        assert_eq!(passes.get(), 3, "other rows give another selection");
    }
}
