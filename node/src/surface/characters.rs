//! Characters that end a line, or are not seen: neither may help a served text out of its quotation.

/// Whether a character ends a line for some reader.
pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character shows: no control, no change of direction, nothing of no width.
pub(super) fn is_seen(c: char) -> bool {
    let is_hidden = matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}');
    c == '\t' || (!c.is_control() && !is_hidden)
}
