//! Replacement of a small file of the index folder as a whole.
//!
//! Separate because the delayed entries and the token weights are unrelated files that are written
//! in the same way.

use std::path::Path;
use std::{fs, io};

/// Replaces a file atomically.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)
}
