//! Reduces a question to a few hashes of its informative words, so that similar questions can be
//! recognised.
//!
//! This is separate from `candidates`, which looks words up in the index: a sketch is stored with
//! an entry that answered weakly, so it must not depend on the contents of the store.

use klnode_index::tokenizer::each_word;
use klnode_index::word_frequency::WordFrequencies;
use klnode_scoring::weak_answers::QuerySketch;

/// A word that occurs in a larger share of software texts is too common to distinguish questions.
const SHARE_MAX: f64 = 0.05;

/// The sketch of a question. If the question has common words only, those are used.
pub(super) fn sketch(question: &str, shares: &WordFrequencies) -> QuerySketch {
    let (mut telling, mut common) = (Vec::new(), Vec::new());
    each_word(question, |word| {
        let words = if shares.of(word) > SHARE_MAX { &mut common } else { &mut telling };
        words.push(hash(word));
    });
    QuerySketch::new(if telling.is_empty() { common } else { telling })
}

/// The hash of a word; part of the store's format.
fn hash(word: &str) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&blake3::hash(word.as_bytes()).as_bytes()[..4]);
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_ignores_word_order_and_filler_words() {
        let shares = WordFrequencies::built_in().unwrap();
        let of = |text: &str| sketch(text, &shares);
        let asked = of("how long does the connection pool wait");
        assert_eq!(asked.similarity(&of("How long does the connection pool wait?")), 1.0);
        assert!(asked.similarity(&of("connection pool wait how long is it")) >= 0.5);
        assert!(asked.similarity(&of("which tenant comes first in a cache key")) < 0.5);
        assert!(of("").hashes().is_empty());
        assert!(!of("what is the").hashes().is_empty());
    }
}
