//! Timing for benchmarks: medians, and alternating runs so that both candidates meet the same
//! noise.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Duration of one run.
pub fn timed<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(run());
    start.elapsed()
}

/// Median duration of several runs.
pub fn median<T>(runs: usize, mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..runs).map(|_| timed(&mut run)).collect();
    times.sort();
    times[times.len() / 2]
}

/// Shortest duration of several runs, which is the least disturbed one.
pub fn shortest<T>(runs: usize, mut run: impl FnMut() -> T) -> Duration {
    (0..runs).map(|_| timed(&mut run)).min().unwrap_or_default()
}

/// The value below which `percent` of the values lie; sorts them.
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * percent / 100.0).round() as usize;
    values.get(at).copied().unwrap_or_default()
}

/// Alternates two runs, and returns the median of each and the median of their ratios.
pub fn in_turns(
    turns: usize,
    mut one: impl FnMut() -> f64,
    mut two: impl FnMut() -> f64,
) -> [f64; 3] {
    let pairs: Vec<(f64, f64)> = (0..turns).map(|_| (one(), two())).collect();
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    [median(|pair| pair.0), median(|pair| pair.1), median(|pair| pair.0 / pair.1)]
}

/// The benchmark's arguments, or `None` if it should not run: `cargo bench` passes `--bench`, while
/// `cargo test --benches` only builds.
pub fn bench_arguments() -> Option<Vec<String>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runs = arguments.iter().any(|argument| argument == "--bench");
    runs.then(|| arguments.into_iter().filter(|argument| !argument.starts_with('-')).collect())
}
