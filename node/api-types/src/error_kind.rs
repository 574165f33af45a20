//! The kinds of API errors, with the exit code of a command that ends with one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of an error. Programs decide by it; each kind has one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is malformed, or a value in it is not allowed.
    Invalid,
    /// The `Content-Type` of the body is not supported.
    Unsupported,
    /// The body is larger than `tuning.api.body_bytes_max`.
    TooLarge,
    /// The request came over TCP without the token.
    Unauthorised,
    /// The node holds no entry, task, peer or other object of this name.
    NotFound,
    /// The given name matches several objects.
    Ambiguous,
    /// The entry was forgotten.
    Forgotten,
    /// The caller lacks the rights, or a policy forbids the operation.
    Refused,
    /// The node is overloaded or stopping, or the request timed out.
    Busy,
    /// The store, the disk or another part of the node failed.
    Failed,
}

impl ErrorKind {
    /// The exit code of a command that ends with this error.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid | Self::Unsupported | Self::TooLarge | Self::Ambiguous => 2,
            Self::NotFound | Self::Forgotten | Self::Busy | Self::Failed => 1,
            Self::Refused | Self::Unauthorised => 4,
        }
    }
}
