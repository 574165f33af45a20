//! The fixed-point amount in which observations are counted.
//!
//! Separate because a counter that several nodes must add up to the same sum cannot hold a
//! fraction in floating point. Judgement turns amounts into numbers and back here and only here.

/// An amount of success or failure, in thousandths of one observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Thousandths(pub u64);

impl Thousandths {
    /// The amount as a number of observations.
    #[must_use]
    pub fn observations(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The nearest amount to `observations`; below zero, and what is not a number, is nothing.
    #[must_use]
    pub fn nearest(observations: f64) -> Thousandths {
        // A cast from float to integer saturates, and turns NaN into 0.
        Thousandths((observations * 1000.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Thousandths;

    #[test]
    fn an_amount_is_rounded_to_the_nearest_thousandth() {
        for (given, expect) in
            [(1.0, 1000), (0.34999, 350), (0.3434, 343), (-2.0, 0), (f64::NAN, 0)]
        {
            assert_eq!(Thousandths::nearest(given), Thousandths(expect), "{given}");
        }
        assert_eq!(Thousandths(1470).observations(), 1.47);
    }
}
