//! Renders a count with the singular or plural of its noun.

/// Renders a count with its noun, such as "1 entry" or "2 entries".
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Renders a number of entries.
pub fn entries(count: u64) -> String {
    counted(count, "entry", "entries")
}

/// Renders a number of records.
pub fn records(count: u64) -> String {
    counted(count, "record", "records")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_zero_is_plural() {
        assert_eq!([entries(0), entries(1), entries(2)], ["0 entries", "1 entry", "2 entries"]);
        assert_eq!(records(1), "1 record");
    }
}
