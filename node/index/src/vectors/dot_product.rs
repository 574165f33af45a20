//! Dot products of int8 codes at memory speed: the only `unsafe` code of the index, and only
//! arithmetic.
//!
//! Codes are stored in words of eight, rows in whole cache [`CacheLine`]s padded with zeros, so no
//! kernel has a remainder to handle. All kernels are exact for every code from -128 to 127 and give
//! the same sums; a test compares each with a plain loop. The kernel is selected once, by the
//! features of the processor.

use std::sync::OnceLock;

/// Number of codes in a line.
pub(super) const LINE_CODES: usize = 64;

/// Number of codes in a word.
pub(super) const WORD_CODES: usize = 8;

const LINE_WORDS: usize = LINE_CODES / WORD_CODES;

/// Number of rows in a block of sketches: one for each byte of a line.
pub(super) const BLOCK_ROWS: usize = LINE_CODES;

/// The sketches of as many rows as a line has bytes.
pub(super) struct Block<'a> {
    /// Line `i` holds byte `i` of every row.
    pub(super) lines: &'a [CacheLine],
    /// For each row, the factor that converts a product with the signs to a cosine.
    pub(super) factors: &'a [f32; BLOCK_ROWS],
    /// For each row, the allowance to add to it.
    pub(super) slacks: &'a [f32; BLOCK_ROWS],
}

/// Converts a sum of steps to a product: `steps * step + least`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scales {
    pub(super) step: f32,
    pub(super) least: f32,
}

/// The sum of table entries for each row of a block, in steps.
type Steps = [u16; BLOCK_ROWS];

/// 64 codes in one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct CacheLine([u64; LINE_WORDS]);

impl CacheLine {
    /// A line of zeros, for padding.
    pub(super) const ZERO: Self = Self([0; LINE_WORDS]);

    pub(super) fn set_byte(&mut self, at: usize, byte: u8) {
        let (word, shift) = (&mut self.0[at / WORD_CODES], at % WORD_CODES * 8);
        *word = *word & !(0xFF << shift) | u64::from(byte) << shift;
    }
}

/// The number of lines for this many codes.
pub(super) const fn lines_of(codes: usize) -> usize {
    codes.div_ceil(LINE_CODES)
}

/// Writes codes, as bytes, to the front of lines that are all zeros.
pub(super) fn pack(codes: &[u8], lines: &mut [CacheLine]) {
    for (line, codes) in lines.iter_mut().zip(codes.chunks(LINE_CODES)) {
        for (word, codes) in line.0.iter_mut().zip(codes.chunks(WORD_CODES)) {
            // All words but the last are complete, and faster to copy as such.
            let bytes = codes.try_into().unwrap_or_else(|_| {
                let mut bytes = [0; WORD_CODES];
                bytes[..codes.len()].copy_from_slice(codes);
                bytes
            });
            *word = u64::from_le_bytes(bytes);
        }
    }
}

/// The words of lines.
#[expect(unsafe_code, reason = "a line is eight words and nothing else")]
pub(super) fn words(lines: &[CacheLine]) -> &[u64] {
    // SAFETY: `CacheLine` is `repr(C)` around eight words, with the same size and a stricter
    // alignment, so `n` lines are `8 n` initialised words, borrowed for as long as the lines are.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LINE_WORDS) }
}

/// An implementation of the dot product, in order of speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Plain Rust that the compiler vectorises for any processor.
    Portable,
    /// 16 codes at a time, widened to 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64 codes at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl Kernel {
    /// The kernels that this processor supports.
    pub(super) fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                all.push(Self::Avx512Vnni);
            }
        }
        all
    }

    /// The fastest supported kernel.
    pub(super) fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::Portable))
    }

    /// The dot product of two rows with the same number of lines.
    #[expect(unsafe_code, reason = "a call into code for a processor that was asked for it")]
    pub(super) fn dot(self, left: &[u64], right: &[u64]) -> i32 {
        match self {
            Self::Portable => portable::dot(left, right),
            // SAFETY: `available` made this value after seeing that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::dot(left, right) },
            // SAFETY: likewise, AVX-512 F, BW and VNNI.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { avx512::dot(left, right) },
        }
    }

    /// Computes for each row of a block the upper bound of its cosine: its product with a query,
    /// given by the table's entries for each half-byte, times its factor, plus its slack. True if
    /// one of them is above the bar.
    #[expect(unsafe_code, reason = "a call into code for a processor that was asked for it")]
    pub(super) fn bounds(
        self,
        table: &[[u8; 16]],
        block: &Block<'_>,
        scales: Scales,
        bar: f32,
        out: &mut [f32; BLOCK_ROWS],
    ) -> bool {
        match self {
            Self::Portable => scaled(&portable::steps(table, block.lines), block, scales, bar, out),
            // SAFETY: `available` made this value after seeing that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::bounds(table, block, scales, bar, out) },
            // SAFETY: likewise, AVX-512 F, BW and VNNI.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { avx512::bounds(table, block, scales, bar, out) },
        }
    }

    /// The rows of a block whose bounds reach a bar: one bit for each, the first row in the lowest
    /// bit.
    #[expect(unsafe_code, reason = "a call into code for a processor that was asked for it")]
    pub(super) fn reaching(self, bounds: &[f32; BLOCK_ROWS], bar: f32) -> u64 {
        match self {
            Self::Portable => portable::reaching(bounds, bar),
            // SAFETY: `available` made this value after seeing that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::reaching(bounds, bar) },
            // SAFETY: likewise, AVX-512 F, BW and VNNI.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { avx512::reaching(bounds, bar) },
        }
    }
}

/// Inlined, so that it is compiled for the features of each caller.
#[inline(always)]
fn scaled(
    steps: &Steps,
    block: &Block<'_>,
    scales: Scales,
    bar: f32,
    out: &mut [f32; BLOCK_ROWS],
) -> bool {
    let mut is_above = false;
    let rows = block.factors.iter().zip(block.slacks);
    for ((out, steps), (factor, slack)) in out.iter_mut().zip(steps).zip(rows) {
        *out = (f32::from(*steps) * scales.step + scales.least) * factor + slack;
        is_above |= *out > bar;
    }
    is_above
}

/// Prefetches lines that will be read soon.
#[expect(unsafe_code, reason = "a hint to the processor about memory that a slice has")]
pub(super) fn fetch(lines: &[CacheLine]) {
    #[cfg(target_arch = "x86_64")]
    for line in lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing, and the address is that of a line.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = lines;
}

mod portable {
    //! For processors without a kernel of their own.

    use super::{BLOCK_ROWS, CacheLine, Steps, WORD_CODES};

    pub(super) fn steps(table: &[[u8; 16]], lines: &[CacheLine]) -> Steps {
        let mut steps = [0; BLOCK_ROWS];
        for (line, two) in lines.iter().zip(table.chunks_exact(2)) {
            let bytes = line.0.iter().flat_map(|word| word.to_le_bytes());
            for (steps, byte) in steps.iter_mut().zip(bytes) {
                let (lower, upper) = (usize::from(byte & 0x0F), usize::from(byte >> 4));
                let both = u16::from(two[0][lower]) + u16::from(two[1][upper]);
                // The table's author ensures that the largest entries fit into the sum.
                *steps = u16::wrapping_add(*steps, both);
            }
        }
        steps
    }

    pub(super) fn reaching(bounds: &[f32; BLOCK_ROWS], bar: f32) -> u64 {
        bounds.iter().rev().fold(0, |reaching, bound| reaching << 1 | u64::from(*bound >= bar))
    }

    pub(super) fn dot(left: &[u64], right: &[u64]) -> i32 {
        let mut sums = [0_i32; WORD_CODES];
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (left.to_le_bytes(), right.to_le_bytes());
            for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
                let product = i16::from(left.cast_signed()) * i16::from(right.cast_signed());
                // Cannot wrap below 131,072 codes; `wrapping_add` avoids an overflow check, which
                // would prevent vectorisation.
                *sum = sum.wrapping_add(i32::from(product));
            }
        }
        sums.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Both sides widened to 16 bits, multiplied, and added in pairs: exact for every code.

    use super::{BLOCK_ROWS, Block, CacheLine, LINE_WORDS, Scales, Steps, scaled};
    use std::arch::x86_64::*;

    const HALF_WORDS: usize = 2;

    #[target_feature(enable = "avx2")]
    pub(super) fn dot(left: &[u64], right: &[u64]) -> i32 {
        let mut sum = _mm256_setzero_si256();
        let halves = left.chunks_exact(HALF_WORDS).zip(right.chunks_exact(HALF_WORDS));
        for (left, right) in halves {
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(widen(left), widen(right)));
        }
        total(sum)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn bounds(
        table: &[[u8; 16]],
        block: &Block<'_>,
        scales: Scales,
        bar: f32,
        out: &mut [f32; BLOCK_ROWS],
    ) -> bool {
        scaled(&steps(table, block.lines), block, scales, bar, out)
    }

    #[target_feature(enable = "avx2")]
    #[expect(unsafe_code, reason = "loads eight numbers from an array that has them")]
    pub(super) fn reaching(bounds: &[f32; BLOCK_ROWS], bar: f32) -> u64 {
        let (eights, _) = bounds.as_chunks::<8>();
        let (mut reaching, bar) = (0, _mm256_set1_ps(bar));
        for eight in eights.iter().rev() {
            // SAFETY: the array has eight numbers, and this load asks for no alignment.
            let eight = unsafe { _mm256_loadu_ps(eight.as_ptr()) };
            let signs = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(eight, bar));
            reaching = reaching << 8 | u64::from(signs.cast_unsigned());
        }
        reaching
    }

    /// Rows with even and with odd numbers are summed separately, in 16 bits each.
    #[target_feature(enable = "avx2")]
    fn steps(table: &[[u8; 16]], lines: &[CacheLine]) -> Steps {
        const QUARTER: usize = LINE_WORDS / 2;
        let (half, byte) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi16(0xFF));
        let mut sums = [[_mm256_setzero_si256(); 2]; 2];
        for (line, two) in lines.iter().zip(table.chunks_exact(2)) {
            let (lower, upper) = (entries(&two[0]), entries(&two[1]));
            for (part, sums) in line.0.chunks_exact(QUARTER).zip(&mut sums) {
                let part = load(part);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(part), half);
                let low = _mm256_shuffle_epi8(lower, _mm256_and_si256(part, half));
                let both = _mm256_add_epi8(low, _mm256_shuffle_epi8(upper, high));
                sums[0] = _mm256_add_epi16(sums[0], _mm256_and_si256(both, byte));
                sums[1] = _mm256_add_epi16(sums[1], _mm256_srli_epi16::<8>(both));
            }
        }
        let mut steps = [0; BLOCK_ROWS];
        for ([even, odd], steps) in sums.into_iter().zip(steps.chunks_exact_mut(BLOCK_ROWS / 2)) {
            let (even, odd) = (numbers(even), numbers(odd));
            for (pair, (even, odd)) in steps.chunks_exact_mut(2).zip(even.into_iter().zip(odd)) {
                pair.copy_from_slice(&[even, odd]);
            }
        }
        steps
    }

    /// The sixteen entries of a table part, twice.
    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "loads sixteen bytes from an array that has them")]
    fn entries(of: &[u8; 16]) -> __m256i {
        // SAFETY: the array has sixteen bytes, and this load asks for no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(of.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "stores 32 bytes to an array that has them")]
    fn numbers(of: __m256i) -> [u16; 16] {
        let mut numbers = [0; 16];
        // SAFETY: the array has 32 bytes, and this store asks for no alignment.
        unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), of) };
        numbers
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "loads 32 bytes from a slice that has them")]
    fn load(four: &[u64]) -> __m256i {
        assert!(four.len() == LINE_WORDS / 2, "half a line is four words");
        // SAFETY: the slice has four words, and this load asks for no alignment.
        unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
    }

    /// Sixteen codes as 16-bit numbers.
    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "loads sixteen bytes from a slice that has them")]
    fn widen(two: &[u64]) -> __m256i {
        assert!(two.len() == HALF_WORDS, "a half is two words");
        // SAFETY: the slice has two words, and this load asks for no alignment.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(two.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn total(sums: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
        _mm_cvtsi128_si32(one)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    //! The instruction multiplies unsigned by signed bytes. So the row gets 128 added to each code,
    //! by flipping its highest bit, and 128 times the sum of the query is taken off at the end.

    use super::{BLOCK_ROWS, Block, CacheLine, LINE_WORDS, Scales, Steps, scaled};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn dot(left: &[u64], right: &[u64]) -> i32 {
        let flip = _mm512_set1_epi8(i8::MIN);
        let mut sum = _mm512_setzero_si512();
        let mut excess = _mm512_setzero_si512();
        for (left, right) in left.chunks_exact(LINE_WORDS).zip(right.chunks_exact(LINE_WORDS)) {
            let right = load(right);
            sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(load(left), flip), right);
            excess = _mm512_dpbusd_epi32(excess, flip, right);
        }
        _mm512_reduce_add_epi32(_mm512_sub_epi32(sum, excess))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn bounds(
        table: &[[u8; 16]],
        block: &Block<'_>,
        scales: Scales,
        bar: f32,
        out: &mut [f32; BLOCK_ROWS],
    ) -> bool {
        scaled(&steps(table, block.lines), block, scales, bar, out)
    }

    #[target_feature(enable = "avx512f")]
    #[expect(unsafe_code, reason = "loads sixteen numbers from an array that has them")]
    pub(super) fn reaching(bounds: &[f32; BLOCK_ROWS], bar: f32) -> u64 {
        let (sixteens, _) = bounds.as_chunks::<16>();
        let (mut reaching, bar) = (0, _mm512_set1_ps(bar));
        for sixteen in sixteens.iter().rev() {
            // SAFETY: the array has sixteen numbers, and this load asks for no alignment.
            let sixteen = unsafe { _mm512_loadu_ps(sixteen.as_ptr()) };
            let mask = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(sixteen, bar);
            reaching = reaching << 16 | u64::from(mask);
        }
        reaching
    }

    /// Rows with even and with odd numbers are summed separately, in 16 bits each.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn steps(table: &[[u8; 16]], lines: &[CacheLine]) -> Steps {
        let (half, byte) = (_mm512_set1_epi8(0x0F), _mm512_set1_epi16(0xFF));
        let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for (line, two) in lines.iter().zip(table.chunks_exact(2)) {
            let line = load(&line.0);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(line), half);
            let low = _mm512_shuffle_epi8(entries(&two[0]), _mm512_and_si512(line, half));
            let both = _mm512_add_epi8(low, _mm512_shuffle_epi8(entries(&two[1]), high));
            even = _mm512_add_epi16(even, _mm512_and_si512(both, byte));
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16::<8>(both));
        }
        let mut steps = [0; BLOCK_ROWS];
        let (even, odd) = (numbers(even), numbers(odd));
        for (pair, (even, odd)) in steps.chunks_exact_mut(2).zip(even.into_iter().zip(odd)) {
            pair.copy_from_slice(&[even, odd]);
        }
        steps
    }

    /// Fills a register with the sixteen bytes of one lookup table, repeated four times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "loads sixteen bytes from an array that has them")]
    fn entries(of: &[u8; 16]) -> __m512i {
        // SAFETY: the array has sixteen bytes, and this load asks for no alignment.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(of.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "stores 64 bytes to an array that has them")]
    fn numbers(of: __m512i) -> [u16; 32] {
        let mut numbers = [0; 32];
        // SAFETY: the array has 64 bytes, and this store asks for no alignment.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), of) };
        numbers
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "loads one line from a slice that has it")]
    fn load(line: &[u64]) -> __m512i {
        assert!(line.len() == LINE_WORDS, "a line is eight words");
        // SAFETY: the slice has eight words, and this load asks for no alignment.
        unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::{TestResult, quickcheck};

    const CODES_MAX: usize = 1100;

    fn packed(codes: &[i8]) -> Vec<CacheLine> {
        let mut lines = vec![CacheLine::ZERO; lines_of(codes.len())];
        let bytes: Vec<u8> = codes.iter().map(|code| code.cast_unsigned()).collect();
        pack(&bytes, &mut lines);
        lines
    }

    fn naive(left: &[i8], right: &[i8]) -> i32 {
        left.iter().zip(right).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
    }

    #[track_caller]
    fn check(left: &[i8], right: &[i8]) {
        let (a, b) = (packed(left), packed(right));
        for kernel in Kernel::available() {
            let found = kernel.dot(words(&a), words(&b));
            assert_eq!(found, naive(left, right), "{kernel:?}, {} codes", left.len());
        }
    }

    #[test]
    fn kernels_are_exact_at_every_length_and_extreme() {
        for length in 0..=CODES_MAX {
            for (left, right) in [(-128, -128), (-128, 127), (127, 127), (1, -1)] {
                check(&vec![left; length], &vec![right; length]);
            }
            let rising: Vec<i8> = (0..length).map(|at| (at * 37 % 256) as u8 as i8).collect();
            let falling: Vec<i8> = (0..length).map(|at| (at * 91 % 256) as u8 as i8).collect();
            check(&rising, &falling);
        }
    }

    #[test]
    fn kernels_are_exact_on_any_codes() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(codes: Vec<(i8, i8)>, at: usize) -> TestResult {
            // Quickcheck's lists are short: repeat them to reach every length.
            let length = at % (CODES_MAX + 1);
            let (left, right): (Vec<i8>, Vec<i8>) =
                codes.iter().cycle().take(length).copied().unzip();
            check(&left, &right);
            TestResult::passed()
        }
        quickcheck(law as fn(Vec<(i8, i8)>, usize) -> TestResult);
    }

    #[test]
    fn kernels_bound_a_block_like_a_plain_loop() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(bytes: Vec<u8>, row_bytes: u8, bar: u8) -> TestResult {
            let row_bytes = usize::from(row_bytes % 70) + 1;
            let Some(last) = bytes.len().checked_sub(1) else { return TestResult::discard() };
            let byte = |at: usize| bytes[at * 31 % (last + 1)].wrapping_add(at as u8);
            let mut lines = vec![CacheLine::ZERO; row_bytes];
            for (number, line) in lines.iter_mut().enumerate() {
                for row in 0..BLOCK_ROWS {
                    line.set_byte(row, byte(number * 3 + row));
                }
            }
            let table: Vec<[u8; 16]> = (0..row_bytes * 2)
                .map(|part| std::array::from_fn(|at| byte(part * 16 + at) & 0x7F))
                .collect();
            let factors = std::array::from_fn(|row| f32::from(byte(row)) / 8.0);
            let slacks = std::array::from_fn(|row| f32::from(byte(row + 64)) / 256.0);
            let block = Block { lines: &lines, factors: &factors, slacks: &slacks };
            let scales = Scales { step: 0.25, least: -3.0 };
            let expected: [f32; BLOCK_ROWS] = std::array::from_fn(|row| {
                let steps = |number: usize| {
                    let byte = usize::from(byte(number * 3 + row));
                    f32::from(table[number * 2][byte & 15])
                        + f32::from(table[number * 2 + 1][byte >> 4])
                };
                let steps: f32 = (0..row_bytes).map(steps).sum();
                (steps * scales.step + scales.least) * factors[row] + slacks[row]
            });
            let bar = expected[usize::from(bar) % BLOCK_ROWS];
            for kernel in Kernel::available() {
                let mut found = [0.0; BLOCK_ROWS];
                let is_above = kernel.bounds(&table, &block, scales, bar, &mut found);
                assert_eq!(found, expected, "{kernel:?}");
                assert_eq!(is_above, expected.iter().any(|one| *one > bar), "{kernel:?}");
                let reaching = kernel.reaching(&found, bar);
                for (row, bound) in expected.iter().enumerate() {
                    assert_eq!(reaching >> row & 1 == 1, *bound >= bar, "{kernel:?}, row {row}");
                }
            }
            TestResult::passed()
        }
        quickcheck(law as fn(Vec<u8>, u8, u8) -> TestResult);
    }
}
