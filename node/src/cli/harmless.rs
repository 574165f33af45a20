//! Texts of others on a terminal: nothing in them moves a cursor, sets a title, writes the clipboard or
//! turns a line around.

use crate::query::characters::is_obeyed;

pub(super) use crate::query::characters::harmless_json;

/// A text to be shown, on as many lines as it has.
pub fn harmless(text: impl Into<String>) -> String {
    let text = text.into();
    if !text.contains(is_obeyed) {
        return text;
    }
    let lines = text.replace("\r\n", "\n");
    lines.chars().map(|c| if is_obeyed(c) { '\u{FFFD}' } else { c }).collect()
}

/// A text to be shown on one line: what ends a line of it is a space.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_obeyed(c) => '\u{FFFD}',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{9b}2J\r\nb\tc\u{202e}d\u{7f}";

    #[test]
    fn what_a_terminal_would_obey_is_replaced_and_lines_stay() {
        assert_eq!(harmless(HOSTILE), "a\u{FFFD}]0;owned\u{FFFD}\u{FFFD}2J\nb\tc\u{FFFD}d\u{FFFD}");
        assert_eq!(
            harmless("plain\ttext\nin lines, a\u{200d}b"),
            "plain\ttext\nin lines, a\u{200d}b"
        );
        let shown = "a\u{FFFD}]0;owned\u{FFFD}\u{FFFD}2J  b c\u{FFFD}d\u{FFFD}";
        assert_eq!(printable(HOSTILE), shown);
    }

    #[test]
    fn json_reads_as_the_same_value() {
        let json =
            serde_json::to_string_pretty(&serde_json::json!({ HOSTILE: [HOSTILE] })).unwrap();
        let shown = harmless_json(json.clone());
        assert!(json.contains('\u{9b}') && !shown.contains(is_obeyed), "{shown}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(&json));
    }
}
