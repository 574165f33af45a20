//! Time as data: wall time, days, and the hybrid logical clock.
//!
//! Nothing here reads a clock. A reader passes `now`; a writer passes `now` and keeps a
//! [`Clock`] so that its stamps never go backwards while it runs. Stamps order values that do not
//! know each other; they never overrule a value that names what it replaced.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A stamp further ahead of the reader's clock than this is not yet due.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_secs(300);

const DAY_MS: u64 = 86_400_000;

/// Milliseconds since 1970, UTC.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(u64);

impl WallTime {
    /// From milliseconds since 1970; later than the year 10889 does not fit and is cut.
    pub const fn from_millis(millis: u64) -> Self {
        Self(if millis > Hlc::MILLIS_MAX { Hlc::MILLIS_MAX } else { millis })
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The UTC day this moment is in.
    pub const fn day(self) -> Day {
        Day((self.0 / DAY_MS) as u32)
    }

    /// This moment, later by a duration.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(millis(by)))
    }

    /// This moment, earlier by a duration; not before 1970.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A UTC day, counted from 1970-01-01.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Day(pub u32);

impl Day {
    /// Whole days from `earlier` to this day; 0 when `earlier` lies ahead.
    #[must_use]
    pub fn days_since(self, earlier: Day) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// The first moment of the day.
    pub fn start(self) -> WallTime {
        WallTime::from_millis(u64::from(self.0) * DAY_MS)
    }
}

/// A hybrid logical clock stamp: 48 bits of milliseconds, 16 bits of counter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hlc(u64);

impl Hlc {
    const MILLIS_MAX: u64 = (1 << 48) - 1;

    /// From its two parts; milliseconds beyond 48 bits are cut to the last representable one.
    pub const fn new(wall: WallTime, count: u16) -> Self {
        Self(wall.0 << 16 | count as u64)
    }

    /// From the 64 bits that travel.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64 bits that travel.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The wall time inside the stamp.
    pub const fn wall(self) -> WallTime {
        WallTime(self.0 >> 16)
    }

    /// The next stamp.
    #[must_use]
    pub fn successor(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whether a reader at `now` may let this stamp compete.
    pub fn is_due(self, now: WallTime) -> bool {
        self.wall() <= now.plus(FUTURE_SKEW_MAX)
    }

    /// The moment from which [`Self::is_due`] holds.
    pub fn due_at(self) -> WallTime {
        self.wall().minus(FUTURE_SKEW_MAX)
    }
}

/// Gives out stamps that grow, whatever the wall clock does.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    last: Hlc,
}

impl Clock {
    /// A stamp at `now`, greater than every stamp given out before. Stamps of other authors, and
    /// own ones of other lives, do not move the clock: a far-future one would drag every writer
    /// along.
    pub fn stamp(&mut self, now: WallTime) -> Hlc {
        self.last = Hlc::new(now, 0).max(self.last.successor());
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_while_the_wall_clock_stands_still_or_goes_back() {
        let mut clock = Clock::default();
        let first = clock.stamp(WallTime::from_millis(1_000));
        let second = clock.stamp(WallTime::from_millis(1_000));
        let third = clock.stamp(WallTime::from_millis(10));
        assert!(first < second && second < third);
    }

    #[test]
    fn a_stamp_is_due_up_to_five_minutes_ahead() {
        let now = WallTime::from_millis(1_000_000);
        assert!(Hlc::new(now.plus(FUTURE_SKEW_MAX), 9).is_due(now));
        let late = Hlc::new(now.plus(FUTURE_SKEW_MAX + Duration::from_millis(1)), 0);
        assert!(!late.is_due(now));
        assert!(late.is_due(late.due_at()));
    }

    #[test]
    fn days_are_counted_in_utc_and_never_negative() {
        assert_eq!(WallTime::from_millis(86_400_000).day(), Day(1));
        assert_eq!(Day(10).days_since(Day(3)), 7);
        assert_eq!(Day(3).days_since(Day(10)), 0);
    }
}
