//! Calibration of an embedding model: how to interpret its cosines.
//!
//! One model gives unrelated texts a cosine of 0, another 0.7. Separate because it is the only part
//! of relevance that depends on the model: the built-in table has measured numbers, any other model
//! gets its own from a sample of cosines.

use crate::clamp_to_unit::unit;

/// Smallest sample of cosines from which a model is calibrated.
pub const SAMPLE_COSINES_MIN: usize = 200;
/// Lower bound of the spread, to avoid a division by zero for a model that gives equal cosines.
const SPREAD_MIN: f64 = 0.001;

/// Interpretation of a model's cosines, and the thresholds for an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Median cosine of unrelated texts: at or below it, the meaning is 0.
    pub unrelated: f64,
    /// Distance from that median down to the 16th percentile of the cosines.
    pub spread: f64,
    /// Smallest relevance worth an answer in a store of one entry.
    pub answer_min: f64,
    /// Increase of `answer_min` for each tenfold number of entries.
    pub answer_min_per_tenfold: f64,
    /// Smallest relevance worth an answer if only keywords answer.
    pub keywords_min: f64,
    /// Increase of `keywords_min` for each tenfold number of entries.
    pub keywords_min_per_tenfold: f64,
}

impl Calibration {
    /// Calibration of the built-in embedding table.
    pub const BUILT_IN: Calibration = Calibration {
        unrelated: 0.0,
        spread: 0.08,
        answer_min: 0.27,
        answer_min_per_tenfold: 0.07,
        keywords_min: 0.12,
        keywords_min_per_tenfold: 0.045,
    };

    /// Calibrates a model from the cosines between randomly picked entries, in any order.
    ///
    /// Most such pairs are unrelated, and the few related ones lie above: so the median is the
    /// unrelated level, and the distance down to the 16th percentile is the spread. Cosines are
    /// then read in units of the spread, as for the built-in table, so that its thresholds apply.
    /// `None` if the sample is too small.
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

    /// Similarity of meaning, in [0, 1]: 0 at the level of unrelated texts. Cosines that lie the
    /// same number of spreads above that level give the same meaning for every model.
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
    fn cosines_are_read_in_units_of_the_models_spread() {
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
