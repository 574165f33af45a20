//! Weak answers of an entry, stored with its usage data; only a bounded number of the newest is
//! kept.
//!
//! All of this is local and never sent. A query is stored as hashes of its significant words, by
//! which similar queries are recognised. Separate from `row_types`, which only lists rows: this module
//! has their rules.

use super::error::Error;
use super::row_types::{self, UseRow, WEAK_ANSWERS_MAX, WeakRow};
use super::snapshot::Snapshot;
use super::tables::USES;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::Day;
use klnode_scoring::weak_answers::{QuerySketch, SKETCH_TERMS_MAX, WeakAnswer};
use redb::ReadableTable;

/// Whether a prediction error was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountResult {
    /// It was counted.
    Once,
    /// One was already counted for the same task or user on the same day.
    Before,
}

impl UseRow {
    /// The stored weak answers.
    pub fn weak_answers(&self) -> impl Iterator<Item = WeakAnswer> + '_ {
        let rows = self.weak.iter().flatten().flatten();
        rows.map(|row| WeakAnswer { day: row.day, question: QuerySketch::new(row.terms) })
    }

    /// Counts a prediction error, at most once per day for each task or user. If all places are
    /// taken by answers of the same day, no more are counted on that day.
    pub fn count_prediction_error(
        &mut self,
        (by, day): (u64, Day),
        question: &QuerySketch,
    ) -> CountResult {
        let mut rows = self.weak.unwrap_or_default();
        if rows.iter().flatten().any(|row| row.by == by && row.day == day) {
            return CountResult::Before;
        }
        // Use an empty place before replacing the oldest answer.
        let places = rows.iter_mut().filter(|row| row.is_none_or(|row| row.day < day));
        let Some(place) = places.min_by_key(|row| row.map(|row| row.day)) else {
            return CountResult::Before;
        };
        let mut terms = [0; SKETCH_TERMS_MAX];
        terms[..question.hashes().len()].copy_from_slice(question.hashes());
        *place = Some(WeakRow { day, by, terms });
        self.weak = Some(rows);
        self.prediction_errors = self.prediction_errors.saturating_add(1);
        CountResult::Once
    }

    /// Returns the row without its prediction errors, because the entry has helped since.
    pub fn without_prediction_errors(self) -> Self {
        Self { prediction_errors: 0, weak: None, ..self }
    }

    /// The newest weak answers of two duplicates that are read as one entry.
    pub fn weak_of_both(&self, other: &Self) -> Option<[Option<WeakRow>; WEAK_ANSWERS_MAX]> {
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

/// Most rows of usage data that are searched for prediction errors.
const SEARCHED_ROWS_MAX: usize = 100_000;

impl Snapshot {
    /// Entries with at least this many prediction errors, with their number. Of a very large store
    /// only a part is searched; a damaged row is skipped.
    pub fn entries_with_errors(&self, least: u32) -> Result<Vec<(u32, EntryId)>, Error> {
        let mut found = Vec::new();
        for row in self.transaction.open_table(USES)?.iter()?.take(SEARCHED_ROWS_MAX) {
            let (at, row) = row?;
            if !may_have_errors(row.value(), least) {
                continue;
            }
            let row = Error::unless_damaged(row_types::decode::<UseRow>("uses", row.value()))?;
            let errors = row.map_or(0, |row| row.prediction_errors);
            if errors >= least {
                found.push((errors, EntryId::from_bytes(*at.value())));
            }
        }
        Ok(found)
    }
}

/// False if an encoded row certainly has fewer prediction errors: decoding all rows would take most
/// of the time of a briefing. The field is the name `x` and a number; a number below 128 is one byte.
fn may_have_errors(row: &[u8], least: u32) -> bool {
    const FIELD: [u8; 2] = [0xA1, b'x'];
    row.windows(3).any(|bytes| bytes[..2] == FIELD && u32::from(bytes[2]) >= least)
}

#[cfg(test)]
mod tests {
    use super::{CountResult, UseRow, WEAK_ANSWERS_MAX, may_have_errors};
    use crate::row_types::{decode, encode};
    use klnode_crdt::time::Day;
    use klnode_scoring::weak_answers::QuerySketch;

    fn count(uses: &mut UseRow, by: u64, day: u32) -> CountResult {
        uses.count_prediction_error((by, Day(day)), &QuerySketch::new([7]))
    }

    #[test]
    fn a_task_or_user_counts_once_a_day() {
        let mut uses = UseRow::default();
        for _ in 0..24 {
            count(&mut uses, 1, 10);
        }
        assert_eq!((uses.prediction_errors, uses.weak_answers().count()), (1, 1));
        assert_eq!(count(&mut uses, 2, 10), CountResult::Once);
        assert_eq!(count(&mut uses, 1, 11), CountResult::Once);
        assert_eq!(count(&mut uses, 1, 11), CountResult::Before);
        assert_eq!(uses.prediction_errors, 3);
    }

    #[test]
    fn the_oldest_answer_is_replaced_and_a_full_day_counts_no_more() {
        let mut uses = UseRow::default();
        for by in 0..100 {
            count(&mut uses, by, 10);
        }
        assert_eq!(uses.prediction_errors as usize, WEAK_ANSWERS_MAX);
        assert_eq!(count(&mut uses, 0, 10), CountResult::Before);
        assert_eq!(count(&mut uses, 0, 11), CountResult::Once);
        assert_eq!(uses.weak_answers().count(), WEAK_ANSWERS_MAX);
        assert_eq!(uses.weak_answers().filter(|of| of.day == Day(11)).count(), 1);
        assert_eq!(uses.without_prediction_errors(), UseRow::default());
    }

    #[test]
    fn a_row_without_weak_answers_keeps_its_encoding() {
        let old = encode(&UseRow { prediction_errors: 9, ..UseRow::default() });
        let mut uses: UseRow = decode("uses", &old).unwrap();
        assert_eq!((uses.prediction_errors, uses.weak_answers().count()), (9, 0));
        assert_eq!(encode(&uses), old);
        count(&mut uses, 1, 10);
        assert_eq!(decode::<UseRow>("uses", &encode(&uses)).unwrap(), uses);
    }

    #[test]
    fn no_row_with_enough_errors_is_passed_over() {
        for errors in (0..300).chain([65_535, 65_536, u32::MAX]) {
            let row = encode(&UseRow { prediction_errors: errors, ..UseRow::default() });
            for least in [1, 3, 4] {
                assert!(errors < least || may_have_errors(&row, least), "{errors}");
                assert!(errors >= least || !may_have_errors(&row, least), "{errors}");
            }
        }
    }
}
