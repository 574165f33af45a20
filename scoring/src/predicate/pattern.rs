//! Patterns of `text:` atoms: regular expressions whose work is bounded before they run.
//!
//! Not plain substrings, since what people anchor is `fn verify\(` with any number of spaces, at the
//! start of a line, or one of two spellings; and not all that regular expressions can be. Without
//! counted repetition a pattern has no more states than a few times its length, so that a look at a
//! text costs at most the product of both lengths. Look-around and back-references do not exist
//! here. Classes are ASCII, so that a pattern means the same in every build.

use regex::bytes::{Regex, RegexBuilder};

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 256;

/// The most memory a compiled pattern may take, in bytes: far more than the above can need.
const COMPILED_BYTES_MAX: usize = 1 << 18;

/// The deepest nesting of groups.
const NESTING_MAX: u32 = 32;

/// The most memory that a compiled pattern may use while it looks at a text, in bytes.
const LOOKING_BYTES_MAX: usize = 1 << 18;

/// A pattern. It is compiled where it is looked for, and no sooner: others may write any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: String,
}

impl Pattern {
    /// The pattern, or what was expected of it: as far as that shows without compiling it.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err("a pattern of at most 256 bytes");
        }
        if text.chars().any(char::is_control) {
            return Err("a pattern without control characters (a tab is `\\t`)");
        }
        refuse_costly(text)?;
        Ok(Pattern { text: text.to_owned() })
    }

    /// What finds it in a text, or what was expected of it.
    pub(super) fn compile(&self) -> Result<Regex, &'static str> {
        let regex = RegexBuilder::new(&self.text)
            .unicode(false)
            .multi_line(true)
            .crlf(true)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(LOOKING_BYTES_MAX)
            .nest_limit(NESTING_MAX)
            .build()
            .map_err(
                |_| "a regular expression (a backslash makes `( ) [ ] . * + ? | ^ $` plain)",
            )?;
        if regex.is_match(b"") {
            return Err("a pattern that an empty file does not match");
        }
        Ok(regex)
    }

    /// The pattern as written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// How many steps a byte of a text takes at most: one where the pattern is plain text.
    pub(super) fn steps_per_byte(&self) -> usize {
        if is_plain(self.as_str()) { 1 } else { self.as_str().len() }
    }
}

/// Whether nothing in a pattern stands for anything but itself.
fn is_plain(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let is_literal = match c {
            '\\' => rest.next().is_some_and(|c| c.is_ascii_punctuation()),
            c => !"()[].*+?|^$".contains(c),
        };
        if !is_literal {
            return false;
        }
    }
    true
}

/// Refuses counted repetition, and every group but plain ones and those that set `i` or `s`.
fn refuse_costly(text: &str) -> Result<(), &'static str> {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '{' => return Err("a pattern without counted repetition (a brace is `\\{`)"),
            '(' if rest.as_str().starts_with('?') => {
                let flags = rest.as_str()[1..].trim_start_matches(['i', 's']);
                if !flags.starts_with([':', ')']) {
                    return Err("no look-around, no names and no flags but `(?i)` and `(?s)`");
                }
            }
            _ => {}
        }
    }
    Ok(())
}
