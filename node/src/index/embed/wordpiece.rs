//! Text to token ids: BERT's uncased basic tokenizer, then WordPiece.
//!
//! The same ids as the reference tokenizer gives, proved by golden files; special tokens such as
//! `[CLS]` are neither recognised nor added. Before it, [`WordPiece::words`] cuts identifiers at
//! their humps, so that `connectionPool` is two words that the vocabulary knows. Nothing here
//! knows of vectors.

use super::characters::{Characters, Fate, hangul_letters};
use super::table::{Table, TableError};
use std::borrow::Cow;
use std::collections::HashMap;

/// A longer word is unknown, as in the reference tokenizer.
const WORD_CHARS_MAX: usize = 100;
/// What the vocabulary does not know costs a token for so many bytes: about what language models make
/// of it.
pub(super) const UNKNOWN_BYTES_PER_TOKEN: usize = 4;

/// A vocabulary, ready for use.
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
    pub fn new(table: &Table<'a>) -> Result<Self, TableError> {
        Self::of_tokens(table.tokens().map(Cow::Borrowed), Characters::parse(table.characters())?)
    }

    /// A vocabulary of tokens in the order of their ids.
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

    /// The ids of a text as the reference tokenizer gives them, unknown words included.
    pub fn ids(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        self.each_word(text, |word| {
            self.add_pieces(word, &mut ids);
        });
        ids
    }

    /// How many tokens a text costs whoever reads it, however long it is: those of its words, and what
    /// is no word by its bytes. That is unknown words, and characters that vanish where they are more
    /// than all others: accents come with letters.
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

    /// Hands over the words of a text in their normal form, in their order. Returns how many bytes of
    /// it vanish.
    fn each_word(&self, text: &str, mut found: impl FnMut(&str)) -> usize {
        let (mut word, mut vanished) = (String::new(), 0);
        for character in text.chars() {
            match self.characters.fate(character) {
                Fate::Kept => word.push(character),
                Fate::Dropped => vanished += character.len_utf8(),
                Fate::Space => end_word(&mut word, &mut found),
                Fate::Alone => lone(character, &mut word, &mut found),
                Fate::Hangul => word.extend(hangul_letters(character)),
                Fate::Replaced(with) => {
                    for character in with.chars() {
                        match self.characters.fate(character) {
                            Fate::Space => end_word(&mut word, &mut found),
                            Fate::Alone => lone(character, &mut word, &mut found),
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

    /// Cuts `hashMap` and `HTTPServer` into words, unless the vocabulary knows the whole. ASCII
    /// only; `_`, `/`, `.` and `:` need no help, since punctuation ends a word.
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

    /// Greedy: the longest piece that the vocabulary knows, then the longest after it. A word with
    /// a part that nothing matches is unknown as a whole. Whether it is known.
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

fn lone(character: char, word: &mut String, found: &mut impl FnMut(&str)) {
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

/// What follows the marks of a piece that continues a word.
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

/// Whether a new word starts here: `aB`, `1B`, or the last capital of `ABc`.
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
    use crate::index::embed::golden::{numbers, unescape};

    fn vocabulary() -> WordPiece<'static> {
        WordPiece::new(&Table::built_in().unwrap()).unwrap()
    }

    #[test]
    fn ids_are_those_of_the_reference_tokenizer() {
        let vocabulary = vocabulary();
        let golden = include_str!("../../../model/golden/tokens.tsv");
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
    fn identifiers_are_cut_at_their_humps_unless_the_vocabulary_knows_them() {
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
    fn a_text_of_known_words_costs_as_many_tokens_as_it_has() {
        let vocabulary = vocabulary();
        let golden = include_str!("../../../model/golden/tokens.tsv");
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
    fn what_the_vocabulary_does_not_know_costs_by_its_bytes() {
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
    fn words_are_bounded_and_unknown_ones_left_out() {
        let vocabulary = vocabulary();
        assert_eq!(vocabulary.words(&"word ".repeat(50), 7).len(), 7);
        assert_eq!(vocabulary.words(&"x".repeat(101), 7), Vec::<u32>::new());
        assert_eq!(vocabulary.words("", 7), Vec::<u32>::new());
    }
}
