//! Reads the files of a published sentence transformer, and refuses what would not be computed right.
//!
//! Separate from computing because a folder is other people's data: sizes are bounded before they
//! are used, and each complaint names the file and what is wrong with it. A model of another family,
//! with another way to make one vector of many, or that knows capitals, is refused and not guessed
//! at: its vectors would be wrong without anybody noticing.

use super::super::characters::Characters;
use super::super::table::Table;
use super::super::wordpiece::WordPiece;
use crate::index::vectors::DIMS_MAX;
use candle_transformers::models::bert::Config;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest file beside the weights.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The largest file of weights.
const WEIGHTS_BYTES_MAX: u64 = 4 << 30;
/// Numbers in `config.json` above these are damage, not a larger model.
const LAYERS_MAX: usize = 256;
const POSITIONS_MAX: usize = 65_536;

/// A folder whose files fit together.
pub(super) struct Folder {
    pub(super) config: Config,
    pub(super) weights: Vec<u8>,
    pub(super) words: WordPiece<'static>,
    pub(super) marks: Marks,
    /// Tokens of one text, marks included.
    pub(super) tokens_max: usize,
    pub(super) identity: String,
}

/// The tokens that stand for no text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) pad: u32,
    pub(super) unknown: u32,
}

/// Part of `tokenizer.json`.
#[derive(Deserialize)]
struct Tokenizer {
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct TokenizerModel {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: BTreeMap<String, u32>,
}

impl Folder {
    /// Reads and checks all files, or says what is wrong with one of them.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let settings = read(path, "config.json", TEXT_BYTES_MAX)?;
        let config = config(&settings)?;
        let tokens_max = tokens_max(path, &config)?;
        check_modules(path)?;
        check_case(path)?;
        let (vocabulary, tokens) = vocabulary(path)?;
        if tokens.len() > config.vocab_size {
            let (found, size) = (tokens.len(), config.vocab_size);
            return Err(format!("{vocabulary} has {found} tokens, config.json says {size}"));
        }
        let weights = read(path, "model.safetensors", WEIGHTS_BYTES_MAX)?;
        let identity = identity(&settings, &weights, &tokens, tokens_max);
        let marks = Marks {
            start: mark(&tokens, vocabulary, "[CLS]")?,
            end: mark(&tokens, vocabulary, "[SEP]")?,
            pad: mark(&tokens, vocabulary, "[PAD]")?,
            unknown: mark(&tokens, vocabulary, "[UNK]")?,
        };
        let characters = Table::built_in().and_then(|table| Characters::parse(table.characters()));
        let words = characters
            .and_then(|known| WordPiece::of_tokens(tokens.into_iter().map(Cow::Owned), known))
            .map_err(|error| error.to_string())?;
        Ok(Self { config, weights, words, marks, tokens_max, identity })
    }
}

fn read(folder: &Path, name: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    read_if_there(folder, name, bytes_max)?.ok_or_else(|| format!("{name} is missing"))
}

fn read_if_there(folder: &Path, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match File::open(folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("{name} is larger than {} MiB", bytes_max >> 20));
    }
    Ok(Some(bytes))
}

/// A JSON file that need not be there; null if it is not.
fn json_if_there(folder: &Path, name: &str) -> Result<Value, String> {
    match read_if_there(folder, name, TEXT_BYTES_MAX)? {
        Some(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| format!("{name} is no JSON: {error}"))
        }
        None => Ok(Value::Null),
    }
}

fn config(bytes: &[u8]) -> Result<Config, String> {
    let config: Config =
        serde_json::from_slice(bytes).map_err(|error| format!("config.json: {error}"))?;
    let family = config.model_type.as_deref().unwrap_or("bert");
    if family != "bert" {
        return Err(format!("config.json names the family `{family}`, and klnode knows `bert`"));
    }
    for (name, value, most) in [
        ("hidden_size", config.hidden_size, DIMS_MAX),
        ("intermediate_size", config.intermediate_size, 8 * DIMS_MAX),
        ("num_attention_heads", config.num_attention_heads, DIMS_MAX),
        ("num_hidden_layers", config.num_hidden_layers, LAYERS_MAX),
        ("type_vocab_size", config.type_vocab_size, POSITIONS_MAX),
    ] {
        if value == 0 || value > most {
            return Err(format!("config.json: {name} is {value}, and 1 to {most} can be used"));
        }
    }
    // A text has its two marks and at least one token between them.
    if !(3..=POSITIONS_MAX).contains(&config.max_position_embeddings) {
        return Err("config.json: max_position_embeddings is out of bounds".to_owned());
    }
    if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
        return Err("config.json: num_attention_heads does not divide hidden_size".to_owned());
    }
    Ok(config)
}

/// The model's positions, or fewer where it was trained on shorter texts.
fn tokens_max(folder: &Path, config: &Config) -> Result<usize, String> {
    let value = json_if_there(folder, "sentence_bert_config.json")?;
    let trained = value.get("max_seq_length").and_then(Value::as_u64);
    let trained = trained.and_then(|tokens| usize::try_from(tokens).ok());
    let positions = config.max_position_embeddings;
    Ok(trained.map_or(positions, |tokens| tokens.clamp(3, positions)))
}

/// After the transformer comes the mean over tokens, and nothing else that changes a direction.
fn check_modules(folder: &Path) -> Result<(), String> {
    let modules = json_if_there(folder, "modules.json")?;
    let kinds =
        modules.as_array().into_iter().flatten().filter_map(|one| one.get("type")?.as_str());
    for kind in kinds {
        let name = kind.rsplit('.').next().unwrap_or(kind);
        if !matches!(name, "Transformer" | "Pooling" | "Normalize") {
            return Err(format!("modules.json has a module `{name}`, which klnode does not know"));
        }
    }
    let pooling = json_if_there(folder, "1_Pooling/config.json")?;
    let is_on = |(name, value): (&String, &Value)| {
        (name.starts_with("pooling_mode_") && value == &Value::Bool(true)).then(|| name.clone())
    };
    let modes: Vec<String> = pooling.as_object().into_iter().flatten().filter_map(is_on).collect();
    match modes.as_slice() {
        [] => Ok(()),
        [one] if one == "pooling_mode_mean_tokens" => Ok(()),
        _ => Err(format!(
            "1_Pooling/config.json asks for {}, and klnode computes pooling_mode_mean_tokens",
            modes.join(" and ")
        )),
    }
}

/// The characters known here are those of models that fold case and strip accents.
fn check_case(folder: &Path) -> Result<(), String> {
    let settings = json_if_there(folder, "tokenizer_config.json")?;
    let tokenizer = json_if_there(folder, "tokenizer.json")?;
    let normaliser = tokenizer.get("normalizer").unwrap_or(&Value::Null);
    for (file, holder, key) in [
        ("tokenizer_config.json", &settings, "do_lower_case"),
        ("tokenizer_config.json", &settings, "strip_accents"),
        ("tokenizer.json", normaliser, "lowercase"),
        ("tokenizer.json", normaliser, "strip_accents"),
    ] {
        if holder.get(key) == Some(&Value::Bool(false)) {
            return Err(format!(
                "{file} says `{key}` is false, and klnode only reads uncased text"
            ));
        }
    }
    Ok(())
}

/// The tokens in the order of their ids, and the file they come from.
fn vocabulary(folder: &Path) -> Result<(&'static str, Vec<String>), String> {
    if let Some(bytes) = read_if_there(folder, "vocab.txt", TEXT_BYTES_MAX)? {
        let text = String::from_utf8(bytes).map_err(|_| "vocab.txt is not UTF-8".to_owned())?;
        return Ok(("vocab.txt", text.lines().map(str::to_owned).collect()));
    }
    let bytes = read_if_there(folder, "tokenizer.json", TEXT_BYTES_MAX)?
        .ok_or("vocab.txt and tokenizer.json are both missing")?;
    let Tokenizer { model } = serde_json::from_slice(&bytes)
        .map_err(|error| format!("tokenizer.json holds no vocabulary: {error}"))?;
    if let Some(kind) = model.kind.filter(|kind| kind != "WordPiece") {
        return Err(format!("tokenizer.json is of type `{kind}`, and klnode knows `WordPiece`"));
    }
    let mut tokens: Vec<(u32, String)> =
        model.vocab.into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    if tokens.iter().zip(0..).any(|((id, _), place)| *id != place) {
        return Err("tokenizer.json leaves out an id, or gives it twice".to_owned());
    }
    Ok(("tokenizer.json", tokens.into_iter().map(|(_, token)| token).collect()))
}

fn mark(tokens: &[String], vocabulary: &str, name: &str) -> Result<u32, String> {
    let place = tokens.iter().position(|token| token == name);
    let id = place.and_then(|place| u32::try_from(place).ok());
    id.ok_or_else(|| format!("{vocabulary} has no {name}"))
}

/// A digest of all that decides what a vector will be.
fn identity(settings: &[u8], weights: &[u8], tokens: &[String], tokens_max: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    let tokens = tokens.join("\n");
    for part in [settings, weights, tokens.as_bytes(), &tokens_max.to_le_bytes()] {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part);
    }
    format!("bert-{:.10}", hasher.finalize().to_hex())
}
