//! Stores the task of a client session in a small file in the home, named after the session.
//!
//! Each hook is a separate process without memory of earlier ones. If the file is lost, later
//! queries belong to no task, and the task itself expires.

use super::session_file::{TASK, safe_id, sweep};
use klnode_home::Layout;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::SystemTime;

/// Length of a task id in hexadecimal digits.
const TASK_DIGITS: usize = 32;

pub(super) struct HookSession {
    folder: PathBuf,
    file: PathBuf,
}

impl HookSession {
    pub(super) fn new(layout: &Layout, id: &str) -> Self {
        let folder = layout.run_folder();
        let file = folder.join(format!("{TASK}{}", safe_id(id)));
        Self { folder, file }
    }

    /// The task begun for this session.
    pub(super) fn task(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        let task = text.trim();
        let fits = task.len() == TASK_DIGITS && task.bytes().all(|digit| digit.is_ascii_hexdigit());
        fits.then(|| task.to_owned())
    }

    /// Stores the session's task and deletes expired files. Returns whether the write succeeded.
    pub(super) fn keep(&self, task: &str, now: SystemTime) -> bool {
        sweep(&self.folder, now);
        // An error here usually means that the folder exists.
        let _ = DirBuilder::new().mode(0o700).create(&self.folder);
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.file);
        file.and_then(|mut file| writeln!(file, "{task}")).is_ok()
    }

    pub(super) fn forget(&self) {
        // A missing file needs no removal.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::super::session_file::AGE_MAX;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_session_keeps_its_task_until_forget_is_called() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let task = "01".repeat(16);
        for id in ["b3f1-4c", "../../etc/passwd", "", &"x".repeat(65)] {
            let session = HookSession::new(&layout, id);
            assert_eq!(session.task(), None);
            assert!(session.keep(&task, SystemTime::now()));
            assert_eq!(session.file.parent(), Some(layout.run_folder().as_path()), "{id}");
            assert_eq!(HookSession::new(&layout, id).task().as_deref(), Some(task.as_str()));
            session.forget();
            assert_eq!(session.task(), None);
        }
        let session = HookSession::new(&layout, "s");
        assert!(session.keep("no task", SystemTime::now()));
        assert_eq!(session.task(), None);
        let later = SystemTime::now() + AGE_MAX + Duration::from_secs(1);
        assert!(HookSession::new(&layout, "t").keep(&task, later));
        assert_eq!(
            fs::read_dir(layout.run_folder()).unwrap().count(),
            1,
            "expired files are deleted"
        );
    }
}
