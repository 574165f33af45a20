//! Dates of files. Tools write them in many forms; an unreadable one stays as words.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use serde_json::Value;

/// Numbers from this on are milliseconds; smaller ones are seconds.
const MILLIS_FROM: i64 = 100_000_000_000;

/// The time of a date in milliseconds since 1970; `None` if the text is no date of these forms:
/// RFC 3339, `YYYY-MM-DD`, with a time, with `/` or `.`, `DD.MM.YYYY`, seconds or milliseconds.
pub fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return u64::try_from(stamp.as_millisecond()).ok();
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() > 8 {
        let number: i64 = text.parse().ok()?;
        let number = if number >= MILLIS_FROM { number } else { number.checked_mul(1000)? };
        return u64::try_from(number).ok().filter(|_| Timestamp::from_millisecond(number).is_ok());
    }
    let civil = text.parse::<DateTime>().ok().or_else(|| {
        let forms = ["%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%Y%m%d", "%B %d, %Y", "%d %B %Y"];
        let date = forms.iter().find_map(|form| Date::strptime(form, text).ok());
        date.map(|date| date.to_datetime(civil::Time::midnight())).or_else(|| {
            let forms = ["%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M"];
            forms.iter().find_map(|form| DateTime::strptime(form, text).ok())
        })
    })?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_millisecond()).ok()
}

/// The calendar day of a date, as `YYYY-MM-DD`; `None` if the text is no date.
pub fn day(text: &str) -> Option<String> {
    let stamp = Timestamp::from_millisecond(i64::try_from(millis(text)?).ok()?).ok()?;
    Some(stamp.to_zoned(TimeZone::UTC).date().to_string())
}

/// The words of a JSON value that holds a date.
pub(crate) fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_many_forms_are_read() {
        let noon = "2026-02-12T00:00:00Z";
        let expect = millis(noon).unwrap();
        for text in [
            "2026-02-12",
            "2026/02/12",
            "2026.02.12",
            "12.02.2026",
            "20260212",
            "2026-02-12 00:00",
            "2026-02-12T00:00:00",
            "2026-02-12T01:00:00+01:00",
            "1770854400",
            "1770854400000",
            "February 12, 2026",
        ] {
            assert_eq!(millis(text), Some(expect), "{text}");
            assert_eq!(day(text).as_deref(), Some("2026-02-12"), "{text}");
        }
        for text in ["", "soon", "2026-13-45", "99999999999999999999", "1.5", "-5"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
