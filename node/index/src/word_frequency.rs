//! The frequency of words in software texts, used before the store has enough texts of its own.
//!
//! In a store of three entries every word looks rare, so "the" would count like an identifier. The
//! embedding table contains the number of texts in its training corpus that hold each token; this
//! module converts that to a share for each word of [`words`](super::tokenizer). It is separate
//! from both: the table has tokens, and the tokenizer has no corpus.

use std::collections::HashMap;

use super::tokenizer::each_word;
use klnode_embed::embedding_table::{EmbeddingTable, TableError};

/// Words with a smaller share are omitted: they would not outweigh a single entry of the store.
const SHARE_MIN: f64 = 0.0005;

/// The share of texts in the training corpus that contain a word.
#[derive(Debug, Clone, Default)]
pub struct WordFrequencies(HashMap<String, f64>);

impl WordFrequencies {
    /// The shares from the compiled-in table.
    pub fn built_in() -> Result<Self, TableError> {
        let table = EmbeddingTable::built_in()?;
        let mut shares = HashMap::new();
        let common = (0..).zip(table.tokens()).filter(|(_, token)| !token.starts_with("##"));
        for (token, text) in common {
            // `read` and `reading` are two tokens and one word.
            each_word(text, |word| match shares.get_mut(word) {
                Some(share) => *share += table.share(token),
                None => drop(shares.insert(word.to_owned(), table.share(token))),
            });
        }
        shares.retain(|_, share| *share >= SHARE_MIN);
        shares.values_mut().for_each(|share| *share = share.min(1.0));
        Ok(Self(shares))
    }

    /// The share of texts that contain `word` in the form of [`words`](super::tokenizer); 0 for a
    /// rare word.
    #[must_use]
    pub fn of(&self, word: &str) -> f64 {
        self.0.get(word).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::WordFrequencies;

    #[test]
    fn common_words_have_built_in_shares() {
        let shares = WordFrequencies::built_in().unwrap();
        assert!(shares.of("the") > 0.2, "{}", shares.of("the"));
        assert!(shares.of("the") > shares.of("error") && shares.of("error") > 0.001);
        // `read`, `reads` and `reading` together, because the tokenizer folds them.
        assert!(shares.of("read") > 0.001 && shares.of("reading") == 0.0);
        assert_eq!(shares.of("econnrefus"), 0.0);
        assert!(shares.0.values().all(|share| (0.0..=1.0).contains(share)));
        assert!((500..10_000).contains(&shares.0.len()), "{}", shares.0.len());
    }
}
