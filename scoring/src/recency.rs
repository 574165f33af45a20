//! Recency of a day: 1 on that day, 0.5 after one half-life, never quite 0.
//!
//! Separate because ranking, admission and the contradiction rule use it and must agree.

use klnode_crdt::time::Day;

/// Default half-life of a confirmation in days.
pub const HALF_LIFE_DAYS: f64 = 90.0;

/// `2^(-days / half_life_days)` from `day` to `now`; 1 for a day in the future.
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
