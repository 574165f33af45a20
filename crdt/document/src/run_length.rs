//! Run-length encoded columns, read as runs and never expanded before their rows are counted.
//!
//! A change stores its operations by column, and a column as runs: `1_000_000 × value` takes five
//! bytes. The functions of this file return runs, so their memory is bounded by the bytes of the
//! column, and they refuse a column with more rows than an edit may have.
//!
//! | column | form |
//! |---|---|
//! | numbers | a signed count, then: `n > 0`: one value for `n` rows; `n < 0`: `-n` values; `0`: a number of rows without value |
//! | deltas | the same, and each value is added to the value of the row before |
//! | booleans | alternating numbers of `false` and `true` rows, `false` first |
//!
//! Only the shortest form is accepted: neighbouring rows with equal values form one run.

use crate::change_error::ChangeError;
use crate::leb128_reader::ChunkReader;
use crate::limits::CHANGE_OPERATIONS_MAX;

const NOT_SHORTEST: ChangeError = ChangeError::Malformed("a column is not in its shortest form");

/// Some consecutive rows with the same value; `None` for rows without value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRun<T> {
    pub(crate) value: Option<T>,
    pub(crate) rows: u32,
}

/// The runs of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column<T> {
    runs: Vec<ColumnRun<T>>,
    rows: u32,
}

impl<T: Copy + PartialEq> Column<T> {
    /// Reads a column whose values `read` takes from the bytes.
    fn read(
        bytes: &[u8],
        read: impl Fn(&mut ChunkReader<'_>) -> Result<T, ChangeError>,
    ) -> Result<Self, ChangeError> {
        let mut reader = ChunkReader::new(bytes);
        let mut column = Self { runs: Vec::new(), rows: 0 };
        let mut follows_literal = false;
        while !reader.is_empty() {
            let count = reader.signed()?;
            let rows = count.unsigned_abs();
            match count {
                // One row alone belongs into a literal.
                1 => return Err(NOT_SHORTEST),
                2.. => {
                    let value = read(&mut reader)?;
                    column.push(Some(value), rows)?;
                }
                0 => {
                    let rows = reader.unsigned()?;
                    column.push(None, rows)?;
                }
                // Two literals in sequence would have been one.
                _ if follows_literal => return Err(NOT_SHORTEST),
                _ => {
                    // Every value takes a byte, so the bytes bound this loop.
                    for _ in 0..rows {
                        let value = read(&mut reader)?;
                        column.push(Some(value), 1)?;
                    }
                }
            }
            follows_literal = count < 0;
        }
        // Automerge leaves out a column without values.
        let is_void = column.runs.iter().all(|run| run.value.is_none());
        if is_void && !column.runs.is_empty() { Err(NOT_SHORTEST) } else { Ok(column) }
    }

    fn push(&mut self, value: Option<T>, rows: u64) -> Result<(), ChangeError> {
        if rows == 0 || self.runs.last().is_some_and(|last| last.value == value) {
            return Err(NOT_SHORTEST);
        }
        let rows = u32::try_from(rows).map_err(|_| ChangeError::TooManyOperations)?;
        self.rows = self.rows.checked_add(rows).ok_or(ChangeError::TooManyOperations)?;
        if self.rows > CHANGE_OPERATIONS_MAX {
            return Err(ChangeError::TooManyOperations);
        }
        self.runs.push(ColumnRun { value, rows });
        Ok(())
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    pub(crate) fn runs(&self) -> &[ColumnRun<T>] {
        &self.runs
    }

    /// The values of the rows in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<T>> {
        self.runs.iter().flat_map(|run| (0..run.rows).map(move |_| run.value))
    }
}

/// Reads a column of numbers.
pub(crate) fn numbers(bytes: &[u8]) -> Result<Column<u64>, ChangeError> {
    Column::read(bytes, |reader| reader.unsigned())
}

/// Reads a column of deltas. The values of the runs are the deltas; [`sums`] adds them up.
pub(crate) fn deltas(bytes: &[u8]) -> Result<Column<i64>, ChangeError> {
    Column::read(bytes, |reader| reader.signed())
}

/// The sums of a column of deltas, row by row. A row without value, a sum below 0 or one above 32
/// bits ends the change's reading with an error.
pub(crate) fn sums(column: &Column<i64>) -> impl Iterator<Item = Result<u32, ChangeError>> {
    let mut sum = 0_u32;
    column.values().map(move |delta| {
        let next = delta.and_then(|delta| i64::from(sum).checked_add(delta));
        let next = next.and_then(|next| u32::try_from(next).ok());
        sum = next.ok_or(ChangeError::Malformed("an operation counter is out of range"))?;
        Ok(sum)
    })
}

/// Reads a column of booleans: each run is `(value, rows)`.
pub(crate) fn booleans(bytes: &[u8]) -> Result<Column<bool>, ChangeError> {
    let mut reader = ChunkReader::new(bytes);
    let mut column = Column { runs: Vec::new(), rows: 0 };
    let mut value = false;
    while !reader.is_empty() {
        let rows = reader.unsigned()?;
        let is_first = column.runs.is_empty() && !value;
        // Only the first count may be 0: the column then begins with `true`.
        if rows > 0 {
            column.push(Some(value), rows)?;
        } else if !is_first || reader.is_empty() {
            return Err(NOT_SHORTEST);
        }
        value = !value;
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Result<Vec<Option<u64>>, ChangeError> {
        numbers(bytes).map(|column| column.values().collect())
    }

    #[test]
    fn runs_literals_and_missing_values_are_read() {
        assert_eq!(rows(&[]), Ok(vec![]));
        assert_eq!(rows(&[3, 9]), Ok(vec![Some(9); 3]));
        assert_eq!(rows(&[0x7e, 5, 6]), Ok(vec![Some(5), Some(6)]));
        assert_eq!(rows(&[0, 2, 0x7f, 1]), Ok(vec![None, None, Some(1)]));
    }

    #[test]
    fn forms_that_automerge_does_not_write_are_refused() {
        let longer: [&[u8]; 8] = [
            &[1, 9],             // a run of one row
            &[2, 9, 2, 9],       // two runs of one value
            &[0x7e, 5, 5],       // equal neighbours in a literal
            &[0x7f, 5, 0x7f, 6], // two literals
            &[0x7f, 5, 2, 5],    // a literal that ends with the value of the next run
            &[0, 0, 0x7f, 1],    // no rows
            &[0, 1, 0, 1, 0x7f, 1],
            &[0, 3], // no values
        ];
        for bytes in longer {
            assert_eq!(rows(bytes), Err(NOT_SHORTEST), "{bytes:?}");
        }
    }

    #[test]
    fn a_few_bytes_that_describe_many_rows_are_refused_without_expanding_them() {
        let bomb = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 1];
        assert_eq!(rows(&bomb), Err(ChangeError::TooManyOperations));
        let empty = [0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 1];
        assert_eq!(rows(&empty), Err(ChangeError::TooManyOperations));
        // -2^63 values that are not there.
        let literal = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 1];
        assert!(rows(&literal).is_err());
        assert_eq!(booleans(&[0xff, 0xff, 0xff, 0x0f]), Err(ChangeError::TooManyOperations));
        // The limit itself is allowed: 65,536 rows, and not one more.
        assert_eq!(numbers(&[0x80, 0x80, 4, 1]).map(|column| column.rows()), Ok(1 << 16));
        assert_eq!(rows(&[0x81, 0x80, 4, 1]), Err(ChangeError::TooManyOperations));
    }

    #[test]
    fn booleans_begin_with_false_and_have_no_empty_run_inside() {
        let read = |bytes: &[u8]| booleans(bytes).map(|column| column.values().collect::<Vec<_>>());
        assert_eq!(read(&[1, 2]), Ok(vec![Some(false), Some(true), Some(true)]));
        assert_eq!(read(&[0, 1]), Ok(vec![Some(true)]));
        assert_eq!(read(&[0]), Err(NOT_SHORTEST));
        assert_eq!(read(&[0, 0, 1]), Err(NOT_SHORTEST));
        assert_eq!(read(&[1, 0]), Err(NOT_SHORTEST));
    }

    #[test]
    fn sums_of_deltas_stay_within_32_bits() {
        let sums = |bytes: &[u8]| sums(&deltas(bytes)?).collect::<Result<Vec<_>, _>>();
        assert_eq!(sums(&[3, 1]), Ok(vec![1, 2, 3]));
        assert_eq!(sums(&[0x7e, 5, 0x7e]), Ok(vec![5, 3]));
        assert!(sums(&[0x7f, 0x7f]).is_err());
        assert!(sums(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x10]).is_err());
    }
}
