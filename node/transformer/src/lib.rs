//! The built-in sentence transformer: all-MiniLM-L6-v2 with int8 weights, computed on the CPU.
//!
//! The model is compiled in (23 MB), so nothing is downloaded and no text leaves the machine. It
//! understands questions better than the table of [`klnode_embed`] and is about a thousand times
//! slower: a question takes milliseconds, and entries are embedded in the background. It is a crate
//! of its own so that a build without it needs neither the model nor its runtime.
//!
//! Texts are computed one by one. Activations are quantized by their range over a whole run, so in
//! a batch the vector of a text would depend on the other texts.

#[cfg(test)]
mod tests;

use klnode_embed::embedding_table::{EmbeddingTable, TableError};
use klnode_embed::token_weights::to_length_one;
use klnode_embed::wordpiece::WordPiece;
use klnode_embed::{EmbedError, Embedder};
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, op_registry};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use std::fmt;
use std::sync::Arc;

/// The compiled-in model; `node/model/make/quantize.py` writes it.
static MODEL: &[u8] = include_bytes!("../../model/minilm.onnx");
/// The number of dimensions of a vector.
pub const DIMS: usize = 384;
/// Maximum number of tokens of a text, including the two special ones. The model was trained on
/// texts of at most this length; later tokens are ignored.
pub const TOKENS_MAX: usize = 256;
/// Maximum number of bytes that are split into tokens, because a long text is not embedded whole.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The tokens `[CLS]` and `[SEP]` of the vocabulary, which begin and end each text.
const START: u32 = 101;
const END: u32 = 102;
/// The token of words outside the vocabulary.
const UNKNOWN: u32 = 100;

/// Reasons why the built-in model cannot be used; each means that the program is damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransformerError {
    /// The vocabulary could not be read.
    #[error("{0}")]
    Vocabulary(#[from] TableError),
    /// The model could not be read.
    #[error("The built-in transformer could not be loaded: {why}.")]
    Model {
        /// The error of the runtime.
        why: String,
    },
}

/// The model with its own threads to compute with. Clones share the model.
pub struct Transformer {
    loaded: Arc<LoadedModel>,
    threads: Arc<ThreadPool>,
}

struct LoadedModel {
    words: WordPiece<'static>,
    model: Model,
    input: NodeId,
    output: NodeId,
}

/// Model and generation of the vectors, known without loading the model.
pub const IDENTITY: &str = "klnode-minilm-a91f26b84e";

impl Transformer {
    /// Loads the model, which takes about 50 ms and 35 MB, to compute with this many threads.
    pub fn load(threads: usize) -> Result<Self, TransformerError> {
        let refused = |why: String| TransformerError::Model { why };
        let words = WordPiece::new(&EmbeddingTable::built_in()?)?;
        let mut options = ModelOptions::with_ops(op_registry!(
            Add,
            Cast,
            DynamicQuantizeLinear,
            Gather,
            Gelu,
            LayerNormalization,
            MatMul,
            MatMulInteger,
            Mul,
            ReduceMean,
            Reshape,
            Shape,
            Slice,
            Softmax,
            Transpose
        ));
        options.prepack_weights(true);
        let model = options.load_static_slice(MODEL).map_err(|error| refused(error.to_string()))?;
        let node = |name| model.node_id(name).map_err(|error| refused(error.to_string()));
        let (input, output) = (node("ids")?, node("mean")?);
        Ok(Self::with_threads(Arc::new(LoadedModel { words, model, input, output }), threads))
    }

    /// The same model with other threads: one user does not wait for the texts of another.
    #[must_use]
    pub fn share(&self, threads: usize) -> Self {
        Self::with_threads(Arc::clone(&self.loaded), threads)
    }

    fn with_threads(loaded: Arc<LoadedModel>, threads: usize) -> Self {
        Self { loaded, threads: Arc::new(ThreadPool::with_num_threads(threads.max(1))) }
    }

    /// The tokens of a text between the special tokens; empty if no word is known.
    fn tokens(&self, text: &str) -> Vec<u32> {
        let mut ids = self.loaded.words.ids(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
        ids.truncate(TOKENS_MAX - 2);
        if ids.iter().all(|id| *id == UNKNOWN) {
            return Vec::new();
        }
        ids.insert(0, START);
        ids.push(END);
        ids
    }

    /// The vector of one text.
    fn compute(&self, ids: &[u32]) -> Result<Vec<f32>, String> {
        let ids = NdTensor::from_fn([ids.len()], |[at]| ids[at].cast_signed());
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let LoadedModel { model, input, output, .. } = &*self.loaded;
        let [mean] = model
            .run_n(vec![(*input, ids.into())], [*output], Some(options))
            .map_err(|error| error.to_string())?;
        let mean: NdTensor<f32, 1> = mean.try_into().map_err(|_| "its result is no vector")?;
        let mut vector = mean.to_vec();
        if vector.len() != DIMS || !vector.iter().all(|value| value.is_finite()) {
            return Err("its result is no vector of finite numbers".to_owned());
        }
        to_length_one(&mut vector);
        Ok(vector)
    }
}

impl Embedder for Transformer {
    fn identity(&self) -> &str {
        IDENTITY
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(DIMS)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let of = |text: &&str| match self.tokens(text) {
            ids if ids.is_empty() => Ok(vec![0.0; DIMS]),
            ids => self.compute(&ids).map_err(|why| EmbedError::Transformer { why }),
        };
        texts.iter().map(of).collect()
    }
}

impl fmt::Debug for Transformer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Transformer").field("identity", &IDENTITY).finish_non_exhaustive()
    }
}
