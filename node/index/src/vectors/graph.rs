//! A nearest-neighbour graph over the rows, for stores so large that a scan is too slow.
//!
//! hnsw_rs finds most of the nearest points by walking from point to point. The data of a point is
//! only its number, and distances are computed from shared [`Codes`]: the graph needs no second
//! copy of the vectors, and its files contain none. It never changes after construction (the crate
//! has no delete, and concurrent inserts may lose points), so one thread builds it from a snapshot;
//! [`super::graph_mapping`] tracks later changes.

use super::dot_product::Kernel;
use super::quantized_rows::{Codes, QuantizedQuery, cosine};
use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw;
use std::sync::atomic::{AtomicBool, Ordering};

/// Links of a point in the upper layers; twice as many in the lowest.
const LINKS: usize = 16;
/// Number of candidates kept while a point is linked.
const BUILD_WIDTH: usize = 128;
/// The number of layers that hnsw_rs requires for a graph on disk.
const LAYERS_MAX: usize = 16;

/// The graph type of hnsw_rs.
pub(super) type Points = Hnsw<'static, u64, CosineDistance>;

/// An immutable graph of points and links.
pub(super) struct Graph {
    points: Points,
    count: usize,
}

impl Graph {
    /// Builds a graph of all rows of a snapshot; a point has the number of its row. `None` if
    /// cancelled.
    pub(super) fn build(codes: Codes, cancelled: &AtomicBool) -> Option<Self> {
        let count = codes.rows();
        let points = Hnsw::new(LINKS, count, LAYERS_MAX, BUILD_WIDTH, CosineDistance { codes });
        for point in 0..count {
            if cancelled.load(Ordering::Relaxed) {
                return None;
            }
            points.insert((&[point as u64], point));
        }
        Some(Self { points, count })
    }

    /// A graph that was read from disk.
    pub(super) fn of(points: Points) -> Self {
        let count = points.get_nb_point();
        Self { points, count }
    }

    /// The number of points.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// The `width` points nearest to a query, with as many candidates kept during the search.
    pub(super) fn search(&self, query: &QuantizedQuery, width: usize) -> Vec<usize> {
        let mut data = query.words.clone();
        data.push(query.scale.to_bits().into());
        self.points.search(&data, width, width).iter().map(|near| near.d_id).collect()
    }
}

/// The distance of two points: one minus the cosine. A single word is the number of a point; more
/// words are the codes of a query, with its scale in the last word.
pub(super) struct CosineDistance {
    /// The codes of the points, by number.
    pub(super) codes: Codes,
}

impl CosineDistance {
    fn side<'a>(&'a self, data: &'a [u64]) -> (&'a [u64], f32) {
        match data {
            [point] => {
                let point = usize::try_from(*point).expect("it was a usize when it was inserted");
                (self.codes.words(point), self.codes.scale(point))
            }
            [words @ .., scale] => (words, f32::from_bits(*scale as u32)),
            [] => (&[], 0.0),
        }
    }
}

impl Distance<u64> for CosineDistance {
    fn eval(&self, left: &[u64], right: &[u64]) -> f32 {
        let ((left, left_scale), (right, right_scale)) = (self.side(left), self.side(right));
        1.0 - cosine(Kernel::best().dot(left, right), left_scale * right_scale)
    }
}
