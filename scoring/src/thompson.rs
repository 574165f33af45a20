//! A sample from an entry's confidence, the same every time for the same query and entry.
//!
//! Sampling gives the uncertain a chance now and then; seeding makes an answer repeatable and
//! explainable. Separate because it is the only place in judgement that looks like chance. It draws
//! none: the seed is an argument.

use crate::posterior::Posterior;
use klnode_crdt::ids::EntryId;

/// How the confidence of a candidate becomes a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One sample per query and entry, fixed by the seed of the query.
    Seeded(u64),
    /// The mean, for answers that must not depend on a query id.
    Mean,
}

/// The signal of `entry` whose confidence is `posterior`, in [0, 1].
#[must_use]
pub fn sample(posterior: &Posterior, entry: EntryId, sampling: Sampling) -> f64 {
    match sampling {
        Sampling::Mean => posterior.mean(),
        Sampling::Seeded(seed) => posterior.quantile(share(seed, entry)),
    }
}

/// A number strictly between 0 and 1, spread evenly over seeds and entries.
fn share(seed: u64, entry: EntryId) -> f64 {
    let bytes = u128::from_le_bytes(*entry.as_bytes());
    // Each half of the id is mixed in on its own: an exclusive or of the two halves would give the
    // same share to every id whose halves are swapped.
    let low = SplitMix64(seed ^ (bytes as u64)).next();
    let high = SplitMix64(low ^ ((bytes >> 64) as u64)).next();
    unit_open(high)
}

/// The upper 53 bits of `bits` as a number strictly between 0 and 1.
fn unit_open(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The generator of Steele, Lea and Flood: one addition and one mixing step for each number.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    /// The next 64 bits.
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
    /// A number below `limit`, for the seeded loops of tests.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (self.next() % u64::from(limit)) as u32
    }

    /// A number strictly between 0 and 1, for the seeded loops of tests.
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
    fn a_sample_depends_on_the_query_and_on_the_entry_and_on_nothing_else() {
        let posterior = Posterior::new(5.0, 5.0);
        let of = |seed, entry| {
            sample(&posterior, EntryId::from_bytes([entry; 16]), Sampling::Seeded(seed))
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
    fn samples_spread_around_the_mean_as_the_posterior_does() {
        for (alpha, beta, mean, deviation) in [(5.0, 5.0, 0.5, 0.1508), (30.0, 10.0, 0.75, 0.0676)]
        {
            let posterior = Posterior::new(alpha, beta);
            let samples: Vec<f64> = (0..4_000)
                .map(|seed| {
                    sample(&posterior, EntryId::from_bytes([3; 16]), Sampling::Seeded(seed))
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
        assert_eq!(sample(&posterior, EntryId::from_bytes([0; 16]), Sampling::Mean), 0.75);
    }
}
