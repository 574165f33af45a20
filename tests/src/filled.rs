//! The real program at work in a home of its own, with a store as large as a benchmark wants it. Where
//! the program is comes in: only benchmarks and the suite are told.

use crate::served::{Answer, ask};
use crate::texts::Texts;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at a node that works: looking takes time from it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// An index that takes longer has failed.
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);

/// A home, and the program that works in it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    program: &'a str,
    home: &'a Path,
}

/// The program at work; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long it took to fill a store, from the beginning of the import.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Until the import returned.
    pub returned: Duration,
    /// Until both indexes held everything.
    pub indexed: Duration,
    /// Until nothing was left to do.
    pub settled: Duration,
}

/// Memory that a process holds, in megabytes.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// All of it.
    pub all: f64,
    /// What is not a file's.
    pub own: f64,
}

impl<'a> Place<'a> {
    /// The program at this path, in this home.
    pub fn new(program: &'a str, home: &'a Path) -> Self {
        Self { program, home }
    }

    /// The program, to be called with a verb.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().arg("--home").arg(self.home).stdin(Stdio::null());
        command
    }

    /// Starts a node with these assignments, and waits until it says that it runs.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(&self, assignments: &[&str]) -> Running {
        let mut command = self.command();
        command.args(["--log", "off"]);
        for assignment in assignments {
            command.args(["--set", assignment]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().expect("runs");
        let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        let said = lines.map(|line| line.expect("text")).find(|line| line.starts_with("Try "));
        assert!(said.is_some(), "it did not start");
        Running { child, started }
    }

    /// Asks the node, on a connection of its own, as an agent does.
    pub fn get(&self, path: &str) -> Answer {
        ask(self.connect(), "GET", path, &[], b"")
    }

    /// Sends the node something, on a connection of its own.
    ///
    /// # Panics
    /// If it refuses.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let headers = [("Content-Type", "application/json")];
        let answer = ask(self.connect(), "POST", path, &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.home.join("klnode.sock")).expect("connects")
    }

    /// Waits until the index has got so far.
    ///
    /// # Panics
    /// If it does not get there.
    pub fn wait_for_index(&self, is_enough: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + INDEX_TIME_MAX;
        loop {
            let status = self.get("/v1/status").json();
            if is_enough(&status["index"]) {
                return;
            }
            assert!(Instant::now() < deadline, "the index does not settle: {status}");
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Waits until everything is indexed, and nothing is made anew.
    pub fn settle(&self) {
        self.wait_for_index(|index| index["lag"] == 0 && is_settled(index));
    }

    /// Imports lines into a node that runs, one entry each, and waits until all are indexed and nothing
    /// is left to do.
    ///
    /// # Panics
    /// If they are not taken.
    pub fn fill(&self, lines: &[String]) -> Filled {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lines.jsonl");
        std::fs::write(&file, lines.join("\n") + "\n").expect("written");
        let start = Instant::now();
        let imported = self.command().arg("import").arg(&file).output().expect("runs");
        let returned = start.elapsed();
        assert!(imported.status.success() || lines.is_empty(), "{imported:?}");
        let is_in = |index: &Value| index["lag"] == 0 && index["vectors"] == lines.len();
        self.wait_for_index(is_in);
        let indexed = start.elapsed();
        self.wait_for_index(|index| is_in(index) && is_settled(index));
        Filled { returned, indexed, settled: start.elapsed() }
    }

    /// A node that holds so many entries, all of them indexed.
    pub fn filled(&self, texts: &Texts, size: usize) -> Running {
        let node = self.start(&[]);
        self.fill(&lines(texts, size));
        node
    }
}

/// So many entries, as lines of an import.
pub fn lines(texts: &Texts, size: usize) -> Vec<String> {
    (0..size).map(|number| texts.line(number)).collect()
}

fn is_settled(index: &Value) -> bool {
    index["rebuild"].is_null() && index["is_settled"] == true
}

/// Splits what a benchmark was called with into sizes, or those it takes unless told, and other words.
pub fn sizes_and_words(arguments: Vec<String>, unless_told: &[usize]) -> (Vec<usize>, Vec<String>) {
    let (sizes, words): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    (if sizes.is_empty() { unless_told.to_vec() } else { sizes }, words)
}

impl Running {
    /// How long ago it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Memory that it holds.
    ///
    /// # Panics
    /// If it has ended.
    pub fn resident(&self) -> Resident {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let of = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
            let kibibytes: f64 =
                line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
            kibibytes * 1024.0 / 1e6
        };
        Resident { all: of("VmRSS:"), own: of("RssAnon:") }
    }
}
