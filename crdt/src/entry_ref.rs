//! References to entries as people type them: an id, a citation code, or a prefix of a code.

use crate::ids::EntryId;
use std::str::FromStr;

/// A parsed reference: the range of entry ids that the typed text can stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    text: String,
    first: [u8; 16],
    last: [u8; 16],
}

/// The text is neither an id nor a citation code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an entry reference: it is neither an id (hex) nor a code such as L-7F3KQ2MX. \
     The first {DIGITS_MIN} digits of a code are enough if no other entry has them."
)]
pub struct MalformedRef(String);

/// Minimum length of a prefix: one digit would match 1/32 of all entries.
const DIGITS_MIN: usize = 2;

impl FromStr for EntryRef {
    type Err = MalformedRef;

    fn from_str(text: &str) -> Result<Self, MalformedRef> {
        let malformed = || MalformedRef(text.into());
        if let Some(entry) = EntryId::from_hex(text) {
            let bytes = *entry.as_bytes();
            return Ok(Self { text: text.into(), first: bytes, last: bytes });
        }
        let digits = match text.split_once('-') {
            Some((letter, digits)) if letter.len() == 1 => digits,
            Some(_) => return Err(malformed()),
            None => text,
        };
        if !(DIGITS_MIN..=8).contains(&digits.len()) {
            return Err(malformed());
        }
        let mut bits = 0_u64;
        for digit in digits.to_ascii_uppercase().bytes() {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'2'..=b'7' => digit - b'2' + 26,
                _ => return Err(malformed()),
            };
            bits = bits << 5 | u64::from(value);
        }
        // The digits are the first 40 bits of an id, from the left.
        let missing = 40 - 5 * digits.len() as u32;
        let (mut first, mut last) = ([0; 16], [0xFF; 16]);
        first[..5].copy_from_slice(&(bits << missing).to_be_bytes()[3..]);
        let filled = bits << missing | ((1 << missing) - 1);
        last[..5].copy_from_slice(&filled.to_be_bytes()[3..]);
        Ok(Self { text: text.into(), first, last })
    }
}

impl EntryRef {
    /// True for an id or a complete code, false for a prefix.
    pub fn is_whole(&self) -> bool {
        // A code encodes the first 40 bits of an id.
        self.first[..5] == self.last[..5]
    }

    /// The smallest and the largest id that the text can stand for.
    pub fn range(&self) -> ([u8; 16], [u8; 16]) {
        (self.first, self.last)
    }

    /// The reference as it was typed.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_type::EntryType;

    #[test]
    fn an_id_a_code_and_a_code_prefix_match_the_entry() {
        let entry = EntryId::from_bytes([0xA7; 16]);
        let code = EntryType::Lesson.code(entry);
        for text in [entry.to_string(), code.clone(), code.to_lowercase(), code[..5].to_owned()] {
            let reference: EntryRef = text.parse().unwrap();
            let bytes = entry.as_bytes();
            assert!(reference.first <= *bytes && *bytes <= reference.last, "{text}");
            assert_eq!(reference.is_whole(), text.len() > 5, "{text}");
        }
        let other: EntryRef = "L-22222222".parse().unwrap();
        assert!(*entry.as_bytes() < other.first);
    }

    #[test]
    fn malformed_references_are_rejected() {
        for text in ["", "L-", "L-1", "L-8888", "lesson-one", "A", "L-7F3KQ2MXX", "é-ABCD"] {
            assert!(text.parse::<EntryRef>().is_err(), "{text}");
        }
    }
}
