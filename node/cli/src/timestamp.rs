//! Times and days in UTC for people.

/// Formats milliseconds since 1970 as UTC time, to the second.
pub(super) fn moment(millis: u64) -> String {
    let at = i64::try_from(millis).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    match at {
        Some(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        // The calendar ends before this, so print the number.
        None => millis.to_string(),
    }
}

/// Formats milliseconds since 1970 as UTC day.
pub(super) fn day(millis: u64) -> String {
    let text = moment(millis);
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_printed_in_utc_to_the_second() {
        assert_eq!(moment(1_790_000_000_999), "2026-09-21 14:13:20");
        assert_eq!(day(1_790_000_000_999), "2026-09-21");
        assert_eq!(moment(0), "1970-01-01 00:00:00");
        assert_eq!(moment(u64::MAX), u64::MAX.to_string());
    }
}
