//! The upper halves of codes: what a scan reads first, half as many bytes as the codes themselves.
//!
//! A code is 16 times its upper half, 0 to 15, less 128, plus a lower half that is 7.5 give or take.
//! So the upper halves give a cosine that is off by no more than the length of what the lower halves
//! are beside 7.5, which is kept for each row as its slack (Cauchy and Schwarz). Only a row whose
//! coarse cosine with its slack reaches the bar is multiplied in full: nothing is missed, and of
//! rows of texts one in fifty is.

use super::kernel::{self, Line};
use super::rows::Query;

/// A row stands in half as many lines as its codes, rounded up.
pub(super) const fn lines_of(stride: usize) -> usize {
    stride.div_ceil(2)
}

/// Floating-point numbers round; cosines are told apart by more than this.
const ROUNDING: f32 = 1e-5;

/// What the lower half of a code is on average.
const LOWER_MEAN: f32 = 7.5;

/// Writes the upper halves of a row, and returns its slack: how far off a coarse cosine may be.
pub(super) fn pack(codes: &[u8], scale: f32, row: &[Line], coarse: &mut [Line]) -> f32 {
    kernel::upper_halves(row, coarse);
    let square = |code: &u8| (f32::from(code & 0x0F) - LOWER_MEAN).powi(2);
    codes.iter().map(square).sum::<f32>().sqrt() * scale + ROUNDING
}

/// The most that the cosine of a row can be whose upper halves multiply to `product`.
#[inline]
pub(super) fn most(product: i32, query: &Query, scale: f32, slack: f32) -> f32 {
    let about = 16.0 * product as f32 - (128.0 - LOWER_MEAN) * query.sum;
    about * (scale * query.scale) + slack
}

#[cfg(test)]
mod tests {
    use super::super::kernel::{Kernel, words};
    use super::super::rows::{Quantised, cosine};
    use super::*;
    use quickcheck::{TestResult, quickcheck};

    #[test]
    fn no_cosine_is_greater_than_its_bound() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(numbers: Vec<(i8, i8)>, length: u16) -> TestResult {
            let length = usize::from(length % 700) + 1;
            let numbers = numbers.iter().cycle().take(length);
            let (row, asked): (Vec<f32>, Vec<f32>) =
                numbers.map(|(a, b)| (f32::from(*a), f32::from(*b))).unzip();
            if row.is_empty() {
                return TestResult::discard();
            }
            let (row, query) = (Quantised::new(&row), Query::new(&asked));
            let mut lines = vec![Line::ZERO; kernel::lines_of(row.codes.len())];
            kernel::pack(&row.codes, &mut lines);
            let mut halves = vec![Line::ZERO; lines_of(lines.len())];
            let slack = pack(&row.codes, row.scale, &lines, &mut halves);
            let exact = Kernel::best().dot(words(&lines), &query.words);
            let exact = cosine(exact, row.scale * query.scale);
            let mut product = [0];
            Kernel::best().halves(query.even(), words(&halves), &mut product);
            let bound = most(product[0], &query, row.scale, slack);
            assert!(bound >= exact, "{bound} {exact}");
            assert!(bound <= exact + 2.0 * slack, "{bound} {exact} {slack}");
            TestResult::passed()
        }
        quickcheck(law as fn(Vec<(i8, i8)>, u16) -> TestResult);
    }
}
