//! What queries read: the rows, and the graph beside them, always changed together.
//!
//! It lives behind one lock. Whatever takes long (building a graph, saving, dropping an old graph)
//! happens outside of it; here is only what is done while the lock is held.

use super::attached::Attached;
use super::facts::{Facts, Filter};
use super::file::AsRows;
use super::format::ROWS_MAX;
use super::graph::Graph;
use super::rows::{Quantised, Query, Rows, Snapshot};
use super::{BadVector, Engine, Limits, Nearest};
use klnode_crdt::ids::EntryId;
use std::collections::HashSet;
use std::sync::Arc;

/// Rows, and the graph beside them.
pub(super) struct State {
    pub(super) rows: Rows,
    attached: Option<Attached>,
    graph: Building,
    /// Entries whose vector was written or removed since the snapshot a graph is being built from.
    touched: HashSet<EntryId>,
}

/// Whether a graph is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Building {
    /// No thread is at work.
    Idle,
    /// A thread has a snapshot and no graph yet.
    Running,
    /// The graph is in use; its thread is still saving it.
    Saving,
    /// It failed in a way that would repeat itself: the scan answers from now on.
    GivenUp,
}

/// What to do about the graph.
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// Build one of this.
    Graph(Snapshot),
    /// There are too few rows for the one there was.
    NoMore(Box<Attached>),
}

impl AsRows for State {
    fn as_rows(&self) -> &Rows {
        &self.rows
    }
}

impl State {
    pub(super) fn new(rows: Rows) -> Self {
        Self { rows, attached: None, graph: Building::Idle, touched: HashSet::new() }
    }

    /// Writes an entry's row. Returns its number if that changed anything.
    pub(super) fn upsert(
        &mut self,
        entry: EntryId,
        vector: &Quantised,
        facts: Facts,
    ) -> Result<Option<usize>, BadVector> {
        let held = self.rows.row_of(entry);
        if held.is_none() && self.rows.len() >= ROWS_MAX {
            return Err(BadVector::Full);
        }
        // An entry is often written again with nothing new but a tag: its point lives on.
        if let Some(row) = held
            && self.rows.codes.holds(row, &vector.codes)
        {
            let is_new = *self.rows.facts(row) != facts;
            self.rows.set_facts(row, facts);
            return Ok(is_new.then_some(row));
        }
        let row = self.rows.upsert(entry, vector, facts);
        self.touch(entry);
        if let Some(attached) = &mut self.attached {
            if held.is_some() { attached.changed(row) } else { attached.added() }
        }
        Ok(Some(row))
    }

    /// Removes an entry's row. Returns the number it had.
    pub(super) fn remove(&mut self, entry: EntryId) -> Option<usize> {
        let removed = self.rows.remove(entry)?;
        self.touch(entry);
        if let Some(attached) = &mut self.attached {
            attached.removed(removed);
        }
        Some(removed.row)
    }

    fn touch(&mut self, entry: EntryId) {
        if self.graph == Building::Running {
            self.touched.insert(entry);
        }
    }

    pub(super) fn nearest(&self, query: &Query, count: usize, filter: &Filter) -> Nearest {
        let scan = || self.rows.nearest(query, count, filter);
        self.by_graph(query, count, filter).unwrap_or_else(|| Nearest::scanned(scan()))
    }

    /// The same, where another core may take a part of it.
    pub(super) fn nearest_shared(&self, query: &Query, count: usize, filter: &Filter) -> Nearest {
        let scan = || self.rows.nearest_shared(query, count, filter);
        self.by_graph(query, count, filter).unwrap_or_else(|| Nearest::scanned(scan()))
    }

    fn by_graph(&self, query: &Query, count: usize, filter: &Filter) -> Option<Nearest> {
        let top = self.attached.as_ref()?.nearest(&self.rows, query, count, filter)?;
        Some(Nearest { hits: top.into_hits(), engine: Engine::Graph })
    }

    /// How many points the graph has.
    pub(super) fn points(&self) -> Option<usize> {
        self.attached.as_ref().map(Attached::points)
    }

    /// The graph in use, for tests to look into.
    #[cfg(test)]
    pub(super) fn attached(&self) -> Option<&Attached> {
        self.attached.as_ref()
    }

    /// Decides about the graph. Who is told to build one says when it is done.
    pub(super) fn need(&mut self, limits: &Limits) -> Need {
        if self.rows.len() < limits.hnsw_entries_min {
            return self.attached.take().map_or(Need::Nothing, |old| Need::NoMore(Box::new(old)));
        }
        let is_good = self.attached.as_ref().is_some_and(|attached| !attached.is_worn(limits));
        if is_good || self.graph != Building::Idle {
            return Need::Nothing;
        }
        self.graph = Building::Running;
        Need::Graph(self.rows.snapshot())
    }

    /// Takes a graph into use, made of a snapshot of these rows, and returns the one it replaces.
    pub(super) fn attach(
        &mut self,
        graph: Arc<Graph>,
        of: &Snapshot,
        row_of_point: &[Option<usize>],
    ) -> Option<Attached> {
        let touched = std::mem::take(&mut self.touched);
        let now = |row: usize| {
            let entry = of.entries[row];
            if touched.contains(&entry) {
                return None;
            }
            // Most rows stand where they stood.
            let stays = self.rows.entries().get(row) == Some(&entry);
            if stays { Some(row) } else { self.rows.row_of(entry) }
        };
        let row_of_point = row_of_point.iter().map(|row| row.and_then(now)).collect();
        let attached = Attached::new(graph, self.rows.len(), row_of_point);
        self.graph = Building::Saving;
        self.attached.replace(attached)
    }

    /// The thread that built is done.
    pub(super) fn built(&mut self, how: Building) {
        self.graph = how;
        self.touched = HashSet::new();
    }
}
