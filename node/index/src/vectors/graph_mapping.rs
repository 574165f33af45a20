//! Maps the points of an immutable graph to rows that keep changing.
//!
//! A point whose row was removed or got another vector is dead: searches still walk through it, but
//! never return it. A row without a point is fresh: it is compared exactly, in addition to the
//! graph. Every hit is an existing row with its own cosine, admitted by the filter.

use super::Limits;
use super::graph::Graph;
use super::quantized_rows::{QuantizedQuery, QuantizedRows, RowRemoval};
use super::row_filter::RowFilter;
use super::top_k::TopHits;
use std::sync::Arc;

/// The ratio of fresh rows to points from which the graph is rebuilt.
const FRESH_FRACTION_MAX: f64 = 0.25;
/// Minimum number of candidates in a search: with fewer, too many hits are missed.
const WIDTH_MIN: usize = 128;
/// Maximum number of candidates in a search: with more, a scan is as fast.
const WIDTH_MAX: usize = 768;
/// Minimum share of rows that a filter must admit to use the graph: below it, comparing only the
/// admitted rows is faster.
const SHARE_MIN: f64 = 0.2;
/// Factor by which more points are requested than needed, because fewer admitted ones may be near.
const MARGIN: f64 = 1.5;

const NONE: u32 = u32::MAX;

/// A graph and the mapping between its points and the rows.
pub(super) struct AttachedGraph {
    graph: Arc<Graph>,
    row_of_point: Vec<u32>,
    point_of_row: Vec<u32>,
    dead: usize,
    fresh: usize,
}

impl AttachedGraph {
    /// Attaches a graph to rows, given the current row of each point.
    pub(super) fn new(graph: Arc<Graph>, rows: usize, row_of_point: Vec<Option<usize>>) -> Self {
        let mut point_of_row = vec![NONE; rows];
        for (point, row) in row_of_point.iter().enumerate() {
            if let Some(row) = row {
                point_of_row[*row] = number(point);
            }
        }
        let row_of_point: Vec<u32> =
            row_of_point.into_iter().map(|row| row.map_or(NONE, number)).collect();
        let count = |of: &[u32]| of.iter().filter(|one| **one == NONE).count();
        let (dead, fresh) = (count(&row_of_point), count(&point_of_row));
        Self { graph, row_of_point, point_of_row, dead, fresh }
    }

    /// Records that a row was appended.
    pub(super) fn added(&mut self) {
        self.point_of_row.push(NONE);
        self.fresh += 1;
    }

    /// Records that a row got another vector.
    pub(super) fn changed(&mut self, row: usize) {
        if self.detach(row) {
            self.fresh += 1;
        }
    }

    /// Records that a row was removed and the last one took its place.
    pub(super) fn removed(&mut self, removed: RowRemoval) {
        if !self.detach(removed.row) {
            self.fresh -= 1;
        }
        self.point_of_row.swap_remove(removed.row);
        if removed.row < removed.last {
            let point = self.point_of_row[removed.row];
            if point != NONE {
                self.row_of_point[point as usize] = number(removed.row);
            }
        }
    }

    /// Detaches a row from its point; false if it has none.
    fn detach(&mut self, row: usize) -> bool {
        let point = std::mem::replace(&mut self.point_of_row[row], NONE);
        if point == NONE {
            return false;
        }
        self.row_of_point[point as usize] = NONE;
        self.dead += 1;
        true
    }

    /// The number of points, including dead ones.
    pub(super) fn points(&self) -> usize {
        self.graph.count()
    }

    /// True if enough has changed that the graph should be rebuilt.
    pub(super) fn is_worn(&self, limits: &Limits) -> bool {
        is_worn(self.points(), self.dead, self.fresh, limits)
    }

    /// Panics unless points and rows refer to each other, with equal codes, and the counts are
    /// right.
    #[cfg(test)]
    pub(super) fn assert_joined(&self, rows: &QuantizedRows) {
        let codes = &self.graph.points().get_distance().codes;
        assert_eq!(self.point_of_row.len(), rows.len());
        for (row, point) in self.point_of_row.iter().enumerate().filter(|pair| *pair.1 != NONE) {
            assert_eq!(self.row_of_point[*point as usize], number(row));
            assert_eq!(codes.words(*point as usize), rows.codes.words(row));
        }
        let lacking = |of: &[u32]| of.iter().filter(|one| **one == NONE).count();
        assert_eq!(self.dead, lacking(&self.row_of_point));
        assert_eq!(self.fresh, lacking(&self.point_of_row));
        assert_eq!(self.points() - self.dead, rows.len() - self.fresh);
    }

    /// The nearest rows; `None` if a scan is better.
    pub(super) fn nearest(
        &self,
        rows: &QuantizedRows,
        query: &QuantizedQuery,
        count: usize,
        filter: &RowFilter,
    ) -> Option<TopHits> {
        let share = rows.admitted_share(filter);
        if share < SHARE_MIN {
            return None;
        }
        let live = 1.0 - self.dead as f64 / self.points().max(1) as f64;
        let wanted = (count as f64 / (share * live).max(0.01) * MARGIN).ceil() as usize;
        if wanted > WIDTH_MAX {
            return None;
        }
        let mut top = TopHits::new(count.min(rows.len()));
        for point in self.graph.search(query, wanted.max(WIDTH_MIN)) {
            let row = self.row_of_point[point];
            if row != NONE && filter.admits(rows.facts(row as usize)) {
                let row = row as usize;
                top.offer(rows.codes.cosine(row, query), &rows.entry(row));
            }
        }
        if self.fresh > 0 {
            let is_fresh = |row: usize| self.point_of_row[row] == NONE;
            rows.scan_some(query, &mut top, |row| is_fresh(row) && filter.admits(rows.facts(row)));
        }
        // Too few hits may mean that the graph did not reach the rest.
        (top.len() == count.min(rows.len())).then_some(top)
    }
}

/// True if a graph with this many dead points and fresh rows should be rebuilt.
pub(super) fn is_worn(points: usize, dead: usize, fresh: usize, limits: &Limits) -> bool {
    let points = points as f64;
    dead as f64 >= (points * limits.hnsw_dead_fraction_max).max(1.0)
        || fresh as f64 >= (points * FRESH_FRACTION_MAX).max(1.0)
}

fn number(of: usize) -> u32 {
    u32::try_from(of).expect("rows are bounded below 2^32")
}
