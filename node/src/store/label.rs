//! A short name that a caller gives itself: visible ASCII, bounded, and cheap to copy.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A client's name, or a session's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
}

impl Label {
    /// Bytes of a label.
    pub const BYTES_MAX: usize = 64;

    /// A label, if the text is one: 1 to 64 bytes of visible ASCII.
    pub fn parse(text: &str) -> Option<Self> {
        let length = u8::try_from(text.len()).ok()?;
        let is_short = (1..=Self::BYTES_MAX).contains(&text.len());
        if !is_short || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes, length })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("a label is made of ASCII alone")
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Label({})", self.as_str())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not 1 to 64 bytes of visible ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn a_label_is_short_and_visible() {
        for text in ["a", "claude-code", &"x".repeat(64)] {
            assert_eq!(Label::parse(text).map(|label| label.to_string()).as_deref(), Some(text));
        }
        for text in ["", "two words", "tab\t", "ä", &"x".repeat(65), &"x".repeat(300)] {
            assert_eq!(Label::parse(text), None, "{text}");
        }
    }
}
