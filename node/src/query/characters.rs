//! Characters that end a line, or are not seen: neither may help a text out of its quotation, or a
//! name to pass for another. And those that a terminal obeys.

use std::fmt::Write;

/// Whether a character ends a line for some reader.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character shows: no control, no change of direction, nothing of no width.
pub fn is_seen(c: char) -> bool {
    // Of the variation selectors the one that makes an emoji of its letter stays: one alone says
    // nothing.
    let is_hidden = matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}'
        | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0E}'
        | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}');
    c == '\t' || (!c.is_control() && !is_hidden)
}

/// Whether a terminal would obey a character, or show what follows in another order, instead of
/// showing it. Lines and tabs are shown.
pub fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// JSON that reads as the same value: what a terminal would obey is in strings alone, and is escaped
/// there.
pub fn harmless_json(json: String) -> String {
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
