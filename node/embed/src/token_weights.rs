//! The parameters fitted to a store: the weight of each token, and the direction common to all
//! texts.
//!
//! A token that half the entries contain says little, so tokens are weighted by inverse document
//! frequency; a direction that all vectors share says nothing, so it is removed. Both depend on the
//! corpus, so a vector index has a generation: [`TokenWeights`] made once from a [`Corpus`], with which
//! all vectors in that index and all queries against it are computed. The result is deterministic:
//! the same texts in the same order give the same weights.

use super::embedding_table::EmbeddingTable;

/// The training corpus counts as this many documents of the store, so that chance does not dominate
/// a store of three entries.
const PRIOR_DOCUMENTS: f64 = 500.0;
/// Maximum number of documents, evenly spaced, that determine the common direction.
const SAMPLE_DOCUMENTS_MAX: usize = 10_000;
/// Power iterations; enough to converge, because the start is near the first component.
const ITERATIONS: usize = 50;
const LENGTH_MIN: f32 = 1e-6;

/// Counts over the documents of a store, from which weights are computed.
#[derive(Debug, Clone)]
pub struct Corpus {
    documents: u32,
    held: Vec<u32>,
    sample: Vec<Vec<u32>>,
    stride: usize,
}

impl Corpus {
    /// An empty corpus over a table's vocabulary.
    pub fn new(table: &EmbeddingTable<'_>) -> Self {
        Self { documents: 0, held: vec![0; table.rows()], sample: Vec::new(), stride: 1 }
    }

    /// Counts one document, given as its tokens.
    pub fn add(&mut self, mut tokens: Vec<u32>) {
        if (self.documents as usize).is_multiple_of(self.stride) {
            self.sample.push(tokens.clone());
        }
        // Dropping every second one leaves the sample evenly spaced over all documents so far.
        if self.sample.len() > SAMPLE_DOCUMENTS_MAX {
            self.stride *= 2;
            let mut keep = false;
            self.sample.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.documents = self.documents.saturating_add(1);
        tokens.sort_unstable();
        tokens.dedup();
        for token in tokens {
            if let Some(held) = self.held.get_mut(token as usize) {
                *held = held.saturating_add(1);
            }
        }
    }

    /// The number of documents counted.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The weights of this corpus; without documents, those of the training corpus.
    pub fn weights(&self, table: &EmbeddingTable<'_>) -> TokenWeights {
        let documents = f64::from(self.documents) + PRIOR_DOCUMENTS;
        let tokens = (0..).zip(&self.held).map(|(token, held)| {
            let held = f64::from(*held) + PRIOR_DOCUMENTS * table.share(token);
            (1.0 + (documents - held + 0.5) / (held + 0.5)).ln() as f32
        });
        let mut weights = TokenWeights { tokens: tokens.collect(), common: Vec::new() };
        weights.common = self.common(table, &weights);
        weights
    }

    /// The first principal component of the sampled vectors, by power iteration.
    fn common(&self, table: &EmbeddingTable<'_>, weights: &TokenWeights) -> Vec<f32> {
        let dims = table.dims();
        let mut direction: Vec<f64> = table.common().iter().copied().map(f64::from).collect();
        let mut gram = vec![0.0; dims * dims];
        add_outer(&mut gram, &direction, PRIOR_DOCUMENTS);
        for tokens in &self.sample {
            let vector: Vec<f64> = weights.mean(table, tokens).into_iter().map(f64::from).collect();
            add_outer(&mut gram, &vector, 1.0);
        }
        for _ in 0..ITERATIONS {
            let next: Vec<f64> = gram.chunks_exact(dims).map(|row| dot(row, &direction)).collect();
            let length = dot(&next, &next).sqrt().max(1e-12);
            direction = next.into_iter().map(|value| value / length).collect();
        }
        direction.into_iter().map(|value| value as f32).collect()
    }
}

/// One generation: a weight for each token, and the direction to remove.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenWeights {
    tokens: Vec<f32>,
    common: Vec<f32>,
}

impl TokenWeights {
    /// A digest of the weights: vectors of two generations are not comparable.
    pub fn generation(&self) -> u64 {
        self.tokens.iter().chain(&self.common).fold(0xcbf2_9ce4_8422_2325, |hash, value| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Weights from their parts, for reading and for tests.
    pub(super) fn of_parts(tokens: Vec<f32>, common: Vec<f32>) -> Self {
        Self { tokens, common }
    }

    /// The weights of the tokens, and the direction to remove.
    pub(super) fn parts(&self) -> (&[f32], &[f32]) {
        (&self.tokens, &self.common)
    }

    /// True if they have the sizes of a table.
    pub(super) fn fit(&self, table: &EmbeddingTable<'_>) -> bool {
        (self.tokens.len(), self.common.len()) == (table.rows(), table.dims())
    }

    /// The vector of a text, of length one; all zeros if no token is known.
    pub(super) fn vector(&self, table: &EmbeddingTable<'_>, tokens: &[u32]) -> Vec<f32> {
        let mut vector = self.mean(table, tokens);
        let along: f32 = vector.iter().zip(&self.common).map(|(a, b)| a * b).sum();
        for (value, common) in vector.iter_mut().zip(&self.common) {
            *value -= along * common;
        }
        to_length_one(&mut vector);
        vector
    }

    fn mean(&self, table: &EmbeddingTable<'_>, tokens: &[u32]) -> Vec<f32> {
        let mut sum = vec![0.0; table.dims()];
        for token in tokens {
            let weight = self.tokens.get(*token as usize).copied().unwrap_or(0.0);
            table.add_row(*token, weight, &mut sum);
        }
        to_length_one(&mut sum);
        sum
    }
}

/// Scales a vector to length one; one too short to have a direction becomes zero.
pub fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let factor = if length > LENGTH_MIN { 1.0 / length } else { 0.0 };
    for value in vector {
        *value *= factor;
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

fn add_outer(gram: &mut [f64], vector: &[f64], times: f64) {
    for (row, left) in gram.chunks_exact_mut(vector.len()).zip(vector) {
        for (cell, right) in row.iter_mut().zip(vector) {
            *cell += times * left * right;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus_of(table: &EmbeddingTable<'_>, documents: u32) -> Corpus {
        let mut corpus = Corpus::new(table);
        for at in 0..documents {
            corpus.add(vec![5000 + at % 700, 6000 + at % 11, 4000]);
        }
        corpus
    }

    #[test]
    fn common_tokens_weigh_less_than_rare_ones() {
        let table = EmbeddingTable::built_in().unwrap();
        let weights = corpus_of(&table, 2000).weights(&table);
        assert!(weights.tokens[4000] < weights.tokens[6000]);
        assert!(weights.tokens[6000] < weights.tokens[5000]);
        assert!(weights.tokens.iter().all(|weight| *weight > 0.0));
    }

    #[test]
    fn the_same_documents_give_the_same_generation() {
        let table = EmbeddingTable::built_in().unwrap();
        let one = corpus_of(&table, 50).weights(&table);
        assert_eq!(one.generation(), corpus_of(&table, 50).weights(&table).generation());
        assert_ne!(one.generation(), corpus_of(&table, 51).weights(&table).generation());
    }

    #[test]
    fn the_sample_stays_bounded_and_evenly_spaced() {
        let table = EmbeddingTable::built_in().unwrap();
        let mut corpus = Corpus::new(&table);
        for at in 0..25_000 {
            corpus.add(vec![at]);
        }
        let stride = u32::try_from(corpus.stride).unwrap();
        assert_eq!(stride, 4);
        assert!(corpus.sample.iter().zip(0..).all(|(one, at)| *one == [at * stride]));
        assert_eq!((corpus.sample.len(), corpus.documents()), (6250, 25_000));
    }

    #[test]
    fn a_single_document_keeps_its_direction() {
        let table = EmbeddingTable::built_in().unwrap();
        let mut corpus = Corpus::new(&table);
        corpus.add(vec![7809, 5527]);
        let weights = corpus.weights(&table);
        let along: f32 = weights
            .mean(&table, &[7809, 5527])
            .iter()
            .zip(&weights.common)
            .map(|(a, b)| a * b)
            .sum();
        assert!(along.abs() < 0.7, "{along}");
    }

    #[test]
    fn tokens_outside_the_vocabulary_change_nothing() {
        let table = EmbeddingTable::built_in().unwrap();
        let mut corpus = corpus_of(&table, 3);
        corpus.add(vec![u32::MAX]);
        let weights = corpus.weights(&table);
        assert_eq!(weights.vector(&table, &[u32::MAX]), vec![0.0; table.dims()]);
        assert_eq!(weights.vector(&table, &[4000, u32::MAX]), weights.vector(&table, &[4000]));
    }
}
