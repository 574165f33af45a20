//! The real program in a home of its own, with a store of the size that a benchmark needs. The
//! caller passes the path of the program: only benchmarks and the suite get it from Cargo.

use crate::sample_texts::Texts;
use crate::test_server::{Answer, ask};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Interval between two status requests: polling takes time from the node.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Time limit for indexing, the vectors of the transformer for 100,000 entries included.
const INDEX_TIME_MAX: Duration = Duration::from_secs(7_200);

/// Length of a tick, in which Linux counts processor time for programs.
const MILLISECONDS_PER_TICK: u64 = 10;

/// Setting of a node that searches without the transformer.
pub const STATIC: &str = "embedder.kind=static";

/// A home, and the program that runs in it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    program: &'a str,
    home: &'a Path,
}

/// A running program; killed when dropped.
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

/// Durations of filling a store, from the start of the import.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Until the import returned.
    pub returned: Duration,
    /// Until both indexes were complete.
    pub indexed: Duration,
    /// Until all background work was done.
    pub settled: Duration,
}

/// Resident memory of a process, in megabytes.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// Total resident memory.
    pub all: f64,
    /// Anonymous memory, without mapped files.
    pub own: f64,
}

impl<'a> Place<'a> {
    /// The program at this path, in this home.
    pub fn new(program: &'a str, home: &'a Path) -> Self {
        Self { program, home }
    }

    /// The program, ready for a verb. It has the transformer, like the program that users run.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().env("KLNODE_TEST_TRANSFORMER", "1");
        command.arg("--home").arg(self.home).stdin(Stdio::null());
        command
    }

    /// Starts a node with these settings, and waits until it reports that it runs.
    ///
    /// # Panics
    /// If it does not start.
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

    /// Sends a GET request on a new connection, as an agent does.
    pub fn get(&self, path: &str) -> Answer {
        ask(self.connect(), "GET", path, &[], b"")
    }

    /// Sends a POST request on a new connection.
    ///
    /// # Panics
    /// If the node refuses it.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, body)
    }

    /// Sends a request with a body on a new connection.
    ///
    /// # Panics
    /// If the node refuses it.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let headers = [("Content-Type", "application/json")];
        let answer = ask(self.connect(), method, path, &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.home.join("klnode.sock")).expect("connects")
    }

    /// Waits until the index status satisfies `is_enough`.
    ///
    /// # Panics
    /// If the time limit passes.
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

    /// Waits until everything is indexed and no rebuild is running.
    pub fn settle(&self) {
        self.wait_for_index(|index| index["lag"] == 0 && is_settled(index));
    }

    /// Imports lines into a running node, one entry each, and waits until all are indexed and all
    /// background work is done.
    ///
    /// # Panics
    /// If the node refuses them.
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

    /// A node with `size` indexed entries.
    pub fn filled(&self, texts: &Texts, size: usize) -> Running {
        let node = self.start(&[]);
        self.fill(&lines(texts, size));
        node
    }
}

/// `size` entries as import lines.
pub fn lines(texts: &Texts, size: usize) -> Vec<String> {
    (0..size).map(|number| texts.line(number)).collect()
}

/// True if no background work is left, the vectors of the transformer included if the node has one.
fn is_settled(index: &Value) -> bool {
    let transformer = &index["transformer"];
    let is_embedded = transformer["done"].as_u64() >= transformer["total"].as_u64();
    index["rebuild"].is_null() && index["is_settled"] == true && is_embedded
}

/// Splits the arguments of a benchmark into sizes (or the defaults) and other words.
pub fn sizes_and_words(arguments: Vec<String>, unless_told: &[usize]) -> (Vec<usize>, Vec<String>) {
    let (sizes, words): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    (if sizes.is_empty() { unless_told.to_vec() } else { sizes }, words)
}

impl Running {
    /// Time since its start.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Processor time that the node has taken since its start.
    ///
    /// # Panics
    /// If it has ended.
    pub fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).expect("it runs");
        // The name of the program, in brackets, may contain spaces.
        let (_, fields) = stat.rsplit_once(')').expect("has a name");
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * MILLISECONDS_PER_TICK)
    }

    /// Resident memory of the node.
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
