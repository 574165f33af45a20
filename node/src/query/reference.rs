//! How people name an entry: its id, its citation code, or an unambiguous beginning of the code.

use crate::store::{Error, Snapshot};
use klnode_crdt::ids::EntryId;
use std::str::FromStr;

/// A name that was typed: a range of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    text: String,
    first: [u8; 16],
    last: [u8; 16],
}

/// Why a name does not lead to one entry.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Not a name at all.
    #[error(
        "read `{0}` as an entry: it is neither an id (hex) nor a code such as L-7F3KQ2MX, of which \
         the first {DIGITS_MIN} digits or more will do"
    )]
    Malformed(String),
    /// Nothing has that name.
    #[error("find entry {0}: this node does not hold it")]
    Unknown(String),
    /// Several have it.
    #[error("tell which entry `{text}` is: it could be {}", candidates.join(", "))]
    Ambiguous {
        /// What was typed.
        text: String,
        /// Some of those that it could be.
        candidates: Vec<String>,
    },
    /// The store failed.
    #[error("{0}")]
    Store(#[from] Error),
}

/// How many candidates an error names.
const CANDIDATES_MAX: usize = 5;
/// Shorter beginnings would name half the store.
const DIGITS_MIN: usize = 2;

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let malformed = || ReferenceError::Malformed(text.into());
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

impl Reference {
    /// Whether it is an id or all digits of a code, not a beginning.
    pub fn is_whole(&self) -> bool {
        // A code is the first 40 bits.
        self.first[..5] == self.last[..5]
    }

    /// The one entry it names.
    pub fn resolve(&self, snapshot: &Snapshot) -> Result<EntryId, ReferenceError> {
        let mut found = Vec::new();
        for row in snapshot.entries_between(self.first, self.last)?.take(CANDIDATES_MAX) {
            found.push(row?.0);
        }
        match found.as_slice() {
            [] => Err(ReferenceError::Unknown(self.text.clone())),
            [one] => Ok(*one),
            several => {
                let codes = several.iter().map(|entry| code(snapshot, *entry));
                let candidates = codes.collect::<Result<_, Error>>()?;
                Err(ReferenceError::Ambiguous { text: self.text.clone(), candidates })
            }
        }
    }
}

/// What people call an entry, by what anybody says: to name it in an error.
pub(super) fn code(snapshot: &Snapshot, entry: EntryId) -> Result<String, Error> {
    Ok(snapshot.entry(entry)?.to_entry().code(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::kind::Kind;

    #[test]
    fn an_id_a_code_and_a_beginning_of_it_name_the_entry() {
        let entry = EntryId::from_bytes([0xA7; 16]);
        let code = Kind::Lesson.code(entry);
        for text in [entry.to_string(), code.clone(), code.to_lowercase(), code[..5].to_owned()] {
            let reference: Reference = text.parse().unwrap();
            let bytes = entry.as_bytes();
            assert!(reference.first <= *bytes && *bytes <= reference.last, "{text}");
            assert_eq!(reference.is_whole(), text.len() > 5, "{text}");
        }
        let other: Reference = "L-22222222".parse().unwrap();
        assert!(*entry.as_bytes() < other.first);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "L-", "L-1", "L-8888", "lesson-one", "A", "L-7F3KQ2MXX", "é-ABCD"] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
