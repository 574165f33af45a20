//! An import of another tool's files on a terminal: the question, the progress and an interrupt.
//!
//! The program `script` gives the real process a terminal.

use crate::support::node_process::{PROGRAM, Running, eventually, json, signal, start};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time after which a progress bar is certainly drawn.
const BAR_DRAWN_AFTER: Duration = Duration::from_millis(2_500);
/// The key Ctrl-C.
const CTRL_C: &str = "\u{3}";

/// A verb on a terminal, and its output so far.
struct Terminal {
    child: Child,
    shown: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    fn run(home: &Path, words: &[&str]) -> Self {
        let home = home.to_str().unwrap();
        let line = format!("stty cols 100 && exec {PROGRAM} --home {home} {}", words.join(" "));
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut pipe, to) = (child.stdout.take().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, shown, reader: Some(reader) }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    fn type_in(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    #[track_caller]
    fn wait_for(&self, part: &str) {
        eventually(&format!("the terminal shows `{part}`"), || {
            self.shown().contains(part).then_some(())
        });
    }

    /// Waits for the end. Returns the exit code and all output.
    fn finish(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        (code, self.shown())
    }
}

/// A node, and a folder of this many notes.
fn notes(count: usize) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let (node, _) = start(&folder.path().join("home"));
    fs::create_dir(folder.path().join("notes")).unwrap();
    for number in 0..count {
        let path = folder.path().join(format!("notes/n{number:05}.md"));
        fs::write(path, format!("Note number {number} has its own text.\n")).unwrap();
    }
    (folder, node)
}

fn import(folder: &tempfile::TempDir, more: &[&str]) -> Terminal {
    let notes = folder.path().join("notes");
    let words = ["import", "--format", "markdown", notes.to_str().unwrap()];
    Terminal::run(&folder.path().join("home"), &[&words[..], more].concat())
}

fn count(folder: &tempfile::TempDir) -> u64 {
    let status = json(&folder.path().join("home"), &["list", "--all", "-n", "500"]);
    status["entries"].as_array().map_or(0, |entries| entries.len() as u64)
}

#[test]
fn more_than_twenty_entries_are_shown_and_asked_for() {
    let (folder, _node) = notes(21);
    let mut refused = import(&folder, &[]);
    refused.wait_for("Import them? [y/N]");
    assert!(refused.shown().contains("to add"), "{}", refused.shown());
    refused.type_in("n\n");
    let (code, shown) = refused.finish();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Nothing was imported."), "{shown}");
    assert_eq!(count(&folder), 0);
    let mut taken = import(&folder, &[]);
    taken.wait_for("Import them? [y/N]");
    taken.type_in("y\n");
    let (code, shown) = taken.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("21 imported"), "{shown}");
    assert_eq!(count(&folder), 21);
    // Nothing is new, so there is nothing to ask.
    let (code, shown) = import(&folder, &[]).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("[y/N]") && shown.contains("21 already known"), "{shown}");
}

#[test]
fn twenty_entries_and_a_confirmed_import_are_not_asked_for() {
    let (folder, _node) = notes(20);
    let (code, shown) = import(&folder, &[]).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("[y/N]") && shown.contains("20 imported"), "{shown}");
    fs::write(folder.path().join("notes/more.md"), "One more.\n").unwrap();
    let (_, shown) = import(&folder, &["--yes"]).finish();
    assert!(!shown.contains("[y/N]") && shown.contains("1 imported"), "{shown}");
}

#[test]
fn a_long_import_shows_its_rate_and_an_interrupt_loses_nothing() {
    const NOTES: u64 = 6_000;
    let (folder, node) = notes(NOTES as usize);
    // The node answers only when the import has run long enough to show a bar.
    signal(&node.0, "STOP");
    let begun = Instant::now();
    let mut first = import(&folder, &["--yes"]);
    eventually("the bar is due", || (begun.elapsed() > BAR_DRAWN_AFTER).then_some(()));
    signal(&node.0, "CONT");
    first.wait_for(" entries, ");
    signal(&node.0, "STOP");
    let shown = first.shown();
    assert!(shown.contains("/s, ") && shown.contains(" s left"), "{shown}");
    first.type_in(CTRL_C);
    let (code, shown) = first.finish();
    signal(&node.0, "CONT");
    assert_eq!(code, Some(130), "{shown}");
    let said = shown.split("At least ").nth(1).unwrap_or_else(|| panic!("{shown}"));
    assert!(said.contains("Run it again to complete it."), "{shown}");
    let taken: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!((1..NOTES).contains(&taken), "{shown}");
    let path = folder.path().join("notes");
    let words = ["import", "--format", "markdown", path.to_str().unwrap()];
    let second: Value = json(&folder.path().join("home"), &words);
    let (known, new) = (second["known"].as_u64().unwrap(), second["taken"].as_u64().unwrap());
    assert!(known >= taken && known + new == NOTES, "{taken}: {second:#}");
}
