//! Means and other statistics over seeds with bootstrap intervals, also of the difference between two
//! arms, seed by seed.

use super::dice::Dice;

/// Number of resamples.
const RESAMPLES: usize = 4_000;

/// A mean with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over the seeds, or the statistic of all seeds.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Bootstrap over the values of seeds; values that are no number are left out. `None` without
    /// values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mean =
            |drawn: &[usize]| drawn.iter().map(|at| values[*at]).sum::<f64>() / drawn.len() as f64;
        Self::of_statistic(values.len(), mean)
    }

    /// Bootstrap of a statistic over seeds; it is given the places of the drawn seeds. `None`
    /// without seeds, or if the statistic of all seeds is no number.
    pub fn of_statistic(seeds: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<Self> {
        let places: Vec<usize> = (0..seeds).collect();
        let whole = Some(statistic(&places)).filter(|of| seeds > 0 && of.is_finite())?;
        let mut dice = Dice::new(1, &[seeds as u64]);
        let mut resampled: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<usize> = places.iter().map(|_| *dice.pick(&places)).collect();
                statistic(&drawn)
            })
            .collect();
        resampled.sort_by(f64::total_cmp);
        let at = |share: f64| resampled[((RESAMPLES - 1) as f64 * share).round() as usize];
        Some(Self { mean: whole, low: at(0.025), high: at(0.975) })
    }

    /// The difference `arm - reference`, seed by seed.
    pub fn of_difference(arm: &[f64], reference: &[f64]) -> Option<Self> {
        let pairs: Vec<f64> = arm.iter().zip(reference).map(|(a, b)| a - b).collect();
        Self::of(&pairs)
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
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
