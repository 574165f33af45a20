//! Prior evidence: observations of another system that an import brings for an entry.
//!
//! They are kept in the entry's local row and in no record, so no peer receives them. A reader adds
//! them to the confidence that it shows and ranks by. They count for no status, gate, filter or
//! confirmation.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use crate::store::Batch;
use crate::store::rows::{PriorRow, UseRow};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_scoring::confidence::IMPORTED_MASS_MAX;

/// Observations that an import says another system made of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PriorEvidence {
    /// The entry helped.
    pub successes: Thousandths,
    /// The entry misled.
    pub failures: Thousandths,
}

impl PriorEvidence {
    /// The same in proportion, cut to the number of observations that prior evidence may count as.
    #[must_use]
    pub fn bounded(self) -> Self {
        let sum = self.successes.observations() + self.failures.observations();
        if sum <= IMPORTED_MASS_MAX {
            return self;
        }
        let scaled =
            |of: Thousandths| Thousandths::nearest(of.observations() * IMPORTED_MASS_MAX / sum);
        Self { successes: scaled(self.successes), failures: scaled(self.failures) }
    }
}

impl Ingest<'_> {
    /// Keeps prior evidence of an entry. The first import that brings some counts: a second one, or an
    /// entry that is not held, changes nothing.
    pub(super) fn note_prior(
        &self,
        batch: &Batch,
        entry: EntryId,
        prior: PriorEvidence,
    ) -> Result<Receipt, Rejection> {
        let is_held = batch.view_row(entry)?.is_some_and(|row| !row.is_forgotten);
        let uses = batch.uses(entry)?;
        let PriorEvidence { successes, failures } = prior.bounded();
        if !is_held || uses.prior.is_some() || (successes.0 == 0 && failures.0 == 0) {
            return Ok(Receipt::Known(entry));
        }
        let (successes, failures) = (successes.0, failures.0);
        let prior = Some(PriorRow { day: self.now.day(), successes, failures });
        batch.put_uses(entry, UseRow { prior, ..uses })?;
        Ok(Receipt::Noted)
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
                PriorEvidence { successes, failures }.bounded();
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
