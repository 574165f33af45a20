//! What BERT's uncased normaliser makes of each character.
//!
//! The table file carries this knowledge, read off the tokenizer it was trained with: accents are
//! stripped, case is folded, control characters vanish, punctuation and Chinese characters stand
//! alone. The standard library has no such tables, and a Unicode crate of another version would
//! tokenize some texts differently than the table was trained. The format is written down in
//! `node/model/make/characters.py`.

use super::table::{Reader, TableError};
use std::str;

const RANGE_BYTES: usize = 9;
const REPLACEMENT_BYTES: usize = 7;

/// What becomes of one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate<'a> {
    /// It is part of a word, as it is.
    Kept,
    /// It vanishes.
    Dropped,
    /// It ends a word.
    Space,
    /// It is a word of its own.
    Alone,
    /// These stand for it.
    Replaced(&'a str),
    /// A Hangul syllable, which falls into its letters by arithmetic.
    Hangul,
}

/// The fates of all characters, sorted by character.
#[derive(Debug, Clone)]
pub(super) struct Characters<'a> {
    ranges: Vec<(u32, u32, Fate<'a>)>,
    replacements: Vec<(u32, &'a str)>,
    ascii: Vec<Fate<'a>>,
}

impl<'a> Characters<'a> {
    /// Reads the section of the table file.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, TableError> {
        let mut reader = Reader(bytes);
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

    /// What becomes of a character.
    pub(super) fn fate(&self, character: char) -> Fate<'a> {
        let code = u32::from(character);
        match self.ascii.get(code as usize) {
            Some(fate) => *fate,
            None if (HANGUL_FIRST..=HANGUL_LAST).contains(&code) => Fate::Hangul,
            None => self.find(code),
        }
    }

    fn find(&self, code: u32) -> Fate<'a> {
        if let Ok(at) = self.replacements.binary_search_by_key(&code, |one| one.0) {
            return self.replacements.get(at).map_or(Fate::Kept, |one| Fate::Replaced(one.1));
        }
        let after = self.ranges.partition_point(|one| one.0 <= code);
        match after.checked_sub(1).and_then(|at| self.ranges.get(at)) {
            Some((_, last, fate)) if code <= *last => *fate,
            _ => Fate::Kept,
        }
    }
}

fn section<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    bytes: usize,
) -> Result<&'a [u8], TableError> {
    reader.take(count.checked_mul(bytes).ok_or(TableError::Damaged("its sizes are impossible"))?)
}

fn range<'a>(row: &[u8]) -> Result<(u32, u32, Fate<'a>), TableError> {
    let mut row = Reader(row);
    let (first, last) = (row.u32()?, row.u32()?);
    let fate = match row.take(1)? {
        [0] => Fate::Dropped,
        [1] => Fate::Space,
        [2] => Fate::Alone,
        _ => return Err(TableError::Damaged("a character in it has no known fate")),
    };
    Ok((first, last, fate))
}

fn replacement<'a>(row: &[u8], pool: &'a [u8]) -> Result<(u32, &'a str), TableError> {
    let mut row = Reader(row);
    let code = row.u32()?;
    let [low, high, length] = *row.take(3)? else {
        return Err(TableError::Damaged("it is cut short"));
    };
    let from = usize::from(u16::from_le_bytes([low, high]));
    pool.get(from..from + usize::from(length))
        .and_then(|bytes| str::from_utf8(bytes).ok())
        .map(|text| (code, text))
        .ok_or(TableError::Damaged("a character in it is replaced by no text"))
}

const HANGUL_FIRST: u32 = 0xac00;
const HANGUL_LAST: u32 = 0xd7a3;

/// The two or three letters of a Hangul syllable, as Unicode's canonical decomposition has them.
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
    use crate::index::embed::table::Table;

    #[test]
    fn each_kind_of_character_meets_its_fate() {
        let table = Table::built_in().unwrap();
        let characters = Characters::parse(table.characters()).unwrap();
        for (character, fate) in [
            ('a', Fate::Kept),
            ('A', Fate::Replaced("a")),
            ('é', Fate::Replaced("e")),
            ('İ', Fate::Replaced("i")),
            ('\u{301}', Fate::Dropped),
            ('\u{200b}', Fate::Dropped),
            ('\u{0}', Fate::Dropped),
            ('\t', Fate::Space),
            ('\u{3000}', Fate::Space),
            ('_', Fate::Alone),
            ('$', Fate::Alone),
            ('中', Fate::Alone),
            ('—', Fate::Alone),
            ('한', Fate::Hangul),
        ] {
            assert_eq!(characters.fate(character), fate, "{character:?}");
        }
    }

    #[test]
    fn a_hangul_syllable_falls_into_its_letters() {
        assert_eq!(hangul_letters('한').collect::<String>(), "\u{1112}\u{1161}\u{11ab}");
        assert_eq!(hangul_letters('가').collect::<String>(), "\u{1100}\u{1161}");
    }

    #[test]
    fn a_damaged_section_is_an_error() {
        let table = Table::built_in().unwrap();
        let bytes = table.characters();
        for length in (0..bytes.len()).step_by(97) {
            // Cutting the pool takes the text from under a replacement.
            assert!(Characters::parse(&bytes[..length]).is_err(), "cut at {length}");
        }
        let mut odd = bytes.to_vec();
        odd[16] = 9;
        assert!(Characters::parse(&odd).is_err());
    }
}
