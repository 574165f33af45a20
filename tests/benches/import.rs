//! Speed of an import of Markdown notes: notes per second, and the time until a search finds all.
//!
//! `cargo bench -p klnode-tests --bench import` imports 10,000 notes; a number sets another size.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_tests::bench_timing::bench_arguments;
use klnode_tests::benchmark_node::{Place, STATIC};
use klnode_tests::sample_texts::Texts;
use klnode_tests::test_engine::Seeded;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const SIZE: usize = 10_000;
/// Notes in one folder.
const FOLDER_NOTES: usize = 100;
/// A word that only the last note has.
const LAST: &str = "xyzzyplugh";

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let size = arguments.iter().find_map(|size| size.parse().ok()).unwrap_or(SIZE);
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes");
    write_notes(&notes, size);
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a home");
    let place = Place::new(PROGRAM, &home);
    let _node = place.start(&[STATIC]);
    println!("{:<44} {:>12}   goal", "what", "measured");
    let start = Instant::now();
    let mut import = place.command();
    import.args(["import", "--format", "markdown", "--json"]).arg(&notes);
    let output = import.output().expect("it runs");
    let taken = start.elapsed().as_secs_f64();
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["taken"], size, "{report:#}");
    while !finds_last(place) {
        std::thread::yield_now();
    }
    let found = start.elapsed().as_secs_f64();
    let rate = size as f64 / taken;
    println!("{:<44} {rate:>8.0} /s   at least 3000", format!("import of {size} notes"));
    println!("{:<44} {found:>8.2} s ", "until a search finds all of them");
}

fn write_notes(notes: &Path, size: usize) {
    let (texts, mut random) = (Texts::read(), Seeded(7));
    for number in 0..size {
        let below = notes.join(format!("f{:03}", number / FOLDER_NOTES));
        std::fs::create_dir_all(&below).expect("a folder");
        let last = if number + 1 == size { LAST } else { "" };
        let text = texts.query(&mut random);
        let note = format!(
            "---\ntags: [t{}]\n---\n# Note {number}: {text}\n\n{text} {} {last}\n",
            number % 50,
            texts.query(&mut random)
        );
        std::fs::write(below.join(format!("n{number:06}.md")), note).expect("written");
    }
}

fn finds_last(place: Place<'_>) -> bool {
    let answer = place.post("/v1/search", &json!({ "query": LAST, "unrecorded": true }));
    answer.to_string().contains(LAST)
}
