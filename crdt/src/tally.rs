//! The tally facet: one author's counters on one entry.
//!
//! A tally counts successes, failures and independent confirmations. It is a facet of its own
//! because it is small and changes often: a new observation must not send the entry's text again.

use crate::gcounter::GCounter;
use crate::ids::Boot;
use crate::lattice::Lattice;
use crate::limits::COUNTER_CELLS_MAX;
use crate::time::Day;
use std::collections::BTreeSet;

/// Number of cells and folded totals above which a tally folds old cells. Folding waits until it is
/// needed: it cannot be undone, and a single observation under a clock that is ahead would
/// otherwise fold everything counted so far. The threshold is far below the limit of the format.
const FOLD_ABOVE_CELLS: usize = COUNTER_CELLS_MAX / 8;

/// The kind of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observation {
    /// The entry helped in a task.
    Success,
    /// The entry misled.
    Failure,
    /// An independent rediscovery: an author found the same without having been shown the entry.
    Confirmation,
}

/// One author's counters on one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Successes that the author observed, in thousandths of one observation.
    pub successes: GCounter,
    /// Failures that the author observed, in thousandths of one observation.
    pub failures: GCounter,
    /// Independent confirmations by the author, in thousandths of one observation.
    pub confirmations: GCounter,
    /// Boots whose cells do not count any more, because the author reset its confidence.
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
    /// The counter for one kind of observation.
    pub fn counter(&self, of: Observation) -> &GCounter {
        match of {
            Observation::Success => &self.successes,
            Observation::Failure => &self.failures,
            Observation::Confirmation => &self.confirmations,
        }
    }

    /// Mutable access to the counter for one kind of observation.
    pub fn counter_mut(&mut self, of: Observation) -> &mut GCounter {
        match of {
            Observation::Success => &mut self.successes,
            Observation::Failure => &mut self.failures,
            Observation::Confirmation => &mut self.confirmations,
        }
    }

    /// Removes the cells that a reset made void. No reader counts them, so the author need not
    /// store them.
    pub fn drop_reset(&mut self) {
        for counter in [&mut self.successes, &mut self.failures, &mut self.confirmations] {
            counter.drop_boots(&self.reset);
        }
    }

    /// Folds old cells if the tally has more than `FOLD_ABOVE_CELLS`. Only the author does this,
    /// before it signs again.
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

    /// Every boot with a cell or a folded total in any of the counters.
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
    fn old_cells_are_folded_only_in_a_large_tally() {
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
