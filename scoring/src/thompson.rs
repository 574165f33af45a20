//! Thompson sample of an entry's confidence, repeatable for the same seed and entry.
//!
//! Sampling ranks an entry with little evidence higher in some tasks and lower in others; the seed
//! makes an answer repeatable and explainable. An entry without evidence is not sampled: its sample
//! would be noise of the prior. Separate because it is the only scoring rule with pseudo-random
//! values. It draws no randomness itself: the seed is an argument.

use crate::posterior::Posterior;
use klnode_crdt::ids::EntryId;

/// How the confidence of a candidate becomes a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One sample per seed and entry; the seed stands for a task or a session.
    Seeded(u64),
    /// The mean, for answers that must not depend on a seed.
    Mean,
}

/// The signal of `entry` in [0, 1]: a sample of `posterior`, which rests on `observations`
/// effective observations.
///
/// Without an observation it is the mean. Below one observation the deviation from the mean is
/// scaled down in proportion, so that decaying evidence does not turn into noise.
#[must_use]
pub fn sample(posterior: &Posterior, observations: f64, entry: EntryId, sampling: Sampling) -> f64 {
    let mean = posterior.mean();
    match sampling {
        Sampling::Seeded(seed) if observations > 0.0 => {
            let deviation = posterior.quantile(share(seed, entry)) - mean;
            mean + deviation * observations.min(1.0)
        }
        Sampling::Seeded(_) | Sampling::Mean => mean,
    }
}

/// Value strictly between 0 and 1, uniform over seeds and entries.
fn share(seed: u64, entry: EntryId) -> f64 {
    let bytes = u128::from_le_bytes(*entry.as_bytes());
    // Each half of the id is mixed in on its own: XOR of the two halves would give the same value
    // to every id whose halves are swapped.
    let low = SplitMix64(seed ^ (bytes as u64)).next();
    let high = SplitMix64(low ^ ((bytes >> 64) as u64)).next();
    unit_open(high)
}

/// Upper 53 bits of `bits` as a number strictly between 0 and 1.
fn unit_open(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// SplitMix64 generator of Steele, Lea and Flood: one addition and one mixing step per number.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
impl SplitMix64 {
    /// Number below `limit`, for the seeded loops of tests.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (self.next() % u64::from(limit)) as u32
    }

    /// Number strictly between 0 and 1, for the seeded loops of tests.
    pub(crate) fn share(&mut self) -> f64 {
        unit_open(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::{Sampling, SplitMix64, sample, share};
    use crate::posterior::Posterior;
    use klnode_crdt::ids::EntryId;

    #[test]
    fn the_generator_gives_its_published_sequence() {
        let mut generator = SplitMix64(1_234_567);
        let expect = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([generator.next(), generator.next()], expect);
    }

    #[test]
    fn a_sample_depends_only_on_the_seed_and_the_entry() {
        let posterior = Posterior::new(5.0, 5.0);
        let of = |seed, entry| {
            sample(&posterior, 9.0, EntryId::from_bytes([entry; 16]), Sampling::Seeded(seed))
        };
        assert_eq!(of(7, 1), of(7, 1));
        assert_ne!(of(7, 1), of(8, 1));
        assert_ne!(of(7, 1), of(7, 2));
        let mut swapped = [0; 16];
        swapped[..8].fill(1);
        let mut halves = [0; 16];
        halves[8..].fill(1);
        assert_ne!(share(7, EntryId::from_bytes(swapped)), share(7, EntryId::from_bytes(halves)));
    }

    #[test]
    fn samples_follow_the_distribution_of_the_posterior() {
        for (alpha, beta, mean, deviation) in [(5.0, 5.0, 0.5, 0.1508), (30.0, 10.0, 0.75, 0.0676)]
        {
            let posterior = Posterior::new(alpha, beta);
            let samples: Vec<f64> = (0..4_000)
                .map(|seed| {
                    sample(&posterior, 9.0, EntryId::from_bytes([3; 16]), Sampling::Seeded(seed))
                })
                .collect();
            let count = samples.len() as f64;
            let average = samples.iter().sum::<f64>() / count;
            let variance = samples.iter().map(|x| (x - average).powi(2)).sum::<f64>() / count;
            assert!((average - mean).abs() < 0.01, "mean {average}");
            assert!((variance.sqrt() - deviation).abs() < 0.01, "deviation {}", variance.sqrt());
        }
    }

    #[test]
    fn without_a_seed_the_sample_is_the_mean() {
        let posterior = Posterior::new(6.0, 2.0);
        assert_eq!(sample(&posterior, 9.0, EntryId::from_bytes([0; 16]), Sampling::Mean), 0.75);
    }

    #[test]
    fn without_an_observation_the_sample_is_the_mean_and_little_evidence_deviates_little() {
        let posterior = Posterior::new(6.0, 2.0);
        let of = |observations, seed| {
            let entry = EntryId::from_bytes([1; 16]);
            sample(&posterior, observations, entry, Sampling::Seeded(seed))
        };
        for seed in 0..50 {
            assert_eq!(of(0.0, seed), 0.75);
            let (whole, tenth) = (of(1.0, seed) - 0.75, of(0.1, seed) - 0.75);
            assert!((whole / 10.0 - tenth).abs() < 1e-9, "{whole} {tenth}");
            assert_eq!(of(1.0, seed), of(7.0, seed));
        }
    }
}
