//! A short name that a caller chooses for itself: visible ASCII of bounded length, cheap to copy.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The name of a client or of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerLabel {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
}

impl CallerLabel {
    /// Most bytes of a label.
    pub const BYTES_MAX: usize = 64;

    /// Parses a label; `None` unless the text has 1 to 64 bytes of visible ASCII.
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

    /// The text of the label.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("a label is made of ASCII alone")
    }
}

impl fmt::Display for CallerLabel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for CallerLabel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Label({})", self.as_str())
    }
}

impl Serialize for CallerLabel {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CallerLabel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not 1 to 64 bytes of visible ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::CallerLabel;

    #[test]
    fn a_label_is_short_and_visible() {
        for text in ["a", "claude-code", &"x".repeat(64)] {
            assert_eq!(
                CallerLabel::parse(text).map(|label| label.to_string()).as_deref(),
                Some(text)
            );
        }
        for text in ["", "two words", "tab\t", "ä", &"x".repeat(65), &"x".repeat(300)] {
            assert_eq!(CallerLabel::parse(text), None, "{text}");
        }
    }
}
