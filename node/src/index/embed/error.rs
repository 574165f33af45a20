//! Why texts have no vectors: one enum for all embedders, since callers do the same about each.

use super::table::TableError;
use std::path::PathBuf;

/// Why texts could not be embedded, or no embedder be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The table that is compiled in is damaged.
    #[error("{0}")]
    Table(#[from] TableError),
    /// A file of a local model is missing, damaged, or of another kind of model.
    #[error("use the model in {folder}: {why}")]
    Folder {
        /// The folder that was named.
        folder: PathBuf,
        /// The file, and what is wrong with it.
        why: String,
    },
    /// This program cannot run local models.
    #[error(
        "use the model in {folder}: this klnode was built without the feature `transformer`; \
         build it with `--features transformer`, or set embedder.kind to \"built_in\""
    )]
    NoTransformer {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// The address of the server cannot be used.
    #[error("use embedder.url: {why}")]
    Url {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The variable that holds the key is not set.
    #[error("read the embedder's key: the variable {variable} is not set, or not as text")]
    NoKey {
        /// The variable that embedder.key_variable names.
        variable: String,
    },
    /// The key has characters that no header can carry.
    #[error("use the embedder's key: it holds characters that cannot be sent")]
    Key,
    /// The system gives no thread.
    #[error("start the embedder: {why}")]
    Start {
        /// What the system says.
        why: String,
    },
    /// The server is not there, or does not answer in time.
    #[error("reach the embedder at {server}: {why}")]
    Unreachable {
        /// Name and port.
        server: String,
        /// What happened.
        why: String,
    },
    /// The server answers with an error.
    #[error("embed with {server}: it answers {status}, {}", meaning(*status))]
    Refused {
        /// Name and port.
        server: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server answers with something else than vectors.
    #[error("embed with {server}: {why}")]
    Garbled {
        /// Name and port.
        server: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// The node is stopping.
    #[error("embed: the node is stopping")]
    Stopped,
}

impl EmbedError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// Whether one of the texts may be why: the others may be taken without it.
    #[must_use]
    pub fn may_be_of_a_text(&self) -> bool {
        match self {
            // Another key, another address, another time.
            Self::Refused { status: 401 | 404 | 408 | 429, .. } => false,
            Self::Refused { status, .. } => (400..500).contains(status),
            _ => false,
        }
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        300..=399 => "so it is at another address: correct embedder.url",
        401 | 403 => "so it wants another key: see embedder.key_variable",
        404 => "so it has no such model or no such address: see embedder.model and embedder.url",
        413 => "so it takes less at once: lower embedder.batch_bytes_max",
        429 => "so it is asked too often",
        500.. => "so it has a problem of its own",
        _ => "so it does not take the request: see embedder.model and embedder.text_bytes_max",
    }
}
