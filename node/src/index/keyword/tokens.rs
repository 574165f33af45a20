//! Our own words, as tantivy wants to be handed them.

use crate::index::words;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Cuts a text into words.
#[derive(Clone, Default)]
pub(super) struct Words;

impl Words {
    /// What the schema calls it.
    pub(super) const NAME: &'static str = "klnode-words";
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream {
        Stream { words: words::words(text).into_iter(), token: Token::default() }
    }
}

/// The words of one text.
pub(super) struct Stream {
    words: std::vec::IntoIter<String>,
    token: Token,
}

impl TokenStream for Stream {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        self.token.text = word;
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
