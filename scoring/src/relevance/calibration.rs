//! What must be known of an embedding model before its cosines mean anything.
//!
//! One model gives unrelated texts a cosine of 0, another 0.7; what is near for one is far for the
//! other. Separate because it is the only part of relevance that a model changes: the built-in table
//! has measured numbers, any other model gets its own from a sample of cosines.

use crate::unit::unit;

/// Fewer cosines say too little about a model.
pub const SAMPLE_COSINES_MIN: usize = 200;
/// A model that tells nothing apart must not be divided by.
const SPREAD_MIN: f64 = 0.001;

/// How to read a model's cosines, and what is worth an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The median cosine of unrelated texts: at or below it, the meaning says nothing.
    pub unrelated: f64,
    /// How far below that median the lowest sixth of the cosines begins.
    pub spread: f64,
    /// The least relevance worth an answer in a store of one entry.
    pub answer_min: f64,
    /// What tenfold as many entries add to it.
    pub answer_min_per_tenfold: f64,
    /// The same where keywords answer alone.
    pub keywords_min: f64,
    /// What tenfold as many entries add to that.
    pub keywords_min_per_tenfold: f64,
}

impl Calibration {
    /// Of the built-in embedding table.
    pub const BUILT_IN: Calibration = Calibration {
        unrelated: 0.0,
        spread: 0.08,
        answer_min: 0.27,
        answer_min_per_tenfold: 0.07,
        keywords_min: 0.12,
        keywords_min_per_tenfold: 0.045,
    };

    /// Of a model whose cosines between entries picked at random are these, in any order.
    ///
    /// Most such pairs are unrelated, and the few that are not only reach upwards: so the median is
    /// the unrelated level, and the distance down to the lowest sixth is the spread. The cosine is
    /// then read in units of the spread, as the built-in table's is, and its thresholds hold. None
    /// where the sample is too small.
    #[must_use]
    pub fn of_sample(cosines: &[f64]) -> Option<Calibration> {
        let mut sorted: Vec<f64> = cosines.iter().copied().filter(|one| one.is_finite()).collect();
        if sorted.len() < SAMPLE_COSINES_MIN {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (unrelated, low) = (sorted[sorted.len() / 2], sorted[sorted.len() * 16 / 100]);
        let spread = (unrelated - low).max(SPREAD_MIN);
        Some(Calibration { unrelated, spread, ..Calibration::BUILT_IN })
    }

    /// How near the meaning is, in [0, 1]: 0 at the level of unrelated texts, and of every cosine
    /// the same for every model that is as many spreads above that level.
    #[must_use]
    pub fn meaning(&self, cosine: f64) -> f64 {
        let scale = Calibration::BUILT_IN.spread / self.spread.max(SPREAD_MIN);
        unit((cosine - self.unrelated) * scale)
    }
}

#[cfg(test)]
mod tests {
    use super::{Calibration, SAMPLE_COSINES_MIN};

    #[test]
    fn a_model_is_read_in_units_of_its_own_spread() {
        // Unrelated texts between 0.6 and 0.8, and a related tail that must not count.
        let mut cosines: Vec<f64> = (0..=900).map(|at| 0.6 + 0.2 * f64::from(at) / 900.0).collect();
        cosines.extend([0.95; 100]);
        let made = Calibration::of_sample(&cosines).unwrap();
        assert!((made.unrelated - 0.711).abs() < 0.002, "{made:?}");
        assert!((made.spread - 0.075).abs() < 0.003, "{made:?}");
        assert_eq!(made.meaning(0.6), 0.0);
        assert!((made.meaning(0.9) - 0.2).abs() < 0.01, "{}", made.meaning(0.9));
        cosines.reverse();
        assert_eq!(Calibration::of_sample(&cosines), Some(made));
    }

    #[test]
    fn a_small_sample_gives_no_calibration_and_equal_cosines_no_infinity() {
        assert_eq!(Calibration::of_sample(&[0.1; SAMPLE_COSINES_MIN - 1]), None);
        assert_eq!(Calibration::of_sample(&[f64::NAN; SAMPLE_COSINES_MIN]), None);
        let made = Calibration::of_sample(&[0.5; SAMPLE_COSINES_MIN]).unwrap();
        assert_eq!((made.meaning(0.5), made.meaning(1.0)), (0.0, 1.0));
    }

    #[test]
    fn the_built_in_cosine_is_the_meaning_itself() {
        for (cosine, expect) in [(-0.3, 0.0), (0.0, 0.0), (0.4, 0.4), (1.1, 1.0), (f64::NAN, 0.0)] {
            assert_eq!(Calibration::BUILT_IN.meaning(cosine), expect, "{cosine}");
        }
    }
}
