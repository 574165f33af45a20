//! A sentence transformer of the BERT family in a local folder, computed here on the CPU.
//!
//! Only in programs built with the feature `transformer`. The folder holds what such models are
//! published as: `config.json`, `model.safetensors`, and the vocabulary. A text's vector is the mean
//! of its tokens' vectors, scaled to length one; tokens beyond what the model has positions for are
//! not looked at. Nothing is downloaded, and nothing leaves the machine.

mod folder;

#[cfg(test)]
mod tests;

use super::weights::to_length_one;
use super::wordpiece::WordPiece;
use super::{EmbedError, Embedder};
use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, DTYPE};
use folder::{Folder, Marks};
use std::fmt;
use std::path::{Path, PathBuf};

/// Tokens computed at once, padding included. Attention takes memory by the square of a text's
/// length: this many in texts of 512 take about 100 MB with twelve heads.
const BATCH_TOKENS_MAX: usize = 4096;

/// A model that was read and checked.
pub struct TransformerEmbedder {
    folder: PathBuf,
    identity: String,
    words: WordPiece<'static>,
    marks: Marks,
    tokens_max: usize,
    dims: usize,
    model: BertModel,
}

impl TransformerEmbedder {
    /// Reads the model in a folder.
    pub fn open(path: &Path) -> Result<Self, EmbedError> {
        let refused = |why| EmbedError::Folder { folder: path.to_owned(), why };
        let Folder { config, weights, words, marks, tokens_max, identity } =
            Folder::read(path).map_err(refused)?;
        let load = || {
            let tensors = VarBuilder::from_slice_safetensors(&weights, DTYPE, &Device::Cpu)?;
            BertModel::load(tensors, &config)
        };
        let model = load().map_err(|error| refused(in_weights(&error)))?;
        let (folder, dims) = (path.to_owned(), config.hidden_size);
        Ok(Self { folder, identity, words, marks, tokens_max, dims, model })
    }

    /// The tokens of a text, with the marks around them; none where no word is known.
    fn tokens(&self, text: &str) -> Vec<u32> {
        let mut ids = self.words.ids(text);
        ids.truncate(self.tokens_max - 2);
        if ids.iter().all(|id| *id == self.marks.unknown) {
            return Vec::new();
        }
        ids.insert(0, self.marks.start);
        ids.push(self.marks.end);
        ids
    }

    /// The vectors of some texts at once; shorter ones are padded, and the padding is not seen.
    fn compute(&self, texts: &[(usize, Vec<u32>)]) -> Computed<Vec<Vec<f32>>> {
        let longest = texts.iter().map(|(_, ids)| ids.len()).max().unwrap_or(0);
        let shape = (texts.len(), longest);
        let padded = texts.iter().flat_map(|(_, ids)| {
            ids.iter().copied().chain(std::iter::repeat_n(self.marks.pad, longest - ids.len()))
        });
        let seen = texts.iter().flat_map(|(_, ids)| {
            ids.iter().map(|_| 1_u32).chain(std::iter::repeat_n(0, longest - ids.len()))
        });
        let input = Tensor::from_iter(padded, &Device::Cpu)?.reshape(shape)?;
        let mask = Tensor::from_iter(seen, &Device::Cpu)?.reshape(shape)?;
        let output = self.model.forward(&input, &input.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DTYPE)?;
        let sum = output.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)?;
        sum.broadcast_div(&mask.sum_keepdim(1)?)?.to_vec2()
    }
}

impl Embedder for TransformerEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(self.dims)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let refused = |why| EmbedError::Folder { folder: self.folder.clone(), why };
        let mut vectors = vec![vec![0.0; self.dims]; texts.len()];
        let tokens = texts.iter().map(|text| self.tokens(text)).enumerate();
        let mut tokens: Vec<_> = tokens.filter(|(_, ids)| !ids.is_empty()).collect();
        // Texts of like length together, so that little is padded.
        tokens.sort_by_key(|(_, ids)| ids.len());
        for batch in batches(&tokens) {
            let found = self.compute(batch).map_err(|error| refused(in_weights(&error)))?;
            for ((place, _), mut vector) in batch.iter().zip(found) {
                if !vector.iter().all(|value| value.is_finite()) {
                    return Err(refused(
                        "model.safetensors gives numbers that are not finite".into(),
                    ));
                }
                to_length_one(&mut vector);
                vectors[*place] = vector;
            }
        }
        Ok(vectors)
    }
}

impl fmt::Debug for TransformerEmbedder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TransformerEmbedder")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Texts in ascending length, as many at once as may be computed together, and at least one.
fn batches(tokens: &[(usize, Vec<u32>)]) -> impl Iterator<Item = &[(usize, Vec<u32>)]> {
    let mut rest = tokens;
    std::iter::from_fn(move || {
        let fits =
            |(at, (_, ids)): &(usize, &(usize, Vec<u32>))| (at + 1) * ids.len() <= BATCH_TOKENS_MAX;
        let count = rest.iter().enumerate().take_while(fits).count().max(1);
        let (batch, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(batch)
    })
}

/// What the tensor library says, without the backtrace that it may add.
fn in_weights(error: &candle_core::Error) -> String {
    let text = error.to_string();
    format!("model.safetensors: {}", text.lines().next().unwrap_or_default().trim_end())
}
