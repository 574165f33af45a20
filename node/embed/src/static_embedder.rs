//! The default embedder: no download, no network, no latency.
//!
//! [`StaticEmbedder`] looks up the row of each token in a compiled-in
//! [`table`](super::embedding_table), adds the rows weighted by how rare the tokens are in the
//! store, removes the component that all texts share, and scales the sum to length one. It is about
//! a thousand times faster than a transformer and ignores word order; `node/model/README.md` has
//! its quality. It is the only embedder that is fitted to the store, so the only one with
//! generations of [`Weights`].

use super::embedding_table::{EmbeddingTable, TableError};
use super::token_weights::{Corpus, TokenWeights};
use super::wordpiece::WordPiece;
use super::{EmbedError, Embedder};
use std::fmt;
use std::sync::Arc;

/// Maximum number of tokens of one text; further tokens are ignored.
pub const TOKENS_MAX: usize = 4096;

/// The built-in embedder with one generation of weights; cheap to clone.
#[derive(Clone)]
pub struct StaticEmbedder {
    model: Arc<Model>,
    weights: Arc<TokenWeights>,
    identity: Arc<str>,
}

struct Model {
    table: EmbeddingTable<'static>,
    words: WordPiece<'static>,
}

impl StaticEmbedder {
    /// The built-in table with the weights of its training corpus, for a store without entries.
    pub fn built_in() -> Result<Self, TableError> {
        let table = EmbeddingTable::built_in()?;
        let words = WordPiece::new(&table)?;
        let weights = Corpus::new(&table).weights(&table);
        Ok(Self::of(Arc::new(Model { table, words }), weights))
    }

    /// The same table with other weights: the next generation.
    #[must_use]
    pub fn with_weights(&self, weights: TokenWeights) -> Self {
        Self::of(Arc::clone(&self.model), weights)
    }

    /// The weights fitted to a store's texts, for [`Self::with_weights`].
    pub fn weights_of<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> TokenWeights {
        let mut corpus = Corpus::new(&self.model.table);
        for text in texts {
            corpus.add(self.tokens(text.as_ref()));
        }
        corpus.weights(&self.model.table)
    }

    /// The tokens of a text that its vector is computed from.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.model.words.words(text, TOKENS_MAX)
    }

    /// The number of tokens of a text for its reader.
    pub fn cost(&self, text: &str) -> usize {
        self.model.words.cost(text)
    }

    /// The vector of one text. Unlike other embedders, this one cannot fail.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.weights.vector(&self.model.table, &self.tokens(text))
    }

    /// The digest of the weights in use.
    pub fn generation(&self) -> u64 {
        self.weights.generation()
    }

    fn of(model: Arc<Model>, weights: TokenWeights) -> Self {
        let identity = format!("{}+{:016x}", model.table.identity(), weights.generation());
        Self { model, weights: Arc::new(weights), identity: identity.into() }
    }
}

impl Embedder for StaticEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(self.model.table.dims())
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn refit(&self, texts: &mut dyn Iterator<Item = String>) -> Option<Arc<dyn Embedder>> {
        Some(Arc::new(self.with_weights(self.weights_of(texts))))
    }

    fn weights(&self) -> Option<&TokenWeights> {
        Some(&self.weights)
    }

    fn resume(&self, weights: TokenWeights) -> Option<Arc<dyn Embedder>> {
        let fits = weights.fit(&self.model.table);
        fits.then(|| Arc::new(self.with_weights(weights)) as Arc<dyn Embedder>)
    }
}

impl fmt::Debug for StaticEmbedder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StaticEmbedder").field("identity", &self.identity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden_files::{numbers, unescape};
    use super::*;

    fn dot(left: &[f32], right: &[f32]) -> f32 {
        left.iter().zip(right).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn vectors_match_the_reference() {
        let rows: Vec<Vec<&str>> = include_str!("../../model/golden/vectors.tsv")
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        let corpus: Vec<String> =
            rows.iter().filter(|row| row[0] == "entry").map(|row| unescape(row[1])).collect();
        assert!(corpus.len() >= 8);
        let first = StaticEmbedder::built_in().unwrap();
        let second = first.with_weights(first.weights_of(corpus.iter().map(String::as_str)));
        for row in &rows {
            let text = unescape(row[1]);
            for (embedder, expected) in [(&first, row[2]), (&second, row[3])] {
                let expected: Vec<f32> = numbers(expected);
                let found = embedder.vector(&text);
                assert_eq!(found.len(), expected.len());
                let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-4, "{text}");
            }
        }
    }

    #[test]
    fn a_related_text_is_nearer_than_an_unrelated_one() {
        let embedder = StaticEmbedder::built_in().unwrap();
        let texts = [
            "retry with exponential backoff",
            "wait longer after each failed attempt before trying again",
            "render the icon of a menu entry",
        ];
        let vectors = embedder.embed(&texts).unwrap();
        assert!(dot(&vectors[0], &vectors[1]) > dot(&vectors[0], &vectors[2]) + 0.1);
    }

    #[test]
    fn vectors_have_length_one_or_zero() {
        let embedder = StaticEmbedder::built_in().unwrap();
        for (text, length) in [("a word", 1.0), ("", 0.0), ("\u{1f980}\u{0}", 0.0)] {
            let vector = embedder.embed_query(text).unwrap();
            assert_eq!(vector.len(), embedder.dims().unwrap());
            assert!((dot(&vector, &vector) - length).abs() < 1e-5, "{text:?}");
        }
    }

    #[test]
    fn another_generation_has_another_identity() {
        let first = StaticEmbedder::built_in().unwrap();
        let second = first.with_weights(first.weights_of(["one text", "another text"]));
        assert_ne!(first.identity(), second.identity());
        assert_ne!(first.generation(), second.generation());
        assert_eq!(first.identity().split('+').next(), second.identity().split('+').next());
    }

    fn texts() -> Vec<String> {
        ["wait for the lock", "the lock is held", "a lock file"].map(str::to_owned).to_vec()
    }

    #[test]
    fn refitting_uses_the_given_texts() {
        let first = StaticEmbedder::built_in().unwrap();
        let second = first.refit(&mut texts().into_iter()).unwrap();
        let same = first.with_weights(first.weights_of(texts()));
        assert_eq!(second.identity(), same.identity());
        assert_ne!(second.identity(), first.identity());
    }

    #[test]
    fn a_generation_resumes_from_its_bytes_as_the_same_embedder() {
        let first = StaticEmbedder::built_in().unwrap();
        let before = first.refit(&mut texts().into_iter()).unwrap();
        let bytes = before.weights().unwrap().to_bytes();
        let after = first.resume(TokenWeights::from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(after.identity(), before.identity());
        let query = "who holds the lock?";
        assert_eq!(after.embed_query(query).unwrap(), before.embed_query(query).unwrap());
    }

    #[test]
    fn weights_of_another_table_do_not_resume() {
        let embedder = StaticEmbedder::built_in().unwrap();
        let weights = TokenWeights::of_parts(vec![1.0; 7], vec![0.0; 256]);
        assert!(embedder.resume(weights).is_none());
        let weights = TokenWeights::of_parts(vec![1.0; 30_522], vec![0.0; 128]);
        assert!(embedder.resume(weights).is_none());
    }
}
