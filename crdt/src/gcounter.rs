//! A grow-only counter (G-counter) with one cell per boot and day.
//!
//! Only one boot of one author writes a cell, so clones of a home never write the same cell: the
//! join takes the maximum of each cell, and no observation is lost or counted twice. Each cell
//! belongs to one day, so each observation decays from its own day. Amounts are thousandths of an
//! observation.
//!
//! An author may fold the cells of an old boot into one total. A folded total has the same weight
//! as its cells and no date.

use crate::ids::Boot;
use crate::lattice::{Lattice, Max};
use crate::limits::CELL_MAX;
use crate::time::Day;
use std::collections::{BTreeMap, BTreeSet};

/// Age at which decay ends. Cells older than this weigh the same, so their author may fold them.
pub const FOLD_AFTER_DAYS: u32 = 180;

/// An amount in thousandths of one observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Thousandths(pub u64);

impl Thousandths {
    /// One whole observation.
    pub const ONE: Self = Self(1_000);

    /// The amount as a number of observations.
    #[must_use]
    pub fn observations(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// Rounds a number of observations to the nearest amount. Negative numbers and NaN become 0.
    #[must_use]
    pub fn nearest(observations: f64) -> Self {
        // A cast from float to integer saturates, and turns NaN into 0.
        Self((observations * 1_000.0).round() as u64)
    }
}

/// One cell or folded total, as a reader counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedAmount {
    /// Age in whole days, for decay. A folded total always has the age [`FOLD_AFTER_DAYS`], which
    /// says nothing about the days on which it was counted.
    pub age_days: u32,
    /// The amount that was counted, before decay.
    pub amount: Thousandths,
    /// True for a folded total.
    pub is_folded: bool,
}

impl CountedAmount {
    /// The day of the cell; `None` for a folded total, whose days are unknown.
    #[must_use]
    pub fn day(&self, today: Day) -> Option<Day> {
        (!self.is_folded).then(|| Day(today.0.saturating_sub(self.age_days)))
    }
}

/// One counter of one author on one entry, such as its successes: amounts by boot and day.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GCounter {
    cells: BTreeMap<(Boot, Day), Max<u64>>,
    folds: BTreeMap<Boot, Max<u64>>,
}

impl Lattice for GCounter {
    fn join(&mut self, other: Self) {
        self.cells.join(other.cells);
        self.folds.join(other.folds);
    }
}

impl GCounter {
    /// Adds to the cell of a boot and day. The cell saturates at [`CELL_MAX`].
    pub fn add(&mut self, boot: Boot, day: Day, amount: Thousandths) {
        let cell = self.cells.entry((boot, day)).or_default();
        cell.0 = cell.0.saturating_add(amount.0).min(CELL_MAX);
    }

    /// Raises a cell to at least `amount`. The decoder fills cells with it.
    pub fn raise(&mut self, boot: Boot, day: Day, amount: Thousandths) {
        self.cells.entry((boot, day)).or_default().join(Max(amount.0));
    }

    /// Raises a folded total to at least `amount`.
    pub fn raise_fold(&mut self, boot: Boot, amount: Thousandths) {
        self.folds.entry(boot).or_default().join(Max(amount.0));
    }

    /// The cells that were not folded.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = (Boot, Day, Thousandths)> + '_ {
        self.cells.iter().map(|((boot, day), amount)| (*boot, *day, Thousandths(amount.0)))
    }

    /// The folded totals, one per boot.
    pub fn folds(&self) -> impl ExactSizeIterator<Item = (Boot, Thousandths)> + '_ {
        self.folds.iter().map(|(boot, amount)| (*boot, Thousandths(amount.0)))
    }

    /// Every boot that has a cell or a folded total.
    pub fn boots(&self) -> BTreeSet<Boot> {
        self.cells.keys().map(|(boot, _)| *boot).chain(self.folds.keys().copied()).collect()
    }

    /// Removes the cells and folded totals of these boots.
    pub fn drop_boots(&mut self, boots: &BTreeSet<Boot>) {
        self.cells.retain(|(boot, _), _| !boots.contains(boot));
        self.folds.retain(|boot, _| !boots.contains(boot));
    }

    /// True if the counter has neither cells nor folded totals.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.folds.is_empty()
    }

    /// The cells and totals that count on `today`. Cells dated in the future and the boots in
    /// `reset` do not count. If a boot has both a folded total and cells, only the greater of the
    /// total and the sum counts, so an old copy of cells that were folded elsewhere adds nothing.
    pub fn counted(&self, today: Day, reset: &BTreeSet<Boot>) -> Vec<CountedAmount> {
        let mut counted = Vec::with_capacity(self.cells.len() + self.folds.len());
        for boot in self.boots().difference(reset) {
            let cells = self.cells.range((*boot, Day(0))..=(*boot, Day(u32::MAX)));
            let cells = cells.filter(|((_, day), _)| *day <= today);
            let raw_sum = cells.clone().map(|(_, amount)| amount.0).fold(0, u64::saturating_add);
            let fold = self.folds.get(boot).map_or(0, |fold| fold.0);
            if fold >= raw_sum && fold > 0 {
                let (age_days, amount) = (FOLD_AFTER_DAYS, Thousandths(fold));
                counted.push(CountedAmount { age_days, amount, is_folded: true });
            } else {
                counted.extend(cells.map(|((_, day), amount)| CountedAmount {
                    age_days: today.days_since(*day),
                    amount: Thousandths(amount.0),
                    is_folded: false,
                }));
            }
        }
        counted
    }

    /// The sum of all that counts on `today`, before decay.
    pub fn total(&self, today: Day, reset: &BTreeSet<Boot>) -> Thousandths {
        let amounts = self.counted(today, reset).into_iter().map(|cell| cell.amount.0);
        Thousandths(amounts.fold(0, u64::saturating_add))
    }

    /// The first day after `today` on which a future cell starts to count.
    pub fn next_day(&self, today: Day) -> Option<Day> {
        self.cells.keys().map(|(_, day)| *day).filter(|day| *day > today).min()
    }

    /// Folds the cells of each boot whose newest cell is older than [`FOLD_AFTER_DAYS`], except
    /// `current`. Only the author does this, before it signs again.
    pub fn fold(&mut self, current: Boot, today: Day) {
        for boot in self.boots() {
            let cells = self.cells.range((boot, Day(0))..=(boot, Day(u32::MAX)));
            let newest = cells.clone().map(|((_, day), _)| *day).max();
            let is_old = newest.is_some_and(|day| today.days_since(day) > FOLD_AFTER_DAYS);
            if boot != current && is_old {
                let sum = cells.map(|(_, amount)| amount.0).fold(0, u64::saturating_add);
                self.raise_fold(boot, Thousandths(sum.min(CELL_MAX)));
                self.cells.retain(|(of, _), _| *of != boot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> BTreeSet<Boot> {
        BTreeSet::new()
    }

    #[test]
    fn cells_of_two_lives_add_up_and_a_repeated_one_does_not() {
        let (mut one, mut two) = (GCounter::default(), GCounter::default());
        one.add(Boot(1), Day(10), Thousandths::ONE);
        two.add(Boot(2), Day(10), Thousandths::ONE);
        let both = one.clone().joined(two).joined(one);
        assert_eq!(both.total(Day(10), &none()), Thousandths(2_000));
    }

    #[test]
    fn a_cell_dated_ahead_does_not_count_yet() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(11), Thousandths::ONE);
        assert_eq!(counter.total(Day(10), &none()), Thousandths(0));
        assert_eq!(counter.next_day(Day(10)), Some(Day(11)));
        assert_eq!(counter.total(Day(11), &none()), Thousandths::ONE);
    }

    #[test]
    fn a_reset_boot_counts_no_more() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(1), Thousandths::ONE);
        counter.add(Boot(2), Day(1), Thousandths::ONE);
        assert_eq!(counter.total(Day(1), &BTreeSet::from([Boot(1)])), Thousandths::ONE);
    }

    #[test]
    fn folding_changes_no_total_and_a_returning_raw_copy_adds_nothing() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(1), Thousandths::ONE);
        counter.add(Boot(1), Day(2), Thousandths::ONE);
        counter.add(Boot(2), Day(300), Thousandths::ONE);
        let raw = counter.clone();
        counter.fold(Boot(2), Day(300));
        assert_eq!(counter.cells().len(), 1);
        assert_eq!(counter.total(Day(300), &none()), Thousandths(3_000));
        assert_eq!(counter.joined(raw).total(Day(300), &none()), Thousandths(3_000));
    }

    #[test]
    fn the_current_boot_and_recent_boots_are_not_folded() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(1), Thousandths::ONE);
        counter.add(Boot(2), Day(200), Thousandths::ONE);
        counter.fold(Boot(1), Day(300));
        assert_eq!(counter.folds().len(), 0);
    }

    #[test]
    fn a_folded_total_has_no_day() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(1), Thousandths::ONE);
        counter.add(Boot(2), Day(300), Thousandths::ONE);
        let days = |counter: &GCounter| -> Vec<Option<Day>> {
            let counted = counter.counted(Day(310), &none());
            counted.into_iter().map(|cell| cell.day(Day(310))).collect()
        };
        assert_eq!(days(&counter), [Some(Day(1)), Some(Day(300))]);
        counter.fold(Boot(2), Day(300));
        assert_eq!(days(&counter), [None, Some(Day(300))]);
    }

    #[test]
    fn an_amount_is_rounded_to_the_nearest_thousandth() {
        for (given, expect) in
            [(1.0, 1_000), (0.349_99, 350), (0.343_4, 343), (-2.0, 0), (f64::NAN, 0)]
        {
            assert_eq!(Thousandths::nearest(given), Thousandths(expect), "{given}");
        }
        assert_eq!(Thousandths(1_470).observations(), 1.47);
    }

    #[test]
    fn a_cell_stops_at_its_limit() {
        let mut counter = GCounter::default();
        counter.add(Boot(1), Day(1), Thousandths(CELL_MAX));
        counter.add(Boot(1), Day(1), Thousandths(u64::MAX));
        assert_eq!(counter.total(Day(1), &none()), Thousandths(CELL_MAX));
    }
}
