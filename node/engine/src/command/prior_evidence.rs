//! Observations that another system made of an entry.
//!
//! Separate from the commands because they have a bound.

use klnode_crdt::gcounter::Thousandths;
use klnode_scoring::confidence::IMPORTED_MASS_MAX;

/// Observations that another system made of an entry, according to an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PriorEvidence {
    /// Successes that the other system observed, in thousandths of one observation.
    pub successes: Thousandths,
    /// Failures that the other system observed, in thousandths of one observation.
    pub failures: Thousandths,
}

impl PriorEvidence {
    /// Scales both amounts down to the largest total that prior evidence may have, keeping their
    /// ratio.
    #[must_use]
    pub fn limit_mass(self) -> Self {
        let sum = self.successes.observations() + self.failures.observations();
        if sum <= IMPORTED_MASS_MAX {
            return self;
        }
        let scaled =
            |of: Thousandths| Thousandths::nearest(of.observations() * IMPORTED_MASS_MAX / sum);
        Self { successes: scaled(self.successes), failures: scaled(self.failures) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prior_evidence_is_cut_to_two_observations_and_keeps_its_proportion() {
        let of = |successes, failures| {
            let (successes, failures) = (Thousandths(successes), Thousandths(failures));
            let PriorEvidence { successes, failures } =
                PriorEvidence { successes, failures }.limit_mass();
            (successes.0, failures.0)
        };
        for (given, expect) in [
            ((0, 0), (0, 0)),
            ((1_500, 500), (1_500, 500)),
            ((40_000, 0), (2_000, 0)),
            ((30_000, 10_000), (1_500, 500)),
            ((u64::MAX, u64::MAX), (1_000, 1_000)),
        ] {
            assert_eq!(of(given.0, given.1), expect, "{given:?}");
        }
    }
}
