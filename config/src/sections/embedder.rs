//! `[embedder]` and `[tuning.embedder]`: the models in the program, or an embedding server.
//!
//! This choice decides whether texts leave the machine. The configuration holds only the name of
//! the variable with the API key, never the key itself.

use serde::Deserialize;

use crate::units::{
    BoundedInteger, Bytes, EmbedderKind, Interval, ModelName, ServerUrl, VariableName,
};

/// `[embedder]` and `[tuning.embedder]`: the component that computes vectors of texts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedder {
    /// The kind of embedder.
    pub kind: EmbedderKind,
    /// Base URL of the server, for kinds `openai` and `ollama`.
    pub url: ServerUrl,
    /// Name of the model on the server.
    pub model: ModelName,
    /// Environment variable that holds the API key of the server.
    pub key_variable: VariableName,
    /// Timeout for the vector of a query. After it, the search uses keywords alone.
    pub query_timeout: Interval,
    /// Timeout for one batch of entries.
    pub request_timeout: Interval,
    /// Maximum number of texts in one request.
    pub batch_texts_max: BoundedInteger<1, 2_048>,
    /// Maximum size of the texts in one request.
    pub batch_bytes_max: Bytes,
    /// Maximum size of one text; the rest is cut.
    pub text_bytes_max: Bytes,
    /// Maximum number of retries after a temporary failure.
    pub retries_max: BoundedInteger<0, 16>,
    /// Wait before the first retry; it doubles with each retry.
    pub back_off: Interval,
}
