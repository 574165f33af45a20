//! Cost of the vector index: its scan compared with reading the same bytes in the same run, its
//! file, and its graph compared with the scan.
//!
//! `cargo bench -p klnode-tests --bench vectors [-- NAME] [-- ROWS]` runs all parts, or those whose
//! name contains NAME: scan, filter, file, graph. ROWS is the size for the graph.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_crdt::entry_origin::Memory;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_index::vectors::{Engine, Limits, RowFacts, RowFilter, Vectors};
use klnode_tests::bench_timing::{bench_arguments, in_turns, median, shortest, timed};
use klnode_tests::test_engine::Seeded;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

const DIMS: usize = 256;
const GRAPH_ROWS: usize = 20_000;
/// Number of clusters that the vectors form, as those of texts do.
const SUBJECTS: u64 = 500;
const NO_GRAPH: Limits = Limits { hnsw_entries_min: usize::MAX, hnsw_dead_fraction_max: 0.1 };

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, names): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let rows = sizes.first().and_then(|size| size.parse().ok()).unwrap_or(GRAPH_ROWS);
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| name.contains(one));
    if wanted("scan") {
        for rows in [1_000, 10_000, 100_000] {
            scan(rows);
        }
    }
    if wanted("filter") {
        filter(100_000);
    }
    if wanted("file") {
        file(100_000);
    }
    if wanted("graph") {
        graph(rows);
    }
}

fn id(row: usize) -> EntryId {
    let mut bytes = [0; 16];
    Seeded(row as u64 + 1).fill(&mut bytes);
    EntryId::from_bytes(bytes)
}

/// Approximately normally distributed.
fn normal(random: &mut Seeded) -> f32 {
    let uniform = |random: &mut Seeded| (random.next_u64() >> 40) as f32 / (1 << 24) as f32;
    (0..4).map(|_| uniform(random) - 0.5).sum()
}

/// A cluster centre plus a vector of the same length.
fn vector(seed: u64) -> Vec<f32> {
    let mut own = Seeded(seed.wrapping_mul(0x9E37) + 7);
    let mut subject = Seeded(own.below(SUBJECTS) << 32);
    (0..DIMS).map(|_| normal(&mut subject) + normal(&mut own)).collect()
}

/// One in a hundred is tagged `few`, one in ten `some`, every second `half`.
fn facts(row: usize) -> RowFacts {
    let tags = [(100, "few"), (10, "some"), (2, "half")];
    let tags = tags.iter().filter(|(every, _)| row.is_multiple_of(*every)).map(|(_, tag)| *tag);
    RowFacts::new(WorkspaceId::MAIN, "", None, Memory::Semantic, tags)
}

fn filled(folder: &Path, rows: usize, limits: Limits) -> Vectors {
    let vectors = Vectors::empty(folder, "bench", DIMS, limits);
    for row in 0..rows {
        vectors.upsert(id(row), &vector(row as u64), facts(row)).expect("a good vector");
    }
    vectors
}

fn query(number: u64) -> Vec<f32> {
    vector(number + (1 << 40))
}

/// Adds words with wide loads into many sums, to avoid dependencies between additions.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    for words in words.chunks_exact(32) {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |all, one| all.wrapping_add(*one))
}

fn scan(rows: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let vectors = filled(folder.path(), rows, NO_GRAPH);
    let bytes: Vec<u64> = (0..(rows * DIMS / 8) as u64).collect();
    let query = query(1);
    let nearest = || vectors.nearest(black_box(&query), 50, &RowFilter::all());
    let read = || sum(black_box(&bytes));
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    // Single runs of the small sizes are too short to be timed in turns.
    let times = (100_000 / rows).max(1);
    let many = |time: Duration| micros(time) / times as f64;
    let scans = || {
        for _ in 0..times {
            black_box(nearest()).expect("a good vector");
        }
    };
    let reads = || {
        for _ in 0..times {
            black_box(read());
        }
    };
    let [scan, bare, ratio] = in_turns(101, || many(timed(scans)), || many(timed(reads)));
    let (best, best_bare) = (micros(shortest(1_001, nearest)), micros(shortest(1_001, read)));
    let best_ratio = best / best_bare;
    println!("the nearest 50 of {rows} × {DIMS}, one core (median of 101, shortest of 1001):");
    println!("  scan               {scan:>10.1} µs {best:>10.1} µs");
    println!("  reading the bytes  {bare:>10.1} µs {best_bare:>10.1} µs");
    println!("  ratio              {ratio:>10.2}    {best_ratio:>10.2}");
    println!("  (goal at 100,000: a ratio of at most 1.50)");
}

fn filter(rows: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let vectors = filled(folder.path(), rows, NO_GRAPH);
    let query = query(1);
    println!("the nearest 50 of {rows} × {DIMS} through a filter (median and shortest of 301):");
    for tag in ["few", "some", "half"] {
        let filter = RowFilter::all().tags([tag]);
        let run = || vectors.nearest(&query, 50, &filter);
        let (time, best) = (median(301, run), shortest(301, run));
        let [time, best] = [time, best].map(|time| time.as_secs_f64() * 1e6);
        println!("  tag {tag:<14} {time:>10.1} µs {best:>10.1} µs");
    }
}

fn file(rows: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let vectors = filled(folder.path(), rows, NO_GRAPH);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let first = timed(|| vectors.checkpoint(b"cursor").expect("saved"));
    let mut next = 0;
    let some = median(21, || {
        for _ in 0..100 {
            next += 977;
            let row = next % rows;
            vectors.upsert(id(row), &vector(next as u64), facts(row)).expect("a good vector");
        }
        vectors.checkpoint(b"cursor").expect("saved");
    });
    drop(vectors);
    let open = || Vectors::open(folder.path(), "bench", DIMS, NO_GRAPH).expect("loads");
    let (load, best) = (median(11, open), shortest(21, open));
    println!("the file of {rows} × {DIMS}:");
    println!("  first checkpoint   {:>10.1} ms", millis(first));
    println!(
        "  with 100 changes   {:>10.1} ms   (median of 21, the upserts included)",
        millis(some)
    );
    println!("  load               {:>10.1} ms   (median of 11; goal: below 100)", millis(load));
    println!("  load               {:>10.1} ms   (shortest of 21)", millis(best));
}

fn graph(rows: usize) {
    const QUERIES: u64 = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits { hnsw_entries_min: rows, ..NO_GRAPH };
    let vectors = filled(folder.path(), rows, limits);
    let exact: Vec<_> = (0..QUERIES)
        .map(|at| vectors.nearest(&query(at), 10, &RowFilter::all()).expect("a good vector").hits)
        .collect();
    let asked = query(1);
    let scan = shortest(301, || vectors.nearest(&asked, 10, &RowFilter::all()));
    let built = timed(|| {
        vectors.checkpoint(b"").expect("saved");
        vectors.wait_for_graph();
    });
    let mut found = 0;
    for (at, exact) in (0..).zip(&exact) {
        let nearest = vectors.nearest(&query(at), 10, &RowFilter::all()).expect("a good vector");
        assert_eq!(nearest.engine, Engine::Graph);
        found += nearest.hits.iter().filter(|hit| exact.contains(hit)).count();
    }
    let asked: Vec<_> = (0..501).map(query).collect();
    let mut next = asked.iter();
    let search =
        median(501, || vectors.nearest(next.next().unwrap_or(&asked[0]), 10, &RowFilter::all()));
    let best = shortest(301, || vectors.nearest(&asked[1], 10, &RowFilter::all()));
    drop(vectors);
    let load = timed(|| {
        let (vectors, _) =
            Vectors::open(folder.path(), "bench", DIMS, limits).expect("the file loads");
        vectors.wait_for_graph();
        assert_eq!(vectors.graph_points(), Some(rows));
        vectors
    });
    let rate = rows as f64 / built.as_secs_f64();
    println!("the graph of {rows} × {DIMS}:");
    println!("  built and saved    {rate:>10.0} points/s");
    println!("  recall at 10       {:>10.3}", found as f64 / (QUERIES * 10) as f64);
    println!("  search             {:>10.1} µs   (median of 501)", search.as_secs_f64() * 1e6);
    println!("  search             {:>10.1} µs   (one query, shortest)", best.as_secs_f64() * 1e6);
    println!("  scan               {:>10.1} µs   (one query, shortest)", scan.as_secs_f64() * 1e6);
    println!("  load from disk     {:>10.1} ms", load.as_secs_f64() * 1e3);
}
