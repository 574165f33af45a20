//! Cost of checking anchors in a checkout of some thousand files.
//!
//! `cargo bench -p klnode-tests --bench anchors` checks a hundred predicates of all kinds and opens
//! the checkout each time, as a query does; it also measures the opening alone.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_scoring::predicate::{Params, Predicate, PredicateOutcome, evaluate_all};
use klnode_tests::bench_timing::{bench_arguments, in_turns, timed};
use klnode_tests::checkout::Tree;
use std::fmt::Write;
use std::hint::black_box;

const FOLDERS: usize = 100;
const FILES: usize = 40;
const ANCHORS: usize = 100;
const LINES: usize = 60;
const TURNS: usize = 41;

fn main() {
    if bench_arguments().is_none() {
        return;
    }
    let tree = tree();
    let predicates: Vec<Predicate> = (0..ANCHORS).map(predicate).collect();
    let look = || {
        let checkout = tree.open();
        evaluate_all(&predicates, &checkout, &Params::default())
    };
    let held = look().iter().filter(|outcome| matches!(outcome, PredicateOutcome::Holds)).count();
    assert_eq!(held, ANCHORS, "all written anchors hold");
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    let [whole, opening, _] = in_turns(
        TURNS,
        || milliseconds(timed(|| black_box(look()))),
        || milliseconds(timed(|| black_box(tree.open()))),
    );
    let files = FOLDERS * FILES + 1;
    println!("{ANCHORS} anchors in a checkout of {files} tracked files (median of {TURNS}):");
    println!("  opening the checkout   {opening:>8.2} ms");
    println!("  opening and checking   {whole:>8.2} ms   (goal: below 20)");
}

fn file(folder: usize, file: usize) -> String {
    format!("src/area{folder:03}/part{file:02}.rs")
}

/// A checkout with a manifest and files of a usual size.
fn tree() -> Tree {
    let every = (0..FOLDERS).flat_map(|folder| (0..FILES).map(move |part| (folder, part)));
    let paths: Vec<String> = every.clone().map(|(folder, part)| file(folder, part)).collect();
    let mut tracked: Vec<&str> = paths.iter().map(String::as_str).collect();
    tracked.push("Cargo.toml");
    let tree = Tree::new(&tracked);
    tree.write("Cargo.toml", b"[dependencies]\ntokio = \"1.40\"\nserde = \"1\"\n");
    for ((folder, part), path) in every.zip(&paths) {
        let mut text = String::new();
        for line in 0..LINES {
            writeln!(text, "fn item_{folder}_{part}_{line}() {{}}").expect("a string grows");
        }
        tree.write(path, text.as_bytes());
    }
    tree
}

/// One of a hundred predicates: files, folders, texts, lines and versions in turn.
fn predicate(number: usize) -> Predicate {
    let (folder, part) = (number * 7 % FOLDERS, number * 3 % FILES);
    let path = file(folder, part);
    let text = match number % 5 {
        0 => format!("path:{path}"),
        1 => format!("path:src/area{folder:03}/*.rs"),
        2 => format!("text:{path}~\"fn item_{folder}_{part}_5[0-9]\\(\""),
        3 => format!("NOT hash:{path}#10-24=blake3:9f86d081884c7d65"),
        _ => "dep:cargo:tokio>=1.40,<2".to_owned(),
    };
    Predicate::parse(&text).expect("it is a predicate")
}
