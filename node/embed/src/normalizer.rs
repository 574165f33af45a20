//! The character normalisation of BERT's uncased tokenizer.
//!
//! The table file contains it, derived from the tokenizer of its training: accents are stripped,
//! case is folded, control characters are dropped, punctuation and Chinese characters become single
//! words. The standard library has no such tables, and a Unicode crate of another version would
//! tokenize some texts differently than in training. `node/model/make/characters.py` documents the
//! format.

use super::embedding_table::{ByteReader, TableError};
use std::str;

const RANGE_BYTES: usize = 9;
const REPLACEMENT_BYTES: usize = 7;

/// The normalisation of one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharacterRule<'a> {
    /// Part of a word, unchanged.
    Kept,
    /// Removed without ending a word.
    Dropped,
    /// Ends a word and is removed.
    Space,
    /// A word of its own.
    Alone,
    /// Replaced by these characters.
    Replaced(&'a str),
    /// A Hangul syllable, which is decomposed into its letters by arithmetic.
    Hangul,
}

/// The normalisation of all characters, sorted by character.
#[derive(Debug, Clone)]
pub(super) struct Characters<'a> {
    ranges: Vec<(u32, u32, CharacterRule<'a>)>,
    replacements: Vec<(u32, &'a str)>,
    ascii: Vec<CharacterRule<'a>>,
}

impl<'a> Characters<'a> {
    /// Parses the section of the table file.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, TableError> {
        let mut reader = ByteReader(bytes);
        let (range_count, replacement_count) = (reader.size()?, reader.size()?);
        let ranges = section(&mut reader, range_count, RANGE_BYTES)?;
        let replacements = section(&mut reader, replacement_count, REPLACEMENT_BYTES)?;
        let pool = reader.0;
        let mut made = Self {
            ranges: ranges.chunks_exact(RANGE_BYTES).map(range).collect::<Result<_, _>>()?,
            replacements: replacements
                .chunks_exact(REPLACEMENT_BYTES)
                .map(|row| replacement(row, pool))
                .collect::<Result<_, _>>()?,
            ascii: Vec::new(),
        };
        if !made.ranges.is_sorted_by_key(|one| one.0)
            || !made.replacements.is_sorted_by_key(|one| one.0)
        {
            return Err(TableError::Damaged("its characters are out of order"));
        }
        made.ascii = (0..128).map(|code| made.find(code)).collect();
        Ok(made)
    }

    /// The normalisation of a character.
    pub(super) fn rule(&self, character: char) -> CharacterRule<'a> {
        let code = u32::from(character);
        match self.ascii.get(code as usize) {
            Some(rule) => *rule,
            None if (HANGUL_FIRST..=HANGUL_LAST).contains(&code) => CharacterRule::Hangul,
            None => self.find(code),
        }
    }

    fn find(&self, code: u32) -> CharacterRule<'a> {
        if let Ok(at) = self.replacements.binary_search_by_key(&code, |one| one.0) {
            return self
                .replacements
                .get(at)
                .map_or(CharacterRule::Kept, |one| CharacterRule::Replaced(one.1));
        }
        let after = self.ranges.partition_point(|one| one.0 <= code);
        match after.checked_sub(1).and_then(|at| self.ranges.get(at)) {
            Some((_, last, rule)) if code <= *last => *rule,
            _ => CharacterRule::Kept,
        }
    }
}

fn section<'a>(
    reader: &mut ByteReader<'a>,
    count: usize,
    bytes: usize,
) -> Result<&'a [u8], TableError> {
    reader.take(count.checked_mul(bytes).ok_or(TableError::Damaged("its sizes are impossible"))?)
}

fn range<'a>(row: &[u8]) -> Result<(u32, u32, CharacterRule<'a>), TableError> {
    let mut row = ByteReader(row);
    let (first, last) = (row.u32()?, row.u32()?);
    let rule = match row.take(1)? {
        [0] => CharacterRule::Dropped,
        [1] => CharacterRule::Space,
        [2] => CharacterRule::Alone,
        _ => return Err(TableError::Damaged("a character in it has an unknown rule")),
    };
    Ok((first, last, rule))
}

fn replacement<'a>(row: &[u8], pool: &'a [u8]) -> Result<(u32, &'a str), TableError> {
    let mut row = ByteReader(row);
    let code = row.u32()?;
    let [low, high, length] = *row.take(3)? else {
        return Err(TableError::Damaged("it is cut short"));
    };
    let from = usize::from(u16::from_le_bytes([low, high]));
    pool.get(from..from + usize::from(length))
        .and_then(|bytes| str::from_utf8(bytes).ok())
        .map(|text| (code, text))
        .ok_or(TableError::Damaged("a replacement in it is not valid text"))
}

const HANGUL_FIRST: u32 = 0xac00;
const HANGUL_LAST: u32 = 0xd7a3;

/// The two or three letters of a Hangul syllable, by Unicode's canonical decomposition.
pub(super) fn hangul_letters(syllable: char) -> impl Iterator<Item = char> {
    let index = u32::from(syllable).saturating_sub(HANGUL_FIRST);
    let tail = index % 28;
    let letters = [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11a7 + tail];
    let count = if tail == 0 { 2 } else { 3 };
    letters.into_iter().take(count).filter_map(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding_table::EmbeddingTable;

    #[test]
    fn each_kind_of_character_is_normalised() {
        let table = EmbeddingTable::built_in().unwrap();
        let characters = Characters::parse(table.characters()).unwrap();
        for (character, rule) in [
            ('a', CharacterRule::Kept),
            ('A', CharacterRule::Replaced("a")),
            ('é', CharacterRule::Replaced("e")),
            ('İ', CharacterRule::Replaced("i")),
            ('\u{301}', CharacterRule::Dropped),
            ('\u{200b}', CharacterRule::Dropped),
            ('\u{0}', CharacterRule::Dropped),
            ('\t', CharacterRule::Space),
            ('\u{3000}', CharacterRule::Space),
            ('_', CharacterRule::Alone),
            ('$', CharacterRule::Alone),
            ('中', CharacterRule::Alone),
            ('—', CharacterRule::Alone),
            ('한', CharacterRule::Hangul),
        ] {
            assert_eq!(characters.rule(character), rule, "{character:?}");
        }
    }

    #[test]
    fn a_hangul_syllable_is_decomposed() {
        assert_eq!(hangul_letters('한').collect::<String>(), "\u{1112}\u{1161}\u{11ab}");
        assert_eq!(hangul_letters('가').collect::<String>(), "\u{1100}\u{1161}");
    }

    #[test]
    fn a_damaged_section_is_an_error() {
        let table = EmbeddingTable::built_in().unwrap();
        let bytes = table.characters();
        for length in (0..bytes.len()).step_by(97) {
            // Cutting the pool removes the text of a replacement.
            assert!(Characters::parse(&bytes[..length]).is_err(), "cut at {length}");
        }
        let mut odd = bytes.to_vec();
        odd[16] = 9;
        assert!(Characters::parse(&odd).is_err());
    }
}
