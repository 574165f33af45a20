//! Cost of the tools for an agent: calls as an MCP client sees them, in one long session over
//! standard input and output, and the number of tokens of an answer.
//!
//! `cargo bench -p klnode-tests --bench mcp [-- PART] [-- SIZE]` runs all parts, or those whose
//! name contains PART (search, get, remember, observe, task, briefing, tokens), with stores of SIZE
//! entries.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use bpe_openai::o200k_base;
use klnode_tests::bench_timing::{bench_arguments, percentile};
use klnode_tests::benchmark_node::{Place, sizes_and_words};
use klnode_tests::sample_texts::Texts;
use klnode_tests::test_engine::Seeded;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const SIZES: [usize; 2] = [10_000, 100_000];
const PARTS: [&str; 6] = ["search", "get", "remember", "observe", "task", "briefing"];
const TIERS: [&str; 4] = ["summary", "standard", "full", "auto"];
const CALLS: usize = 400;
/// Number of calls before the measurement starts.
const WARM_UP: usize = 40;
/// Number of questions whose answers are counted.
const QUESTIONS: usize = 200;

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, parts) = sizes_and_words(arguments, &SIZES);
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    let texts = Texts::read();
    println!("{:<50} {:>9} {:>9} {:>9}", "what", "p50", "p95", "p99");
    for size in sizes {
        let home = tempfile::tempdir().expect("a folder");
        let place = Place::new(PROGRAM, home.path());
        let _node = place.filled(&texts, size);
        let mut agent = Agent::start(place);
        let codes = codes(&mut agent, &texts);
        for part in PARTS.into_iter().filter(|part| wanted(part)) {
            let mut times = calls(&mut agent, (&texts, size), &codes, part);
            let name = if part == "task" { "task_begin and task_finish" } else { part };
            row(&format!("{name} with {size}"), &mut times, "ms");
        }
        if wanted("tokens") {
            tokens(place, &mut agent, &texts, size);
        }
    }
}

fn row(what: &str, values: &mut [f64], unit: &str) {
    let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|of| percentile(values, of));
    println!("{what:<50} {p50:>9.2} {p95:>9.2} {p99:>9.2} {unit}");
}

/// A client with one session, which waits for each response.
struct Agent {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Agent {
    fn start(place: Place<'_>) -> Self {
        let mut command = place.command();
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("runs");
        let stdin = process.stdin.take().expect("piped");
        let stdout = BufReader::new(process.stdout.take().expect("piped"));
        let mut agent = Self { process, stdin, stdout, next_id: 1 };
        let info = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        agent.request("initialize", &hello);
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn say(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).expect("read");
        self.stdin.flush().expect("read");
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).expect("text") > 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// Result of a tool call, which must succeed.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result
    }
}

/// Codes of entries that answer the questions.
fn codes(agent: &mut Agent, texts: &Texts) -> Vec<String> {
    let mut random = Seeded(3);
    let mut codes = Vec::new();
    for _ in 0..CALLS {
        let found = agent.call("search", &json!({"query": texts.query(&mut random)}));
        let hits = found["structuredContent"]["hits"].as_array().into_iter().flatten();
        codes.extend(hits.filter_map(|hit| hit["code"].as_str().map(str::to_owned)));
    }
    codes.sort();
    codes.dedup();
    assert!(!codes.is_empty(), "nothing was answered");
    codes
}

/// Durations of the calls in milliseconds.
fn calls(
    agent: &mut Agent,
    (texts, size): (&Texts, usize),
    codes: &[String],
    part: &str,
) -> Vec<f64> {
    let mut random = Seeded(11);
    let mut times = Vec::new();
    for number in 0..WARM_UP + CALLS {
        let code = &codes[number % codes.len()];
        let asked = match part {
            "search" => vec![("search", json!({"query": texts.query(&mut random)}))],
            "get" => vec![("get", json!({"code": code}))],
            "remember" => {
                let (title, content) = texts.entry(size + number);
                let lesson = json!({"title": title, "content": content, "evidence": ["run:bench"]});
                vec![("remember", lesson)]
            }
            "observe" => vec![("observe", json!({"code": code, "verdict": "helpful"}))],
            "task" => vec![
                ("task_begin", json!({"goal": "measure"})),
                ("task_finish", json!({"outcome": "success"})),
            ],
            _ => vec![("briefing", json!({}))],
        };
        let start = Instant::now();
        for (tool, arguments) in &asked {
            agent.call(tool, arguments);
        }
        let took = start.elapsed().as_secs_f64() * 1e3;
        if number >= WARM_UP {
            times.push(took);
        }
    }
    times
}

/// Number of tokens of answers: of each tier as a program in a pipe reads it, and as the tool
/// returns it. Questions without an answer are left out.
fn tokens(place: Place<'_>, agent: &mut Agent, texts: &Texts, size: usize) {
    let mut random = Seeded(5);
    let questions: Vec<String> = (0..QUESTIONS).map(|_| texts.query(&mut random)).collect();
    let count = |text: &str| o200k_base().count(text) as f64;
    for tier in TIERS {
        let mut counts = Vec::new();
        for question in &questions {
            let mut command = place.command();
            command.args(["search", "--deterministic", "--tier", tier, "--", question]);
            let output = command.output().expect("runs");
            let text = String::from_utf8_lossy(&output.stdout);
            counts.extend(output.status.success().then(|| count(&text)));
        }
        let answered = counts.len();
        row(&format!("{tier} with {size}, {answered} answers"), &mut counts, "tokens");
    }
    let (mut texts_of, mut structured) = (Vec::new(), Vec::new());
    for question in &questions {
        let found = agent.call("search", &json!({"query": question}));
        if found["structuredContent"]["abstained"] == false {
            texts_of.push(count(found["content"][0]["text"].as_str().unwrap_or_default()));
            structured.push(count(&found["structuredContent"].to_string()));
        }
    }
    row(&format!("the tool's text with {size}"), &mut texts_of, "tokens");
    row(&format!("the tool's data with {size}"), &mut structured, "tokens");
}
