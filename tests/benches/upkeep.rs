//! What upkeep costs: how long it takes over a large store, what it holds in memory, and whether
//! anybody who asks meanwhile notices. Questions before and during it are asked of the same process.
//!
//! `cargo bench -p klnode-tests --bench upkeep` fills a store of 100,000; a number sets another size.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use klnode_tests::measure::{bench_arguments, percentile};
use klnode_tests::node::Seeded;
use klnode_tests::served::{Answer, ask};
use klnode_tests::texts::Texts;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIZE: usize = 100_000;
/// Every so many entries one is written twice, with a word more.
const TWICE_EVERY: usize = 100;
const QUERIES: usize = 1_500;
const WARM_UP: usize = 100;
/// What upkeep may add to the memory of a node that answers.
const MEMORY_ADDED_MAX: &str = "at most 32";
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let size = arguments.iter().find_map(|size| size.parse().ok()).unwrap_or(SIZE);
    let texts = Texts::read();
    let home = tempfile::tempdir().expect("a folder");
    let node = Node::start(home.path());
    fill(home.path(), &texts, size);
    println!("{:<58} {:>12}   goal", "what", "measured");
    let mut random = Seeded(size as u64);
    for _ in 0..WARM_UP {
        search(home.path(), &texts.query(&mut random));
    }
    let mut before: Vec<f64> =
        (0..QUERIES).map(|_| timed_search(home.path(), &texts, &mut random)).collect();
    let resident = node.resident();
    let start = Instant::now();
    let mut upkeep = program(home.path());
    upkeep.args(["maintain", "--all", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut upkeep = upkeep.spawn().expect("runs");
    let (mut during, mut most) = (Vec::new(), resident);
    while upkeep.try_wait().expect("a child").is_none() {
        during.push(timed_search(home.path(), &texts, &mut random));
        most = most.max(node.resident());
    }
    let took = start.elapsed();
    let told = upkeep.wait_with_output().expect("ends");
    let told: Value = serde_json::from_slice(&told.stdout).expect("a summary");
    row(&format!("upkeep of {size}, all services"), took.as_secs_f64(), "s", "");
    row("of that merged", told["services"][0]["merged"].as_f64().unwrap_or(0.0), "", "");
    row("of that proposed", told["services"][0]["proposed"].as_f64().unwrap_or(0.0), "", "");
    row("resident before", resident, "MB", "");
    row("upkeep adds, at its most", most - resident, "MB", MEMORY_ADDED_MAX);
    let [calm, busy] = [&mut before, &mut during].map(|times| percentile(times, 99.0));
    row("search before upkeep, p99", calm, "ms", "");
    row(&format!("search during upkeep, p99 of {}", during.len()), busy, "ms", "");
    row("during over before", busy / calm.max(f64::EPSILON), "x", "at most 2");
}

fn row(what: &str, measured: f64, unit: &str, goal: &str) {
    println!("{what:<58} {measured:>9.2} {unit:<4} {goal}");
}

/// The program at work in a home; killed when dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klnode-under-test"));
    command.env_clear().arg("--home").arg(home).args(["--log", "off"]).stdin(Stdio::null());
    command
}

impl Node {
    /// Starts it, with upkeep of its own put off: only what is measured runs.
    fn start(home: &Path) -> Self {
        let mut command = program(home);
        command.args(["--set", "upkeep.look_interval=1 day"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs");
        let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        let said = lines.map(|line| line.expect("text")).find(|line| line.starts_with("Try "));
        assert!(said.is_some(), "it did not start");
        Self(child)
    }

    /// Memory that it holds, in megabytes.
    fn resident(&self) -> f64 {
        let path = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kibibytes: f64 =
            line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
        kibibytes * 1024.0 / 1e6
    }
}

fn get(home: &Path, path: &str) -> Answer {
    let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
    ask(stream, "GET", path, &[], b"")
}

fn search(home: &Path, query: &str) {
    let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
    let body = json!({ "query": query, "unrecorded": true }).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = ask(stream, "POST", "/v1/search", &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// How long an answer takes, in milliseconds.
fn timed_search(home: &Path, texts: &Texts, random: &mut Seeded) -> f64 {
    let query = texts.query(random);
    let start = Instant::now();
    search(home, &query);
    start.elapsed().as_secs_f64() * 1e3
}

/// Fills a home, and waits until everything is indexed and nothing is made anew.
fn fill(home: &Path, texts: &Texts, size: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.jsonl");
    let mut lines = String::new();
    for number in 0..size {
        if number % TWICE_EVERY != TWICE_EVERY - 1 {
            let _ = writeln!(lines, "{}", texts.line(number));
            continue;
        }
        let (title, content) = texts.entry(number - 1);
        let content = format!("{content} Indeed.");
        let line = json!({ "key": number.to_string(), "title": title, "content": content });
        let _ = writeln!(lines, "{line}");
    }
    std::fs::write(&file, lines).expect("written");
    let imported = program(home).arg("import").arg(&file).output().expect("runs");
    assert!(imported.status.success(), "{imported:?}");
    let deadline = Instant::now() + INDEX_TIME_MAX;
    loop {
        let status = get(home, "/v1/status").json();
        let index = &status["index"];
        if index["lag"] == 0 && index["vectors"] == size && index["rebuild"].is_null() {
            return;
        }
        assert!(Instant::now() < deadline, "the index does not settle: {status}");
        std::thread::park_timeout(LOOK_AGAIN);
    }
}
