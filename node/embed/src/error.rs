//! The errors of all embedders in one enum, because callers handle them alike.

use super::embedding_table::TableError;

/// Reasons why texts could not be embedded, or an embedder could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The compiled-in table is damaged.
    #[error("{0}")]
    Table(#[from] TableError),
    /// The built-in transformer failed; the program or its memory is damaged.
    #[error("The built-in transformer failed: {why}.")]
    Transformer {
        /// The error of the runtime.
        why: String,
    },
    /// The address of the server is invalid.
    #[error("The address in embedder.url cannot be used: {why}.")]
    Url {
        /// The problem with the address; never the address itself, which may contain a password.
        why: &'static str,
    },
    /// The environment variable with the key is not set.
    #[error("The embedder's key is missing: the variable {variable} is not set, or is not text.")]
    NoKey {
        /// The variable named in embedder.key_variable.
        variable: String,
    },
    /// The key contains characters that an HTTP header cannot carry.
    #[error(
        "The embedder's key cannot be sent: it contains characters that HTTP headers do not allow."
    )]
    Key,
    /// The system could not start a thread.
    #[error("The embedder could not be started: {why}.")]
    Start {
        /// The error of the system.
        why: String,
    },
    /// The server refuses the connection or does not answer in time.
    #[error("The embedder at {server} cannot be reached: {why}.")]
    Unreachable {
        /// Host name and port.
        server: String,
        /// The error of the connection.
        why: String,
    },
    /// The server answered with an error status.
    #[error("The embedder at {server} answered with status {status}: {}.", meaning(*status))]
    Refused {
        /// Host name and port.
        server: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server's answer does not contain valid vectors.
    #[error("The answer of the embedder at {server} cannot be used: {why}.")]
    Garbled {
        /// Host name and port.
        server: String,
        /// The problem with the answer.
        why: String,
    },
    /// The node is stopping.
    #[error("The text was not embedded because the node is stopping.")]
    Stopped,
}

impl EmbedError {
    /// True if the same call may succeed later without any change.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// True if a single text may be the cause, so that the other texts could be embedded without
    /// it.
    #[must_use]
    pub fn may_be_of_a_text(&self) -> bool {
        match self {
            // The cause is the key, the address or the load.
            Self::Refused { status: 401 | 404 | 408 | 429, .. } => false,
            Self::Refused { status, .. } => (400..500).contains(status),
            _ => false,
        }
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        300..=399 => "it is at another address; correct embedder.url",
        401 | 403 => "it expects another key; see embedder.key_variable",
        404 => "it has no such model or address; see embedder.model and embedder.url",
        413 => "the request is too large; lower tuning.embedder.batch_bytes_max",
        429 => "it receives too many requests",
        500.. => "it has an internal problem",
        _ => "it rejects the request; see embedder.model and tuning.embedder.text_bytes_max",
    }
}
