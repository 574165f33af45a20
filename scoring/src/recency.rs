//! How recent something is: one at its day, half after a half-life, never quite zero.
//!
//! Separate because ranking, admission and conflict all ask it and must give the same answer.

use klnode_crdt::time::Day;

/// Days after which a confirmation counts half.
pub const HALF_LIFE_DAYS: f64 = 90.0;

/// `2^(-days / half_life_days)` from `day` to `now`; 1 for a day that lies ahead.
#[must_use]
pub fn recency(day: Day, now: Day, half_life_days: f64) -> f64 {
    (-f64::from(now.days_since(day)) / half_life_days).exp2()
}

#[cfg(test)]
mod tests {
    use super::{HALF_LIFE_DAYS, recency};
    use klnode_crdt::time::Day;

    #[test]
    fn recency_halves_with_every_half_life() {
        for (days, expect) in [(0, 1.0), (90, 0.5), (180, 0.25), (30, 0.793_700_526)] {
            let given = recency(Day(1000), Day(1000 + days), HALF_LIFE_DAYS);
            assert!((given - expect).abs() < 1e-9, "after {days} days: {given}");
        }
        assert_eq!(recency(Day(9), Day(2), HALF_LIFE_DAYS), 1.0);
    }
}
