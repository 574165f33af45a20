//! Cost of maintenance: its duration over a large store, its memory, and its effect on concurrent
//! queries. Queries before and during it go to the same process.
//!
//! `cargo bench -p klnode-tests --bench maintenance` fills a store of 100,000 entries; a number
//! sets another size.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_tests::bench_timing::{bench_arguments, percentile};
use klnode_tests::benchmark_node::{Place, STATIC};
use klnode_tests::sample_texts::Texts;
use klnode_tests::test_engine::Seeded;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const SIZE: usize = 100_000;
/// One in this many entries is written twice, with one word more.
const TWICE_EVERY: usize = 100;
const QUERIES: usize = 1_500;
const WARM_UP: usize = 100;
/// Limit for the memory that maintenance adds to a node under load.
const MEMORY_ADDED_MAX: &str = "at most 32";

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let size = arguments.iter().find_map(|size| size.parse().ok()).unwrap_or(SIZE);
    let texts = Texts::read();
    let home = tempfile::tempdir().expect("a folder");
    let place = Place::new(PROGRAM, home.path());
    // Automatic maintenance is postponed, so that only the measured pass runs.
    let node = place.start(&[STATIC, "tuning.maintenance.check_interval=1 day"]);
    place.fill(&lines(&texts, size));
    println!("{:<58} {:>12}   goal", "what", "measured");
    let mut random = Seeded(size as u64);
    for _ in 0..WARM_UP {
        search(place, &texts.query(&mut random));
    }
    let mut before: Vec<f64> =
        (0..QUERIES).map(|_| timed_search(place, &texts, &mut random)).collect();
    let resident = node.resident().all;
    let start = Instant::now();
    let mut maintenance = place.command();
    // Output goes into a file: it may exceed the capacity of a pipe, which is not read before the
    // end.
    let told = tempfile::NamedTempFile::new().expect("a file");
    let written = told.reopen().expect("the same file");
    maintenance.args(["maintain", "--all", "--json"]).stdout(written).stderr(Stdio::null());
    let mut maintenance = maintenance.spawn().expect("runs");
    let (mut during, mut most) = (Vec::new(), resident);
    while maintenance.try_wait().expect("a child").is_none() {
        during.push(timed_search(place, &texts, &mut random));
        most = most.max(node.resident().all);
    }
    let took = start.elapsed();
    let told = std::fs::read(told.path()).expect("the output");
    let told: Value = serde_json::from_slice(&told).expect("a summary");
    row(&format!("maintenance of {size}, all services"), took.as_secs_f64(), "s", "");
    row("of that merged", told["services"][0]["merged"].as_f64().unwrap_or(0.0), "", "");
    row("of that proposed", told["services"][0]["proposed"].as_f64().unwrap_or(0.0), "", "");
    row("resident before", resident, "MB", "");
    row("maintenance adds, at its most", most - resident, "MB", MEMORY_ADDED_MAX);
    let [calm, busy] = [&mut before, &mut during].map(|times| percentile(times, 99.0));
    row("search before maintenance, p99", calm, "ms", "");
    row(&format!("search during maintenance, p99 of {}", during.len()), busy, "ms", "");
    row("during over before", busy / calm.max(f64::EPSILON), "x", "at most 2");
}

fn row(what: &str, measured: f64, unit: &str, goal: &str) {
    println!("{what:<58} {measured:>9.2} {unit:<4} {goal}");
}

fn search(place: Place<'_>, query: &str) {
    place.post("/v1/search", &json!({ "query": query, "unrecorded": true }));
}

/// Duration of a search in milliseconds.
fn timed_search(place: Place<'_>, texts: &Texts, random: &mut Seeded) -> f64 {
    let query = texts.query(random);
    let start = Instant::now();
    search(place, &query);
    start.elapsed().as_secs_f64() * 1e3
}

/// Entries as import lines, some of them written twice.
fn lines(texts: &Texts, size: usize) -> Vec<String> {
    let line = |number: usize| {
        if number % TWICE_EVERY != TWICE_EVERY - 1 {
            return texts.line(number);
        }
        let (title, content) = texts.entry(number - 1);
        let content = format!("{content} Indeed.");
        json!({ "key": number.to_string(), "title": title, "content": content }).to_string()
    };
    (0..size).map(line).collect()
}
