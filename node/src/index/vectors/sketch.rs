//! One bit for each number of a vector: what a scan reads first, an eighth of the bytes of the codes.
//!
//! Vectors are turned before, all by the same turn, which leaves cosines as they are and spreads
//! whatever stands out over all numbers ([`Turn`]). The bits are the signs. A vector `v` of length
//! one and its signs have the cosine `c`, so that a query's product with the signs, over `c`, is its
//! cosine with `v` beside an error: its product with the direction in which the signs leave `v`, times
//! `√(1 − c²) / c`. After the turn that direction is as good as random, and the product is normal with
//! a spread of `1 / √(n − 1)`; it is never more than one. Each row keeps [`SURE`] such spreads as its
//! slack, or all there can be, if that is less. A row whose cosine may with its slack reach the bar is
//! multiplied in full.
//!
//! So of rows that stand exactly at the bar one in a thousand is missed, and of those above it fewer;
//! of vectors of up to eight numbers none.

use super::kernel::{BLOCK_ROWS, Block, Kernel, Line, Scales};

/// How many spreads of the error a row's slack has.
const SURE: f32 = 3.0;

/// Floating-point numbers round; cosines are told apart by more than this.
const ROUNDING: f32 = 1e-5;

/// The most that one part of a [`Asked::table`] says: two of them fit into a byte.
const PART_MAX: usize = 127;

/// How many numbers one part is about: as many as half a byte has bits.
const PART_NUMBERS: usize = 4;

/// A turn of all vectors: some numbers change their signs, then each becomes a sum of all, with signs
/// of its own (Hadamard); and that once more, since of few numbers beside zeros one round makes a
/// pattern. The same for all vectors of a length.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    rounds: [Vec<f32>; 2],
}

impl Turn {
    /// The turn of vectors with this many numbers.
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

    /// How many numbers a turned vector has.
    fn count(&self) -> usize {
        self.rounds[0].len()
    }

    /// How many bytes of bits a row has.
    pub(super) fn row_bytes(&self) -> usize {
        self.count() / 8
    }

    /// Codes, turned; longer than before, by their number.
    fn of(&self, codes: impl Iterator<Item = i8>) -> Vec<f32> {
        let mut turned = vec![0.0; self.count()];
        for (turned, code) in turned.iter_mut().zip(codes) {
            *turned = f32::from(code);
        }
        for signs in &self.rounds {
            for (number, sign) in turned.iter_mut().zip(signs) {
                *number *= sign;
            }
            sum_up(&mut turned);
        }
        turned
    }
}

/// Makes each of so many numbers, a power of two and at least eight, a sum of all with signs of its
/// own.
fn sum_up(numbers: &mut [f32]) {
    // Eight at a time first: so short a loop would take longer than what is done in it.
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

/// What is kept of a row.
pub(super) struct Sketch {
    /// The signs, eight in a byte.
    pub(super) bits: Vec<u8>,
    /// Makes the product of a query's numbers and the signs a cosine.
    pub(super) factor: f32,
    /// How far off that cosine may be.
    pub(super) slack: f32,
}

impl Sketch {
    /// The sketch of a row of codes; `scale` is one over their length.
    pub(super) fn new(turn: &Turn, codes: &[u8], scale: f32) -> Self {
        let turned = turn.of(codes.iter().map(|code| code.cast_signed()));
        let byte = |eight: &[f32]| {
            let bit = |(at, number): (usize, &f32)| u8::from(*number >= 0.0) << at;
            eight.iter().enumerate().map(bit).fold(0, |byte, bit| byte | bit)
        };
        let bits = turned.chunks_exact(8).map(byte).collect();
        let count = turned.len() as f32;
        // In eight sums, so that none waits for another.
        let mut sums = [0.0_f32; 8];
        for eight in turned.chunks_exact(8) {
            for (sum, number) in sums.iter_mut().zip(eight) {
                *sum += number.abs();
            }
        }
        // Each round has made it longer by the root of the count.
        let cosine = sums.iter().sum::<f32>() * scale / (count * count.sqrt());
        if cosine == 0.0 {
            return Self { bits, factor: 0.0, slack: ROUNDING };
        }
        let most = (cosine.powi(-2) - 1.0).max(0.0).sqrt();
        let slack = most * (SURE / (count - 1.0).sqrt()).min(1.0) + ROUNDING;
        Self { bits, factor: (cosine * count.sqrt()).recip(), slack }
    }
}

/// A query as sketches are read with it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// For each half of a byte of bits, what the query's four numbers with these signs add up to, in
    /// steps from the least there can be.
    table: Vec<[u8; 16]>,
    scales: Scales,
}

impl Asked {
    /// What is asked with these codes; `scale` is one over their length.
    pub(super) fn new(turn: &Turn, codes: impl Iterator<Item = i8>, scale: f32) -> Self {
        let mut turned = turn.of(codes);
        let shrink = scale / turned.len() as f32;
        turned.iter_mut().for_each(|number| *number *= shrink);
        let parts = turned.chunks_exact(PART_NUMBERS);
        let reach = |part: &[f32]| part.iter().map(|number| number.abs()).sum::<f32>();
        let longest = parts.clone().map(reach).fold(0.0, f32::max);
        let count = parts.len();
        // All parts together fit into 16 bits.
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
        // Each part is rounded, by half a step at most.
        let rounded = (SURE * (count as f32 / 12.0).sqrt()).min(count as f32 / 2.0);
        let least = rounded * step - parts.map(reach).sum::<f32>();
        Self { table, scales: Scales { step, least } }
    }

    /// The cosines that the rows of a block may have at most. True if one of them is above the bar.
    pub(super) fn bounds(&self, block: &Block<'_>, bar: f32, out: &mut Bounds) -> bool {
        Kernel::best().bounds(&self.table, block, self.scales, bar, out)
    }
}

/// A number for each row of a block.
pub(super) type Bounds = [f32; BLOCK_ROWS];

/// Puts the bits of a row into a block, in which the same byte of all rows stands in one line.
pub(super) fn put(bits: &[u8], lines: &mut [Line], at: usize) {
    for (line, byte) in lines.iter_mut().zip(bits) {
        line.set_byte(at, *byte);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Quantised, scale_of};
    use super::*;
    use quickcheck::{TestResult, quickcheck};

    /// The bound of a row, read from a block in which it stands alone.
    fn bound(turn: &Turn, row: &[u8], asked: &[u8]) -> f32 {
        let at = row.len() % BLOCK_ROWS;
        let sketch = Sketch::new(turn, row, scale_of(row));
        let mut lines = vec![Line::ZERO; turn.row_bytes()];
        put(&sketch.bits, &mut lines, at);
        let (mut factors, mut slacks) = ([0.0; BLOCK_ROWS], [0.0; BLOCK_ROWS]);
        (factors[at], slacks[at]) = (sketch.factor, sketch.slack);
        let block = Block { lines: &lines, factors: &factors, slacks: &slacks };
        let asked = Asked::new(turn, asked.iter().map(|code| code.cast_signed()), scale_of(asked));
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
    fn no_cosine_of_short_vectors_is_greater_than_its_bound() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(numbers: Vec<(i8, i8)>) -> TestResult {
            let numbers = numbers.iter().take(8);
            let (row, asked): (Vec<f32>, Vec<f32>) =
                numbers.map(|(a, b)| (f32::from(*a), f32::from(*b))).unzip();
            if row.is_empty() {
                return TestResult::discard();
            }
            let (row, asked) = (Quantised::new(&row).codes, Quantised::new(&asked).codes);
            let bound = bound(&Turn::new(row.len()), &row, &asked);
            let exact = cosine(&row, &asked);
            assert!(bound >= exact, "{bound} {exact}");
            TestResult::passed()
        }
        quickcheck(law as fn(Vec<(i8, i8)>) -> TestResult);
    }

    #[test]
    fn of_long_vectors_one_in_hundreds_is_greater_than_its_bound_and_none_is_far_below() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            ((state >> 56) as u8).cast_signed().clamp(-127, 127).cast_unsigned()
        };
        for dims in [100, 256, 384, 700] {
            let (turn, mut above, mut least) = (Turn::new(dims), 0, f32::INFINITY);
            for _ in 0..2_000 {
                let row: Vec<u8> = (0..dims).map(|_| next()).collect();
                let asked: Vec<u8> = (0..dims).map(|_| next()).collect();
                let left = bound(&turn, &row, &asked) - cosine(&row, &asked);
                above += usize::from(left < 0.0);
                least = least.min(left);
            }
            assert!(above <= 10, "{above} of 2,000 at {dims}");
            assert!(least > -0.1, "{least} at {dims}");
        }
    }

    #[test]
    fn a_turn_leaves_cosines_as_they_are() {
        let turn = Turn::new(100);
        let codes = |seed: i32| (0..100).map(move |at| ((at * 37 + seed) * at % 128 - 64) as i8);
        let (one, two) = (turn.of(codes(1)), turn.of(codes(8)));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let turned = dot(&one, &two) / (dot(&one, &one) * dot(&two, &two)).sqrt();
        let bytes = |seed| codes(seed).map(i8::cast_unsigned).collect::<Vec<u8>>();
        assert!((turned - cosine(&bytes(1), &bytes(8))).abs() < 1e-5);
    }
}
