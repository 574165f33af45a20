//! Dot products of int8 codes, as fast as memory delivers them: the one place of the index with
//! `unsafe`, and nothing but arithmetic.
//!
//! Codes stand in words of eight, rows in whole cache [`Line`]s padded with zeros, so no kernel has
//! a tail to treat. All kernels are exact for every code from -128 to 127 and give the same sums;
//! a test compares each with the obvious loop. Which one runs is decided once, by what the
//! processor has.

use std::sync::OnceLock;

/// How many codes a line holds.
pub(super) const LINE_CODES: usize = 64;

/// How many codes a word holds.
pub(super) const WORD_CODES: usize = 8;

const LINE_WORDS: usize = LINE_CODES / WORD_CODES;

/// 64 codes in one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line([u64; LINE_WORDS]);

impl Line {
    /// The line a row is padded with.
    pub(super) const ZERO: Self = Self([0; LINE_WORDS]);
}

/// How many lines hold this many codes.
pub(super) const fn lines_of(codes: usize) -> usize {
    codes.div_ceil(LINE_CODES)
}

/// Writes codes, as bytes, to the front of lines that are all zeros.
pub(super) fn pack(codes: &[u8], lines: &mut [Line]) {
    for (line, codes) in lines.iter_mut().zip(codes.chunks(LINE_CODES)) {
        for (word, codes) in line.0.iter_mut().zip(codes.chunks(WORD_CODES)) {
            // All but the last word are whole, and quicker to take as such.
            let bytes = codes.try_into().unwrap_or_else(|_| {
                let mut bytes = [0; WORD_CODES];
                bytes[..codes.len()].copy_from_slice(codes);
                bytes
            });
            *word = u64::from_le_bytes(bytes);
        }
    }
}

/// The upper halves of a row's codes, with the highest bit flipped so that they count from 0 to 15.
/// Each line holds those of two lines: the first in its lower halves, the second in its upper.
pub(super) fn upper_halves(row: &[Line], halves: &mut [Line]) {
    const FLIP: u64 = 0x8080_8080_8080_8080;
    const LOWER: u64 = 0x0F0F_0F0F_0F0F_0F0F;
    for (two, halves) in row.chunks(2).zip(halves) {
        let (first, second) = (two[0], two.get(1).copied().unwrap_or(Line::ZERO));
        for ((half, first), second) in halves.0.iter_mut().zip(first.0).zip(second.0) {
            *half = ((first ^ FLIP) >> 4 & LOWER) | ((second ^ FLIP) & !LOWER);
        }
    }
}

/// The words of lines.
#[expect(unsafe_code, reason = "a line is eight words and nothing else")]
pub(super) fn words(lines: &[Line]) -> &[u64] {
    // SAFETY: `Line` is `repr(C)` around eight words, with the same size and a stricter alignment,
    // so `n` lines are `8 n` initialised words, borrowed for as long as the lines are.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LINE_WORDS) }
}

/// A way to multiply, best last.
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
    /// Those that this processor can run.
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

    /// The best of them.
    pub(super) fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::Portable))
    }

    /// The dot product of two rows of equally many lines.
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

    /// The products of a query with the [`upper_halves`] of as many rows as `out` has places. The
    /// rows follow each other without a gap; the query has twice as many lines as each.
    #[expect(unsafe_code, reason = "a call into code for a processor that was asked for it")]
    pub(super) fn halves(self, query: &[u64], rows: &[u64], out: &mut [i32]) {
        match self {
            Self::Portable => portable::halves(query, rows, out),
            // SAFETY: `available` made this value after seeing that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::halves(query, rows, out) },
            // SAFETY: likewise, AVX-512 F, BW and VNNI.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { avx512::halves(query, rows, out) },
        }
    }
}

mod portable {
    //! For processors without a kernel of their own.

    use super::{LINE_WORDS, WORD_CODES};

    pub(super) fn halves(query: &[u64], rows: &[u64], out: &mut [i32]) {
        const LOWER: u64 = 0x0F0F_0F0F_0F0F_0F0F;
        let words = (query.len() / 2).max(LINE_WORDS);
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(words)) {
            let lines = row.chunks_exact(LINE_WORDS).zip(query.chunks_exact(LINE_WORDS * 2));
            let product = |(line, two): (&[u64], &[u64])| {
                let (mut lower, mut upper) = ([0; LINE_WORDS], [0; LINE_WORDS]);
                for (at, word) in line.iter().enumerate() {
                    (lower[at], upper[at]) = (word & LOWER, word >> 4 & LOWER);
                }
                dot(&lower, &two[..LINE_WORDS]) + dot(&upper, &two[LINE_WORDS..])
            };
            *out = lines.map(product).sum();
        }
    }

    pub(super) fn dot(left: &[u64], right: &[u64]) -> i32 {
        let mut sums = [0_i32; WORD_CODES];
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (left.to_le_bytes(), right.to_le_bytes());
            for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
                let product = i16::from(left.cast_signed()) * i16::from(right.cast_signed());
                // Cannot wrap below 131,072 codes; saying so keeps the overflow check, which
                // would stop the vectoriser, out of the loop.
                *sum = sum.wrapping_add(i32::from(product));
            }
        }
        sums.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Both sides widened to 16 bits, multiplied, and added in pairs: exact for every code.

    use super::LINE_WORDS;
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
    pub(super) fn halves(query: &[u64], rows: &[u64], out: &mut [i32]) {
        const QUARTER: usize = LINE_WORDS / 2;
        let (mask, ones) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi16(1));
        let words = (query.len() / 2).max(LINE_WORDS);
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(words)) {
            let mut sum = _mm256_setzero_si256();
            let lines = row.chunks_exact(LINE_WORDS).zip(query.chunks_exact(LINE_WORDS * 2));
            for (line, two) in lines {
                let (first, second) = two.split_at(LINE_WORDS);
                for at in [0, QUARTER] {
                    let part = load(&line[at..][..QUARTER]);
                    let lower = _mm256_and_si256(part, mask);
                    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(part), mask);
                    // At most 15 · 128 · 2 in each: far from what 16 bits hold.
                    let lower = _mm256_maddubs_epi16(lower, load(&first[at..][..QUARTER]));
                    let upper = _mm256_maddubs_epi16(upper, load(&second[at..][..QUARTER]));
                    let both = _mm256_add_epi16(lower, upper);
                    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(both, ones));
                }
            }
            *out = total(sum);
        }
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

    use super::LINE_WORDS;
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
    pub(super) fn halves(query: &[u64], rows: &[u64], out: &mut [i32]) {
        let mask = _mm512_set1_epi8(0x0F);
        let words = (query.len() / 2).max(LINE_WORDS);
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(words)) {
            let mut sums = [_mm512_setzero_si512(); 2];
            let lines = row.chunks_exact(LINE_WORDS).zip(query.chunks_exact(LINE_WORDS * 2));
            for (line, two) in lines {
                let line = load(line);
                let lower = _mm512_and_si512(line, mask);
                let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(line), mask);
                sums[0] = _mm512_dpbusd_epi32(sums[0], lower, load(&two[..LINE_WORDS]));
                sums[1] = _mm512_dpbusd_epi32(sums[1], upper, load(&two[LINE_WORDS..]));
            }
            *out = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
        }
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

    fn packed(codes: &[i8]) -> Vec<Line> {
        let mut lines = vec![Line::ZERO; lines_of(codes.len())];
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
    fn every_kernel_is_exact_at_every_length_and_at_the_extremes() {
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
    fn every_kernel_is_exact_on_any_codes() {
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
    fn upper_halves_multiply_as_the_obvious_loop_says() {
        fn law(seed: u8, count: u8, lines: u8) -> TestResult {
            let (count, lines) = (usize::from(count % 23), usize::from(lines % 7) + 1);
            let code = |row: usize, at: usize| {
                (row.wrapping_mul(131) ^ at.wrapping_mul(77) ^ usize::from(seed)) as u8 as i8
            };
            let row = |row| (0..lines * LINE_CODES).map(|at| code(row, at)).collect::<Vec<i8>>();
            let upper = |code: &i8| ((i16::from(*code) + 128) / 16) as i8;
            let query = row(1000);
            let product = |at| naive(&query, &row(at).iter().map(upper).collect::<Vec<i8>>());
            let expected: Vec<i32> = (0..count).map(product).collect();
            let mut block = vec![Line::ZERO; lines.div_ceil(2) * count];
            for (at, halves) in block.chunks_exact_mut(lines.div_ceil(2)).enumerate() {
                upper_halves(&packed(&row(at)), halves);
            }
            let mut even = packed(&query);
            even.resize(lines.next_multiple_of(2), Line::ZERO);
            for kernel in Kernel::available() {
                let mut found = vec![0; count];
                kernel.halves(words(&even), words(&block), &mut found);
                assert_eq!(found, expected, "{kernel:?}");
            }
            TestResult::passed()
        }
        quickcheck(law as fn(u8, u8, u8) -> TestResult);
    }
}
