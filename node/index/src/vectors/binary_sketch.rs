//! A binary sketch of each vector: one bit per dimension, which a scan reads first. It has an
//! eighth of the bytes of the codes.
//!
//! All vectors are first rotated by the same random rotation, which preserves cosines and spreads
//! large components over all dimensions ([`Turn`]). The bits are the signs. Let `c` be the cosine
//! of a unit vector `v` and its sign vector. Then the dot product of a query with the signs,
//! divided by `c`, is its cosine with `v` plus an error: the product of the query with the
//! direction in which the signs deviate from `v`, times `√(1 − c²) / c`. After the rotation that
//! direction is practically random, so the product is normally distributed with standard deviation
//! `1 / √(n − 1)`, and its absolute value is at most one. Each row stores [`SLACK_DEVIATIONS`]
//! standard deviations as its slack, or the maximum possible error if that is less. A row whose
//! estimated cosine plus slack reaches the bar is compared exactly.
//!
//! So one in a thousand of the rows exactly at the bar is missed, and fewer of those above it; for
//! vectors of up to eight dimensions none is missed.

use super::dot_product::{BLOCK_ROWS, Block, CacheLine, Kernel, Scales};

/// Number of standard deviations of the error in a row's slack.
const SLACK_DEVIATIONS: f32 = 3.0;

/// Allowance for floating-point rounding; relevant differences of cosines are larger.
const ROUNDING: f32 = 1e-5;

/// Maximum value of an entry of [`Asked::table`]: the sum of two must fit into a byte.
const PART_MAX: usize = 127;

/// Number of dimensions per part of the table: the number of bits in half a byte.
const PART_NUMBERS: usize = 4;

/// A pseudo-random rotation of all vectors: random sign changes, then a Hadamard transform, in two
/// rounds, because one round leaves a pattern for vectors with few non-zero components. It is the
/// same for all vectors of one length.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    rounds: [Vec<f32>; 2],
}

impl Rotation {
    /// The rotation of vectors with this many dimensions.
    pub(super) fn new(dims: usize) -> Self {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut sign = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if state >> 63 == 0 { 1.0 } else { -1.0 }
        };
        let count = dims.next_power_of_two().max(8);
        Self { rounds: [(); 2].map(|()| (0..count).map(|_| sign()).collect()) }
    }

    /// The number of components of a rotated vector.
    fn count(&self) -> usize {
        self.rounds[0].len()
    }

    /// The size of a row's bits in bytes.
    pub(super) fn row_bytes(&self) -> usize {
        self.count() / 8
    }

    /// Rotates codes. The result is longer by a factor of the number of components.
    fn of(&self, codes: impl Iterator<Item = i8>) -> Vec<f32> {
        let mut rotated = vec![0.0; self.count()];
        for (rotated, code) in rotated.iter_mut().zip(codes) {
            *rotated = f32::from(code);
        }
        for signs in &self.rounds {
            for (number, sign) in rotated.iter_mut().zip(signs) {
                *number *= sign;
            }
            hadamard(&mut rotated);
        }
        rotated
    }
}

/// A Hadamard transform in place. The length must be a power of two and at least eight.
fn hadamard(numbers: &mut [f32]) {
    // Unroll the first three levels: such short loops would cost more than their bodies.
    let (eights, _) = numbers.as_chunks_mut::<8>();
    for [a, b, c, d, e, f, g, h] in eights {
        let pairs = [*a + *b, *a - *b, *c + *d, *c - *d, *e + *f, *e - *f, *g + *h, *g - *h];
        let [p, q, r, s, t, u, v, w] = pairs;
        let fours = [p + r, q + s, p - r, q - s, t + v, u + w, t - v, u - w];
        let [p, q, r, s, t, u, v, w] = fours;
        (*a, *b, *c, *d) = (p + t, q + u, r + v, s + w);
        (*e, *f, *g, *h) = (p - t, q - u, r - v, s - w);
    }
    let mut half = 8;
    while half < numbers.len() {
        for both in numbers.chunks_exact_mut(half * 2) {
            let (left, right) = both.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
}

/// The stored sketch of a row.
pub(super) struct BinarySketch {
    /// The signs, eight per byte.
    pub(super) bits: Vec<u8>,
    /// Converts the product of a query with the signs to an estimated cosine.
    pub(super) factor: f32,
    /// The allowance for the error of that estimate.
    pub(super) slack: f32,
}

impl BinarySketch {
    /// The sketch of a row of codes; `scale` is one over their length.
    pub(super) fn new(rotation: &Rotation, codes: &[u8], scale: f32) -> Self {
        let rotated = rotation.of(codes.iter().map(|code| code.cast_signed()));
        let byte = |eight: &[f32]| {
            let bit = |(at, number): (usize, &f32)| u8::from(*number >= 0.0) << at;
            eight.iter().enumerate().map(bit).fold(0, |byte, bit| byte | bit)
        };
        let bits = rotated.chunks_exact(8).map(byte).collect();
        let count = rotated.len() as f32;
        // Eight independent sums allow parallel execution.
        let mut sums = [0.0_f32; 8];
        for eight in rotated.chunks_exact(8) {
            for (sum, number) in sums.iter_mut().zip(eight) {
                *sum += number.abs();
            }
        }
        // Each round scales the length by the square root of the count.
        let cosine = sums.iter().sum::<f32>() * scale / (count * count.sqrt());
        if cosine == 0.0 {
            return Self { bits, factor: 0.0, slack: ROUNDING };
        }
        let most = (cosine.powi(-2) - 1.0).max(0.0).sqrt();
        let slack = most * (SLACK_DEVIATIONS / (count - 1.0).sqrt()).min(1.0) + ROUNDING;
        Self { bits, factor: (cosine * count.sqrt()).recip(), slack }
    }
}

/// A query prepared for comparison with sketches.
#[derive(Clone, Debug)]
pub(super) struct SketchQuery {
    /// For each half-byte of bits: the sums of the query's four components with these signs,
    /// quantised in steps from the minimum.
    table: Vec<[u8; 16]>,
    scales: Scales,
}

impl SketchQuery {
    /// Prepares a query with these codes; `scale` is one over their length.
    pub(super) fn new(rotation: &Rotation, codes: impl Iterator<Item = i8>, scale: f32) -> Self {
        let mut rotated = rotation.of(codes);
        let shrink = scale / rotated.len() as f32;
        rotated.iter_mut().for_each(|number| *number *= shrink);
        let parts = rotated.chunks_exact(PART_NUMBERS);
        let reach = |part: &[f32]| part.iter().map(|number| number.abs()).sum::<f32>();
        let longest = parts.clone().map(reach).fold(0.0, f32::max);
        let count = parts.len();
        // The sum of all parts must fit into 16 bits.
        let part_max = PART_MAX.min(usize::from(u16::MAX) / count) as f32;
        let step = 2.0 * longest / part_max;
        let table = parts.clone().map(|part| {
            let (least, mut entries) = (reach(part), [0; 16]);
            for (signs, entry) in entries.iter_mut().enumerate() {
                let signed = |(at, number): (usize, &f32)| {
                    if signs >> at & 1 == 1 { *number } else { -number }
                };
                let sum = part.iter().enumerate().map(signed).sum::<f32>() + least;
                *entry = if step > 0.0 { (sum / step).round() as u8 } else { 0 };
            }
            entries
        });
        let table = table.collect();
        // Each part is rounded by at most half a step.
        let rounded = (SLACK_DEVIATIONS * (count as f32 / 12.0).sqrt()).min(count as f32 / 2.0);
        let least = rounded * step - parts.map(reach).sum::<f32>();
        Self { table, scales: Scales { step, least } }
    }

    /// Computes upper bounds of the cosines of a block's rows. True if one of them is above the
    /// bar.
    pub(super) fn bounds(&self, block: &Block<'_>, bar: f32, out: &mut BlockScores) -> bool {
        Kernel::best().bounds(&self.table, block, self.scales, bar, out)
    }
}

/// An upper bound for each row of a block.
pub(super) type BlockScores = [f32; BLOCK_ROWS];

/// Stores the bits of a row in a block, where line `i` holds byte `i` of all rows.
pub(super) fn put(bits: &[u8], lines: &mut [CacheLine], at: usize) {
    for (line, byte) in lines.iter_mut().zip(bits) {
        line.set_byte(at, *byte);
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantized_rows::{Quantised, scale_of};
    use super::*;
    use quickcheck::{TestResult, quickcheck};

    /// The upper bound of a row that is alone in its block.
    fn bound(rotation: &Rotation, row: &[u8], asked: &[u8]) -> f32 {
        let at = row.len() % BLOCK_ROWS;
        let sketch = BinarySketch::new(rotation, row, scale_of(row));
        let mut lines = vec![CacheLine::ZERO; rotation.row_bytes()];
        put(&sketch.bits, &mut lines, at);
        let (mut factors, mut slacks) = ([0.0; BLOCK_ROWS], [0.0; BLOCK_ROWS]);
        (factors[at], slacks[at]) = (sketch.factor, sketch.slack);
        let block = Block { lines: &lines, factors: &factors, slacks: &slacks };
        let asked = SketchQuery::new(
            rotation,
            asked.iter().map(|code| code.cast_signed()),
            scale_of(asked),
        );
        let mut bounds = [0.0; BLOCK_ROWS];
        asked.bounds(&block, 0.0, &mut bounds);
        bounds[at]
    }

    fn cosine(left: &[u8], right: &[u8]) -> f32 {
        let product = |(a, b): (&u8, &u8)| i32::from(a.cast_signed()) * i32::from(b.cast_signed());
        let dot = left.iter().zip(right).map(product).sum::<i32>() as f32;
        dot * scale_of(left) * scale_of(right)
    }

    #[test]
    fn bounds_of_short_vectors_always_hold() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(numbers: Vec<(i8, i8)>) -> TestResult {
            let numbers = numbers.iter().take(8);
            let (row, asked): (Vec<f32>, Vec<f32>) =
                numbers.map(|(a, b)| (f32::from(*a), f32::from(*b))).unzip();
            if row.is_empty() {
                return TestResult::discard();
            }
            let (row, asked) = (Quantised::new(&row).codes, Quantised::new(&asked).codes);
            let bound = bound(&Rotation::new(row.len()), &row, &asked);
            let exact = cosine(&row, &asked);
            assert!(bound >= exact, "{bound} {exact}");
            TestResult::passed()
        }
        quickcheck(law as fn(Vec<(i8, i8)>) -> TestResult);
    }

    #[test]
    fn bounds_of_long_vectors_rarely_fail() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            ((state >> 56) as u8).cast_signed().clamp(-127, 127).cast_unsigned()
        };
        for dims in [100, 256, 384, 700] {
            let (rotation, mut above, mut least) = (Rotation::new(dims), 0, f32::INFINITY);
            for _ in 0..2_000 {
                let row: Vec<u8> = (0..dims).map(|_| next()).collect();
                let asked: Vec<u8> = (0..dims).map(|_| next()).collect();
                let left = bound(&rotation, &row, &asked) - cosine(&row, &asked);
                above += usize::from(left < 0.0);
                least = least.min(left);
            }
            assert!(above <= 10, "{above} of 2,000 at {dims}");
            assert!(least > -0.1, "{least} at {dims}");
        }
    }

    #[test]
    fn the_rotation_preserves_cosines() {
        let rotation = Rotation::new(100);
        let codes = |seed: i32| (0..100).map(move |at| ((at * 37 + seed) * at % 128 - 64) as i8);
        let (one, two) = (rotation.of(codes(1)), rotation.of(codes(8)));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let rotated = dot(&one, &two) / (dot(&one, &one) * dot(&two, &two)).sqrt();
        let bytes = |seed| codes(seed).map(i8::cast_unsigned).collect::<Vec<u8>>();
        assert!((rotated - cosine(&bytes(1), &bytes(8))).abs() < 1e-5);
    }
}
