//! An error as the API sends it.

use crate::ErrorKind;
use klnode_scoring::content_scan::redact_secrets;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest message, in characters. A message can quote long input.
const MESSAGE_CHARACTERS_MAX: usize = 2_000;

/// The body of an error response: `{"error": {...}}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Kind, message and hint of the error.
    pub error: ErrorDetail,
}

/// An error of the API.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The kind of error, for programs.
    pub kind: ErrorKind,
    /// The message for people: a whole sentence that says what failed and why.
    pub message: String,
    /// A sentence that says what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorDetail {
    /// Creates an error. `message` is a whole sentence with the failure and its cause; `hint` says
    /// what to do. A message can quote the caller's input and is printed and logged, so this
    /// function redacts everything in it that looks like a secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: Option<&str>) -> Self {
        let mut message = message.into();
        if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
            message.truncate(at);
            message.push('…');
        }
        Self { kind, message: redact_secrets(&message), hint: hint.map(str::to_owned) }
    }
}
