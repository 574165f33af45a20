//! Classifies characters: those that end a line, those that are invisible, and those that a
//! terminal acts on. Text of other authors must not use them to leave its quotation or to make one
//! name look like another.

use std::fmt::Write;

/// True if some reader treats the character as the end of a line.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// True if the character is visible: not a control character, not a change of direction, not of
/// zero width.
pub fn is_seen(c: char) -> bool {
    // The variation selector U+FE0F, which turns a letter into an emoji, stays visible: a single
    // selector cannot carry hidden data.
    let is_hidden = matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}'
        | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0E}'
        | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}');
    c == '\t' || (!c.is_control() && !is_hidden)
}

/// True if a terminal would act on the character or reorder the text after it instead of showing
/// it. Line feeds and tabs are shown.
pub fn is_terminal_control(c: char) -> bool {
    let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// Escapes the characters that a terminal would act on. The result parses to the same value,
/// because in JSON these characters occur only in strings.
pub fn harmless_json(json: String) -> String {
    if !json.contains(is_terminal_control) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_terminal_control(c) {
            // All of these characters lie below the surrogates, so four digits suffice.
            true => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            false => escaped.push(c),
        }
    }
    escaped
}
