//! A graph over the rows for stores so large that comparing every row takes too long.
//!
//! hnsw_rs finds most of the nearest by walking from point to point. Here a point's data is its
//! number alone, and distances are taken from shared [`Codes`]: the graph needs no second copy of
//! the vectors, and what it writes to disk holds none. It never changes after it is built (the
//! crate has no delete, and inserting from several threads may lose points), so it is made by one
//! thread from a snapshot; what has changed since is known to [`super::attached`].

use super::kernel::Kernel;
use super::rows::{Codes, Query, cosine};
use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw;
use std::sync::atomic::{AtomicBool, Ordering};

/// Links of a point in the upper layers; twice as many in the lowest.
const LINKS: usize = 16;
/// How many candidates are kept while a point is linked.
const BUILD_WIDTH: usize = 128;
/// What hnsw_rs demands of a graph that is written to disk.
const LAYERS_MAX: usize = 16;

/// The graph as hnsw_rs has it.
pub(super) type Points = Hnsw<'static, u64, Apart>;

/// Points and links, for good.
pub(super) struct Graph {
    points: Points,
    count: usize,
}

impl Graph {
    /// Links every row of a snapshot, its number being the point's. None if it was cancelled.
    pub(super) fn build(codes: Codes, cancelled: &AtomicBool) -> Option<Self> {
        let count = codes.rows();
        let points = Hnsw::new(LINKS, count, LAYERS_MAX, BUILD_WIDTH, Apart { codes });
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

    /// How many points it has.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// As many points near a query as candidates are kept on the way.
    pub(super) fn search(&self, query: &Query, width: usize) -> Vec<usize> {
        let mut data = query.words.clone();
        data.push(query.scale.to_bits().into());
        self.points.search(&data, width, width).iter().map(|near| near.d_id).collect()
    }
}

/// One minus the cosine. A single word names a point; more are the codes of a query, with its scale
/// in the last word.
pub(super) struct Apart {
    /// The codes of the points, by number.
    pub(super) codes: Codes,
}

impl Apart {
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

impl Distance<u64> for Apart {
    fn eval(&self, left: &[u64], right: &[u64]) -> f32 {
        let ((left, left_scale), (right, right_scale)) = (self.side(left), self.side(right));
        1.0 - cosine(Kernel::best().dot(left, right), left_scale * right_scale)
    }
}
