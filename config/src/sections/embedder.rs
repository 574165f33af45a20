//! What turns texts into vectors: the built-in table, a local model, or a server.
//!
//! Separate from the other settings of the running process because this one choice decides whether
//! texts leave the machine. A key is named here and never held.

use serde::Deserialize;

use crate::units::{
    Bytes, EmbedderKind, FolderPath, Interval, ModelName, ServerUrl, VariableName, Whole,
};

/// `[embedder]`: what turns texts into vectors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedder {
    /// Which one.
    pub kind: EmbedderKind,
    /// Where a local model lies.
    pub folder: FolderPath,
    /// Where the server is.
    pub url: ServerUrl,
    /// The server's model.
    pub model: ModelName,
    /// The environment variable that holds the server's key.
    pub key_variable: VariableName,
    /// How long a query waits for its vector.
    pub query_timeout: Interval,
    /// How long one batch of entries may take.
    pub request_timeout: Interval,
    /// Texts in one request.
    pub batch_texts_max: Whole<1, 2_048>,
    /// Bytes of text in one request.
    pub batch_bytes_max: Bytes,
    /// Bytes of one text that are sent.
    pub text_bytes_max: Bytes,
    /// Further attempts after a passing failure.
    pub retries_max: Whole<0, 16>,
    /// The wait before the first of them.
    pub back_off: Interval,
}
