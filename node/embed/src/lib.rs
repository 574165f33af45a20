//! Embedders, which turn texts into vectors: the trait, and the function that opens one.
//!
//! Two texts are similar if the dot product of their vectors is near one. By default
//! [`StaticEmbedder`] computes the vectors from a compiled-in table. A server may replace it behind
//! [`Embedder`]: it costs more, and receives every text. [`open`] selects the embedder once; no other code here reads the configuration or
//! the environment.

pub mod embedding_table;
pub mod endpoint;
mod error;
mod normalizer;
mod static_embedder;
pub mod token_weights;
mod weights_file;
pub mod wordpiece;

#[cfg(test)]
mod golden_files;

pub use embedding_table::DIMS_MAX;
pub use error::EmbedError;
pub use static_embedder::{StaticEmbedder, TOKENS_MAX};
pub use weights_file::WeightsFileError;

use std::fmt;
use std::sync::Arc;
use token_weights::TokenWeights;

/// Turns texts into vectors that are compared by dot product. Calls block until the vectors are
/// there.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Model and generation, known without a request to a server. Vectors are comparable only if
    /// identity and number of dimensions are both equal.
    fn identity(&self) -> &str;

    /// The number of dimensions of a vector. A server is asked once, and must be reachable for it.
    fn dims(&self) -> Result<usize, EmbedError>;

    /// The number of dimensions, if it is known without a request to a server.
    fn dims_at_hand(&self) -> Option<usize> {
        self.dims().ok()
    }

    /// One vector for each text, of length one, or all zeros for a text without a known word.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The vector of a query with a waiting caller; has a shorter timeout than [`Self::embed`].
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vectors = self.embed(&[text])?;
        Ok(vectors.pop().expect("an embedder gives one vector for each text"))
    }

    /// True if vectors are computed locally and at once. A question may then embed any text it
    /// needs; a slow embedder is called only for the vector of the question itself, because its
    /// latency is unknown.
    fn is_instant(&self) -> bool {
        false
    }

    /// The next generation: this embedder after fitting to all texts of the store; `None` if it has
    /// nothing to fit.
    fn refit(&self, _texts: &mut dyn Iterator<Item = String>) -> Option<Arc<dyn Embedder>> {
        None
    }

    /// The fitted weights of this generation, which [`TokenWeights::to_bytes`] saves over a restart.
    fn weights(&self) -> Option<&TokenWeights> {
        None
    }

    /// This embedder with saved weights; `None` if the weights do not belong to it.
    fn resume(&self, _weights: TokenWeights) -> Option<Arc<dyn Embedder>> {
        None
    }

    /// Ends calls that wait for a server and makes later ones fail at once, because the node is
    /// stopping.
    fn stop(&self) {}
}

/// The configured embedder, with its parameters.
#[derive(Debug, Clone)]
pub enum Settings {
    /// The compiled-in table.
    BuiltIn,
    /// An HTTP server with the OpenAI or the Ollama protocol.
    Endpoint(endpoint::Settings),
}

/// Opens the configured embedder. It reads files, but never waits for a server.
pub fn open(settings: Settings) -> Result<Arc<dyn Embedder>, EmbedError> {
    match settings {
        Settings::BuiltIn => Ok(Arc::new(StaticEmbedder::built_in()?)),
        Settings::Endpoint(settings) => Ok(Arc::new(endpoint::EndpointEmbedder::new(settings)?)),
    }
}

/// The compiled-in embedder before any fitting to a store; `None` if its table is damaged. For
/// results that must not depend on the node's embedder or its weights.
pub fn compiled_in() -> Option<&'static StaticEmbedder> {
    static WORDS: std::sync::OnceLock<Option<StaticEmbedder>> = std::sync::OnceLock::new();
    WORDS.get_or_init(|| StaticEmbedder::built_in().ok()).as_ref()
}

/// The number of tokens of a text for its reader, by the compiled-in vocabulary. The whole text
/// counts, even beyond the part that is embedded.
pub fn count_tokens(text: &str) -> usize {
    let by_bytes = || text.len().div_ceil(wordpiece::UNKNOWN_BYTES_PER_TOKEN);
    compiled_in().map_or_else(by_bytes, |words| words.cost(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_embedder_opens_without_files() {
        let embedder = open(Settings::BuiltIn).unwrap();
        assert!(embedder.identity().starts_with("klnode-static-"), "{}", embedder.identity());
        assert_eq!((embedder.dims(), embedder.is_instant()), (Ok(256), true));
        assert_eq!(embedder.embed(&["a word", "another"]).unwrap().len(), 2);
    }
}
