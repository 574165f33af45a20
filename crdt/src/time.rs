//! Wall time, UTC days, and the hybrid logical clock (HLC), all as plain data.
//!
//! This module reads no clock. A reader passes in `now`. A writer passes in `now` and keeps a
//! [`Clock`], so that its stamps never decrease while it runs. Stamps only break ties between
//! concurrent values; a value always wins over the values it replaces, even if its stamp is lower.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum clock skew. A stamp further ahead of the reader's clock than this is not yet due.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_secs(300);

const DAY_MS: u64 = 86_400_000;

/// Milliseconds since 1970-01-01, UTC.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(u64);

impl WallTime {
    /// Makes a time from milliseconds since 1970. Times after the year 10889 do not fit into 48
    /// bits and become the last time that does.
    pub const fn from_millis(millis: u64) -> Self {
        Self(if millis > Hlc::MILLIS_MAX { Hlc::MILLIS_MAX } else { millis })
    }

    /// Milliseconds since 1970-01-01, UTC.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The UTC day of this time.
    pub const fn day(self) -> Day {
        Day((self.0 / DAY_MS) as u32)
    }

    /// This time plus a duration, at most the last time that fits into 48 bits.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(millis(by)))
    }

    /// This time minus a duration, at least 1970-01-01.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A UTC day, as the number of days since 1970-01-01.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Day(pub u32);

impl Day {
    /// Whole days from `earlier` to this day; 0 if `earlier` is later.
    #[must_use]
    pub fn days_since(self, earlier: Day) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// Midnight at the start of the day, UTC.
    pub fn start(self) -> WallTime {
        WallTime::from_millis(u64::from(self.0) * DAY_MS)
    }
}

/// A hybrid logical clock stamp: 48 bits of milliseconds, then 16 bits of counter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hlc(u64);

impl Hlc {
    const MILLIS_MAX: u64 = (1 << 48) - 1;

    /// Makes a stamp from its two parts. `wall` must fit into 48 bits, as [`WallTime::from_millis`]
    /// ensures.
    pub const fn new(wall: WallTime, count: u16) -> Self {
        Self(wall.0 << 16 | count as u64)
    }

    /// Makes a stamp from its 64-bit wire form.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64-bit wire form. Its numeric order is the order of stamps.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The wall-clock part of the stamp.
    pub const fn wall(self) -> WallTime {
        WallTime(self.0 >> 16)
    }

    /// The smallest stamp greater than this one.
    #[must_use]
    pub fn successor(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// True if the stamp is at most [`FUTURE_SKEW_MAX`] ahead of `now`. A reader ignores other
    /// stamps while a due one exists.
    pub fn is_due(self, now: WallTime) -> bool {
        self.wall() <= now.plus(FUTURE_SKEW_MAX)
    }

    /// The earliest time at which [`Self::is_due`] is true.
    pub fn due_at(self) -> WallTime {
        self.wall().minus(FUTURE_SKEW_MAX)
    }
}

/// A source of strictly increasing stamps for one writer, even if the wall clock goes backwards.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    last: Hlc,
}

impl Clock {
    /// A stamp for `now`, greater than every stamp that this clock returned before. Stamps of other
    /// authors and of clones do not advance the clock: a single stamp from the far future would
    /// otherwise move every writer ahead.
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
