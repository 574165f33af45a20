//! Writes `hook.log` in the home: one line per hook with its time, duration and result.
//!
//! The log is bounded: a full file replaces the previous one. It never contains text of a prompt,
//! an error message or an entry.

use super::HookEvent;
use klnode_home::Layout;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// Maximum size of the file; one older file of this size may exist beside it.
const BYTES_MAX: u64 = 64 * 1024;

/// Appends a line. Write errors are ignored, so that a hook never delays an agent because of its
/// log.
pub fn note(layout: &Layout, millis: u64, event: HookEvent, took: Duration, what: &str) {
    let file = layout.hook_log_file();
    if fs::metadata(&file).is_ok_and(|found| found.len() > BYTES_MAX) {
        let _ = fs::rename(&file, file.with_extension("log.old"));
    }
    let at = i64::try_from(millis).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default();
    let line = format!("{at} {} {:.1} ms: {what}\n", event.verb(), took.as_secs_f64() * 1e3);
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
    let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_one_line_per_hook_and_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let took = Duration::from_micros(1_200);
        note(&layout, 0, HookEvent::Prompt, took, "No relevant entry.");
        let read = || fs::read_to_string(layout.hook_log_file()).unwrap();
        assert_eq!(read(), "1970-01-01 00:00:00 prompt 1.2 ms: No relevant entry.\n");
        for _ in 0..3_000 {
            note(&layout, 0, HookEvent::Stop, took, "The task is left without a verdict.");
        }
        assert!(read().len() < 66_000);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        let nowhere = Layout::new(home.path().join("missing"));
        note(&nowhere, 0, HookEvent::Stop, took, "nothing");
        assert!(!nowhere.home().exists());
    }
}
