//! Texts to vectors: the trait, and the one way to get an embedder.
//!
//! Two texts are alike when the dot product of their vectors is near one. By default
//! [`StaticEmbedder`] makes the vectors, from a table that is compiled in. A transformer in a local
//! folder, or a server, may take its place behind [`Embedder`]: both cost more, and the server reads
//! every text it is asked about. Which one is used is decided once, by [`open`]; nothing else here
//! looks at the configuration or the environment.

mod built_in;
mod characters;
pub mod endpoint;
mod error;
mod saved;
pub mod table;
#[cfg(feature = "transformer")]
pub mod transformer;
pub mod weights;
pub mod wordpiece;

#[cfg(test)]
mod golden;

pub use built_in::{StaticEmbedder, TOKENS_MAX};
pub use error::EmbedError;
pub use saved::WeightsError;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weights::Weights;

/// Turns texts into vectors that compare by dot product. Calls block until the vectors are there.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Model and generation, known without asking anyone. Vectors compare only where identity and
    /// number of dimensions are both equal.
    fn identity(&self) -> &str;

    /// How many numbers a vector has. A server is asked once, and has to be there for it.
    fn dims(&self) -> Result<usize, EmbedError>;

    /// How many numbers a vector has, where that is known without asking anyone.
    fn dims_at_hand(&self) -> Option<usize> {
        self.dims().ok()
    }

    /// One vector for each text, of length one, or all zeros for a text without a known word.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The vector of a query, for which somebody waits: given up sooner than [`Self::embed`].
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vectors = self.embed(&[text])?;
        Ok(vectors.pop().expect("an embedder gives one vector for each text"))
    }

    /// Whether vectors are made here and at once. For such a one a question embeds whatever it comes
    /// upon; any other is asked for the question's own vector and nothing else, since nobody can tell
    /// how long the rest would take.
    fn is_instant(&self) -> bool {
        false
    }

    /// The next generation: this embedder after it has learnt from all texts of the store, or none
    /// where there is nothing to learn and one generation lasts for ever.
    fn refit(&self, _texts: &mut dyn Iterator<Item = String>) -> Option<Arc<dyn Embedder>> {
        None
    }

    /// What this generation has learnt, to be kept over a restart with [`Weights::to_bytes`].
    fn weights(&self) -> Option<&Weights> {
        None
    }

    /// This embedder under weights that were kept, or none where they are not its own.
    fn resume(&self, _weights: Weights) -> Option<Arc<dyn Embedder>> {
        None
    }

    /// Ends calls that wait for a server, and lets later ones fail at once: the node is stopping.
    fn stop(&self) {}
}

/// Which embedder, with everything it needs.
#[derive(Debug, Clone)]
pub enum Settings {
    /// The table that is compiled in.
    BuiltIn,
    /// A transformer in a folder of this machine.
    Folder(PathBuf),
    /// A server.
    Endpoint(endpoint::Settings),
}

/// The embedder that was chosen. Reads files, and never waits for a server.
pub fn open(settings: Settings) -> Result<Arc<dyn Embedder>, EmbedError> {
    match settings {
        Settings::BuiltIn => Ok(Arc::new(StaticEmbedder::built_in()?)),
        Settings::Folder(folder) => open_folder(&folder),
        Settings::Endpoint(settings) => Ok(Arc::new(endpoint::EndpointEmbedder::new(settings)?)),
    }
}

#[cfg(feature = "transformer")]
fn open_folder(folder: &Path) -> Result<Arc<dyn Embedder>, EmbedError> {
    Ok(Arc::new(transformer::TransformerEmbedder::open(folder)?))
}

#[cfg(not(feature = "transformer"))]
fn open_folder(folder: &Path) -> Result<Arc<dyn Embedder>, EmbedError> {
    Err(EmbedError::NoTransformer { folder: folder.to_owned() })
}

/// The embedder that is compiled in, as it is before it has learnt from any store; none if it
/// cannot be read. For what must not depend on which embedder a node uses, nor on what it has learnt.
pub fn compiled_in() -> Option<&'static StaticEmbedder> {
    static WORDS: std::sync::OnceLock<Option<StaticEmbedder>> = std::sync::OnceLock::new();
    WORDS.get_or_init(|| StaticEmbedder::built_in().ok()).as_ref()
}

/// How many tokens a text costs whoever reads it, by the vocabulary that is compiled in. All of it
/// counts, whether or not a vector is made of it.
pub fn count_tokens(text: &str) -> usize {
    let by_bytes = || text.len().div_ceil(wordpiece::UNKNOWN_BYTES_PER_TOKEN);
    compiled_in().map_or_else(by_bytes, |words| words.cost(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_embedder_is_opened_with_nothing_at_hand() {
        let embedder = open(Settings::BuiltIn).unwrap();
        assert!(embedder.identity().starts_with("klnode-static-"), "{}", embedder.identity());
        assert_eq!((embedder.dims(), embedder.is_instant()), (Ok(256), true));
        assert_eq!(embedder.embed(&["a word", "another"]).unwrap().len(), 2);
    }

    #[cfg(not(feature = "transformer"))]
    #[test]
    fn a_program_without_the_transformer_says_how_to_get_one_with_it() {
        let failure = open(Settings::Folder("/models/minilm".into())).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "use the model in /models/minilm: this klnode was built without the feature \
             `transformer`; build it with `--features transformer`, or set embedder.kind to \
             \"built_in\""
        );
    }
}
