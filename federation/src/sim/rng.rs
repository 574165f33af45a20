//! Random numbers from a seed: SplitMix64, written out here.
//!
//! A failing seed must fail again after years, with the libraries of that time, so the generator is
//! implemented here and checked against golden numbers. It is good enough for simulations and
//! unsuitable for secrets.

use std::ops::RangeInclusive;

/// A stream of numbers that depends only on its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Random(u64);

impl Random {
    /// Starts the stream of a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of the stream.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The upper half of the product has a bias below end / 2^64, which no test can detect.
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// A uniform number in a range; its start if the range is empty.
    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let width = range.end().saturating_sub(*range.start());
        match width.checked_add(1) {
            Some(count) => range.start() + self.below(count),
            None => self.number(),
        }
    }

    /// True with this probability. Always draws a number.
    pub(super) fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < u64::from(thousandths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_matches_splitmix64() {
        let mut random = Random::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| random.number()).collect();
        let golden = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, golden);
    }

    #[test]
    fn a_range_yields_exactly_its_numbers() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[random.within(3..=9) as usize] += 1;
        }
        assert_eq!(seen[..3], [0; 3]);
        assert!(seen[3..].iter().all(|count| (1_200..1_700).contains(count)), "{seen:?}");
        assert_eq!((random.below(0), random.within(5..=5)), (0, 5));
        random.within(0..=u64::MAX);
    }

    #[test]
    fn probabilities_zero_and_one_are_exact() {
        let mut random = Random::new(2);
        assert!((0..1000).all(|_| !random.happens(0)));
        assert!((0..1000).all(|_| random.happens(1000)));
    }
}
