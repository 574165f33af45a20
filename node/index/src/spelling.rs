//! Detects likely misspellings of words that the index contains.
//!
//! Keywords match whole words, so one wrong letter loses a match. In the measurements of
//! `docs/internals/retrieval.md` a misspelt word cost a fifth of the right answers to short
//! questions, and looking up its neighbours recovered most of them. Only unknown words are looked
//! up this way, so that a known word is never replaced.

/// Minimum length of a word to correct; shorter words have too many neighbours.
pub const LETTERS_MIN: usize = 5;
/// Maximum number of neighbours, the most common first, that replace a misspelt word.
pub const NEIGHBOURS_MAX: usize = 3;
/// The weight of a neighbour's match relative to a match of the word itself.
pub const NEIGHBOUR_WEIGHT: f64 = 0.8;

/// True if an unknown word may be replaced by neighbours: five or more ASCII letters.
#[must_use]
pub fn may_be_misspelt(word: &str) -> bool {
    word.len() >= LETTERS_MIN && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// True if one typing error turns `word` into `other`: an inserted, deleted or replaced letter, or
/// two swapped ones.
#[must_use]
pub fn is_one_slip_apart(word: &str, other: &str) -> bool {
    let (long, short) = if word.len() >= other.len() { (word, other) } else { (other, word) };
    let (long, short) = (long.as_bytes(), short.as_bytes());
    if long.len() - short.len() > 1 {
        return false;
    }
    let same = long.iter().zip(short).take_while(|(a, b)| a == b).count();
    match (&long[same..], &short[same..]) {
        ([], []) => false,
        ([_, long_rest @ ..], short_rest) if long.len() > short.len() => long_rest == short_rest,
        ([a, b, long_rest @ ..], [c, d, short_rest @ ..]) => {
            let swapped = a == d && b == c && long_rest == short_rest;
            swapped || (b == d && long_rest == short_rest)
        }
        (long_rest, short_rest) => long_rest.len() == short_rest.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_one_slip_apart, may_be_misspelt};

    #[test]
    fn one_slip_is_one_edit_or_one_swap() {
        for (word, other, expect) in [
            ("timeout", "timeout", false),
            ("timeout", "timeuot", true),
            ("timeout", "timout", true),
            ("timeout", "timeeout", true),
            ("timeout", "timeouts", true),
            ("timeout", "timeour", true),
            ("timeout", "rimeout", true),
            ("timeout", "timeoot", true),
            ("timeout", "itmeuot", false),
            ("timeout", "tmeot", false),
            ("timeout", "tiemuot", false),
            ("ab", "ba", true),
            ("", "a", true),
            ("", "", false),
            ("a", "b", true),
        ] {
            assert_eq!(is_one_slip_apart(word, other), expect, "{word} {other}");
            assert_eq!(is_one_slip_apart(other, word), expect, "{other} {word}");
        }
    }

    #[test]
    fn short_words_and_identifiers_are_not_corrected() {
        for (word, expect) in [
            ("timeot", true),
            ("abcde", true),
            ("abcd", false),
            ("e0308x", false),
            ("straße", false),
        ] {
            assert_eq!(may_be_misspelt(word), expect, "{word}");
        }
    }
}
