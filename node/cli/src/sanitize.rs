//! Removes control characters from text of peers, which could move the cursor, set the title, write
//! the clipboard or reverse a line of the terminal.

use klnode_text::unicode::is_terminal_control;

pub(super) use klnode_text::unicode::harmless_json;

/// A text without control characters; line breaks stay.
pub fn harmless(text: impl Into<String>) -> String {
    let text = text.into();
    if !text.contains(is_terminal_control) {
        return text;
    }
    let lines = text.replace("\r\n", "\n");
    lines.chars().map(|c| if is_terminal_control(c) { '\u{FFFD}' } else { c }).collect()
}

/// A text without control characters on one line; line breaks become spaces.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_terminal_control(c) => '\u{FFFD}',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{9b}2J\r\nb\tc\u{202e}d\u{7f}";

    #[test]
    fn control_characters_are_replaced_and_lines_stay() {
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
        assert!(json.contains('\u{9b}') && !shown.contains(is_terminal_control), "{shown}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(&json));
    }
}
