//! A node as a real process in its own home, typed at from a folder that is no checkout, and homes
//! with a past: written by an engine whose clock stood days ago.

use crate::support::homes::settle;
use crate::support::node_process::{Running, klnode, started, text, told};
use klnode_crdt::time::WallTime;
use klnode_tests::disk::Disk;
use klnode_tests::test_engine::{Node, downgrade};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// A running node and its folder.
pub(crate) struct Scene {
    folder: TempDir,
    _node: Running,
}

/// An engine whose clock stands this many days ago.
pub(crate) fn days_ago(days: u64) -> Node {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let then = WallTime::from_millis(since - days * DAY_MILLIS);
    Node::start_on(Disk::new(), 1, 1, then).expect("a fresh disk opens")
}

impl Scene {
    /// A node without entries.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// A node with these settings.
    pub(crate) fn with(settings: &[&str]) -> Self {
        Self::start(tempfile::tempdir().unwrap(), settings)
    }

    /// A node with the store of an engine.
    pub(crate) fn of(node: Node) -> Self {
        Self::of_with(node, &[])
    }

    /// A node with the store of an engine and these settings.
    pub(crate) fn of_with(node: Node, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        settle(&folder.path().join("home"), node, 1);
        Self::start(folder, settings)
    }

    /// A node with the store of an engine, as an older version of klnode left it.
    pub(crate) fn of_schema(node: Node, schema: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let old = node.medium.disk().fork();
        settle(&folder.path().join("home"), node, 1);
        downgrade(&old, schema);
        std::fs::write(folder.path().join("home/store.redb"), old.bytes()).unwrap();
        Self::start(folder, &[])
    }

    fn start(folder: TempDir, settings: &[&str]) -> Self {
        let mut command = klnode(&folder.path().join("home"));
        let quiet = ["network.listen=[]", "tuning.maintenance.check_interval=1 day"];
        for setting in quiet.iter().chain(settings) {
            command.args(["--set", setting]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (node, _) = started(command);
        Self { folder, _node: node }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder that verbs are typed in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a verb in a folder.
    pub(crate) fn run_in(&self, folder: &Path, words: &[&str]) -> Output {
        klnode(&self.home()).current_dir(folder).args(words).output().unwrap()
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.run_in(self.folder(), words)
    }

    /// Standard output of a verb, with any exit code.
    pub(crate) fn said(&self, words: &[&str]) -> String {
        String::from_utf8(self.run(words).stdout).unwrap()
    }

    /// JSON output of a verb, with any exit code.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        let read = serde_json::from_slice(&output.stdout);
        read.unwrap_or_else(|error| panic!("{words:?}: {error}: {}", told(&output)))
    }

    /// JSON output of a verb that must succeed.
    #[track_caller]
    pub(crate) fn done(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", told(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The message of a verb that must end with this code.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str], code: i32) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", told(&output));
        told(&output)
    }

    /// Code of a new entry with evidence.
    #[track_caller]
    pub(crate) fn add(&self, title: &str, content: &str, more: &[&str]) -> String {
        let words = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
        text(&self.done(&[&words[..], more].concat())["code"])
    }

    #[track_caller]
    pub(crate) fn show(&self, code: &str) -> Value {
        self.done(&["show", code])
    }

    pub(crate) fn begin(&self) -> String {
        text(&self.done(&["task", "begin", "--agent", "builder", "--goal", "mend it"])["task"])
    }

    /// Hits of a deterministic search.
    #[track_caller]
    pub(crate) fn hits(&self, query: &str, more: &[&str]) -> Vec<Value> {
        let words = [&["search", query, "--deterministic", "--explain"], more].concat();
        self.json(&words)["hits"].as_array().cloned().unwrap_or_default()
    }

    /// Codes of the hits of a deterministic search.
    #[track_caller]
    pub(crate) fn found(&self, query: &str, more: &[&str]) -> Vec<String> {
        self.hits(query, more).iter().map(|hit| text(&hit["code"])).collect()
    }

    /// Successes of an entry, each in its own task.
    pub(crate) fn succeed(&self, code: &str, times: usize) {
        for _ in 0..times {
            self.done(&["feedback", code, "--success", "--task", &self.begin()]);
        }
    }
}

/// Whether two numbers are equal up to a tolerance.
#[track_caller]
pub(crate) fn near(given: &Value, expected: f64, tolerance: f64) {
    let given = given.as_f64().unwrap_or_else(|| panic!("a number, not {given}"));
    assert!((given - expected).abs() <= tolerance, "{given}, not {expected}");
}
