//! The bytes of a generation's weights, so that a restart continues it without reading the store.
//!
//! Separate from the weights because the bytes are decided: a magic word that ends in the version, a
//! checksum over the rest, two counts, and the numbers, little-endian. Reading checks all of it; what
//! does not fit is an error, and the caller fits anew. Like the rest of the index, the file can be
//! deleted.

use super::table::{DIMS_MAX, ROWS_MAX, Reader, TableError, fnv};
use super::weights::Weights;

const MAGIC: &[u8; 8] = b"KLWEIGH1";

/// Why bytes are not the weights of a generation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// Another kind of file, or another version of this one.
    #[error("read the weights of the embedder: they do not start as such")]
    NotWeights,
    /// Shorter than they say, or not what their checksum says.
    #[error("read the weights of the embedder: {0}")]
    Damaged(&'static str),
}

impl From<TableError> for WeightsError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::NotATable => Self::NotWeights,
            TableError::Damaged(why) => Self::Damaged(why),
        }
    }
}

impl Weights {
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

    /// The weights that [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsError> {
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len()).ok() != Some(MAGIC.as_slice()) {
            return Err(WeightsError::NotWeights);
        }
        if *reader.take(8)? != fnv(reader.0).to_le_bytes() {
            return Err(WeightsError::Damaged("their checksum differs"));
        }
        let (rows, dims) = (reader.size()?, reader.size()?);
        if rows > ROWS_MAX || dims > DIMS_MAX {
            return Err(WeightsError::Damaged("their sizes are impossible"));
        }
        let (tokens, common) = (reader.floats(rows)?, reader.floats(dims)?);
        if !reader.0.is_empty() {
            return Err(WeightsError::Damaged("their parts do not add up"));
        }
        Ok(Self::of_parts(tokens, common))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Weights {
        Weights::of_parts(vec![1.0, 2.5, -0.0], vec![0.25, -3.0])
    }

    /// As `to_bytes`, of counts and numbers that need not fit each other.
    fn sealed(rows: u32, dims: u32, floats: &[f32]) -> Vec<u8> {
        let mut rest = [rows.to_le_bytes(), dims.to_le_bytes()].concat();
        rest.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
        [MAGIC.as_slice(), &fnv(&rest).to_le_bytes(), &rest].concat()
    }

    #[test]
    fn weights_are_read_back_from_their_bytes() {
        let weights = small();
        let again = Weights::from_bytes(&weights.to_bytes()).unwrap();
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
            assert!(Weights::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(Weights::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn a_changed_byte_is_an_error() {
        let bytes = small().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(Weights::from_bytes(&changed).is_err(), "changed at {at}");
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
            assert_eq!(Weights::from_bytes(&bytes), Err(WeightsError::Damaged(why)));
        }
        assert_eq!(Weights::from_bytes(b"KLEMBED1"), Err(WeightsError::NotWeights));
    }
}
