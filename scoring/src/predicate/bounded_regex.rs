//! Patterns of `text:` atoms: regular expressions whose cost is bounded before they run.
//!
//! Plain substrings are not enough, since people anchor `fn verify\(` with any number of spaces, at
//! the start of a line, or in one of two spellings. Unrestricted regular expressions cost too much.
//! Without counted repetition a pattern has no more states than a few times its length, so that a
//! search costs at most the product of both lengths. Look-around and back-references are not
//! supported. Classes are ASCII, so that a pattern means the same in every build.

use regex::bytes::{Regex, RegexBuilder};

/// Maximum length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 256;

/// Memory limit of a compiled pattern in bytes: far more than a pattern of the maximum length
/// needs.
const COMPILED_BYTES_MAX: usize = 1 << 18;

/// Maximum nesting depth of groups.
const NESTING_MAX: u32 = 32;

/// Memory limit in bytes of a compiled pattern while it searches.
const LOOKING_BYTES_MAX: usize = 1 << 18;

/// A pattern that is compiled only at evaluation, since other authors may write any number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundedRegex {
    text: String,
}

impl BoundedRegex {
    /// Checks the pattern as far as possible without compiling it. The error names the expected
    /// syntax.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err("a pattern of at most 256 bytes");
        }
        if text.chars().any(char::is_control) {
            return Err("a pattern without control characters (a tab is `\\t`)");
        }
        refuse_costly(text)?;
        Ok(BoundedRegex { text: text.to_owned() })
    }

    /// Compiles the pattern. The error names the expected syntax.
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

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Upper bound of the steps per byte of text: 1 for a literal pattern, else the pattern's
    /// length.
    pub(super) fn steps_per_byte(&self) -> usize {
        if is_plain(self.as_str()) { 1 } else { self.as_str().len() }
    }
}

/// Whether every character of the pattern stands for itself.
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

/// Refuses counted repetition, and all groups except plain ones and those that set `i` or `s`.
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
