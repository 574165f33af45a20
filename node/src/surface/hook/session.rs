//! The task of a session: one small file in the home, named after the session.
//!
//! A hook is a process of its own and remembers nothing. What is lost with the file is only that later
//! questions belong to no task; the task itself expires.

use super::memory;
use crate::store::Layout;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Files that are looked at when a session begins.
const SWEPT_MAX: usize = 256;
/// A file of a session that is older belongs to a session that has ended.
pub(super) const AGE_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// Digits of a task's name.
const TASK_DIGITS: usize = 32;

/// A session of a client.
pub(super) struct Session {
    folder: PathBuf,
    file: PathBuf,
}

/// A session's id as a file's name: what is no plain name is replaced by its digest.
pub(super) fn short(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match id.len() <= 64 && !id.is_empty() && id.chars().all(is_plain) {
        true => id.to_owned(),
        false => blake3::hash(id.as_bytes()).to_hex()[..32].to_owned(),
    }
}

impl Session {
    pub(super) fn new(layout: &Layout, id: &str) -> Self {
        let folder = layout.run_folder();
        let file = folder.join(format!("task-{}", short(id)));
        Self { folder, file }
    }

    /// The task that was begun for it.
    pub(super) fn task(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        let task = text.trim();
        let fits = task.len() == TASK_DIGITS && task.bytes().all(|digit| digit.is_ascii_hexdigit());
        fits.then(|| task.to_owned())
    }

    /// Keeps a task for it; whether that went well.
    pub(super) fn keep(&self, task: &str, now: SystemTime) -> bool {
        self.sweep(now);
        // It may be there already.
        let _ = DirBuilder::new().mode(0o700).create(&self.folder);
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.file);
        file.and_then(|mut file| writeln!(file, "{task}")).is_ok()
    }

    pub(super) fn forget(&self) {
        // Gone already is as good as removed.
        let _ = fs::remove_file(&self.file);
    }

    /// Removes what sessions left behind that never ended.
    fn sweep(&self, now: SystemTime) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten().take(SWEPT_MAX);
        let is_ours = |name: &str| name.starts_with("task-") || name.starts_with(memory::PREFIX);
        for file in files.filter(|file| is_ours(&file.file_name().to_string_lossy())) {
            let written = file.metadata().and_then(|found| found.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            if age.is_some_and(|age| age > AGE_MAX) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_task_until_it_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let task = "01".repeat(16);
        for id in ["b3f1-4c", "../../etc/passwd", "", &"x".repeat(65)] {
            let session = Session::new(&layout, id);
            assert_eq!(session.task(), None);
            assert!(session.keep(&task, SystemTime::now()));
            assert_eq!(session.file.parent(), Some(layout.run_folder().as_path()), "{id}");
            assert_eq!(Session::new(&layout, id).task().as_deref(), Some(task.as_str()));
            session.forget();
            assert_eq!(session.task(), None);
        }
        let session = Session::new(&layout, "s");
        assert!(session.keep("no task", SystemTime::now()));
        assert_eq!(session.task(), None);
        let later = SystemTime::now() + AGE_MAX + Duration::from_secs(1);
        assert!(Session::new(&layout, "t").keep(&task, later));
        assert_eq!(fs::read_dir(layout.run_folder()).unwrap().count(), 1, "what is old goes");
    }
}
