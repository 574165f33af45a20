//! Weak answers of an entry, as they are kept with how it was used: a bounded number, the newest.
//!
//! Local: never sent. A question is kept as hashes of its telling words, by which similar questions
//! are recognised. Separate from `rows`, which lists every row: this one has rules.

use super::rows::UseRow;
use klnode_crdt::time::Day;
use klnode_scoring::weakness::{SKETCH_TERMS_MAX, Sketch, WeakAnswer};
use serde::{Deserialize, Serialize};

/// Weak answers of one entry that are kept.
pub const WEAK_ANSWERS_MAX: usize = 8;

/// An answer in which an entry came first and hardly matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WeakRow {
    /// On which day.
    #[serde(rename = "d")]
    pub day: Day,
    /// A hash of the root task in which it was served, or outside a task of the user.
    #[serde(rename = "b")]
    pub by: u64,
    /// Hashes of the question's words; unused places are 0.
    #[serde(rename = "q")]
    pub terms: [u32; SKETCH_TERMS_MAX],
}

/// What became of a prediction error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It was counted.
    Once,
    /// One was counted before, for the same task or user on the same day.
    Before,
}

impl UseRow {
    /// The weak answers that are kept.
    pub fn weak_answers(&self) -> impl Iterator<Item = WeakAnswer> + '_ {
        let rows = self.weak.iter().flatten().flatten();
        rows.map(|row| WeakAnswer { day: row.day, question: Sketch::new(row.terms) })
    }

    /// Counts a prediction error, at most once for each task or user and day. Where all places are
    /// taken by others of the same day, no more are counted on it.
    pub(crate) fn count_prediction_error(
        &mut self,
        (by, day): (u64, Day),
        question: &Sketch,
    ) -> Counted {
        let mut rows = self.weak.unwrap_or_default();
        if rows.iter().flatten().any(|row| row.by == by && row.day == day) {
            return Counted::Before;
        }
        // An empty place comes before the oldest answer.
        let places = rows.iter_mut().filter(|row| row.is_none_or(|row| row.day < day));
        let Some(place) = places.min_by_key(|row| row.map(|row| row.day)) else {
            return Counted::Before;
        };
        let mut terms = [0; SKETCH_TERMS_MAX];
        terms[..question.hashes().len()].copy_from_slice(question.hashes());
        *place = Some(WeakRow { day, by, terms });
        self.weak = Some(rows);
        self.prediction_errors = self.prediction_errors.saturating_add(1);
        Counted::Once
    }

    /// The same without its prediction errors: the entry has helped since.
    pub(crate) fn without_prediction_errors(self) -> Self {
        Self { prediction_errors: 0, weak: None, ..self }
    }

    /// The newest weak answers of two entries that are read as one.
    pub(crate) fn weak_of_both(&self, other: &Self) -> Option<[Option<WeakRow>; WEAK_ANSWERS_MAX]> {
        let both = self.weak.iter().chain(&other.weak).flatten().flatten();
        let mut both: Vec<WeakRow> = both.copied().collect();
        both.sort_by_key(|row| std::cmp::Reverse(row.day));
        let mut rows = [None; WEAK_ANSWERS_MAX];
        for (place, row) in rows.iter_mut().zip(&both) {
            *place = Some(*row);
        }
        (!both.is_empty()).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, UseRow, WEAK_ANSWERS_MAX};
    use crate::store::rows::{decode, encode};
    use klnode_crdt::time::Day;
    use klnode_scoring::weakness::Sketch;

    fn count(uses: &mut UseRow, by: u64, day: u32) -> Counted {
        uses.count_prediction_error((by, Day(day)), &Sketch::new([7]))
    }

    #[test]
    fn a_task_or_user_counts_once_a_day() {
        let mut uses = UseRow::default();
        for _ in 0..24 {
            count(&mut uses, 1, 10);
        }
        assert_eq!((uses.prediction_errors, uses.weak_answers().count()), (1, 1));
        assert_eq!(count(&mut uses, 2, 10), Counted::Once);
        assert_eq!(count(&mut uses, 1, 11), Counted::Once);
        assert_eq!(count(&mut uses, 1, 11), Counted::Before);
        assert_eq!(uses.prediction_errors, 3);
    }

    #[test]
    fn the_oldest_makes_way_and_a_full_day_takes_no_more() {
        let mut uses = UseRow::default();
        for by in 0..100 {
            count(&mut uses, by, 10);
        }
        assert_eq!(uses.prediction_errors as usize, WEAK_ANSWERS_MAX);
        assert_eq!(count(&mut uses, 0, 10), Counted::Before);
        assert_eq!(count(&mut uses, 0, 11), Counted::Once);
        assert_eq!(uses.weak_answers().count(), WEAK_ANSWERS_MAX);
        assert_eq!(uses.weak_answers().filter(|of| of.day == Day(11)).count(), 1);
        assert_eq!(uses.without_prediction_errors(), UseRow::default());
    }

    #[test]
    fn a_row_without_weak_answers_is_written_as_before() {
        let old = encode(&UseRow { prediction_errors: 9, ..UseRow::default() });
        let mut uses: UseRow = decode("uses", &old).unwrap();
        assert_eq!((uses.prediction_errors, uses.weak_answers().count()), (9, 0));
        assert_eq!(encode(&uses), old);
        count(&mut uses, 1, 10);
        assert_eq!(decode::<UseRow>("uses", &encode(&uses)).unwrap(), uses);
    }
}
