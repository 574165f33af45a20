//! Shown confidence against rightness, in ten bins, and the expected calibration error over them.
//!
//! The error of few hits is mostly sampling, so a table computes it over the hits of all seeds
//! together rather than as a mean of the errors of single runs.

/// Number of bins.
const BINS: usize = 10;

/// Hits by their shown confidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reliability {
    /// Per bin: hits, sum of the confidence, sum of the rightness.
    bins: [(u64, f64, f64); BINS],
}

impl Reliability {
    /// Adds hits with a mean confidence and a mean rightness.
    pub fn note(&mut self, hits: u64, confidence: f64, rightness: f64) {
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        let (all, stated, right) = &mut self.bins[bin];
        *all += hits;
        *stated += hits as f64 * confidence;
        *right += hits as f64 * rightness;
    }

    /// The hits of several runs together.
    pub fn pooled<'a>(runs: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut pooled = Self::default();
        for run in runs {
            for (to, from) in pooled.bins.iter_mut().zip(&run.bins) {
                *to = (to.0 + from.0, to.1 + from.1, to.2 + from.2);
            }
        }
        pooled
    }

    /// Expected calibration error: the mean distance of the shown confidence from the share of right
    /// entries, over the bins; NaN without hits.
    pub fn error(&self) -> f64 {
        let hits: u64 = self.bins.iter().map(|(hits, ..)| hits).sum();
        let off: f64 = self.bins.iter().map(|(_, stated, right)| (stated - right).abs()).sum();
        off / hits as f64
    }

    /// For each bin with hits: their number, the mean confidence and the share of right ones.
    pub fn rows(&self) -> Vec<(u64, f64, f64)> {
        let used = self.bins.iter().filter(|(hits, ..)| *hits > 0);
        used.map(|(n, stated, right)| (*n, stated / *n as f64, right / *n as f64)).collect()
    }

    /// Reads the rows of [`Self::rows`].
    pub fn of_rows(rows: &[(u64, f64, f64)]) -> Self {
        let mut read = Self::default();
        for (hits, confidence, rightness) in rows {
            read.note(*hits, *confidence, *rightness);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::Reliability;

    fn shown(confidence: f64, rightness: &[f64]) -> Reliability {
        let mut run = Reliability::default();
        rightness.iter().for_each(|right| run.note(1, confidence, *right));
        run
    }

    #[test]
    fn the_calibration_error_is_the_mean_distance_over_the_bins() {
        let mut run = shown(0.55, &[1.0, 1.0, 1.0, 0.0]);
        assert!((run.error() - 0.2).abs() < 1e-9);
        run.note(4, 1.0, 1.0);
        assert!((run.error() - 0.1).abs() < 1e-9);
        assert_eq!(Reliability::of_rows(&run.rows()), run);
        assert!(Reliability::default().error().is_nan());
    }

    #[test]
    fn errors_of_single_runs_that_cancel_out_are_no_error_of_the_pool() {
        let runs = [shown(0.55, &[1.0; 11]), shown(0.55, &[0.0; 9])];
        assert!(runs.iter().all(|run| run.error() > 0.4));
        assert!(Reliability::pooled(&runs).error() < 1e-9);
    }
}
