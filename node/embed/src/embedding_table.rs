//! The embedding table: the file `node/model/table.bin`, compiled into the program.
//!
//! It has one row of int8 values with a scale for each token of the vocabulary, the number of
//! documents of the training corpus that contain the token, and the direction those documents have
//! in common. `node/model/make/table.py` documents the format. Parsing checks every length and a
//! checksum, so that damaged bytes give an error and never a panic; the rows are not copied.

use std::str;

static BUILT_IN: &[u8] = include_bytes!("../../model/table.bin");

const MAGIC: &[u8; 8] = b"KLEMBED1";
const IDENTITY_BYTES: usize = 24;
/// Upper bounds of plausible sizes; larger ones mean damage.
pub(super) const ROWS_MAX: usize = 1 << 20;
pub const DIMS_MAX: usize = 4096;

/// Reasons why bytes are not an embedding table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Another kind of file, or another version of this one.
    #[error("The embedding table cannot be read: it does not begin with the expected magic bytes.")]
    NotATable,
    /// Shorter than its header says, or with a wrong checksum.
    #[error("The embedding table is damaged: {0}.")]
    Damaged(&'static str),
}

/// A parsed table; rows and vocabulary are borrowed from the bytes.
#[derive(Debug, Clone)]
pub struct EmbeddingTable<'a> {
    identity: &'a str,
    dims: usize,
    documents: u32,
    scales: Vec<f32>,
    values: &'a [u8],
    counts: Vec<u32>,
    common: Vec<f32>,
    vocabulary: &'a str,
    characters: &'a [u8],
}

impl EmbeddingTable<'static> {
    /// The table that is compiled into klnode.
    pub fn built_in() -> Result<Self, TableError> {
        Self::parse(BUILT_IN)
    }
}

impl<'a> EmbeddingTable<'a> {
    /// Parses a table and checks everything that later code relies on.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TableError> {
        if bytes.get(..MAGIC.len()) != Some(MAGIC.as_slice()) {
            return Err(TableError::NotATable);
        }
        let mut reader = ByteReader(bytes);
        reader.take(MAGIC.len())?;
        if *reader.take(8)? != fnv(reader.0).to_le_bytes() {
            return Err(TableError::Damaged("its checksum differs"));
        }
        let (rows, dims, documents) = (reader.size()?, reader.size()?, reader.u32()?);
        let (vocabulary_bytes, characters_bytes) = (reader.size()?, reader.size()?);
        reader.take(4)?;
        let identity = text(reader.take(IDENTITY_BYTES)?)?.trim_end_matches('\0');
        if rows == 0 || rows > ROWS_MAX || dims == 0 || dims > DIMS_MAX || documents == 0 {
            return Err(TableError::Damaged("its sizes are impossible"));
        }
        let table = Self {
            identity,
            dims,
            documents,
            scales: reader.floats(rows)?,
            values: reader.take(rows * dims)?,
            counts: reader.numbers(rows)?,
            common: reader.floats(dims)?,
            vocabulary: text(reader.take(vocabulary_bytes)?)?,
            characters: reader.take(characters_bytes)?,
        };
        if !reader.0.is_empty() || table.vocabulary.lines().count() != rows {
            return Err(TableError::Damaged("its parts do not add up"));
        }
        Ok(table)
    }

    /// Name and digest of the table, stored with vectors: vectors of two identities are not
    /// comparable.
    pub fn identity(&self) -> &'a str {
        self.identity
    }

    /// The number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The number of tokens in the vocabulary.
    pub fn rows(&self) -> usize {
        self.scales.len()
    }

    /// The tokens in order of id.
    pub fn tokens(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.vocabulary.lines()
    }

    /// The section with the normalisation of each character.
    pub(super) fn characters(&self) -> &'a [u8] {
        self.characters
    }

    /// The share of documents in the training corpus that contain a token.
    pub fn share(&self, token: u32) -> f64 {
        let held = self.counts.get(token as usize).copied().unwrap_or(0);
        f64::from(held) / f64::from(self.documents)
    }

    /// The direction common to the training corpus. Its squared length is the average share of a
    /// vector's squared length along it.
    pub(super) fn common(&self) -> &[f32] {
        &self.common
    }

    /// Adds a token's row, times a weight, to a sum. An id outside the vocabulary adds nothing.
    pub(super) fn add_row(&self, token: u32, weight: f32, sum: &mut [f32]) {
        let row = token as usize;
        let (Some(scale), Some(values)) = (
            self.scales.get(row),
            self.values.get(row * self.dims..).and_then(|rest| rest.get(..self.dims)),
        ) else {
            return;
        };
        let factor = weight * scale;
        for (total, value) in sum.iter_mut().zip(values) {
            *total += factor * f32::from(value.cast_signed());
        }
    }
}

/// Reads little-endian values from the front of a byte slice.
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], TableError> {
        let (taken, rest) =
            self.0.split_at_checked(bytes).ok_or(TableError::Damaged("it is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32, TableError> {
        Ok(u32::from_le_bytes(array(self.take(4)?)))
    }

    pub(super) fn size(&mut self) -> Result<usize, TableError> {
        usize::try_from(self.u32()?).map_err(|_| TableError::Damaged("its sizes are impossible"))
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<u32>, TableError> {
        Ok(self
            .take(count * 4)?
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes(array(four)))
            .collect())
    }

    pub(super) fn floats(&mut self, count: usize) -> Result<Vec<f32>, TableError> {
        let floats: Vec<f32> = self.numbers(count)?.into_iter().map(f32::from_bits).collect();
        if floats.iter().all(|one| one.is_finite()) {
            Ok(floats)
        } else {
            Err(TableError::Damaged("a number in it is not finite"))
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

fn text(bytes: &[u8]) -> Result<&str, TableError> {
    str::from_utf8(bytes).map_err(|_| TableError::Damaged("a text in it is not UTF-8"))
}

/// FNV-1a over 64-bit words: it detects damage, not tampering, and takes about a millisecond.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ u64::from_le_bytes(array(word))).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_parses() {
        let table = EmbeddingTable::built_in().unwrap();
        assert_eq!((table.rows(), table.dims()), (30_522, 256));
        assert!(table.identity().starts_with("klnode-static-"), "{}", table.identity());
        assert_eq!(table.tokens().nth(101), Some("[CLS]"));
    }

    #[test]
    fn a_table_cut_anywhere_is_an_error() {
        for length in (0..200).chain((200..BUILT_IN.len()).step_by(400_009)) {
            assert!(EmbeddingTable::parse(&BUILT_IN[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_changed_byte_is_an_error() {
        let mut bytes = BUILT_IN.to_vec();
        for at in (0..64).chain((64..bytes.len()).step_by(700_001)) {
            bytes[at] ^= 0x41;
            assert!(EmbeddingTable::parse(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x41;
        }
        assert!(EmbeddingTable::parse(&bytes).is_ok());
    }

    #[test]
    fn impossible_sizes_are_an_error_even_under_a_right_checksum() {
        for at in (16..36).step_by(4) {
            for size in [0, 1, 1 << 19, u32::MAX] {
                let mut bytes = BUILT_IN.to_vec();
                bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
                let checksum = fnv(&bytes[16..]);
                bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
                // Any number of documents above zero is valid.
                assert!(
                    EmbeddingTable::parse(&bytes).is_err() || (at == 24 && size > 0),
                    "{size} at {at}"
                );
            }
        }
    }
}
