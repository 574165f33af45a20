//! Texts of others on a terminal: nothing in them moves a cursor, sets a title, writes the clipboard or
//! turns a line around.

use std::fmt::Write;

/// Whether a terminal would obey a character, or show what follows in another order, instead of
/// showing it. Lines and tabs are shown.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

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

/// JSON that reads as the same value: such characters are in strings alone, and are escaped there.
pub(super) fn harmless_json(json: String) -> String {
    if !json.contains(is_obeyed) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_obeyed(c) {
            // All of them are below the surrogates.
            true => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            false => escaped.push(c),
        }
    }
    escaped
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
