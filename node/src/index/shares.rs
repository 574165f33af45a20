//! How common words are in texts about software, before the store has said it.
//!
//! In a store of three entries every word looks rare, so that "the" would count like a name. The
//! embedding table knows how many texts of its training corpus hold each of its tokens; this file
//! turns that into a share for each word of [`words`](super::words). Separate from both: the table
//! knows tokens, the words know no corpus.

use std::collections::HashMap;

use super::embed::table::{Table, TableError};
use super::words::each_word;

/// A rarer word counts as rare: it would not outweigh one entry of the store.
const SHARE_MIN: f64 = 0.0005;

/// The share of the training corpus's texts that hold a word.
#[derive(Debug, Clone, Default)]
pub struct Shares(HashMap<String, f64>);

impl Shares {
    /// Of the table that is compiled in.
    pub fn built_in() -> Result<Self, TableError> {
        let table = Table::built_in()?;
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

    /// The share of texts that hold `word`, as [`words`](super::words) gives it; 0 for a rare one.
    #[must_use]
    pub fn of(&self, word: &str) -> f64 {
        self.0.get(word).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Shares;

    #[test]
    fn common_words_are_known_before_the_store_knows_them() {
        let shares = Shares::built_in().unwrap();
        assert!(shares.of("the") > 0.2, "{}", shares.of("the"));
        assert!(shares.of("the") > shares.of("error") && shares.of("error") > 0.001);
        // `read`, `reads` and `reading` together, as the words fold them.
        assert!(shares.of("read") > 0.001 && shares.of("reading") == 0.0);
        assert_eq!(shares.of("econnrefus"), 0.0);
        assert!(shares.0.values().all(|share| (0.0..=1.0).contains(share)));
        assert!((500..10_000).contains(&shares.0.len()), "{}", shares.0.len());
    }
}
