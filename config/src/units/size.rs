//! Sizes in bytes, for memory, storage and traffic.
//!
//! Sizes need a binary unit. "1 MB" is refused, because it is unclear whether it means a decimal or
//! a binary megabyte.

use serde::Deserialize;
use toml::Value;

use super::{InvalidValue, amount_and_unit};

/// A size from 1 byte to 1 TiB: "512 B", "64 KiB", "4 MiB", "2 GiB".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Bytes(u64);

impl Bytes {
    const MAX: u64 = 1 << 40;

    /// Makes a size if it is in range.
    ///
    /// # Errors If `bytes` is 0 or more than 1 TiB.
    pub fn new(bytes: u64) -> Result<Self, InvalidValue> {
        if (1..=Self::MAX).contains(&bytes) {
            Ok(Self(bytes))
        } else {
            Err(InvalidValue::new(
                "text such as \"512 B\", \"64 KiB\", \"4 MiB\" or \"2 GiB\", at most \"1 TiB\"",
            ))
        }
    }

    /// The number of bytes.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a `usize`, for a length in memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        // Saturates on 32-bit platforms, whose memory is smaller than the limit anyway.
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn parse(text: &str) -> Option<u64> {
        let (amount, unit) = amount_and_unit(text)?;
        let scale = match unit {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return None,
        };
        amount.checked_mul(scale)
    }
}

impl TryFrom<Value> for Bytes {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        Self::new(value.as_str().and_then(Self::parse).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u64, InvalidValue> {
        Bytes::try_from(Value::String(text.into())).map(Bytes::get)
    }

    #[test]
    fn bytes_are_read_in_each_of_their_units() {
        let cases = [
            ("512 B", 512),
            ("64 KiB", 65_536),
            ("4 MiB", 4_194_304),
            ("2GiB", 2_147_483_648),
            ("1 TiB", 1_099_511_627_776),
        ];
        for (given, expected) in cases {
            assert_eq!(read(given), Ok(expected), "{given}");
        }
    }

    #[test]
    fn bytes_without_a_binary_unit_are_refused() {
        for wrong in ["4096", "1 MB", "1 kib", "0 B", "2 TiB", "18446744073709551615 GiB", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(Bytes::try_from(Value::Integer(4096)).is_err());
    }
}
