//! A reader of bytes and LEB128 numbers that accepts each number in its shortest form only.
//!
//! Two encodings of one change would be two records with the same meaning, and automerge, which
//! encodes changes anew when it forks a document, would compute another hash than the sender. The
//! reader never allocates.

use crate::change_error::ChangeError;

const TRUNCATED: ChangeError = ChangeError::Malformed("it ends too early");
const OVERLONG: ChangeError = ChangeError::Malformed("a number is not in its shortest form");
const TOO_LARGE: ChangeError = ChangeError::Malformed("a number has more than 64 bits");

/// The unread rest of a byte string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkReader<'a>(&'a [u8]);

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ChangeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ChangeError> {
        self.bytes(1).map(|taken| taken[0])
    }

    /// Takes a number that must be at most `max`, and refuses a greater one with `error`.
    pub(crate) fn bounded(&mut self, max: u64, error: ChangeError) -> Result<u64, ChangeError> {
        let number = self.unsigned()?;
        if number > max { Err(error) } else { Ok(number) }
    }

    /// Takes an unsigned LEB128 number.
    pub(crate) fn unsigned(&mut self) -> Result<u64, ChangeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(TOO_LARGE);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err(OVERLONG) } else { Ok(number) };
            }
        }
        Err(TOO_LARGE)
    }

    /// Takes a signed LEB128 number.
    pub(crate) fn signed(&mut self) -> Result<i64, ChangeError> {
        let mut number = 0_i64;
        let mut previous = 0_u8;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte != 0 && byte != 0x7f {
                return Err(TOO_LARGE);
            }
            number |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let repeats_sign =
                    (byte == 0 && previous & 0x40 == 0) || (byte == 0x7f && previous & 0x40 != 0);
                if shift > 0 && repeats_sign {
                    return Err(OVERLONG);
                }
                let is_negative = byte & 0x40 != 0;
                return Ok(if is_negative && shift < 57 {
                    number | (-1 << (shift + 7))
                } else {
                    number
                });
            }
            previous = byte;
        }
        Err(TOO_LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned(bytes: &[u8]) -> Option<u64> {
        ChunkReader::new(bytes).unsigned().ok()
    }

    fn signed(bytes: &[u8]) -> Option<i64> {
        ChunkReader::new(bytes).signed().ok()
    }

    #[test]
    fn unsigned_numbers_are_read_up_to_64_bits() {
        assert_eq!(unsigned(&[0]), Some(0));
        assert_eq!(unsigned(&[0x7f]), Some(127));
        assert_eq!(unsigned(&[0x80, 1]), Some(128));
        let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(unsigned(&greatest), Some(u64::MAX));
        assert_eq!(unsigned(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!(unsigned(&[0x80; 11]), None);
    }

    #[test]
    fn signed_numbers_are_read_up_to_64_bits() {
        assert_eq!(signed(&[0]), Some(0));
        assert_eq!(signed(&[0x7f]), Some(-1));
        assert_eq!(signed(&[0x40]), Some(-64));
        assert_eq!(signed(&[0x80, 1]), Some(128));
        assert_eq!(signed(&[0x80, 0x40]), Some(-8192));
        let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];
        assert_eq!(signed(&least), Some(i64::MIN));
        let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(signed(&greatest), Some(i64::MAX));
        assert_eq!(signed(&[0x80; 11]), None);
    }

    #[test]
    fn longer_forms_of_a_number_and_missing_bytes_are_refused() {
        assert_eq!(unsigned(&[0x81, 0]), None);
        assert_eq!(signed(&[0xbf, 0]), None);
        assert_eq!(signed(&[0xff, 0x7f]), None);
        assert_eq!(unsigned(&[0x80]), None);
        assert_eq!(signed(&[]), None);
        assert!(ChunkReader::new(&[1]).bytes(2).is_err());
    }
}
