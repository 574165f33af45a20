//! Adapts the tokenizer to tantivy's interface.

use crate::tokenizer;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The tokenizer in tantivy's form.
#[derive(Clone, Default)]
pub(super) struct Words;

impl Words {
    /// The name of the tokenizer in the schema; part of the index format.
    pub(super) const NAME: &'static str = "klnode-words";
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream {
        Stream { words: tokenizer::words(text).into_iter(), token: Token::default() }
    }
}

/// The token stream of one text.
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
