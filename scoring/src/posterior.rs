//! A Beta posterior: what a number of successes and failures says about a rate.
//!
//! Separate because confidence, trust and ranking read the same three figures from it: the mean, the
//! mass, and the exact lower quantile. The lower quantile is what makes ignorance cost something: a
//! mean cannot tell one lucky observation from a hundred.

use statrs::distribution::{Beta, ContinuousCDF};

/// The share below the lower bound: the rate is above it with 90 % credibility.
pub const LOWER_QUANTILE: f64 = 0.10;

/// The bounds of a shape parameter; within them the quantile is computed exactly.
const SHAPE_MIN: f64 = 1e-3;
const SHAPE_MAX: f64 = 1e9;

/// Beta(α, β) with both parameters positive and finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posterior {
    alpha: f64,
    beta: f64,
}

impl Posterior {
    /// Beta(`alpha`, `beta`); what lies outside the computable range is brought to its border.
    #[must_use]
    pub fn new(alpha: f64, beta: f64) -> Posterior {
        Posterior { alpha: shape(alpha), beta: shape(beta) }
    }

    /// What speaks for it, prior included.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// What speaks against it, prior included.
    #[must_use]
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// α + β: how much stands behind the mean, prior included.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.alpha + self.beta
    }

    /// α / (α + β).
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.alpha / self.mass()
    }

    /// The 10 % quantile. Microseconds, now and then hundreds of them: keep it, do not recompute it.
    #[must_use]
    pub fn lower_bound(&self) -> f64 {
        self.quantile(LOWER_QUANTILE)
    }

    /// The rate that the posterior exceeds with probability `1 - share`.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let beta = Beta::new(self.alpha, self.beta).expect("shapes are positive and finite");
        beta.inverse_cdf(crate::unit::unit(share))
    }
}

/// The 10 % quantile of Beta(`alpha`, `beta`).
#[must_use]
pub fn q10(alpha: f64, beta: f64) -> f64 {
    Posterior::new(alpha, beta).lower_bound()
}

fn shape(value: f64) -> f64 {
    if value.is_nan() { SHAPE_MIN } else { value.clamp(SHAPE_MIN, SHAPE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::{Posterior, q10};

    #[test]
    fn the_lower_bound_is_the_exact_ten_percent_quantile() {
        for (alpha, beta, expect) in [
            (1.0, 1.0, 0.1000),
            (2.0, 1.0, 0.3162),
            (4.0, 1.0, 0.5623),
            (11.0, 1.0, 0.8111),
            (11.0, 3.0, 0.6402),
            (1.0, 3.0, 0.0345),
            (5.0, 5.0, 0.3010),
        ] {
            let given = q10(alpha, beta);
            assert!((given - expect).abs() < 5e-5, "q10({alpha}, {beta}) = {given}");
        }
        // With β = 1 the quantile is 0.1^(1/α) in closed form.
        for alpha in [1.0_f64, 1.5, 3.0, 20.0, 400.0] {
            let given = q10(alpha, 1.0);
            assert!((given - 0.1_f64.powf(1.0 / alpha)).abs() < 1e-9, "q10({alpha}, 1) = {given}");
        }
    }

    #[test]
    fn the_lower_bound_rises_with_successes_and_falls_with_failures() {
        let steps = [1.0, 1.01, 1.5, 2.0, 3.0, 5.0, 8.0, 20.0, 60.0, 150.0];
        for pair in steps.windows(2) {
            for other in steps {
                assert!(q10(pair[0], other) < q10(pair[1], other), "α {pair:?}, β {other}");
                assert!(q10(other, pair[0]) > q10(other, pair[1]), "β {pair:?}, α {other}");
            }
        }
    }

    #[test]
    fn extreme_shapes_give_a_rate_between_zero_and_one() {
        for alpha in [0.0, f64::NAN, 1e-9, 1.0, 1e6, 1e9, f64::INFINITY] {
            for beta in [-3.0, 1.0, 1e6, 1e12] {
                let posterior = Posterior::new(alpha, beta);
                for value in [posterior.mean(), posterior.lower_bound()] {
                    assert!((0.0..=1.0).contains(&value), "Beta({alpha}, {beta}): {value}");
                }
            }
        }
        let narrow = Posterior::new(1e6, 1e6);
        assert!((narrow.lower_bound() - 0.5).abs() < 1e-3);
    }
}
