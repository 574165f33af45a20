//! Time spans: [`Days`] for judgements and [`Interval`] for waits and timeouts.
//!
//! They are two types because judgements count whole UTC days and must not depend on hours. Neither
//! type reads a clock.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use toml::Value;

use super::{InvalidValue, amount_and_unit};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Error text for the ambiguous unit "m".
const MINUTES: &str = "unmistakable: \"m\" may be minutes or months; write \"min\" for minutes, \
                       and months as days";

/// The number of days in a unit of at least one day; `None` for shorter units.
fn days_in(unit: &str) -> Option<u32> {
    match unit {
        "d" | "day" | "days" => Some(1),
        "w" | "week" | "weeks" => Some(7),
        _ => None,
    }
}

/// Whole UTC days, from 1 to 36500: "90 days", "90d", "4 weeks".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Days(u32);

impl Days {
    /// A century, as an upper bound that no real setting reaches.
    const MAX: u32 = 36_500;

    /// Makes a number of days if it is in range.
    ///
    /// # Errors If `days` is 0 or more than 36500.
    pub fn new(days: u32) -> Result<Self, InvalidValue> {
        if (1..=Self::MAX).contains(&days) {
            Ok(Self(days))
        } else {
            Err(InvalidValue::new(
                "text such as \"90 days\" or \"4 weeks\", from \"1 day\" to \"36500 days\"",
            ))
        }
    }

    /// The number of days.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Days {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let days = match amount_and_unit(text) {
            Some((_, "m")) => return Err(InvalidValue::new(MINUTES)),
            Some((amount, unit)) => days_in(unit).and_then(|days| {
                u32::try_from(amount).ok().and_then(|count| count.checked_mul(days))
            }),
            None => None,
        };
        Self::new(days.unwrap_or(0))
    }
}

impl TryFrom<Value> for Days {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        value.as_str().unwrap_or_default().parse()
    }
}

/// A duration from one millisecond to one year (366 days): "250 ms", "30 s", "5 min", "1 h", "2
/// days", "2d", "1 week".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Interval(Duration);

impl Interval {
    const MIN: Duration = Duration::from_millis(1);
    const MAX: Duration = Duration::from_secs(366 * SECONDS_PER_DAY);

    /// Makes an interval if the duration is in range.
    ///
    /// # Errors If `span` is shorter than one millisecond or longer than 366 days.
    pub fn new(span: Duration) -> Result<Self, InvalidValue> {
        if (Self::MIN..=Self::MAX).contains(&span) {
            Ok(Self(span))
        } else {
            Err(InvalidValue::new(
                "text such as \"250 ms\", \"30 s\", \"5 min\", \"1 h\", \"2 days\" or \"1 week\", at \
                 most a year",
            ))
        }
    }

    /// The duration, from one millisecond to 366 days.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0
    }

    fn parse(text: &str) -> Option<Duration> {
        let (amount, unit) = amount_and_unit(text)?;
        let seconds = match unit {
            "ms" => return Some(Duration::from_millis(amount)),
            "s" => 1,
            "min" => 60,
            "h" => 60 * 60,
            _ => u64::from(days_in(unit)?) * SECONDS_PER_DAY,
        };
        amount.checked_mul(seconds).map(Duration::from_secs)
    }
}

impl TryFrom<Value> for Interval {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        if let Some((_, "m")) = amount_and_unit(text) {
            return Err(InvalidValue::new(MINUTES));
        }
        Self::new(Self::parse(text).unwrap_or(Duration::ZERO))
    }
}

/// An interval of at least `MINUTES_MIN` minutes and at most a year: "30 min", "1 h".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct IntervalFrom<const MINUTES_MIN: u64>(Interval);

impl<const MINUTES_MIN: u64> IntervalFrom<MINUTES_MIN> {
    /// The span itself.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0.get()
    }
}

impl<const MINUTES_MIN: u64> TryFrom<Value> for IntervalFrom<MINUTES_MIN> {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        if let Some((_, "m")) = amount_and_unit(text) {
            return Err(InvalidValue::new(MINUTES));
        }
        let must = format!(
            "text such as \"30 min\", \"1 h\" or \"1 day\", from \"{MINUTES_MIN} min\" to \"366 days\""
        );
        match Interval::try_from(value) {
            Ok(interval) if interval.get() >= Duration::from_secs(MINUTES_MIN * 60) => {
                Ok(Self(interval))
            }
            _ => Err(InvalidValue::new(must)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn days_are_written_with_their_unit() {
        for (given, expected) in [
            ("90 days", 90),
            ("1 day", 1),
            ("90d", 90),
            ("2 d", 2),
            ("4w", 28),
            ("1 week", 7),
            ("5214 weeks", 36_498),
        ] {
            assert_eq!(Days::try_from(text(given)).unwrap().get(), expected, "{given}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_neither_days_nor_an_interval() {
        for value in [Value::Integer(90), Value::Float(90.0), text("90"), text("")] {
            assert!(Days::try_from(value.clone()).is_err(), "{value}");
            assert!(Interval::try_from(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn days_are_whole_and_at_most_a_century() {
        for wrong in [
            "24 h",
            "0 days",
            "36501 days",
            "5215 weeks",
            "4294967297 days",
            "4294967295 weeks",
            "-1 days",
            "3 months",
        ] {
            assert!(Days::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_interval_is_read_in_each_of_its_units() {
        let cases = [
            ("250 ms", Duration::from_millis(250)),
            ("30 s", Duration::from_secs(30)),
            ("5 min", Duration::from_secs(300)),
            ("1 h", Duration::from_secs(3_600)),
            ("2 days", Duration::from_secs(172_800)),
            ("5min", Duration::from_secs(300)),
            ("1 day", Duration::from_secs(86_400)),
            ("2d", Duration::from_secs(172_800)),
            ("1w", Duration::from_secs(604_800)),
            ("2 weeks", Duration::from_secs(1_209_600)),
        ];
        for (given, expected) in cases {
            assert_eq!(Interval::try_from(text(given)).unwrap().get(), expected, "{given}");
        }
    }

    #[test]
    fn an_interval_is_neither_zero_nor_longer_than_a_year() {
        for wrong in ["0 s", "367 days", "53 w", "18446744073709551615 days", "5 fortnights"] {
            assert!(Interval::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_interval_below_its_lower_bound_is_answered_with_the_bound() {
        type TenMinutes = IntervalFrom<10>;
        for given in ["10 min", "600 s", "1 h", "366 days"] {
            assert!(TenMinutes::try_from(text(given)).is_ok(), "{given}");
        }
        for wrong in ["9 min", "599 s", "0 s", "367 days", "10", ""] {
            let message = TenMinutes::try_from(text(wrong)).unwrap_err().to_string();
            assert!(message.contains("from \"10 min\" to \"366 days\""), "{wrong}: {message}");
        }
        let message = TenMinutes::try_from(text("30 m")).unwrap_err().to_string();
        assert!(message.contains("write \"min\" for minutes"), "{message}");
    }

    #[test]
    fn minutes_are_not_written_like_months() {
        for given in ["5m", "5 m", "1 m"] {
            for message in [
                Interval::try_from(text(given)).unwrap_err().to_string(),
                Days::try_from(text(given)).unwrap_err().to_string(),
            ] {
                assert!(message.contains("write \"min\" for minutes"), "{given}: {message}");
            }
        }
    }
}
