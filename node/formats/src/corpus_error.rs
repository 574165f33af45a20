//! Why a path is no corpus.

use crate::format::FileFormat;
use crate::limits::FILES_MAX;
use std::io;
use std::path::PathBuf;

/// Why a path is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The path cannot be read.
    #[error("Cannot read {path}: {source}.")]
    Io {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The knowledge is behind a symbolic link, which could lead anywhere.
    #[error(
        "{path} has knowledge in {place}, which is or lies behind a symbolic link. An import does not follow \
         such links; name the folder that it leads to."
    )]
    Linked {
        path: PathBuf,
        /// The place of a format's knowledge.
        place: &'static str,
    },
    /// No format fits.
    #[error("{path} has no format that klnode knows.")]
    Unknown { path: PathBuf },
    /// Several formats fit.
    #[error("{path} holds knowledge in several formats: {}.", formats.join(", "))]
    Several {
        path: PathBuf,
        /// The names of the formats.
        formats: Vec<String>,
    },
    /// The folder has no file of the format.
    #[error("{path} has no file in the format {format}.")]
    Empty { path: PathBuf, format: FileFormat },
    /// The folder has too many files.
    #[error("{path} has more than {FILES_MAX} files.")]
    TooMany { path: PathBuf },
}
