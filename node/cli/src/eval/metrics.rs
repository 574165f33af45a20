//! Metrics of answers: pure functions over the results of each query.

/// The result of one query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueryResult {
    /// The ranks of the right entries in the answer, from zero.
    pub(super) places: Vec<usize>,
    /// The number of right entries; zero for a query without a right answer.
    pub(super) relevant: usize,
    /// Whether the node abstained.
    pub(super) abstained: bool,
    /// Whether the answer was strong.
    pub(super) is_strong: bool,
    /// The probability of each hit, with whether the hit is right.
    pub(super) probabilities: Vec<(f64, bool)>,
    /// The latency of the answer.
    pub(super) micros: u64,
    /// The tokens that an agent would get for a question without a right answer; `None` for others.
    pub(super) agent_tokens: Option<u64>,
}

impl QueryResult {
    /// The fraction of the right entries that is among the first `k`.
    pub(super) fn recall(&self, k: usize) -> f64 {
        let found = self.places.iter().filter(|place| **place < k).count();
        found as f64 / self.relevant.max(1) as f64
    }

    /// The discounted cumulative gain of the first ten, as a fraction of the best possible.
    pub(super) fn ndcg(&self) -> f64 {
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let ideal: f64 = (0..self.relevant.min(10)).map(gain).sum();
        let found: f64 = self.places.iter().filter(|place| **place < 10).map(|p| gain(*p)).sum();
        // An empty sum is -0.0, which would be printed with its sign.
        if found > 0.0 { found / ideal } else { 0.0 }
    }

    /// The reciprocal of the rank of the first right entry.
    pub(super) fn reciprocal_rank(&self) -> f64 {
        self.places.iter().min().map_or(0.0, |place| 1.0 / (*place as f64 + 1.0))
    }
}

/// Number of bins of the calibration error.
const BINS: usize = 10;

/// The expected calibration error: the difference between probability and frequency, averaged over
/// bins of equal width by their number of hits.
pub(super) fn calibration_error(hits: &[(f64, bool)]) -> f64 {
    let bin = |probability: f64| ((probability * BINS as f64) as usize).min(BINS - 1);
    let error = |at: usize| {
        let within = hits.iter().filter(|(probability, _)| bin(*probability) == at);
        let sum = within.map(|(probability, right)| probability - f64::from(u8::from(*right)));
        sum.sum::<f64>().abs()
    };
    (0..BINS).map(error).sum::<f64>() / hits.len().max(1) as f64
}

/// The mean; zero if there are no numbers.
pub(super) fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len();
    if count == 0 { 0.0 } else { numbers.sum::<f64>() / count as f64 }
}

/// The value below which the fraction `share` of the sorted numbers lies.
pub(super) fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    let at = (share * last as f64).ceil() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// The number of resamples of a paired comparison.
const RESAMPLES: usize = 2_000;
/// A fixed seed, so that two runs over the same answers print the same.
const SEED: u64 = 0x6b6c_6e6f_6465;

/// The mean of paired differences with its 95 % bootstrap interval.
pub(super) fn interval(differences: &[f64]) -> (f64, f64, f64) {
    if differences.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let mut state = SEED;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % differences.len() as u64) as usize
    };
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..differences.len()).map(|_| differences[draw()]).sum::<f64>())
        .map(|sum| sum / differences.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64) as usize];
    (mean(differences.iter().copied()), at(0.025), at(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(places: &[usize], relevant: usize) -> QueryResult {
        QueryResult {
            places: places.to_vec(),
            relevant,
            abstained: false,
            is_strong: true,
            probabilities: Vec::new(),
            micros: 0,
            agent_tokens: None,
        }
    }

    fn near(given: f64, expect: f64) -> bool {
        (given - expect).abs() < 1e-6
    }

    #[test]
    fn the_calibration_error_compares_probability_and_frequency() {
        assert_eq!(calibration_error(&[]), 0.0);
        let right = [(0.75, true), (0.75, true), (0.75, true), (0.75, false)];
        assert!(calibration_error(&right) < 1e-9);
        let sure = [(1.0, false), (1.0, true)];
        assert!((calibration_error(&sure) - 0.5).abs() < 1e-9);
        let mixed = [(0.05, true), (0.95, true)];
        assert!((calibration_error(&mixed) - 0.5).abs() < 1e-9, "bins do not cancel each other");
    }

    #[test]
    fn metrics_match_their_definitions() {
        for (places, relevant, recall, ndcg, reciprocal) in [
            (&[0][..], 1, 1.0, 1.0, 1.0),
            (&[2], 1, 1.0, 0.5, 1.0 / 3.0),
            (&[10], 1, 0.0, 0.0, 1.0 / 11.0),
            (&[], 1, 0.0, 0.0, 0.0),
            (&[0, 2], 2, 1.0, 1.5 / 1.630_929_753_571, 1.0),
            (&[1], 2, 0.5, 0.630_929_753_571 / 1.630_929_753_571, 0.5),
        ] {
            let of = outcome(places, relevant);
            assert!(near(of.recall(10), recall), "{places:?}");
            assert!(near(of.ndcg(), ndcg), "{places:?}: {}", of.ndcg());
            assert!(near(of.reciprocal_rank(), reciprocal), "{places:?}");
            assert!(of.ndcg().is_sign_positive(), "{places:?}: no sign");
        }
    }

    #[test]
    fn percentiles_are_measured_values() {
        let sorted: Vec<u64> = (1..=100).collect();
        for (share, expect) in [(0.0, 1), (0.5, 51), (0.95, 96), (1.0, 100)] {
            assert_eq!(percentile(&sorted, share), expect, "{share}");
        }
        assert_eq!(percentile(&[], 0.5), 0);
    }

    #[test]
    fn an_interval_holds_the_mean_and_shrinks_with_more_queries() {
        let few: Vec<f64> = (0..20).map(|n| f64::from(n % 2)).collect();
        let many: Vec<f64> = (0..2_000).map(|n| f64::from(n % 2)).collect();
        let (mean_few, low_few, high_few) = interval(&few);
        let (mean_many, low_many, high_many) = interval(&many);
        assert!(near(mean_few, 0.5) && near(mean_many, 0.5));
        assert!(low_few < 0.5 && 0.5 < high_few);
        assert!(high_many - low_many < (high_few - low_few) / 5.0);
        assert_eq!(interval(&[0.25; 9]), (0.25, 0.25, 0.25));
    }
}
