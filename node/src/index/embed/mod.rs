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
pub mod weights;
pub mod wordpiece;

#[cfg(test)]
mod golden;

pub use built_in::{StaticEmbedder, TOKENS_MAX};
pub use error::EmbedError;
pub use saved::WeightsError;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use weights::Weights;

/// Turns texts into vectors that compare by dot product. Calls block until the vectors are there.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Model and generation, known without asking anyone. Vectors compare only where identity and
    /// number of dimensions are both equal.
    fn identity(&self) -> &str;

    /// How many numbers a vector has. A server is asked once, and has to be there for it.
    fn dims(&self) -> Result<usize, EmbedError>;

    /// One vector for each text, of length one, or all zeros for a text without a known word.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The vector of a query, for which somebody waits: given up sooner than [`Self::embed`].
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vectors = self.embed(&[text])?;
        Ok(vectors.pop().expect("an embedder gives one vector for each text"))
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

struct Model {
    table: Table<'static>,
    words: WordPiece<'static>,
}

impl StaticEmbedder {
    /// The built-in table, weighted by the corpus it was trained on: for a store without entries.
    pub fn built_in() -> Result<Self, TableError> {
        let table = Table::built_in()?;
        let words = WordPiece::new(&table)?;
        let weights = Corpus::new(&table).weights(&table);
        Ok(Self::of(Arc::new(Model { table, words }), weights))
    }

    /// The same table under other weights: the next generation.
    #[must_use]
    pub fn with_weights(&self, weights: Weights) -> Self {
        Self::of(Arc::clone(&self.model), weights)
    }

    /// The weights of a store's texts, for [`Self::with_weights`].
    pub fn weights_of<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Weights {
        let mut corpus = Corpus::new(&self.model.table);
        for text in texts {
            corpus.add(self.tokens(text));
        }
        corpus.weights(&self.model.table)
    }

    /// The tokens of a text that its vector is made of.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.model.words.words(text, TOKENS_MAX)
    }

    /// The share of the texts in the training corpus that hold a word, given in lower case: what is
    /// known of a word before the store is large. A word of several tokens is rare.
    pub fn share(&self, word: &str) -> f64 {
        match *self.tokens(word).as_slice() {
            [token] => self.model.table.share(token),
            _ => 0.0,
        }
    }

    /// The digest of the weights in use.
    pub fn generation(&self) -> u64 {
        self.weights.generation()
    }

    fn of(model: Arc<Model>, weights: Weights) -> Self {
        let identity = format!("{}+{:016x}", model.table.identity(), weights.generation());
        Self { model, weights: Arc::new(weights), identity: identity.into() }
    }
}

fn open_folder(folder: PathBuf) -> Result<Arc<dyn Embedder>, EmbedError> {
    Err(EmbedError::NoTransformer { folder })
}
