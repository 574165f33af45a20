//! The figures of one replay.

/// Bins of the calibration error.
const BINS: usize = 10;

/// Counts of one replay.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Questions that agents asked.
    pub questions: u64,
    /// Questions whose adopted entry helped.
    pub right: u64,
    /// Questions whose adopted entry misled.
    pub harm: u64,
    /// Of these, the entries that the hostile node wrote.
    pub harm_hostile: u64,
    /// Hits that agents were shown.
    pub hits: u64,
    /// Of these, hits that were true once and are no longer.
    pub stale_hits: u64,
    /// Tokens of all answers.
    pub tokens: u64,
    /// Per bin of the shown confidence: hits, sum of the confidence, sum of the rightness.
    bins: [(u64, f64, f64); BINS],
    /// Entries that honest nodes still retrieve although they are old.
    pub old_entries: u64,
    /// Of these, entries that never helped an agent.
    pub junk: u64,
    /// Changes of facts whose new value was written and watched.
    pub races: u64,
    /// Days from the arrival of the new fact until it came before the old one, over all races.
    pub race_days: u64,
    /// Lessons written by honest agents.
    pub lessons: u64,
    /// Hash of everything that agents saw, to compare two runs.
    pub trace: u64,
}

/// Names of the figures, in the order of [`Counts::figures`].
pub const FIGURE_NAMES: [&str; 8] = [
    "right answers per question",
    "harm per question",
    "stale hits",
    "calibration error",
    "tokens per right answer",
    "junk",
    "days until the new fact leads",
    "harm by the hostile node",
];

/// Number of figures.
pub const FIGURES: usize = FIGURE_NAMES.len();

impl Counts {
    /// Counts a hit that showed a confidence.
    pub fn note_confidence(&mut self, confidence: f64, rightness: f64) {
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        let (hits, stated, right) = &mut self.bins[bin];
        *hits += 1;
        *stated += confidence;
        *right += rightness;
    }

    /// Mixes a number into the trace.
    pub fn note_trace(&mut self, number: u64) {
        self.trace = (self.trace ^ number).wrapping_mul(0x0100_0000_01B3).rotate_left(17);
    }

    /// Expected calibration error: the mean distance of the shown confidence from the share of right
    /// entries, over the bins; NaN if no confidence was shown.
    pub fn calibration_error(&self) -> f64 {
        let hits: u64 = self.bins.iter().map(|(hits, ..)| hits).sum();
        let off: f64 = self.bins.iter().map(|(_, stated, right)| (stated - right).abs()).sum();
        off / hits as f64
    }

    /// For each bin with hits: their number, the mean confidence and the share of right ones.
    pub fn reliability(&self) -> Vec<(u64, f64, f64)> {
        let used = self.bins.iter().filter(|(hits, ..)| *hits > 0);
        used.map(|(n, stated, right)| (*n, stated / *n as f64, right / *n as f64)).collect()
    }

    /// The figures in the order of [`FIGURE_NAMES`]; NaN where an arm has none.
    pub fn figures(&self) -> [f64; FIGURES] {
        let per = |count: u64, of: u64| count as f64 / of as f64;
        [
            per(self.right, self.questions),
            per(self.harm, self.questions),
            per(self.stale_hits, self.hits),
            self.calibration_error(),
            per(self.tokens, self.right),
            per(self.junk, self.old_entries),
            per(self.race_days, self.races),
            per(self.harm_hostile, self.questions),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn the_calibration_error_is_the_mean_distance_over_the_bins() {
        let mut counts = Counts::default();
        for right in [1.0, 1.0, 1.0, 0.0] {
            counts.note_confidence(0.55, right);
        }
        assert!((counts.calibration_error() - 0.2).abs() < 1e-9);
        for _ in 0..4 {
            counts.note_confidence(1.0, 1.0);
        }
        assert!((counts.calibration_error() - 0.1).abs() < 1e-9);
        assert_eq!(counts.reliability().len(), 2);
        assert!(Counts::default().calibration_error().is_nan());
    }
}
