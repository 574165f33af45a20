//! Means over seeds, and paired bootstrap intervals of the difference between two arms.

use super::dice::Dice;

/// Number of resamples.
const RESAMPLES: usize = 4_000;

/// A mean with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over the seeds.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Bootstrap over seeds; values that are no number are left out. `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return None;
        }
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let mut dice = Dice::new(1, &[values.len() as u64]);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<f64> = values.iter().map(|_| *dice.pick(&values)).collect();
                mean(&drawn)
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
        Some(Self { mean: mean(&values), low: at(0.025), high: at(0.975) })
    }

    /// The difference `arm - reference`, seed by seed.
    pub fn of_difference(arm: &[f64], reference: &[f64]) -> Option<Self> {
        let pairs: Vec<f64> = arm.iter().zip(reference).map(|(a, b)| a - b).collect();
        Self::of(&pairs)
    }

    /// Whether the interval excludes 0.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    #[test]
    fn an_equal_difference_on_every_seed_is_clear_however_much_seeds_differ() {
        let reference: Vec<f64> = (0..20).map(|n| f64::from(n) / 10.0).collect();
        let arm: Vec<f64> = reference.iter().map(|value| value + 0.01).collect();
        let found = Estimate::of_difference(&arm, &reference).unwrap();
        assert!(found.is_clear() && (found.mean - 0.01).abs() < 1e-9, "{found:?}");
        let whole = Estimate::of(&reference).unwrap();
        assert!(whole.low < whole.mean && whole.mean < whole.high);
        assert_eq!(Estimate::of(&[f64::NAN]), None);
    }
}
