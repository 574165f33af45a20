//! What the view rows of all entries say that a briefing goes by, kept from one briefing to the next.
//!
//! To pass over every row takes the longer the more there are. Rows change with the feed alone, so
//! that after the first briefing only those entries are looked at again of which the feed tells
//! something new, and where it tells nothing new the same entries are chosen. No text is kept here:
//! there is nothing to be forgotten.

use crate::store::rows::{Seq, ViewRow};
use crate::store::{Error, Snapshot};
use klnode_crdt::charter;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::origin::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// To read one change of the feed costs about as much as to pass over so many rows: where more has
/// changed, all rows are passed over.
const ROWS_PER_CHANGE: u64 = 16;

/// What is gone by of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The newest change.
    pub(super) seq: u64,
    /// When it was first seen here, in milliseconds since 1970.
    pub(super) seen: u64,
    /// Live records.
    pub(super) records: u32,
    /// Who created it, unless it was imported.
    pub(super) creator: Option<AuthorId>,
}

/// What is gone by of the entries of one workspace.
pub(super) type Rows = BTreeMap<EntryId, Row>;

/// The rows as they were at the newest head that was asked for.
#[derive(Debug, Default)]
pub(in crate::query) struct KeptRows(Mutex<Option<All>>);

/// The rows of one state of the store.
#[derive(Debug, PartialEq, Eq)]
struct All {
    head: Seq,
    entries: u64,
    workspaces: BTreeMap<WorkspaceId, Rows>,
    /// What was chosen from these very rows, and among whom.
    chosen: BTreeMap<WorkspaceId, (Circle, Entries)>,
}

/// Whose word is listened to in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Circle {
    /// The keys of one person.
    pub(super) mine: BTreeSet<AuthorId>,
    /// Fellow members.
    pub(super) fellows: BTreeSet<AuthorId>,
}

type Entries = BTreeSet<EntryId>;

impl KeptRows {
    /// Chooses from the rows of a workspace in one state of the store.
    pub(super) fn choose(
        &self,
        snapshot: &Snapshot,
        workspace: WorkspaceId,
        circle: &Circle,
        choose: impl FnOnce(&Rows, &Circle) -> Result<Entries, Error>,
    ) -> Result<Entries, Error> {
        // Nothing is left half done in it: it is taken out while it is changed.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|all| all.head > snapshot.head()) {
            // Somebody with a newer snapshot was faster.
            drop(kept);
            return All::of(snapshot)?.choose(workspace, circle, choose);
        }
        let mut all = match kept.take() {
            Some(all) => all.brought_up_to(snapshot)?,
            None => All::of(snapshot)?,
        };
        let chosen = all.choose(workspace, circle, choose)?;
        *kept = Some(all);
        Ok(chosen)
    }
}

impl All {
    fn at(head: Seq) -> Self {
        let (workspaces, chosen) = (BTreeMap::new(), BTreeMap::new());
        Self { head, entries: 0, workspaces, chosen }
    }

    /// Passes over every row.
    fn of(snapshot: &Snapshot) -> Result<Self, Error> {
        let mut all = Self::at(snapshot.head());
        for row in snapshot.entries()? {
            // What is damaged is not told; the rest is.
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            all.entries += 1;
            all.put(entry, &row);
        }
        Ok(all)
    }

    /// The same at a later head.
    fn brought_up_to(mut self, snapshot: &Snapshot) -> Result<Self, Error> {
        let behind = snapshot.head().0.saturating_sub(self.head.0);
        if behind == 0 {
            return Ok(self);
        }
        // What cannot be read in the feed says nothing about the rows.
        let changed = match behind.saturating_mul(ROWS_PER_CHANGE) > self.entries {
            true => None,
            false => Error::unless_damaged(self.changed(snapshot))?,
        };
        let Some(changed) = changed else { return Self::of(snapshot) };
        for entry in changed {
            let row = match Error::unless_damaged(snapshot.view_row(entry))? {
                Some(Some(row)) => row,
                Some(None) => continue,
                // Of which workspace it was kept nothing says any more.
                None => return Self::of(snapshot),
            };
            // An id belongs to one workspace, whatever becomes of the entry.
            if let Some(rows) = row.workspace.and_then(|id| self.workspaces.get_mut(&id)) {
                rows.remove(&entry);
            }
            self.put(entry, &row);
        }
        (self.head, self.entries) = (snapshot.head(), snapshot.entry_count()?);
        Ok(self)
    }

    /// Entries of which the feed tells something new.
    fn changed(&self, snapshot: &Snapshot) -> Result<BTreeSet<EntryId>, Error> {
        let changes = snapshot.changes_since(self.head)?;
        changes.map(|change| Ok(change?.record.entry())).collect()
    }

    fn put(&mut self, entry: EntryId, row: &ViewRow) {
        self.chosen.clear();
        let Some(workspace) = row.workspace.filter(|_| is_told(entry, row)) else { return };
        let (seq, seen) = (row.seq.0, row.first_seen.as_millis());
        let kept = Row { seq, seen, records: row.records, creator: row.creator };
        self.workspaces.entry(workspace).or_default().insert(entry, kept);
    }

    fn choose(
        &mut self,
        workspace: WorkspaceId,
        circle: &Circle,
        choose: impl FnOnce(&Rows, &Circle) -> Result<Entries, Error>,
    ) -> Result<Entries, Error> {
        if let Some((of, chosen)) = self.chosen.get(&workspace)
            && of == circle
        {
            return Ok(chosen.clone());
        }
        let Some(rows) = self.workspaces.get(&workspace) else { return Ok(Entries::new()) };
        let chosen = choose(rows, circle)?;
        self.chosen.insert(workspace, (circle.clone(), chosen.clone()));
        Ok(chosen)
    }
}

/// Whether an entry could be told at all, as far as its row says.
fn is_told(entry: EntryId, row: &ViewRow) -> bool {
    let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
    !row.is_forgotten && !is_charter && row.memory() != Some(Memory::Episodic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::origin::Origin;
    use klnode_crdt::time::WallTime;
    use std::cell::Cell;

    #[test]
    fn the_same_rows_are_passed_over_once_for_the_same_person_and_others_again() {
        let passes = Cell::new(0);
        let choose = |rows: &Rows, _: &Circle| {
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
        let mut all = All::at(Seq(1));
        all.put(entry(1), &row());
        let authors = BTreeSet::from([AuthorId::from_bytes([1; 32])]);
        let alone = Circle { mine: authors.clone(), ..Circle::default() };
        let others = Circle { fellows: authors, ..Circle::default() };
        let main = WorkspaceId::MAIN;
        for _ in 0..2 {
            assert_eq!(all.choose(main, &alone, choose).unwrap(), Entries::from([entry(1)]));
        }
        assert_eq!(passes.get(), 1);
        all.choose(main, &others, choose).unwrap();
        assert_eq!(passes.get(), 2, "it goes by who is who");
        all.put(entry(2), &row());
        let both = Entries::from([entry(1), entry(2)]);
        assert_eq!(all.choose(main, &others, choose).unwrap(), both);
        assert_eq!(passes.get(), 3, "it goes by the rows");
    }
}
