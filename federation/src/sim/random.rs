//! Numbers from a seed: SplitMix64, in a few lines of our own.
//!
//! A trace that failed must fail again after years, with whatever libraries the build then has, so
//! the generator is written out here and golden numbers hold it. It is good enough for dice, and
//! for nothing that has to be secret.

use std::ops::RangeInclusive;

/// A stream of numbers that depends on its seed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, each as likely as the others; 0 if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The upper half of a product is uneven by less than end / 2^64, which no test can see.
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// A number of a range; its start if it is empty.
    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let width = range.end().saturating_sub(*range.start());
        match width.checked_add(1) {
            Some(count) => range.start() + self.below(count),
            None => self.number(),
        }
    }

    /// Whether something of this likelihood happens. Draws a number in any case.
    pub(super) fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < u64::from(thousandths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
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
    fn every_number_of_a_range_comes_up_and_no_other() {
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
    fn likelihoods_are_kept_at_both_ends() {
        let mut random = Random::new(2);
        assert!((0..1000).all(|_| !random.happens(0)));
        assert!((0..1000).all(|_| random.happens(1000)));
    }
}
