//! Numbers without a unit: fractions, positive amounts, factors and bounded integers.
//!
//! The constructors refuse NaN and infinity, so every number in a configuration is finite.

use serde::Deserialize;
use toml::Value;

use super::InvalidValue;

/// Declares a type for finite numbers in a range.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $must:literal, $holds:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
        #[serde(try_from = "Value")]
        pub struct $name(f64);

        impl $name {
            /// Makes a value if `number` is in range.
            ///
            /// # Errors If `number` is out of range or NaN.
            pub fn new(number: f64) -> Result<Self, InvalidValue> {
                let holds: fn(f64) -> bool = $holds;
                if holds(number) { Ok(Self(number)) } else { Err(InvalidValue::new($must)) }
            }

            /// The number: finite and in range.
            #[must_use]
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<Value> for $name {
            type Error = InvalidValue;

            fn try_from(value: Value) -> Result<Self, InvalidValue> {
                Self::new(number_of(&value).unwrap_or(f64::NAN))
            }
        }
    };
}

number!(
    /// A fraction, from 0 to 1.
    Fraction,
    "a number from 0 to 1",
    |number| (0.0..=1.0).contains(&number)
);

number!(
    /// The weight of one ranking signal, from 0 to 0.5, so that no signal decides alone.
    SignalWeight,
    "a number from 0 to 0.5",
    |number| (0.0..=0.5).contains(&number)
);

number!(
    /// An amount, a rate or a mass: greater than 0, at most 1,000,000.
    Positive,
    "a number above 0 and at most 1000000",
    |number| number > 0.0 && number <= 1_000_000.0
);

number!(
    /// A growth factor, from 1 to 100.
    Factor,
    "a number from 1 to 100",
    |number| (1.0..=100.0).contains(&number)
);

/// An integer from `MIN` to `MAX`, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct BoundedInteger<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> BoundedInteger<MIN, MAX> {
    /// Makes a value if `number` is in range.
    ///
    /// # Errors If `number` is out of range.
    pub fn new(number: u32) -> Result<Self, InvalidValue> {
        if (MIN..=MAX).contains(&number) { Ok(Self(number)) } else { Err(Self::unfit()) }
    }

    /// The number, from `MIN` to `MAX`.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The number as a length or an index.
    #[must_use]
    pub fn as_usize(self) -> usize {
        // Lossless on all supported platforms, which have at least 32 bits.
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn unfit() -> InvalidValue {
        InvalidValue::new(format!("a whole number from {MIN} to {MAX}"))
    }
}

impl<const MIN: u32, const MAX: u32> TryFrom<Value> for BoundedInteger<MIN, MAX> {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        number.map_or_else(|| Err(Self::unfit()), Self::new)
    }
}

/// Reads a float or an integer: TOML distinguishes 1 from 1.0, but users do not.
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        // Exact for every integer in range; rounding affects only numbers far out of range.
        Value::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_includes_both_ends_and_nothing_beyond() {
        assert_eq!(Fraction::new(0.0).unwrap().get(), 0.0);
        assert_eq!(Fraction::new(1.0).unwrap().get(), 1.0);
        for number in [-0.001, 1.001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Fraction::new(number).is_err(), "{number}");
        }
    }

    #[test]
    fn no_number_is_nan_or_infinite() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(SignalWeight::new(number).is_err());
            assert!(Positive::new(number).is_err());
            assert!(Factor::new(number).is_err());
        }
    }

    #[test]
    fn a_signal_weight_ends_at_a_half() {
        assert!(SignalWeight::new(0.5).is_ok());
        assert!(SignalWeight::new(0.51).is_err());
    }

    #[test]
    fn a_positive_number_is_not_zero() {
        assert!(Positive::new(f64::MIN_POSITIVE).is_ok());
        assert!(Positive::new(0.0).is_err());
    }

    #[test]
    fn an_integer_is_taken_where_a_number_is_wanted() {
        assert_eq!(Positive::try_from(Value::Integer(20)).unwrap().get(), 20.0);
        assert!(Positive::try_from(Value::String("20".into())).is_err());
    }

    #[test]
    fn a_whole_number_out_of_range_is_answered_with_the_range() {
        type UpToSixteen = BoundedInteger<1, 16>;
        for value in [Value::Integer(0), Value::Integer(17), Value::Integer(-1), Value::Float(2.0)]
        {
            let unfit = UpToSixteen::try_from(value).unwrap_err();
            assert_eq!(unfit.to_string(), "must be a whole number from 1 to 16");
        }
        assert_eq!(UpToSixteen::new(16).unwrap().as_usize(), 16);
    }
}
