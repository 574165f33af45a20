//! The difference of two texts, as splices that merge well and as lines that people read.
//!
//! Lines are compared first, then the words of the lines that differ, then the code points at both ends
//! of the words that differ. A merge of two edits joins their splices. Splices of whole words keep a
//! sentence readable where two authors changed it; a comparison of code points alone would mix the
//! letters of two words that have some in common.

use crate::change_hash::ChangeHash;
use crate::document::{TextDocument, UnknownVersion};
use crate::sequence_diff::{DiffRange, differences};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of lines that may differ before the comparison of lines gives up.
const LINE_COST_MAX: usize = 1_000;
/// Number of words that may differ before the comparison of words gives up.
const WORD_COST_MAX: usize = 500;

/// Deletes code points at a position and inserts a text there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextSplice<'a> {
    /// Position in code points.
    pub(crate) at: usize,
    /// Number of code points to delete.
    pub(crate) deleted: usize,
    pub(crate) inserted: &'a str,
}

/// Consecutive lines of one version and the lines of another version that replace them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineDifference {
    /// Index of the first removed line in the old version; the first line is 0.
    pub old_line: usize,
    /// Removed lines, with their line ends.
    pub removed: Vec<String>,
    /// Index of the first added line in the new version; the first line is 0.
    pub new_line: usize,
    /// Added lines, with their line ends.
    pub added: Vec<String>,
}

impl TextDocument {
    /// The lines in which two versions differ, ascending.
    ///
    /// # Errors
    ///
    /// [`UnknownVersion`] if a head of one of them is not an applied change.
    pub fn diff(
        &self,
        from: &[ChangeHash],
        to: &[ChangeHash],
    ) -> Result<Vec<LineDifference>, UnknownVersion> {
        Ok(line_differences(&self.text_at(from)?, &self.text_at(to)?))
    }
}

/// The lines in which two texts differ, ascending.
pub fn line_differences(old: &str, new: &str) -> Vec<LineDifference> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    diff_tokens(&old_lines, &new_lines, LINE_COST_MAX)
        .into_iter()
        .map(|range| LineDifference {
            old_line: range.old.start,
            removed: own(&old_lines[range.old]),
            new_line: range.new.start,
            added: own(&new_lines[range.new]),
        })
        .collect()
}

/// The splices that turn `old` into `new`, ascending. Positions refer to `old`.
pub(crate) fn splices<'a>(old: &str, new: &'a str) -> Vec<TextSplice<'a>> {
    let mut splices = SpliceList { old, new, splices: Vec::new(), byte: 0, position: 0 };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let ranges = diff_tokens(&old_lines, &new_lines, LINE_COST_MAX);
    let (old_starts, new_starts) = (starts(&old_lines), starts(&new_lines));
    for range in ranges {
        let old_bytes = old_starts[range.old.start]..old_starts[range.old.end];
        let new_bytes = new_starts[range.new.start]..new_starts[range.new.end];
        for (old_bytes, new_bytes) in word_differences(old, old_bytes, new, new_bytes) {
            splices.push(old_bytes, new_bytes);
        }
    }
    splices.splices
}

/// Splices in ascending order, and the position of the last one in bytes and code points.
struct SpliceList<'a, 'b> {
    old: &'b str,
    new: &'a str,
    splices: Vec<TextSplice<'a>>,
    byte: usize,
    position: usize,
}

impl SpliceList<'_, '_> {
    /// Adds a splice without the code points that both texts have at its ends.
    fn push(&mut self, old_bytes: Range<usize>, new_bytes: Range<usize>) {
        let (old, new) = (&self.old[old_bytes.clone()], &self.new[new_bytes.clone()]);
        let common = |pair: &(char, char)| pair.0 == pair.1;
        let prefix: usize = old
            .chars()
            .zip(new.chars())
            .take_while(common)
            .map(|(character, _)| character.len_utf8())
            .sum();
        let ends = old[prefix..].chars().rev().zip(new[prefix..].chars().rev());
        let suffix: usize =
            ends.take_while(common).map(|(character, _)| character.len_utf8()).sum();
        let start = old_bytes.start + prefix;
        let deleted = self.old[start..old_bytes.end - suffix].chars().count();
        let inserted = &self.new[new_bytes.start + prefix..new_bytes.end - suffix];
        if deleted == 0 && inserted.is_empty() {
            return;
        }
        self.position += self.old[self.byte..start].chars().count();
        self.byte = start;
        self.splices.push(TextSplice { at: self.position, deleted, inserted });
    }
}

/// The byte ranges in which the words of two passages differ.
fn word_differences(
    old: &str,
    old_bytes: Range<usize>,
    new: &str,
    new_bytes: Range<usize>,
) -> Vec<(Range<usize>, Range<usize>)> {
    let old_words = words(&old[old_bytes.clone()]);
    let new_words = words(&new[new_bytes.clone()]);
    // A passage of which more than half is new is replaced as a whole.
    let cost_max = WORD_COST_MAX.min(old_words.len().midpoint(new_words.len()));
    let ranges = diff_tokens(&old_words, &new_words, cost_max);
    let (old_starts, new_starts) = (starts(&old_words), starts(&new_words));
    join_phrases(ranges, &old_words)
        .into_iter()
        .map(|range| {
            let bytes = |starts: &[usize], range: Range<usize>, at: usize| {
                starts[range.start] + at..starts[range.end] + at
            };
            (
                bytes(&old_starts, range.old, old_bytes.start),
                bytes(&new_starts, range.new, new_bytes.start),
            )
        })
        .collect()
}

/// Joins differences that only one space or punctuation mark separates: they form one phrase.
fn join_phrases(ranges: Vec<DiffRange>, old_words: &[&str]) -> Vec<DiffRange> {
    let mut joined: Vec<DiffRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if is_separator(&old_words[last.old.end..range.old.start]) => {
                last.old.end = range.old.end;
                last.new.end = range.new.end;
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn is_separator(words: &[&str]) -> bool {
    matches!(words, [word] if *word != "\n" && !word.contains(is_word_character))
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Words, and every other code point alone.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_word_character(first) {
            rest.find(|character| !is_word_character(character)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, tail) = rest.split_at(length);
        words.push(word);
        rest = tail;
    }
    words
}

/// The byte at which each token starts, and the end of the last one.
fn starts(tokens: &[&str]) -> Vec<usize> {
    let mut at = 0;
    let ends = tokens.iter().map(|token| {
        at += token.len();
        at
    });
    std::iter::once(0).chain(ends).collect()
}

/// Compares tokens by number, which is faster than by text.
fn diff_tokens<'a>(old: &[&'a str], new: &[&'a str], cost_max: usize) -> Vec<DiffRange> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut number_all = |tokens: &[&'a str]| -> Vec<u32> {
        let number = |token: &&'a str| {
            let next = numbers.len() as u32;
            *numbers.entry(token).or_insert(next)
        };
        tokens.iter().map(number).collect()
    };
    let (old, new) = (number_all(old), number_all(new));
    differences(&old, &new, cost_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(old: &str, splices: &[TextSplice<'_>]) -> String {
        let old: Vec<char> = old.chars().collect();
        let mut result = String::new();
        let mut at = 0;
        for splice in splices {
            result.extend(&old[at..splice.at]);
            result.push_str(splice.inserted);
            at = splice.at + splice.deleted;
        }
        result.extend(&old[at..]);
        result
    }

    #[test]
    fn a_changed_word_becomes_one_splice_of_its_changed_letters() {
        let found = splices("one\nthe colour red\nend\n", "one\nthe color red\nend\n");
        assert_eq!(found, [TextSplice { at: 12, deleted: 1, inserted: "" }]);
    }

    #[test]
    fn neighbouring_words_become_one_splice() {
        let found = splices("the quick fox runs", "the slow dog runs");
        assert_eq!(found, [TextSplice { at: 4, deleted: 9, inserted: "slow dog" }]);
    }

    #[test]
    fn positions_are_code_points() {
        let found = splices("äöü 🦀 x\n", "äöü 🦀 y\n");
        assert_eq!(found, [TextSplice { at: 6, deleted: 1, inserted: "y" }]);
    }

    #[test]
    fn the_splices_turn_the_old_text_into_the_new_one() {
        fn law(old: Vec<u8>, new: Vec<u8>) -> bool {
            let pieces = ["a", "b", "ab", " ", "\n", "ö", "🦀", ".", "# x", "\n\n"];
            let text = |items: Vec<u8>| -> String {
                items.iter().map(|item| pieces[usize::from(*item) % pieces.len()]).collect()
            };
            let (old, new) = (text(old), text(new));
            apply(&old, &splices(&old, &new)) == new
        }
        quickcheck::quickcheck(law as fn(Vec<u8>, Vec<u8>) -> bool);
    }

    #[test]
    fn lines_that_differ_are_listed_with_their_numbers() {
        let found = line_differences("a\nb\nc\n", "a\nx\ny\nc\nd\n");
        let of = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let first = LineDifference {
            old_line: 1,
            removed: of(&["b\n"]),
            new_line: 1,
            added: of(&["x\n", "y\n"]),
        };
        let second =
            LineDifference { old_line: 3, removed: of(&[]), new_line: 4, added: of(&["d\n"]) };
        assert_eq!(found, [first, second]);
    }
}
