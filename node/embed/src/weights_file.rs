//! The file format of a generation's weights, with which a restart continues without reading the
//! store.
//!
//! It is separate from the weights because the format is fixed: magic bytes that end in the
//! version, a checksum over the rest, two counts, and the numbers, little-endian. Reading checks
//! all of it; on an error the caller fits the weights again. Like the rest of the index, the file
//! can be deleted.

use super::embedding_table::{ByteReader, DIMS_MAX, ROWS_MAX, TableError, fnv};
use super::token_weights::TokenWeights;

const MAGIC: &[u8; 8] = b"KLWEIGH1";

/// Reasons why bytes are not the weights of a generation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsFileError {
    /// Another kind of file, or another version of this one.
    #[error("The token weights cannot be read: they do not begin with the expected magic bytes.")]
    NotWeights,
    /// Shorter than the header says, or with a wrong checksum.
    #[error("The token weights are damaged: {0}.")]
    Damaged(&'static str),
}

impl From<TableError> for WeightsFileError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::NotATable => Self::NotWeights,
            TableError::Damaged(why) => Self::Damaged(why),
        }
    }
}

impl TokenWeights {
    /// The weights as bytes, about 123 KB for the built-in table.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (tokens, common) = self.parts();
        let count = |part: &[f32]| u32::try_from(part.len()).expect("a table has bounded sizes");
        let mut rest = Vec::with_capacity(8 + 4 * (tokens.len() + common.len()));
        rest.extend(count(tokens).to_le_bytes());
        rest.extend(count(common).to_le_bytes());
        rest.extend(tokens.iter().chain(common).flat_map(|value| value.to_le_bytes()));
        [MAGIC.as_slice(), &fnv(&rest).to_le_bytes(), &rest].concat()
    }

    /// Parses the output of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsFileError> {
        let mut reader = ByteReader(bytes);
        if reader.take(MAGIC.len()).ok() != Some(MAGIC.as_slice()) {
            return Err(WeightsFileError::NotWeights);
        }
        if *reader.take(8)? != fnv(reader.0).to_le_bytes() {
            return Err(WeightsFileError::Damaged("their checksum differs"));
        }
        let (rows, dims) = (reader.size()?, reader.size()?);
        if rows > ROWS_MAX || dims > DIMS_MAX {
            return Err(WeightsFileError::Damaged("their sizes are impossible"));
        }
        let (tokens, common) = (reader.floats(rows)?, reader.floats(dims)?);
        if !reader.0.is_empty() {
            return Err(WeightsFileError::Damaged("their parts do not add up"));
        }
        Ok(Self::of_parts(tokens, common))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> TokenWeights {
        TokenWeights::of_parts(vec![1.0, 2.5, -0.0], vec![0.25, -3.0])
    }

    /// Like `to_bytes`, with counts and numbers that need not match.
    fn sealed(rows: u32, dims: u32, floats: &[f32]) -> Vec<u8> {
        let mut rest = [rows.to_le_bytes(), dims.to_le_bytes()].concat();
        rest.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
        [MAGIC.as_slice(), &fnv(&rest).to_le_bytes(), &rest].concat()
    }

    #[test]
    fn weights_are_read_back_from_their_bytes() {
        let weights = small();
        let again = TokenWeights::from_bytes(&weights.to_bytes()).unwrap();
        assert_eq!(again, weights);
        assert_eq!(again.generation(), weights.generation());
    }

    #[test]
    fn the_bytes_are_those_of_version_one() {
        let hex = data_encoding::HEXLOWER.encode(&small().to_bytes());
        assert_eq!(
            hex,
            "4b4c57454947483186d0c3ad8cb8a9fe03000000020000000000803f00002040000000800000803e000040c0"
        );
    }

    #[test]
    fn weights_cut_anywhere_are_an_error() {
        let bytes = small().to_bytes();
        for length in 0..bytes.len() {
            assert!(TokenWeights::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(TokenWeights::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn a_changed_byte_is_an_error() {
        let bytes = small().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(TokenWeights::from_bytes(&changed).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn impossible_weights_are_an_error_even_with_a_right_checksum() {
        for (bytes, why) in [
            (sealed(u32::MAX, 2, &[1.0; 5]), "their sizes are impossible"),
            (sealed(3, 4097, &[1.0; 5]), "their sizes are impossible"),
            (sealed(4, 2, &[1.0; 5]), "it is cut short"),
            (sealed(2, 2, &[1.0; 5]), "their parts do not add up"),
            (sealed(3, 2, &[f32::NAN; 5]), "a number in it is not finite"),
        ] {
            assert_eq!(TokenWeights::from_bytes(&bytes), Err(WeightsFileError::Damaged(why)));
        }
        assert_eq!(TokenWeights::from_bytes(b"KLEMBED1"), Err(WeightsFileError::NotWeights));
    }
}
