//! A UTC day, the only unit of time that judgement knows.
//!
//! Separate because decay, trust, freshness and status all count whole days. It never reads a
//! clock: the caller says which day it is.

/// A UTC day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Day(pub u32);

impl Day {
    /// Whole days from `earlier` to this day; 0 when `earlier` lies ahead.
    #[must_use]
    pub fn days_since(self, earlier: Day) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn a_day_that_lies_ahead_is_zero_days_ago() {
        assert_eq!(Day(10).days_since(Day(3)), 7);
        assert_eq!(Day(3).days_since(Day(10)), 0);
    }
}
