//! Failures of a text on this node since it last helped here.
//!
//! Confidence sums all evidence. So an entry that helped for months stays ahead of its correction
//! for many failures after the code has changed. The latest outcomes tell it sooner. Separate from
//! `confidence`: failures in a row move an entry within an answer and warn about it, and the
//! next success ends both.

use crate::confidence::Cell;
use klnode_crdt::time::Day;

/// Amount of failures, in observations, from which an answer warns. An entry that is blamed for a
/// whole failure counts 1; one that shares the blame with others counts less.
pub const WARNED_FROM: f64 = 0.75;
/// Amount of failures, in observations, beyond which the demotion does not grow.
pub const DEMOTED_UP_TO: f64 = 3.0;
/// Age in days after which a failure is ignored: the code may have changed back since.
pub const AGE_DAYS_MAX: u32 = 90;

/// Amount of failures of a text since it last helped, in observations. `own` are the outcomes on the
/// nodes of this person, `since` is the first day of the text. Counters do not order the outcomes of
/// one day, so failures on the day of the last success do not count.
#[must_use]
pub fn failures_since_success<'a>(
    own: impl Iterator<Item = &'a Cell> + Clone,
    since: Day,
    today: Day,
) -> f64 {
    let first = since.0.max(today.0.saturating_sub(AGE_DAYS_MAX));
    let after_success =
        |cell: &Cell| (cell.successes.0 > 0).then_some(Day(cell.day.0.saturating_add(1)));
    let start = own.clone().filter_map(after_success).fold(Day(first), Day::max);
    own.filter(|cell| cell.day >= start).map(|cell| cell.failures.observations()).sum()
}

/// Amount that these failures subtract from the score by which hits are listed. `per_failure` is the
/// amount for one observation.
#[must_use]
pub fn demotion(failures: f64, per_failure: f64) -> f64 {
    per_failure * failures.clamp(0.0, DEMOTED_UP_TO)
}

#[cfg(test)]
mod tests {
    use super::{AGE_DAYS_MAX, DEMOTED_UP_TO, demotion, failures_since_success};
    use crate::confidence::Cell;
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::time::Day;

    const TODAY: Day = Day(1_000);

    fn cell(days_ago: u32, successes: u64, failures: u64) -> Cell {
        let (successes, failures) = (Thousandths(successes), Thousandths(failures));
        Cell { day: Day(TODAY.0 - days_ago), successes, failures }
    }

    #[test]
    fn failures_count_from_the_day_after_the_last_success() {
        for (cells, expect) in [
            (&[][..], 0.0),
            (&[cell(3, 0, 1_000), cell(1, 0, 500)], 1.5),
            (&[cell(3, 0, 1_000), cell(2, 800, 0), cell(1, 0, 500)], 0.5),
            (&[cell(2, 0, 1_000), cell(1, 800, 0)], 0.0),
            (&[cell(1, 0, 1_000), cell(1, 800, 0)], 0.0),
            (&[cell(AGE_DAYS_MAX + 1, 0, 1_000), cell(AGE_DAYS_MAX, 0, 250)], 0.25),
        ] {
            let amount = failures_since_success(cells.iter(), Day(0), TODAY);
            assert!((amount - expect).abs() < 1e-9, "{cells:?}: {amount}");
        }
    }

    #[test]
    fn failures_of_an_earlier_text_do_not_count() {
        let cells = [cell(5, 0, 1_000), cell(4, 0, 500)];
        let amount = failures_since_success(cells.iter(), Day(TODAY.0 - 4), TODAY);
        assert!((amount - 0.5).abs() < 1e-9, "{amount}");
    }

    #[test]
    fn the_demotion_is_bounded() {
        assert!((demotion(2.0, 0.05) - 0.1).abs() < 1e-9);
        assert!((demotion(100.0, 0.05) - 0.05 * DEMOTED_UP_TO).abs() < 1e-9);
        assert!(demotion(-1.0, 0.05).abs() < f64::EPSILON);
    }
}
