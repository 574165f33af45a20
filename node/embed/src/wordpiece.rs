//! Converts a text to token ids: BERT's uncased basic tokenizer, then WordPiece.
//!
//! It gives the same ids as the reference tokenizer, as golden files prove; special tokens such as
//! `[CLS]` are neither recognised nor added. Before that, [`WordPiece::words`] splits identifiers
//! at case changes, so that `connectionPool` becomes two words of the vocabulary. This module is
//! independent of vectors.

use super::embedding_table::{EmbeddingTable, TableError};
use super::normalizer::{CharacterRule, Characters, hangul_letters};
use std::borrow::Cow;
use std::collections::HashMap;

/// A longer word is unknown, as in the reference tokenizer.
const WORD_CHARS_MAX: usize = 100;
/// Bytes per token for text outside the vocabulary; about the ratio of language models.
pub(super) const UNKNOWN_BYTES_PER_TOKEN: usize = 4;

/// A vocabulary with lookup maps.
#[derive(Debug, Clone)]
pub struct WordPiece<'a> {
    starts: HashMap<Cow<'a, str>, u32>,
    continuations: HashMap<Cow<'a, str>, u32>,
    piece_bytes_max: usize,
    unknown: u32,
    special: Vec<u32>,
    characters: Characters<'a>,
}

impl<'a> WordPiece<'a> {
    /// The vocabulary of a table.
    pub fn new(table: &EmbeddingTable<'a>) -> Result<Self, TableError> {
        Self::of_tokens(table.tokens().map(Cow::Borrowed), Characters::parse(table.characters())?)
    }

    /// A vocabulary of tokens in order of id.
    pub(super) fn of_tokens(
        tokens: impl Iterator<Item = Cow<'a, str>>,
        characters: Characters<'a>,
    ) -> Result<Self, TableError> {
        let mut starts = HashMap::with_capacity(tokens.size_hint().0);
        let mut continuations = HashMap::new();
        let mut piece_bytes_max = 0;
        for (id, token) in (0..).zip(tokens) {
            piece_bytes_max = piece_bytes_max.max(token.len());
            match continuation(&token) {
                Some(rest) => continuations.insert(rest, id),
                None => starts.insert(token, id),
            };
        }
        let unknown =
            *starts.get("[UNK]").ok_or(TableError::Damaged("its vocabulary has no [UNK]"))?;
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
            .iter()
            .filter_map(|name| starts.get(*name).copied())
            .collect();
        Ok(Self { starts, continuations, piece_bytes_max, unknown, special, characters })
    }

    /// The ids of a text as the reference tokenizer gives them, including unknown words.
    pub fn ids(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        self.each_word(text, |word| {
            self.add_pieces(word, &mut ids);
        });
        ids
    }

    /// The number of tokens of a text for its reader, of any length: the tokens of its words,
    /// and an estimate by bytes for the rest. The rest is unknown words, and dropped characters in
    /// case they outnumber all others, because accents come with letters.
    pub fn cost(&self, text: &str) -> usize {
        let text = self.split_identifiers(text);
        let mut ids = Vec::with_capacity(text.len() / 4);
        let mut unknown = 0;
        let vanished = self.each_word(&text, |word| {
            if !self.add_pieces(word, &mut ids) {
                ids.pop();
                unknown += word.len().div_ceil(UNKNOWN_BYTES_PER_TOKEN);
            }
        });
        let kept = text.len() - vanished;
        let unseen = vanished.saturating_sub(kept).div_ceil(UNKNOWN_BYTES_PER_TOKEN);
        ids.len() + unknown + unseen
    }

    /// Calls `found` with the normalised words of a text, in order. Returns the number of dropped
    /// bytes.
    fn each_word(&self, text: &str, mut found: impl FnMut(&str)) -> usize {
        let (mut word, mut vanished) = (String::new(), 0);
        for character in text.chars() {
            match self.characters.rule(character) {
                CharacterRule::Kept => word.push(character),
                CharacterRule::Dropped => vanished += character.len_utf8(),
                CharacterRule::Space => end_word(&mut word, &mut found),
                CharacterRule::Alone => push_single(character, &mut word, &mut found),
                CharacterRule::Hangul => word.extend(hangul_letters(character)),
                CharacterRule::Replaced(with) => {
                    for character in with.chars() {
                        match self.characters.rule(character) {
                            CharacterRule::Space => end_word(&mut word, &mut found),
                            CharacterRule::Alone => push_single(character, &mut word, &mut found),
                            _ => word.push(character),
                        }
                    }
                }
            }
        }
        end_word(&mut word, &mut found);
        vanished
    }

    /// The ids of the words of a text that carry meaning: identifiers split, unknown words left
    /// out, at most `tokens_max`.
    pub fn words(&self, text: &str, tokens_max: usize) -> Vec<u32> {
        let mut ids = self.ids(&self.split_identifiers(text));
        ids.retain(|id| !self.special.contains(id));
        ids.truncate(tokens_max);
        ids
    }

    /// Splits `hashMap` and `HTTPServer` into words, unless the vocabulary has the whole. ASCII
    /// only; `_`, `/`, `.` and `:` end a word anyway.
    pub fn split_identifiers<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        while at < bytes.len() {
            let length =
                bytes.iter().skip(at).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let end = at + length;
            if let Some(word) = text.get(at..end).filter(|word| has_hump(word))
                && !self.starts.contains_key(word.to_ascii_lowercase().as_str())
            {
                for cut in (at + 1..end).filter(|cut| is_hump(&bytes[at..end], cut - at)) {
                    out.push_str(&text[copied..cut]);
                    out.push(' ');
                    copied = cut;
                }
            }
            at = end + 1;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Matches greedily: the longest piece in the vocabulary, then the longest after it. A word
    /// with an unmatched part is unknown as a whole. Returns whether the word is known.
    fn add_pieces(&self, word: &str, ids: &mut Vec<u32>) -> bool {
        let before = ids.len();
        let mut rest = word;
        let mut pieces = &self.starts;
        let known = word.chars().count() <= WORD_CHARS_MAX;
        while known && !rest.is_empty() {
            let longest = (1..=rest.len().min(self.piece_bytes_max))
                .rev()
                .filter_map(|bytes| rest.split_at_checked(bytes))
                .find_map(|(piece, after)| Some((*pieces.get(piece)?, after)));
            let Some((id, after)) = longest else {
                break;
            };
            ids.push(id);
            rest = after;
            pieces = &self.continuations;
        }
        if !rest.is_empty() {
            ids.truncate(before);
            ids.push(self.unknown);
        }
        rest.is_empty()
    }
}

fn push_single(character: char, word: &mut String, found: &mut impl FnMut(&str)) {
    end_word(word, found);
    word.push(character);
    end_word(word, found);
}

fn end_word(word: &mut String, found: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        found(word.as_str());
        word.clear();
    }
}

/// The text of a piece that continues a word, without its `##` prefix.
fn continuation<'a>(token: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    let rest = |text: &'a str| text.strip_prefix("##").map(Cow::Borrowed);
    let found = match token {
        Cow::Borrowed(text) => rest(text),
        Cow::Owned(text) => text.strip_prefix("##").map(|rest| Cow::Owned(rest.to_owned())),
    };
    found.filter(|rest| !rest.is_empty())
}

fn has_hump(word: &str) -> bool {
    (1..word.len()).any(|at| is_hump(word.as_bytes(), at))
}

/// True if a new word starts here: `aB`, `1B`, or the last capital of `ABc`.
fn is_hump(word: &[u8], at: usize) -> bool {
    let is = |offset: usize, test: fn(&u8) -> bool| word.get(offset).is_some_and(test);
    let upper = u8::is_ascii_uppercase;
    if !is(at, upper) || at == 0 {
        return false;
    }
    !is(at - 1, upper) || is(at + 1, u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden_files::{numbers, unescape};

    fn vocabulary() -> WordPiece<'static> {
        WordPiece::new(&EmbeddingTable::built_in().unwrap()).unwrap()
    }

    #[test]
    fn ids_match_the_reference_tokenizer() {
        let vocabulary = vocabulary();
        let golden = include_str!("../../model/golden/tokens.tsv");
        let mut checked = 0;
        for line in golden.lines() {
            let mut columns = line.split('\t');
            let text = unescape(columns.next().unwrap());
            let plain: Vec<u32> = numbers(columns.next().unwrap());
            let words: Vec<u32> = numbers(columns.next().unwrap());
            assert_eq!(vocabulary.ids(&text), plain, "{text:?}");
            assert_eq!(vocabulary.words(&text, usize::MAX), words, "{text:?}");
            checked += 1;
        }
        assert!(checked >= 200, "{checked}");
    }

    #[test]
    fn unknown_identifiers_are_split_at_case_changes() {
        let vocabulary = vocabulary();
        for (text, split) in [
            ("connectionPool", "connection Pool"),
            ("HTTPServer2Go", "HTTP Server2 Go"),
            ("TypeScript on YouTube", "Type Script on YouTube"),
            ("snake_case, SCREAMING_CASE", "snake_case, SCREAMING_CASE"),
            ("ein Übergang — fooBar", "ein Übergang — foo Bar"),
        ] {
            assert_eq!(vocabulary.split_identifiers(text), split);
        }
    }

    #[test]
    fn known_words_cost_their_number_of_tokens() {
        let vocabulary = vocabulary();
        let golden = include_str!("../../model/golden/tokens.tsv");
        let mut checked = 0;
        for line in golden.lines() {
            let text = unescape(line.split('\t').next().unwrap());
            let all = vocabulary.ids(&vocabulary.split_identifiers(&text)).len();
            let known = vocabulary.words(&text, usize::MAX).len();
            let is_known = known == all && vocabulary.each_word(&text, |_| {}) == 0;
            let cost = vocabulary.cost(&text);
            assert!(cost >= all && (cost == known || !is_known), "{text:?}: {cost}");
            checked += usize::from(is_known);
        }
        assert!(checked >= 100, "{checked}");
        let long = "word ".repeat(20_000);
        assert_eq!(vocabulary.cost(&long), 20_000, "however long it is");
        assert_eq!(vocabulary.cost("re\u{301}sume\u{301}"), vocabulary.cost("resume"));
    }

    #[test]
    fn unknown_text_costs_by_its_bytes() {
        let vocabulary = vocabulary();
        for (text, tokens) in [
            ("7f3a".repeat(15_000), 15_000),
            ("\u{1f980}".repeat(1_000), 1_000),
            (format!("word {}", "\u{1f980}".repeat(3)), 1 + 3),
            (format!("word {}", "x".repeat(101)), 1 + 26),
            ("\u{200b}".repeat(4_000), 3_000),
        ] {
            let start: String = text.chars().take(20).collect();
            assert_eq!(vocabulary.cost(&text), tokens, "{start}");
        }
    }

    #[test]
    fn words_are_bounded_and_exclude_unknown_ones() {
        let vocabulary = vocabulary();
        assert_eq!(vocabulary.words(&"word ".repeat(50), 7).len(), 7);
        assert_eq!(vocabulary.words(&"x".repeat(101), 7), Vec::<u32>::new());
        assert_eq!(vocabulary.words("", 7), Vec::<u32>::new());
    }
}
