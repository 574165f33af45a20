//! One node as a real process: start, signals and stop, typed verbs, their output, and waiting for
//! a condition.

use klnode_tests::test_server::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Path of the program, for tests that do not use [`klnode`].
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");

/// The program on a home, with an empty environment.
pub(crate) fn klnode(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().arg("--home").arg(home).stdin(Stdio::null());
    command
}

/// A node in the foreground; killed with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Waits for its end and returns its output.
    pub(crate) fn finish(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let Some(mut pipe) = self.0.stdout.take() {
            pipe.read_to_end(&mut stdout).unwrap();
        }
        if let Some(mut pipe) = self.0.stderr.take() {
            pipe.read_to_end(&mut stderr).unwrap();
        }
        Output { status: self.0.wait().unwrap(), stdout, stderr }
    }

    /// Stops the node, and waits for a clean end.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        signal(&self.0, "TERM");
        assert!(self.0.wait().unwrap().success());
    }
}

/// Starts a node and waits for its banner.
pub(crate) fn start(home: &Path) -> (Running, Vec<String>) {
    let mut command = klnode(home);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    started(command)
}

/// Starts a node from any command and waits for its banner; the output is piped.
pub(crate) fn started(mut command: Command) -> (Running, Vec<String>) {
    let mut node = Running(command.spawn().unwrap());
    let banner = banner(&mut node);
    (node, banner)
}

/// Banner of a started node.
pub(crate) fn banner(node: &mut Running) -> Vec<String> {
    let lines = BufReader::new(node.0.stdout.as_mut().expect("piped")).lines();
    let mut banner = Vec::new();
    for line in lines.map(|line| line.expect("text")) {
        let is_last = line.starts_with("Try ");
        banner.push(line);
        if is_last {
            break;
        }
    }
    banner
}

/// Error output of a node that must not start; the test fails if it does.
pub(crate) fn refusal(home: &Path) -> String {
    let child = klnode(home).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut node = Running(child);
    let deadline = Instant::now() + Duration::from_secs(60);
    while node.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it runs");
        std::thread::yield_now();
    }
    told(&node.finish())
}

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", child.id())).status();
    assert!(sent.expect("sh runs").success());
}

/// Resident memory of a process.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

/// Runs a verb.
pub(crate) fn run(home: &Path, words: &[&str]) -> Output {
    klnode(home).args(words).output().unwrap()
}

/// Standard error of a verb: errors and notes.
pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a verb that must succeed.
#[track_caller]
pub(crate) fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", told(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// JSON output of a verb, with any exit code.
#[track_caller]
pub(crate) fn json(home: &Path, words: &[&str]) -> Value {
    let output = run(home, &[words, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let read = serde_json::from_str(&text);
    read.unwrap_or_else(|error| panic!("{words:?}: {error}: {text}{}", told(&output)))
}

/// JSON output of a verb that must succeed.
#[track_caller]
pub(crate) fn done(home: &Path, words: &[&str]) -> Value {
    let output = run(home, &[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", told(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A string in a JSON value.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}")).to_owned()
}

/// Polls until the closure returns a value, with a time limit.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}

/// All findings of `check home store`, from its JSON form.
pub(crate) fn checks(checked: &Value) -> Vec<Value> {
    let parts = ["home", "store"].map(|part| checked[part].as_array().cloned().unwrap_or_default());
    parts.concat()
}
