//! Cost of a search, sent to the real program over its socket: latency, start, memory, and the rate
//! of filling a store until everything in it can be found.
//!
//! `cargo bench -p klnode-tests --bench search [-- PART] [-- SIZE]` runs all parts, or those whose
//! name contains PART (import, residue, latency, memory, start, embed, transformer), with stores of
//! SIZE entries. Only the part `transformer` runs the transformer: it fills a store with the table
//! alone and then lets the transformer catch up, which takes an hour for 100,000 entries.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_embed::{self, Settings};
use klnode_tests::bench_timing::{bench_arguments, percentile, timed};
use klnode_tests::benchmark_node::{Filled, Place, Running, STATIC, lines, sizes_and_words};
use klnode_tests::sample_texts::Texts;
use klnode_tests::test_engine::Seeded;
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const SIZES: [usize; 4] = [0, 1_000, 10_000, 100_000];
const QUERIES: usize = 1_500;
/// Number of queries before the measurement starts.
const WARM_UP: usize = 100;
const STARTS: usize = 9;
/// Time between an import and the measurement of the memory that the node keeps.
const RESIDUE_PAUSE: Duration = Duration::from_secs(30);
/// Time over which the rate of the background work is measured.
const RATE_PERIOD: Duration = Duration::from_secs(20);
/// Number of queries during the background work, and the time between two of them.
const QUERIES_DURING: usize = 200;
const QUERY_INTERVAL: Duration = Duration::from_millis(150);

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, parts) = sizes_and_words(arguments, &SIZES);
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    let texts = Texts::read();
    println!("{:<58} {:>12}   goal", "what", "measured");
    if wanted("embed") {
        embedding(&texts);
    }
    let parts = ["import", "residue", "latency", "memory", "start"];
    let needs_store = parts.into_iter().any(wanted);
    for size in sizes {
        if wanted("transformer") && size > 0 {
            transformer(&texts, size);
        }
        if !needs_store {
            continue;
        }
        let home = tempfile::tempdir().expect("a folder");
        let place = Place::new(PROGRAM, home.path());
        let node = fill(place, &texts, size, wanted("import"));
        if wanted("residue") && size > 0 {
            residue(&node, size);
        }
        drop(node);
        if wanted("start") {
            starts(place, &texts, size);
        }
        if (wanted("latency") || wanted("memory")) && size > 0 {
            questions(place, &texts, size, wanted("latency"), wanted("memory"));
        }
    }
}

fn row(what: &str, measured: f64, unit: &str, goal: &str) {
    println!("{what:<58} {measured:>9.1} {unit:<4} {goal}");
}

fn embedding(texts: &Texts) {
    let model = klnode_embed::open(Settings::BuiltIn).expect("is compiled in");
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

fn search(place: Place<'_>, query: &str) -> Value {
    place.post("/v1/search", &json!({ "query": query }))
}

/// Fills a home, and returns its node once everything is indexed.
fn fill(place: Place<'_>, texts: &Texts, size: usize, is_told: bool) -> Running {
    let node = place.start(&[STATIC]);
    let Filled { returned, indexed, settled } = place.fill(&lines(texts, size));
    if is_told && size > 0 {
        let rate = |took: Duration| size as f64 / took.as_secs_f64();
        let what = |until: &str| format!("import of {size}, until {until}");
        row(&what("it returns"), rate(returned), "/s", "");
        row(&what("both indexes hold all"), rate(indexed), "/s", "at least 5000");
        row(&what("nothing is left to do"), rate(settled), "/s", "");
    }
    node
}

/// The memory that a node keeps after an import.
fn residue(node: &Running, size: usize) {
    let deadline = Instant::now() + RESIDUE_PAUSE;
    while Instant::now() < deadline {
        std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
    }
    let goal = match size {
        10_000 => "at most 80",
        100_000 => "at most 200",
        _ => "",
    };
    let (kept, seconds) = (node.resident(), RESIDUE_PAUSE.as_secs());
    row(&format!("resident {seconds} s after an import of {size}"), kept.all, "MB", goal);
    row(&format!("resident with {size}, of that not files"), kept.own, "MB", "");
}

fn starts(place: Place<'_>, texts: &Texts, size: usize) {
    let mut random = Seeded(7);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (mut bound, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let query = texts.query(&mut random);
        let node = place.start(&[STATIC]);
        bound.push(millis(node.age()));
        search(place, &query);
        answered.push(millis(node.age()));
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

fn questions(
    place: Place<'_>,
    texts: &Texts,
    size: usize,
    tells_latency: bool,
    tells_memory: bool,
) {
    let node = place.start(&[STATIC]);
    place.settle();
    let before = node.resident();
    let (mut times, answered) = ask_all(place, texts, size, QUERIES, Duration::ZERO);
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
        let after = node.resident();
        let goal = if size == 10_000 { "at most 60" } else { "" };
        row(&format!("resident with {size}, before the first question"), before.all, "MB", goal);
        row(&format!("resident with {size}, of that not files"), before.own, "MB", "");
        row(&format!("resident with {size}, after {QUERIES} questions"), after.all, "MB", "");
        row(&format!("resident with {size}, of that not files"), after.own, "MB", "");
    }
}

/// Asks so many queries after the warm-up; returns their times in milliseconds, and how many of them
/// were answered.
fn ask_all(
    place: Place<'_>,
    texts: &Texts,
    size: usize,
    queries: usize,
    interval: Duration,
) -> (Vec<f64>, usize) {
    let mut random = Seeded(size as u64);
    let (mut times, mut answered) = (Vec::new(), 0);
    for number in 0..WARM_UP + queries {
        let query = texts.query(&mut random);
        let start = Instant::now();
        let answer = search(place, &query);
        let took = start.elapsed();
        if number < WARM_UP {
            continue;
        }
        times.push(took.as_secs_f64() * 1e3);
        answered += usize::from(answer["abstained"] == false);
        wait(interval.saturating_sub(took));
    }
    (times, answered)
}

fn wait(time: Duration) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Searches by words and table, while the transformer catches up, and with all of its vectors.
fn transformer(texts: &Texts, size: usize) {
    let home = tempfile::tempdir().expect("a folder");
    let place = Place::new(PROGRAM, home.path());
    let tell = |how: &str, times: &mut Vec<f64>, goal: &str| {
        for (percent, goal) in [(50.0, ""), (95.0, goal)] {
            let what = format!("search in {size} {how}, p{percent}");
            println!("{what:<58} {:>9.2} ms   {goal}", percentile(times, percent));
        }
    };
    let node = place.start(&[STATIC]);
    place.fill(&lines(texts, size));
    drop(node);
    let node = place.start(&[STATIC]);
    place.settle();
    let (mut times, _) = ask_all(place, texts, size, QUERIES, Duration::ZERO);
    tell("by words and table", &mut times, "at most 5");
    let before = node.resident();
    drop(node);

    let node = place.start(&[]);
    let has_begun = |index: &Value| index["transformer"]["done"].as_u64() > Some(0);
    place.wait_for_index(has_begun);
    let done = || place.get("/v1/status").json()["index"]["transformer"]["done"].as_u64();
    let (start, first, used) = (Instant::now(), done(), node.processor_time());
    wait(RATE_PERIOD);
    let made = done().zip(first).map_or(0, |(last, first)| last - first) as f64;
    let (took, used) = (start.elapsed(), node.processor_time().saturating_sub(used));
    row(&format!("embedding {size} in the background"), made / took.as_secs_f64(), "/s", "");
    let per_core = made / used.as_secs_f64();
    row("the same, for a second of one core", per_core, "/s", "");
    let share = 100.0 * used.as_secs_f64() / took.as_secs_f64();
    row("share of one core that it takes", share, "%", "");
    let (mut times, _) = ask_all(place, texts, size, QUERIES_DURING, QUERY_INTERVAL);
    let left = place.get("/v1/status").json()["index"]["transformer"].clone();
    let is_busy = left["done"].as_u64() < left["total"].as_u64();
    let how = if is_busy { "meanwhile" } else { "meanwhile (it ended early)" };
    tell(how, &mut times, "");
    place.settle();
    let (mut times, _) = ask_all(place, texts, size, QUERIES, Duration::ZERO);
    tell("with the transformer", &mut times, "at most 12");
    let (own, goal) = (node.resident().own - before.own, "at most 60");
    row(&format!("memory that it adds with {size}, not files"), own, "MB", goal);
}
