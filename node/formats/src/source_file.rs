//! A file of a corpus. Separate from the corpus, because every reader uses it.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path relative to the corpus, with forward slashes.
    pub path: String,
    /// The path on this machine.
    pub absolute: PathBuf,
    pub bytes: u64,
}

/// True if a folder has something at this relative path, and no part of the path is a symbolic link.
/// A link could lead out of the folder.
pub(crate) fn is_below(folder: &Path, path: &str) -> bool {
    let mut at = folder.to_owned();
    path.split('/').all(|part| {
        at.push(part);
        fs::symlink_metadata(&at).is_ok_and(|found| !found.is_symlink())
    })
}

/// True if a part of a relative path is a symbolic link.
pub(crate) fn is_linked(folder: &Path, path: &str) -> bool {
    let mut at = folder.to_owned();
    path.split('/').any(|part| {
        at.push(part);
        fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink())
    })
}
