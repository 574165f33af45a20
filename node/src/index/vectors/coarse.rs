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
