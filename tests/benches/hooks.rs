//! Cost of a hook for an agent: the whole process, from its start to its end, as the client sees
//! it.
//!
//! `cargo bench -p klnode-tests --bench hooks [-- EVENT] [-- SIZE]` runs all events, or those whose
//! name contains EVENT, with stores of SIZE entries. The transformer embeds a store first, which takes
//! an hour for 100,000 entries.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_tests::bench_timing::{bench_arguments, percentile};
use klnode_tests::benchmark_node::{Place, sizes_and_words};
use klnode_tests::sample_texts::Texts;
use klnode_tests::test_engine::Seeded;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const SIZES: [usize; 2] = [10_000, 100_000];
const EVENTS: [&str; 4] = ["session-start", "prompt", "tool-error", "stop"];
const CALLS: usize = 400;
/// Number of calls before the measurement starts.
const WARM_UP: usize = 40;

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, events) = sizes_and_words(arguments, &SIZES);
    let wanted = |name: &&str| events.is_empty() || events.iter().any(|part| name.contains(part));
    let texts = Texts::read();
    println!("{:<44} {:>9} {:>9} {:>9}   goal", "what", "p50", "p95", "p99");
    for size in sizes {
        let home = tempfile::tempdir().expect("a folder");
        let place = Place::new(PROGRAM, home.path());
        let _node = place.filled(&texts, size);
        for event in EVENTS.into_iter().filter(wanted) {
            let (mut times, spoken) = calls(place, &texts, event);
            let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|of| percentile(&mut times, of));
            let what = format!("hook {event} with {size}, {spoken} of {CALLS} spoke");
            println!("{what:<44} {p50:>6.2} ms {p95:>6.2} ms {p99:>6.2} ms   p95 at most 40");
        }
    }
}

/// Input of a client at an event. Starts and ends are of different sessions; prompts and errors are
/// of one continued session.
fn input(event: &str, query: &str, number: usize) -> Value {
    let number = if matches!(event, "prompt" | "tool-error") { 0 } else { number };
    json!({
        "session_id": format!("s{number}"), "cwd": "/", "prompt": query, "error": query, "tool_name": "Bash",
    })
}

/// Durations of the calls in milliseconds, and how many of them printed something.
fn calls(place: Place<'_>, texts: &Texts, event: &str) -> (Vec<f64>, usize) {
    let mut random = Seeded(11);
    let (mut times, mut spoken) = (Vec::new(), 0);
    for number in 0..WARM_UP + CALLS {
        let input = input(event, &texts.query(&mut random), number).to_string();
        let mut command = place.command();
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
