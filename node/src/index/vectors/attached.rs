//! A graph beside rows that go on changing: which point is which row, and which rows it lacks.
//!
//! A point whose row was removed or got another vector is dead: it still leads the way to others
//! and is never an answer. A row without a point is fresh: it is compared exactly, beside the
//! graph. Every answer is a row that exists, with its own cosine, and is admitted by the filter.

use super::Limits;
use super::facts::Filter;
use super::graph::Graph;
use super::rows::{Query, Removed, Rows};
use super::top::Top;
use std::sync::Arc;

/// Part of fresh rows, to points, at which the graph is built again.
const FRESH_FRACTION_MAX: f64 = 0.25;
/// Fewest candidates kept in a search: below it too much is missed.
const WIDTH_MIN: usize = 128;
/// Most candidates kept in a search: beyond it comparing all rows is as fast.
const WIDTH_MAX: usize = 768;
/// Part of the rows a filter must admit for the graph to be worth walking: below it, comparing the
/// admitted rows alone is faster.
const SHARE_MIN: f64 = 0.2;
/// More points are asked for than needed, since chance may put fewer of the admitted near.
const MARGIN: f64 = 1.5;

const NONE: u32 = u32::MAX;

/// A graph, and how its points stand to the rows.
pub(super) struct Attached {
    graph: Arc<Graph>,
    row_of_point: Vec<u32>,
    point_of_row: Vec<u32>,
    dead: usize,
    fresh: usize,
}

impl Attached {
    /// Joins a graph to rows, given the row of each point, if it still has one.
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

    /// A row was added after the last.
    pub(super) fn added(&mut self) {
        self.point_of_row.push(NONE);
        self.fresh += 1;
    }

    /// A row got another vector.
    pub(super) fn changed(&mut self, row: usize) {
        if self.kill(row) {
            self.fresh += 1;
        }
    }

    /// A row was removed, and the last one took its place.
    pub(super) fn removed(&mut self, removed: Removed) {
        if !self.kill(removed.row) {
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

    /// Parts a row from its point, if it has one.
    fn kill(&mut self, row: usize) -> bool {
        let point = std::mem::replace(&mut self.point_of_row[row], NONE);
        if point == NONE {
            return false;
        }
        self.row_of_point[point as usize] = NONE;
        self.dead += 1;
        true
    }

    /// How many points the graph has, the dead ones included.
    pub(super) fn points(&self) -> usize {
        self.graph.count()
    }

    /// Whether so much has changed that the graph should be built again.
    pub(super) fn is_worn(&self, limits: &Limits) -> bool {
        is_worn(self.points(), self.dead, self.fresh, limits)
    }

    /// Panics unless points and rows name each other, with the same codes, and the counts are right.
    #[cfg(test)]
    pub(super) fn assert_joined(&self, rows: &Rows) {
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

    /// The nearest rows, or none where comparing every admitted row is the better way.
    pub(super) fn nearest(
        &self,
        rows: &Rows,
        query: &Query,
        count: usize,
        filter: &Filter,
    ) -> Option<Top> {
        let share = rows.admitted_share(filter);
        if share < SHARE_MIN {
            return None;
        }
        let live = 1.0 - self.dead as f64 / self.points().max(1) as f64;
        let wanted = (count as f64 / (share * live).max(0.01) * MARGIN).ceil() as usize;
        if wanted > WIDTH_MAX {
            return None;
        }
        let mut top = Top::new(count.min(rows.len()));
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
        // Too few may mean that the graph did not reach the rest.
        (top.len() == count.min(rows.len())).then_some(top)
    }
}

/// Whether a graph with so many dead points, beside so many fresh rows, should be built again.
pub(super) fn is_worn(points: usize, dead: usize, fresh: usize, limits: &Limits) -> bool {
    let points = points as f64;
    dead as f64 >= (points * limits.hnsw_dead_fraction_max).max(1.0)
        || fresh as f64 >= (points * FRESH_FRACTION_MAX).max(1.0)
}

fn number(of: usize) -> u32 {
    u32::try_from(of).expect("rows are bounded below 2^32")
}
