//! Benchmark of a playbook of 200 KB with 5,000 edits by 5 authors: check, build, edit, merge, blame.
//! Automerge alone, without the checks and the selection, gives the numbers to compare with.
//!
//! `cargo bench -p klnode-document --features testing`

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark needs a clock"
)]

use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::time::WallTime;
use klnode_document::change::CheckedChange;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_document::edit::EditContext;
use klnode_document::limits::AuthorQuota;
use klnode_document::testing::long_playbook::{self, PlainAutomerge, WrittenChange};
use std::time::Instant;

const TEXT_BYTES: usize = 200_000;
const EDITS: usize = 5_000;
const AUTHORS: usize = 5;

fn main() {
    // Cargo passes `--bench` when it benchmarks; a test run of all targets skips the measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bytes = write_playbook();
    let total: usize = bytes.iter().map(|(bytes, _)| bytes.len()).sum();
    println!("{} changes, {} bytes", bytes.len(), total);

    let checked: Vec<CheckedChange> = measure("check all changes", || {
        let check = |(bytes, identity): &WrittenChange| {
            CheckedChange::check(bytes, *identity, &AuthorQuota::FORMAT).expect("valid")
        };
        bytes.iter().map(check).collect()
    });
    let document = measure("build the document", || {
        TextDocument::build(AuthorQuota::FORMAT, checked.iter().cloned(), |_| true)
    });
    println!("{} bytes of text", document.text().len());
    let saved = compare_with_automerge(&bytes, &document);
    let snapshot = measure("make a snapshot", || document.snapshot());
    measure("open with the snapshot", || {
        TextDocument::open(AuthorQuota::FORMAT, &snapshot, checked.iter().cloned(), |_| true)
    });
    measure("read the text", || document.text());
    measure("blame of every line", || document.blame());
    let middle = checked[checked.len() / 2].hash();
    measure("text of an earlier version", || document.text_at(&[middle]).expect("applied"));

    let heads = document.heads();
    let edit = |base: &[ChangeHash]| {
        let text = document.text_at(base).expect("applied").replacen("line", "row", 1);
        document.edit(base, &text, &context(0, 9_000)).expect("valid")
    };
    let mine = measure("edit the present version", || edit(&heads));
    measure("edit an earlier version", || edit(&[middle]));
    let mut updated = measure("clone the document", || document.clone());
    measure("merge one change", || updated.insert(mine.iter().cloned(), |_| true));
    let theirs = document.text_at(&[middle]).expect("applied").replacen("line", "text", 1);
    let theirs = document.edit(&[middle], &theirs, &context(9, 1)).expect("valid");
    measure("merge one change of an earlier version", || {
        updated.insert(theirs.iter().cloned(), |_| true);
    });
    println!("saved by automerge: {saved} bytes");
}

/// Builds the document with automerge alone, and returns the size of its saved form.
fn compare_with_automerge(changes: &[WrittenChange], document: &TextDocument) -> usize {
    let build = || PlainAutomerge::build(changes);
    let mut merged = measure("automerge alone: parse and build", build);
    assert!(merged.text() == document.text());
    let saved = measure("automerge alone: save", || merged.save());
    measure("automerge alone: load", || PlainAutomerge::load(&saved));
    let mut other = measure("automerge alone: clone", || merged.clone());
    let change = measure("automerge alone: one edit", || other.edit(1_000));
    measure("automerge alone: merge one change", || merged.merge(&change));
    saved.len()
}

/// A text by the first author, and edits by all of them.
fn write_playbook() -> Vec<WrittenChange> {
    let line = |index: usize| format!("line {index}: run the checks before you release it.\n");
    let text: String = (0..).map(line).take(TEXT_BYTES / line(1_000).len()).collect();
    let empty = TextDocument::new(AuthorQuota::FORMAT);
    let first = empty.edit(&[], &text, &context(0, 1)).expect("valid");
    let mut all: Vec<WrittenChange> =
        first.iter().map(|change| (change.bytes().to_vec(), *change.identity())).collect();
    let authors: Vec<AuthorId> = (1..=AUTHORS).map(|of| context(of, 1).author).collect();
    let edits = long_playbook::edits(&all, &authors, EDITS);
    all.extend(edits);
    all
}

fn context(author: usize, number: u32) -> EditContext {
    EditContext {
        author: AuthorId::from_bytes([author as u8; 32]),
        boot: Boot(author as u64),
        number,
        time: WallTime::from_millis(1_000_000),
    }
}

fn measure<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what}: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}
