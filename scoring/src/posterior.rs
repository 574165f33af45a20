//! Beta posterior over a success rate, given a number of successes and failures.
//!
//! Separate because confidence, trust and ranking read the same figures from it: the mean, the
//! mass, and the exact lower quantile. The lower quantile penalises little evidence: a mean cannot
//! tell one lucky observation from a hundred.
//!
//! The quantile is found by Newton's method between two bounds, over the incomplete beta function
//! of `statrs`. The inverse that `statrs` offers has no bounds and never returns for shapes as
//! lopsided as Beta(1, 1e7), which a counter can hold. Here a step that leaves the bounds, or that
//! is not at most half the one before, becomes a bisection of the bounds, and the number of steps
//! is limited.

use statrs::function::beta::{beta_reg, ln_beta};

use crate::clamp_to_unit::unit;

/// Probability mass below the lower bound: the rate is above it with 90 % credibility.
pub const LOWER_QUANTILE: f64 = 0.10;

/// Bounds to which a shape parameter is clamped.
const SHAPE_MIN: f64 = 1e-3;
const SHAPE_MAX: f64 = 1e12;
/// A greater mass is scaled down before a quantile is computed: beyond it the incomplete beta
/// function loses its precision, and the posterior is already too narrow for a visible difference.
const QUANTILE_MASS_MAX: f64 = 1e6;
/// Limit on the iterations: bisection alone needs about fifty, most shapes fewer than ten.
const STEPS_MAX: u32 = 100;
/// A shorter step ends the search: the next one would be lost in rounding.
const STEP_MIN: f64 = 1e-13;

/// Beta(α, β) with both parameters positive and finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posterior {
    alpha: f64,
    beta: f64,
}

impl Posterior {
    /// Beta(`alpha`, `beta`); values outside the computable range are clamped to it.
    #[must_use]
    pub fn new(alpha: f64, beta: f64) -> Posterior {
        Posterior { alpha: shape(alpha), beta: shape(beta) }
    }

    /// Evidence for, prior included.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Evidence against, prior included.
    #[must_use]
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// α + β: total evidence behind the mean, prior included.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.alpha + self.beta
    }

    /// α / (α + β), in (0, 1).
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.alpha / self.mass()
    }

    /// The 10 % quantile. It takes microseconds: keep the result instead of computing it for every
    /// hit.
    #[must_use]
    pub fn lower_bound(&self) -> f64 {
        self.quantile(LOWER_QUANTILE)
    }

    /// Rate that the posterior exceeds with probability `1 - share`.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let scale = (QUANTILE_MASS_MAX / self.mass()).min(1.0);
        solve(shape(self.alpha * scale), shape(self.beta * scale), unit(share))
    }
}

/// Rate at which the distribution function of Beta(`a`, `b`) reaches `share`.
fn solve(a: f64, b: f64, share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return share;
    }
    let ln_beta = ln_beta(a, b);
    let (mut low, mut high) = (0.0, 1.0);
    let mut rate = a / (a + b);
    let mut length = 1.0;
    for _ in 0..STEPS_MAX {
        let excess = beta_reg(a, b, rate) - share;
        if excess < 0.0 {
            low = rate;
        } else {
            high = rate;
        }
        let ln_density = (a - 1.0) * rate.ln() + (b - 1.0) * (-rate).ln_1p() - ln_beta;
        let newton = rate - excess / ln_density.exp();
        let is_useful = low < newton && newton < high && (newton - rate).abs() < length / 2.0;
        let next = if is_useful { newton } else { f64::midpoint(low, high) };
        length = (next - rate).abs();
        rate = next;
        if length < STEP_MIN {
            break;
        }
    }
    rate
}

fn shape(value: f64) -> f64 {
    if value.is_nan() { SHAPE_MIN } else { value.clamp(SHAPE_MIN, SHAPE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::Posterior;

    /// The 10 % quantile of Beta(`alpha`, `beta`).
    fn q10(alpha: f64, beta: f64) -> f64 {
        Posterior::new(alpha, beta).lower_bound()
    }

    #[test]
    fn the_lower_bound_is_the_exact_ten_percent_quantile() {
        for (alpha, beta, expect) in [
            (1.0, 1.0, 0.100_000),
            (2.0, 1.0, 0.316_228),
            (4.0, 1.0, 0.562_341),
            (11.0, 1.0, 0.811_131),
            (11.0, 3.0, 0.640_224),
            (1.0, 3.0, 0.034_511),
            (5.0, 5.0, 0.300_969),
        ] {
            let given = q10(alpha, beta);
            assert!((given - expect).abs() < 1e-6, "q10({alpha}, {beta}) = {given}");
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
    fn the_density_below_the_lower_bound_integrates_to_a_tenth() {
        // By Simpson's rule over the density, without the incomplete beta function.
        for (alpha, beta) in [(1.5, 2.5), (5.0, 5.0), (13.0, 7.0), (101.0, 11.0), (900.0, 1_100.0)]
        {
            let ln = |x: f64| (alpha - 1.0) * x.ln() + (beta - 1.0) * (-x).ln_1p();
            let peak = ln((alpha - 1.0) / (alpha + beta - 2.0));
            let integral = |from: f64, to: f64| {
                let intervals = 20_000_u32;
                let width = (to - from) / f64::from(intervals);
                let term = |i: u32| {
                    let factor = match i {
                        0 => 1.0,
                        i if i == intervals => 1.0,
                        i if i % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    factor * (ln(from + f64::from(i) * width) - peak).exp()
                };
                (0..=intervals).map(term).sum::<f64>() * width / 3.0
            };
            let bound = q10(alpha, beta);
            let share = integral(0.0, bound) / (integral(0.0, bound) + integral(bound, 1.0));
            assert!((share - 0.1).abs() < 1e-6, "Beta({alpha}, {beta}): {share} below {bound}");
        }
    }

    #[test]
    fn quantiles_are_exact_for_all_shapes() {
        let shapes = [1.0, 1.02, 1.7, 5.0, 31.0, 200.0, 3_000.0, 40_000.0];
        for alpha in shapes {
            for beta in shapes {
                for share in [1e-9, 1e-3, 0.1, 0.5, 0.93, 0.9999] {
                    let rate = Posterior::new(alpha, beta).quantile(share);
                    let given = statrs::function::beta::beta_reg(alpha, beta, rate);
                    let error = (given - share).abs();
                    assert!(error < 1e-6, "Beta({alpha}, {beta}) at {share}: {rate}, off {error}");
                }
            }
        }
    }

    #[test]
    fn lopsided_and_extreme_shapes_give_a_rate_between_zero_and_one() {
        for alpha in [0.0, f64::NAN, 1e-9, 1.0, 1e6, 1e9, f64::INFINITY] {
            for beta in [-3.0, 1.0, 1e6, 1e12] {
                let posterior = Posterior::new(alpha, beta);
                for value in [posterior.mean(), posterior.lower_bound()] {
                    assert!((0.0..=1.0).contains(&value), "Beta({alpha}, {beta}): {value}");
                }
            }
        }
        // Without the limit on the mass both would come out above their mean.
        for (alpha, beta) in [(1e9, 1e9), (1e9, 1e8)] {
            let narrow = Posterior::new(alpha, beta);
            let below = narrow.mean() - narrow.lower_bound();
            assert!(0.0 < below && below < 1e-3, "Beta({alpha}, {beta}): {below} below its mean");
        }
        let lopsided = Posterior::new(1.0, 1e7);
        assert!(lopsided.lower_bound() < 1e-6);
    }
}
