//! What a hook costs an agent: the whole process, from its start to its end, as the client sees it.
//!
//! `cargo bench -p klnode-tests --bench hooks [-- EVENT] [-- SIZE]` runs all, or the events whose name
//! contains EVENT with stores of SIZE entries.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use klnode_tests::measure::{bench_arguments, percentile};
use klnode_tests::node::Seeded;
use klnode_tests::served::ask;
use klnode_tests::texts::Texts;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIZES: [usize; 2] = [10_000, 100_000];
const EVENTS: [&str; 4] = ["session-start", "prompt", "tool-error", "stop"];
const CALLS: usize = 400;
/// Calls that are made before any is timed.
const WARM_UP: usize = 40;
/// Between two looks at a node that works: looking takes time from it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, events): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let mut sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let wanted = |name: &&str| events.is_empty() || events.iter().any(|part| name.contains(part));
    let texts = Texts::read();
    println!("{:<44} {:>9} {:>9} {:>9}   goal", "what", "p50", "p95", "p99");
    for size in sizes {
        let home = tempfile::tempdir().expect("a folder");
        let _node = filled(home.path(), &texts, size);
        for event in EVENTS.into_iter().filter(wanted) {
            let (mut times, spoken) = calls(home.path(), &texts, event);
            let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|of| percentile(&mut times, of));
            let what = format!("hook {event} with {size}, {spoken} of {CALLS} spoke");
            println!("{what:<44} {p50:>6.2} ms {p95:>6.2} ms {p99:>6.2} ms   p95 below 15");
        }
    }
}

fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klnode-under-test"));
    command.env_clear().arg("--home").arg(home).stdin(Stdio::null());
    command
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

/// A node that holds so many entries, all of them indexed.
fn filled(home: &Path, texts: &Texts, size: usize) -> Node {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.jsonl");
    let mut lines = String::new();
    for number in 0..size {
        let _ = writeln!(lines, "{}", texts.line(number));
    }
    std::fs::write(&file, lines).expect("written");
    let mut command = program(home);
    command.args(["--log", "off"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut node = Node(command.spawn().expect("runs"));
    let mut banner = BufReader::new(node.0.stdout.as_mut().expect("piped")).lines();
    assert!(banner.any(|line| line.expect("text").starts_with("Try ")), "it did not start");
    let imported = program(home).arg("import").arg(&file).output().expect("runs");
    assert!(imported.status.success() || size == 0, "{imported:?}");
    let deadline = Instant::now() + INDEX_TIME_MAX;
    loop {
        let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
        let index = ask(stream, "GET", "/v1/status", &[], b"").json()["index"].clone();
        if index["lag"] == 0 && index["vectors"] == size && index["rebuild"].is_null() {
            return node;
        }
        assert!(Instant::now() < deadline, "the index does not settle: {index}");
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

/// What a client says at an event. A session begins and ends once; prompts and errors are of one that
/// goes on.
fn input(event: &str, query: &str, number: usize) -> Value {
    let number = if matches!(event, "prompt" | "tool-error") { 0 } else { number };
    json!({
        "session_id": format!("s{number}"), "cwd": "/", "prompt": query, "error": query, "tool_name": "Bash",
    })
}

/// How long calls took, in milliseconds, and how many of them said something.
fn calls(home: &Path, texts: &Texts, event: &str) -> (Vec<f64>, usize) {
    let mut random = Seeded(11);
    let (mut times, mut spoken) = (Vec::new(), 0);
    for number in 0..WARM_UP + CALLS {
        let input = input(event, &texts.query(&mut random), number).to_string();
        let mut command = program(home);
        command.args(["hook", event]).args((event == "stop").then_some("--success"));
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().expect("runs");
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
        let output = child.wait_with_output().expect("ends");
        let took = start.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success(), "{output:?}");
        if number >= WARM_UP {
            times.push(took);
            spoken += usize::from(!output.stdout.is_empty());
        }
    }
    (times, spoken)
}
