//! The closed interval from 0 to 1, in which every signal and every weight lies.
//!
//! Separate because every rule needs it for its inputs: a value from outside is clamped to the
//! interval before use, so that no single input can outvote all others.

/// Clamps `value` to [0, 1]. NaN counts as 0: an unknown merit is no merit.
pub(crate) fn unit(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn values_outside_the_interval_are_clamped() {
        for (given, expect) in [
            (-1.0, 0.0),
            (0.0, 0.0),
            (0.3, 0.3),
            (1.0, 1.0),
            (7.0, 1.0),
            (f64::NAN, 0.0),
            (f64::INFINITY, 1.0),
        ] {
            assert_eq!(unit(given), expect, "unit({given})");
        }
    }
}
