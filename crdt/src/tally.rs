//! What one author has counted about one entry: successes, failures, confirmations.
//!
//! Kept apart from claims because it changes often and is small: an observation does not carry the
//! text along.

use crate::gcounter::GCounter;
use crate::ids::Boot;
use crate::lattice::Lattice;
use crate::limits::COUNTER_CELLS_MAX;
use crate::time::Day;
use std::collections::BTreeSet;

/// Cells and folded totals of one tally from which on old ones are folded. Not before there is need:
/// one observation under a clock that stands ahead would fold all that was counted until then, and
/// what is folded stays so. All that fit into this many are far below what a record may hold.
const FOLD_ABOVE_CELLS: usize = COUNTER_CELLS_MAX / 8;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observation {
    /// It helped.
    Success,
    /// It misled.
    Failure,
    /// Found again by someone who had not been shown it.
    Confirmation,
}

/// One author's counters on one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Successes.
    pub successes: GCounter,
    /// Failures.
    pub failures: GCounter,
    /// Independent confirmations.
    pub confirmations: GCounter,
    /// Boots whose cells the author declared void by a confidence reset.
    pub reset: BTreeSet<Boot>,
}

impl Lattice for Tally {
    fn join(&mut self, other: Self) {
        self.successes.join(other.successes);
        self.failures.join(other.failures);
        self.confirmations.join(other.confirmations);
        self.reset.join(other.reset);
    }
}

impl Tally {
    /// The counter of one kind of observation.
    pub fn counter(&self, of: Observation) -> &GCounter {
        match of {
            Observation::Success => &self.successes,
            Observation::Failure => &self.failures,
            Observation::Confirmation => &self.confirmations,
        }
    }

    /// The counter of one kind of observation, for adding to it.
    pub fn counter_mut(&mut self, of: Observation) -> &mut GCounter {
        match of {
            Observation::Success => &mut self.successes,
            Observation::Failure => &mut self.failures,
            Observation::Confirmation => &mut self.confirmations,
        }
    }

    /// Drops what a reset declared void: it counts for nobody, and its author need not carry it.
    pub fn drop_reset(&mut self) {
        for counter in [&mut self.successes, &mut self.failures, &mut self.confirmations] {
            counter.drop_boots(&self.reset);
        }
    }

    /// Folds what is old, where there is much: only the author does this, when it signs again.
    pub fn fold(&mut self, current: Boot, today: Day) {
        let counters = [&mut self.successes, &mut self.failures, &mut self.confirmations];
        let held = counters.iter().map(|counter| counter.cells().len() + counter.folds().len());
        if held.sum::<usize>() <= FOLD_ABOVE_CELLS {
            return;
        }
        for counter in counters {
            counter.fold(current, today);
        }
    }

    /// Every boot that has counted anything.
    pub fn boots(&self) -> BTreeSet<Boot> {
        let mut boots = self.successes.boots();
        boots.extend(self.failures.boots());
        boots.extend(self.confirmations.boots());
        boots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcounter::Thousandths;

    #[test]
    fn what_is_old_is_folded_only_where_there_is_much() {
        let mut tally = Tally::default();
        let half = u64::try_from(FOLD_ABOVE_CELLS / 2).unwrap();
        for boot in 1..=half {
            tally.successes.add(Boot(boot), Day(1), Thousandths::ONE);
            tally.failures.add(Boot(boot), Day(1), Thousandths::ONE);
        }
        tally.fold(Boot(0), Day(400));
        assert_eq!(tally.successes.folds().len(), 0, "a clock ahead costs nothing");
        tally.confirmations.add(Boot(1), Day(1), Thousandths::ONE);
        tally.fold(Boot(0), Day(400));
        for of in [Observation::Success, Observation::Failure, Observation::Confirmation] {
            assert_eq!(tally.counter(of).cells().len(), 0, "{of:?}");
        }
    }
}
