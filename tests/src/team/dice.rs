//! Seeded random choices of the replay.
//!
//! Each decision draws from a stream of its own, named by the decision's place in the replay. So two
//! arms of an experiment see the same world, the same questions and the same moods of the agents,
//! however many numbers one of them draws.

use crate::test_engine::Seeded;

/// A stream of random choices.
#[derive(Clone, Debug)]
pub struct Dice(Seeded);

impl Dice {
    /// The stream of a seed and a place.
    pub fn new(seed: u64, place: &[u64]) -> Self {
        let mut mixed = Seeded(seed ^ 0x7465_616D);
        for part in place {
            mixed = Seeded(mixed.next_u64() ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        }
        Self(Seeded(mixed.next_u64()))
    }

    /// A number in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// A number below `bound`, which is greater than 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a length");
        usize::try_from(self.0.below(bound)).expect("below a length")
    }

    /// One of several values.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A waiting time in days with this mean, at least one day.
    pub fn days(&mut self, mean: f64) -> u32 {
        let drawn = -mean * (1.0 - self.share()).ln();
        drawn.clamp(1.0, 10_000.0) as u32
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}
