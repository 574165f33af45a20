//! Truncates texts for display.

/// Truncates a text at a word boundary to at most this many characters, followed by an ellipsis.
pub fn truncate(text: &str, characters_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters_max) else { return text.to_owned() };
    let whole = &text[..end];
    let end = whole.rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", whole[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::truncate;

    #[test]
    fn a_long_text_is_cut_at_a_word_with_an_ellipsis() {
        for (text, max, expect) in [
            ("short", 10, "short"),
            ("exactly ten", 11, "exactly ten"),
            ("one two three", 9, "one two…"),
            ("äöü äöü äöü", 5, "äöü…"),
            ("unbreakable", 5, "unbre…"),
        ] {
            assert_eq!(truncate(text, max), expect, "{text}");
        }
    }
}
