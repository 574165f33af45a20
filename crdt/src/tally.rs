//! What one author has counted about one entry: successes, failures, confirmations.
//!
//! Kept apart from claims because it changes often and is small: an observation does not carry the
//! text along.

use crate::gcounter::GCounter;
use crate::ids::Boot;
use crate::lattice::Lattice;
use std::collections::BTreeSet;

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

    /// Every boot that has counted anything.
    pub fn boots(&self) -> BTreeSet<Boot> {
        let mut boots = self.successes.boots();
        boots.extend(self.failures.boots());
        boots.extend(self.confirmations.boots());
        boots
    }
}
