//! The figures of one replay.

use super::confidence_calibration::Reliability;

/// A figure in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub name: &'static str,
    /// Digits after the decimal point.
    pub digits: usize,
}

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
    /// The shown confidence of the hits and their rightness.
    pub reliability: Reliability,
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

/// The figures of the simulated world, in the order of [`Counts::figures`].
pub const FIGURES: [Figure; 8] = [
    Figure { name: "right answers per question", digits: 3 },
    Figure { name: "harm per question", digits: 3 },
    Figure { name: "stale hits", digits: 3 },
    Figure { name: "calibration error", digits: 3 },
    Figure { name: "tokens per right answer", digits: 1 },
    Figure { name: "junk", digits: 3 },
    Figure { name: "days until the new fact leads", digits: 1 },
    Figure { name: "harm by the hostile node", digits: 3 },
];

/// Places in [`FIGURES`] of the figures that goals name.
pub(super) const RIGHT: usize = 0;
pub(super) const HARM: usize = 1;
pub(super) const CALIBRATION: usize = 3;

impl Counts {
    /// Mixes a number into the trace.
    pub fn note_trace(&mut self, number: u64) {
        self.trace = (self.trace ^ number).wrapping_mul(0x0100_0000_01B3).rotate_left(17);
    }

    /// The figures in the order of [`FIGURES`]; NaN where an arm has none.
    pub fn figures(&self) -> Vec<f64> {
        let per = |count: u64, of: u64| count as f64 / of as f64;
        vec![
            per(self.right, self.questions),
            per(self.harm, self.questions),
            per(self.stale_hits, self.hits),
            self.reliability.error(),
            per(self.tokens, self.right),
            per(self.junk, self.old_entries),
            per(self.race_days, self.races),
            per(self.harm_hostile, self.questions),
        ]
    }
}
