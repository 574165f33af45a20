//! A file of a corpus. Separate from the corpus, because every reader uses it.

use std::path::PathBuf;

/// A file of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path relative to the corpus, with forward slashes.
    pub path: String,
    /// The path on this machine.
    pub absolute: PathBuf,
    pub bytes: u64,
}
