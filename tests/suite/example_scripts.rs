//! The examples that need no klnode library, run unchanged against a real node.

use crate::support::conformance::conforms;
use crate::support::node_process::{PROGRAM, Running, done, printed, start, told};
use klnode_client::Client;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A node in a temporary home.
struct Home {
    folder: tempfile::TempDir,
    _node: Running,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (node, _) = start(folder.path());
        Self { folder, _node: node }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        self.path().join("klnode.sock")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        done(self.path(), arguments)
    }

    /// α of the first entry, and the names of the callers.
    fn outcome(&self) -> (f64, Vec<String>) {
        let alpha = self.json(&["list"])["entries"][0]["alpha"].as_f64().unwrap();
        let usage = self.json(&["status", "usage"]);
        let callers = usage["callers"].as_array().unwrap().iter();
        (alpha, callers.map(|row| row["name"].as_str().unwrap().to_owned()).collect())
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// Whether a program is installed; prints a notice if not, since the test is then skipped.
fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !found {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "SKIPPED: {program} is not installed; `.ci/run` installs it");
    }
    found
}

#[test]
fn the_api_is_used_with_curl_alone() {
    conforms("C-16");
    if !is_installed("curl") {
        return;
    }
    let home = Home::new();
    let run = || Command::new("sh").arg(example("curl.sh")).arg(home.socket()).output().unwrap();
    let text = printed(&run());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("wrote "), "{text}");
    assert_eq!(lines[1..], ["found it", "it was credited"], "{text}");
    let (alpha, callers) = home.outcome();
    assert!(alpha > 5.5, "the task counts: {alpha}");
    assert_eq!(callers, ["curl-example"]);
}

#[test]
fn the_api_is_used_with_the_standard_library_of_python() {
    if !is_installed("python3") {
        return;
    }
    let home = Home::new();
    let script = example("klnode_client.py");
    let output = Command::new("python3").arg("-B").arg(script).arg(home.socket()).output().unwrap();
    let text = printed(&output);
    let lines: Vec<&str> = text.lines().collect();
    let code = lines[0].strip_prefix("wrote ").unwrap();
    assert_eq!(lines[1], format!("found {code}"), "{text}");
    assert_eq!(lines[2], format!("credited {code} 1.3"), "{text}");
    assert!(lines[3].starts_with("refused: `no-such-task` is not the name of a task"), "{text}");
    assert_eq!(home.outcome().1, ["python-example"]);
}

#[test]
fn the_api_is_used_with_the_rust_client() {
    let home = Home::new();
    let client = Client::new(&home.socket()).named("rust-example", Some("example-1"));
    let lines = klnode_examples::run(klnode_examples::client::work(&client)).unwrap();
    let code = lines[0].strip_prefix("wrote ").unwrap();
    assert_eq!(lines[1], format!("found {code} Pin the toolchain in CI"), "{lines:?}");
    assert_eq!(lines[2], format!("credited {code} 1.4"), "{lines:?}");
    assert!(lines[3].starts_with("briefed in "), "{lines:?}");
    assert_eq!(home.outcome().1, ["rust-example"]);
}

#[test]
fn a_shell_loop_wraps_its_work_in_a_task_and_reports_the_outcome() {
    let home = Home::new();
    let add = ["--title", "Stop the worker before a migration", "--content", "It holds a lock."];
    home.json(&[&["add"], &add[..], &["--evidence", "doc:notes"]].concat());
    let run = |work: &str| {
        let klnode = format!("{PROGRAM} --home {}", home.path().display());
        let mut command = Command::new("sh");
        command.arg(example("agent_loop.sh")).args(["stop the worker before the migration", "--"]);
        command.args(["sh", "-c", work]).env("KLNODE", klnode).output().unwrap()
    };
    let text = printed(&run("echo \"told: $KLNODE_KNOWN\""));
    assert!(text.contains("told: L-") && text.trim_end().ends_with("done"), "{text}");
    let (alpha, _) = home.outcome();
    assert!(alpha > 5.2, "the success counts: {alpha}");
    let failed = run("exit 7");
    assert_eq!(failed.status.code(), Some(7), "{}", told(&failed));
    let tasks = home.json(&["task", "list"]);
    let outcomes: Vec<&str> = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["failure", "success"], "the newest first");
}
