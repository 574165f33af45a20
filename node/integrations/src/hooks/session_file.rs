//! Names and expiry of the files that hooks keep per client session in the run folder.
//!
//! `session` and `session_entries` each keep one such file.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix of the file with the session's task.
pub(super) const TASK: &str = "task-";
/// Prefix of the file with the entries that a session received.
pub(super) const ENTRIES: &str = "given-";
/// A file that is older than this belongs to a session that has ended.
pub(super) const AGE_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// Files inspected for expiry when a session begins.
const SWEPT_MAX: usize = 256;

/// A session id that is safe as a file name. An id with other characters is replaced by its digest.
pub(super) fn safe_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match id.len() <= 64 && !id.is_empty() && id.chars().all(is_plain) {
        true => id.to_owned(),
        false => blake3::hash(id.as_bytes()).to_hex()[..32].to_owned(),
    }
}

/// Deletes expired files of sessions that never ended.
pub(super) fn sweep(folder: &Path, now: SystemTime) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().take(SWEPT_MAX);
    let is_ours = |name: &str| [TASK, ENTRIES].iter().any(|prefix| name.starts_with(prefix));
    for file in files.filter(|file| is_ours(&file.file_name().to_string_lossy())) {
        let written = file.metadata().and_then(|found| found.modified());
        let age = written.ok().and_then(|written| now.duration_since(written).ok());
        if age.is_some_and(|age| age > AGE_MAX) {
            let _ = fs::remove_file(file.path());
        }
    }
}
