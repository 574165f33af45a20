//! The state that queries read: the rows and the graph, always changed together.
//!
//! It is protected by one lock. Slow work (building a graph, saving, dropping an old graph) happens
//! outside the lock; this module has only the work under the lock.

use super::graph::Graph;
use super::graph_mapping::AttachedGraph;
use super::quantized_rows::{Quantised, QuantizedQuery, QuantizedRows, RowsSnapshot};
use super::row_filter::{RowFacts, RowFilter};
use super::rows_file::RowContainer;
use super::rows_file_format::ROWS_MAX;
use super::{BadVector, Engine, Limits, Nearest};
use klnode_crdt::ids::EntryId;
use std::collections::HashSet;
use std::sync::Arc;

/// The rows and the graph over them.
pub(super) struct State {
    pub(super) rows: QuantizedRows,
    attached: Option<AttachedGraph>,
    graph: Building,
    /// Entries whose vector changed since the snapshot from which a graph is being built.
    touched: HashSet<EntryId>,
}

/// The state of graph construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Building {
    /// No thread is running.
    Idle,
    /// A thread has a snapshot and no graph yet.
    Running,
    /// The graph is in use; its thread is still saving it.
    Saving,
    /// Construction failed in a way that would repeat: from now on the scan answers.
    GivenUp,
}

/// The action to take about the graph.
pub(super) enum GraphAction {
    /// Keep the graph, or the lack of one.
    Nothing,
    /// Build a graph from this snapshot.
    Graph(RowsSnapshot),
    /// Drop this graph, because there are too few rows.
    NoMore(Box<AttachedGraph>),
}

impl RowContainer for State {
    fn as_rows(&self) -> &QuantizedRows {
        &self.rows
    }
}

impl State {
    pub(super) fn new(rows: QuantizedRows) -> Self {
        Self { rows, attached: None, graph: Building::Idle, touched: HashSet::new() }
    }

    /// Writes the row of an entry. Returns its number if anything changed.
    pub(super) fn upsert(
        &mut self,
        entry: EntryId,
        vector: &Quantised,
        facts: RowFacts,
    ) -> Result<Option<usize>, BadVector> {
        let held = self.rows.row_of(entry);
        if held.is_none() && self.rows.len() >= ROWS_MAX {
            return Err(BadVector::Full);
        }
        // An entry is often rewritten with only a changed tag: its point in the graph stays valid.
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

    /// Removes the row of an entry. Returns its former number.
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

    pub(super) fn nearest(
        &self,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> Nearest {
        let scan = || self.rows.nearest(query, count, filter);
        self.by_graph(query, count, filter).unwrap_or_else(|| Nearest::scanned(scan()))
    }

    /// Like `nearest`, with the scan split between cores.
    pub(super) fn nearest_shared(
        &self,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> Nearest {
        let scan = || self.rows.nearest_shared(query, count, filter);
        self.by_graph(query, count, filter).unwrap_or_else(|| Nearest::scanned(scan()))
    }

    fn by_graph(
        &self,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> Option<Nearest> {
        let top = self.attached.as_ref()?.nearest(&self.rows, query, count, filter)?;
        Some(Nearest { hits: top.into_hits(), engine: Engine::Graph })
    }

    /// The number of points of the graph.
    pub(super) fn points(&self) -> Option<usize> {
        self.attached.as_ref().map(AttachedGraph::points)
    }

    /// The graph in use, for tests.
    #[cfg(test)]
    pub(super) fn attached(&self) -> Option<&AttachedGraph> {
        self.attached.as_ref()
    }

    /// Decides about the graph. After `GraphAction::Graph` the caller must report the end with
    /// `built`.
    pub(super) fn need(&mut self, limits: &Limits) -> GraphAction {
        if self.rows.len() < limits.hnsw_entries_min {
            return self
                .attached
                .take()
                .map_or(GraphAction::Nothing, |old| GraphAction::NoMore(Box::new(old)));
        }
        let is_good = self.attached.as_ref().is_some_and(|attached| !attached.is_worn(limits));
        if is_good || self.graph != Building::Idle {
            return GraphAction::Nothing;
        }
        self.graph = Building::Running;
        GraphAction::Graph(self.rows.snapshot())
    }

    /// Puts a graph built from a snapshot into use, and returns the one it replaces.
    pub(super) fn attach(
        &mut self,
        graph: Arc<Graph>,
        of: &RowsSnapshot,
        row_of_point: &[Option<usize>],
    ) -> Option<AttachedGraph> {
        let touched = std::mem::take(&mut self.touched);
        let now = |row: usize| {
            let entry = of.entries[row];
            if touched.contains(&entry) {
                return None;
            }
            // Most rows have not moved.
            let stays = self.rows.entries().get(row) == Some(&entry);
            if stays { Some(row) } else { self.rows.row_of(entry) }
        };
        let row_of_point = row_of_point.iter().map(|row| row.and_then(now)).collect();
        let attached = AttachedGraph::new(graph, self.rows.len(), row_of_point);
        self.graph = Building::Saving;
        self.attached.replace(attached)
    }

    /// Reports the end of the builder's thread.
    pub(super) fn built(&mut self, how: Building) {
        self.graph = how;
        self.touched = HashSet::new();
    }
}
