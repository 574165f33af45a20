//! Benchmark of the content scan: throughput on clean text, and the time to build a scanner.
//!
//! `cargo bench -p klnode-scoring --bench scan`

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark needs a clock"
)]

use klnode_scoring::content_scan::Scanner;
use klnode_scoring::content_scan::disclosure::Border;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 7;
const TEXT_BYTES: usize = 8 << 20;

/// Prose, code and digests, in about the proportions of a lesson.
const CLEAN: &str = "A test that fails only under load usually waits for a time instead of a \
condition. Replace the sleep by a channel and a deadline; the previous instructions in the README \
still apply.\n\n```rust\nlet token = self.tokens.next().ok_or(Error::End)?;\nassert_eq!(digest, \
\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\");\n```\n\nSeen in commit \
3f2a9c81d4e5b6a7980c1d2e3f4a5b6c7d8e9f00, request 0b9e8f7a-6c5d-4e3f-8a1b-2c3d4e5f6a7b. Run `cargo \
test -p crate -- --nocapture` and read https://doc.rust-lang.org/std/sync/mpsc before you change \
the password hashing or send anything over the network.\n";

fn main() {
    // Cargo passes `--bench` when it benchmarks; a test run of all targets skips the measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let start = Instant::now();
    let scanner = Scanner::new();
    println!("build a scanner: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let border = Border::new(&["Acme"], &[]);
    let text = CLEAN.repeat(TEXT_BYTES / CLEAN.len());
    measure("scan", &text, |text| scanner.scan(text).findings.len());
    measure("flags", &text, |text| border.flags(text).len());
    let start = Instant::now();
    let found: usize = (0..10_000).map(|_| scanner.scan(black_box(CLEAN)).findings.len()).sum();
    let micros = start.elapsed().as_secs_f64() * 1e2;
    println!("one entry of {} bytes: {micros:.1} µs, {found} findings", CLEAN.len());
}

fn measure(what: &str, text: &str, work: impl Fn(&str) -> usize) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        assert_eq!(work(text), 0, "the text is clean");
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what}: {:.0} MB/s, best of {ROUNDS}", text.len() as f64 / best / 1e6);
}
