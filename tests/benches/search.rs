//! What a question costs, asked of the real program over its socket: latency, start, memory, and how
//! fast a store is filled until everything in it can be found.
//!
//! `cargo bench -p klnode-tests --bench search [-- PART] [-- SIZE]` runs all, or the parts whose name
//! contains PART (import, latency, memory, start, embed) with stores of SIZE entries.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use klnode::index::embed::{self, Settings};
use klnode_tests::measure::{bench_arguments, percentile, timed};
use klnode_tests::node::Seeded;
use klnode_tests::served::{Answer, ask};
use klnode_tests::texts::Texts;
use serde_json::{Value, json};
use std::fmt::Write;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIZES: [usize; 4] = [0, 1_000, 10_000, 100_000];
const QUERIES: usize = 1_500;
/// Questions that are asked before any is timed.
const WARM_UP: usize = 100;
const STARTS: usize = 9;
/// Between two looks at a node that works: looking takes time from it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const INDEX_TIME_MAX: Duration = Duration::from_secs(600);

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, parts): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let mut sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    let texts = Texts::read();
    println!("{:<58} {:>12}   goal", "what", "measured");
    if wanted("embed") {
        embedding(&texts);
    }
    let needs_store = ["import", "latency", "memory", "start"].into_iter().any(wanted);
    for size in sizes.into_iter().filter(|_| needs_store) {
        let home = tempfile::tempdir().expect("a folder");
        fill(home.path(), &texts, size, wanted("import"));
        if wanted("start") {
            starts(home.path(), &texts, size);
        }
        if (wanted("latency") || wanted("memory")) && size > 0 {
            questions(home.path(), &texts, size, wanted("latency"), wanted("memory"));
        }
    }
}

fn row(what: &str, measured: f64, unit: &str, goal: &str) {
    println!("{what:<58} {measured:>9.1} {unit:<4} {goal}");
}

fn embedding(texts: &Texts) {
    let model = embed::open(Settings::BuiltIn).expect("is compiled in");
    let entries: Vec<String> =
        (0..10_000).map(|at| texts.entry(at)).map(|(a, b)| format!("{a}. {a}. {b}")).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let mut rates: Vec<f64> = (0..5)
        .map(|_| {
            let took = timed(|| {
                for batch in entries.chunks(128) {
                    black_box(model.embed(batch)).expect("cannot fail");
                }
            });
            entries.len() as f64 / took.as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    row("embedding, one core, texts a second", rates[rates.len() / 2], "/s", "");
}

/// The program at work in a home; killed when dropped.
struct Node {
    child: Child,
    started: Instant,
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klnode-under-test"));
    command.env_clear().arg("--home").arg(home).args(["--log", "off"]).stdin(Stdio::null());
    command
}

impl Node {
    /// Starts it, and waits until it says that it runs.
    fn start(home: &Path) -> Self {
        let mut command = program(home);
        let started = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs");
        let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        let said = lines.map(|line| line.expect("text")).find(|line| line.starts_with("Try "));
        assert!(said.is_some(), "it did not start");
        Self { child, started }
    }

    /// Memory that it holds, in megabytes: all of it, and what is not a file's.
    fn resident(&self) -> (f64, f64) {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let of = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
            let kibibytes: f64 =
                line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
            kibibytes * 1024.0 / 1e6
        };
        (of("VmRSS:"), of("RssAnon:"))
    }
}

fn get(home: &Path, path: &str) -> Answer {
    let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
    ask(stream, "GET", path, &[], b"")
}

/// Asks as an agent does: on a connection of its own.
fn search(home: &Path, query: &str) -> Value {
    let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
    let body = json!({ "query": query }).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = ask(stream, "POST", "/v1/search", &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Waits until the index has got so far.
fn wait_for_index(home: &Path, is_enough: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + INDEX_TIME_MAX;
    loop {
        let status = get(home, "/v1/status").json();
        if is_enough(&status["index"]) {
            return;
        }
        assert!(Instant::now() < deadline, "the index does not settle: {status}");
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

fn is_settled(index: &Value) -> bool {
    index["rebuild"].is_null() && index["is_settled"] == true
}

/// Fills a home, and leaves it with everything indexed and nobody at work.
fn fill(home: &Path, texts: &Texts, size: usize, is_told: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.jsonl");
    let mut lines = String::new();
    for number in 0..size {
        let _ = writeln!(lines, "{}", texts.line(number));
    }
    std::fs::write(&file, lines).expect("written");
    let _node = Node::start(home);
    let start = Instant::now();
    let imported = program(home).arg("import").arg(&file).output().expect("runs");
    let returned = start.elapsed();
    assert!(imported.status.success() || size == 0, "{imported:?}");
    let is_in = |index: &Value| index["lag"] == 0 && index["vectors"] == size;
    wait_for_index(home, is_in);
    let indexed = start.elapsed();
    wait_for_index(home, |index| is_in(index) && is_settled(index));
    let settled = start.elapsed();
    if is_told && size > 0 {
        let rate = |took: Duration| size as f64 / took.as_secs_f64();
        let what = |until: &str| format!("import of {size}, until {until}");
        row(&what("it returns"), rate(returned), "/s", "");
        row(&what("both indexes hold all"), rate(indexed), "/s", "at least 5000");
        row(&what("nothing is left to do"), rate(settled), "/s", "");
    }
}

fn starts(home: &Path, texts: &Texts, size: usize) {
    let mut random = Seeded(7);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (mut bound, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let query = texts.query(&mut random);
        let node = Node::start(home);
        bound.push(millis(node.started.elapsed()));
        search(home, &query);
        answered.push(millis(node.started.elapsed()));
    }
    let goal = match size {
        0 => "at most 100",
        100_000 => "at most 500",
        _ => "",
    };
    let median = |times: &mut Vec<f64>| percentile(times, 50.0);
    row(&format!("start with {size}, to the banner"), median(&mut bound), "ms", "");
    row(&format!("start with {size}, to the first answer"), median(&mut answered), "ms", goal);
}

fn questions(home: &Path, texts: &Texts, size: usize, tells_latency: bool, tells_memory: bool) {
    let node = Node::start(home);
    wait_for_index(home, |index| index["lag"] == 0 && is_settled(index));
    let (before, before_own) = node.resident();
    let mut random = Seeded(size as u64);
    let (mut times, mut answered) = (Vec::new(), 0);
    for number in 0..WARM_UP + QUERIES {
        let query = texts.query(&mut random);
        let start = Instant::now();
        let answer = search(home, &query);
        let took = start.elapsed().as_secs_f64() * 1e3;
        if number >= WARM_UP {
            times.push(took);
            answered += usize::from(answer["abstained"] == false);
        }
    }
    if tells_latency {
        for (percent, goal) in [(50.0, ""), (95.0, "at most 5"), (99.0, "")] {
            let goal = if size == 100_000 { goal } else { "" };
            let what = format!("search in {size}, p{percent}");
            println!("{what:<58} {:>9.2} ms   {goal}", percentile(&mut times, percent));
        }
        let share = 100.0 * answered as f64 / QUERIES as f64;
        row(&format!("search in {size}, answered"), share, "%", "");
    }
    if tells_memory {
        let (after, after_own) = node.resident();
        let goal = if size == 10_000 { "at most 60" } else { "" };
        row(&format!("resident with {size}, before the first question"), before, "MB", goal);
        row(&format!("resident with {size}, of that not files"), before_own, "MB", "");
        row(&format!("resident with {size}, after {QUERIES} questions"), after, "MB", "");
        row(&format!("resident with {size}, of that not files"), after_own, "MB", "");
    }
}
