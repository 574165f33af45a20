//! A node's wall clock, which may be wrong: offset, jumping or stopped.
//!
//! The simulation has one time, in milliseconds from its start, which only grows. A clock converts
//! it to the time one node believes.

/// Wall time at which every simulation starts, in milliseconds since 1970. It is late enough that a
/// clock can be set far back.
pub const START_MS: u64 = 1_700_000_000_000;

/// The wall clock of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SimClock {
    offset_ms: i64,
    /// The time it shows while it is stopped.
    frozen_at_ms: Option<u64>,
}

impl SimClock {
    pub(super) fn read(&self, now_ms: u64) -> u64 {
        let going = START_MS.saturating_add(now_ms).saturating_add_signed(self.offset_ms);
        self.frozen_at_ms.unwrap_or(going)
    }

    pub(super) fn set_offset(&mut self, offset_ms: i64) {
        self.offset_ms = offset_ms;
    }

    /// Moves the clock by an amount, whether it runs or is stopped.
    pub(super) fn jump(&mut self, by_ms: i64) {
        self.offset_ms = self.offset_ms.saturating_add(by_ms);
        if let Some(shown) = &mut self.frozen_at_ms {
            *shown = shown.saturating_add_signed(by_ms);
        }
    }

    pub(super) fn freeze(&mut self, now_ms: u64) {
        self.frozen_at_ms = Some(self.read(now_ms));
    }

    /// Restarts the clock from the time it shows, so it stays behind by the time it was stopped.
    pub(super) fn thaw(&mut self, now_ms: u64) {
        if let Some(shown) = self.frozen_at_ms.take() {
            let missed = self.read(now_ms).saturating_sub(shown);
            let missed = i64::try_from(missed).unwrap_or(i64::MAX);
            self.offset_ms = self.offset_ms.saturating_sub(missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_jumps_and_stops() {
        let mut clock = SimClock::default();
        assert_eq!(clock.read(5), START_MS + 5);
        clock.jump(-10);
        assert_eq!(clock.read(20), START_MS + 10);
        clock.freeze(20);
        assert_eq!(clock.read(1000), START_MS + 10);
        clock.jump(7);
        assert_eq!(clock.read(1000), START_MS + 17);
        clock.thaw(1000);
        assert_eq!(clock.read(1000), START_MS + 17);
        assert_eq!(clock.read(1003), START_MS + 20);
        clock.set_offset(0);
        assert_eq!(clock.read(1003), START_MS + 1003);
        clock.jump(i64::MIN);
        assert_eq!(clock.read(0), 0);
    }
}
