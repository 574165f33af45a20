//! A question as a few hashes of its telling words, by which similar questions are recognised.
//!
//! Separate from `candidates`, which looks words up: a sketch is stored with an entry that answered
//! weakly, and has to be the same whatever else the store holds by then.

use crate::index::shares::Shares;
use crate::index::words::each_word;
use klnode_scoring::weakness::Sketch;

/// A word that a greater share of texts about software holds does not tell questions apart.
const SHARE_MAX: f64 = 0.05;

/// The sketch of a question. One of common words alone is made of those.
pub(super) fn sketch(question: &str, shares: &Shares) -> Sketch {
    let (mut telling, mut common) = (Vec::new(), Vec::new());
    each_word(question, |word| {
        let words = if shares.of(word) > SHARE_MAX { &mut common } else { &mut telling };
        words.push(hash(word));
    });
    Sketch::new(if telling.is_empty() { common } else { telling })
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
    fn a_question_in_other_order_or_with_other_filler_is_similar_and_another_is_not() {
        let shares = Shares::built_in().unwrap();
        let of = |text: &str| sketch(text, &shares);
        let asked = of("how long does the connection pool wait");
        assert_eq!(asked.similarity(&of("How long does the connection pool wait?")), 1.0);
        assert!(asked.similarity(&of("connection pool wait how long is it")) >= 0.5);
        assert!(asked.similarity(&of("which tenant comes first in a cache key")) < 0.5);
        assert!(of("").hashes().is_empty());
        assert!(!of("what is the").hashes().is_empty());
    }
}
