//! How many of something, in words.

/// A number and its noun.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Entries.
pub fn entries(count: u64) -> String {
    counted(count, "entry", "entries")
}

/// Records.
pub fn records(count: u64) -> String {
    counted(count, "record", "records")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_nothing_is_not() {
        assert_eq!([entries(0), entries(1), entries(2)], ["0 entries", "1 entry", "2 entries"]);
        assert_eq!(records(1), "1 record");
    }
}
