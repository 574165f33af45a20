//! Benchmark of a playbook of 200 KB with 5,000 edits by 5 authors: check, build, edit, merge, blame.
//! Automerge alone, without the checks and the selection, gives the numbers to compare with.
//!
//! `cargo bench -p klnode-document --bench playbook`

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark needs a clock"
)]

use automerge::transaction::{CommitOptions, Transactable};
use automerge::{Automerge, ReadDoc, TextEncoding};
use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::time::WallTime;
use klnode_document::change::CheckedChange;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_document::edit::EditContext;
use klnode_document::edit_identity::EditIdentity;
use klnode_document::limits::AuthorQuota;
use klnode_document::root_change::ROOT_BYTES;
use std::time::Instant;

const TEXT_BYTES: usize = 200_000;
const EDITS: usize = 5_000;
const AUTHORS: usize = 5;
/// Edits that each author makes before the authors exchange their changes.
const EDITS_PER_ROUND: usize = 20;

fn main() {
    // Cargo passes `--bench` when it benchmarks; a test run of all targets skips the measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bytes = write_playbook();
    let total: usize = bytes.iter().map(|(bytes, _)| bytes.len()).sum();
    println!("{} changes, {} bytes", bytes.len(), total);

    let checked: Vec<CheckedChange> = measure("check all changes", || {
        let check = |(bytes, identity): &(Vec<u8>, _)| {
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
    let mut updated = document.clone();
    measure("merge one change", || updated.insert(mine.iter().cloned(), |_| true));
    println!("saved by automerge: {saved} bytes");
}

/// Builds the document with automerge alone, and returns the size of its saved form.
fn compare_with_automerge(bytes: &[(Vec<u8>, EditIdentity)], document: &TextDocument) -> usize {
    let merged = measure("automerge alone: parse and build", || merge(bytes));
    let (_, text) = merged.get(automerge::ROOT, "text").expect("valid").expect("created");
    assert!(merged.text(text).expect("valid") == document.text());
    let saved = measure("automerge alone: save", || merged.save());
    measure("automerge alone: load", || Automerge::load(&saved).expect("valid"));
    measure("automerge alone: clone", || merged.clone());
    saved.len()
}

/// Authors who edit one text in rounds and exchange their changes after each round. Automerge writes the
/// changes, because a document applies its changes one batch at a time.
fn write_playbook() -> Vec<(Vec<u8>, EditIdentity)> {
    let line = |index: usize| format!("line {index}: run the checks before you release it.\n");
    let text: String = (0..).map(line).take(TEXT_BYTES / line(1_000).len()).collect();
    let empty = TextDocument::new(AuthorQuota::FORMAT);
    let first = empty.edit(&[], &text, &context(0, 1)).expect("valid");
    let mut all: Vec<(Vec<u8>, EditIdentity)> =
        first.iter().map(|change| (change.bytes().to_vec(), *change.identity())).collect();
    let mut merged = merge(&all);
    let (_, text) = merged.get(automerge::ROOT, "text").expect("valid").expect("created");
    let mut seed = 1_u64;
    while all.len() < EDITS {
        let mut round = Vec::new();
        for author in 0..AUTHORS {
            let EditContext { author, boot, .. } = context(author, 1);
            let identity = EditIdentity { author, boot, branch: 0, number: all.len() as u32 };
            let mut own = merged.clone();
            own.set_actor(automerge::ActorId::from(identity.actor().as_bytes()));
            for number in (identity.number..).take(EDITS_PER_ROUND) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % (own.length(&text) - 8);
                let mut transaction = own.transaction();
                transaction.splice_text(&text, at, 8, "edited ").expect("valid");
                transaction.commit_with(CommitOptions::default().with_time(1));
                let change = own.get_last_local_change().expect("committed");
                round.push((change.raw_bytes().to_vec(), EditIdentity { number, ..identity }));
            }
        }
        apply(&mut merged, &round);
        all.extend(round);
    }
    all
}

/// Merges changes with automerge alone.
fn merge(changes: &[(Vec<u8>, EditIdentity)]) -> Automerge {
    let mut merged = Automerge::new_with_encoding(TextEncoding::UnicodeCodePoint);
    let root = automerge::Change::try_from(ROOT_BYTES).expect("valid");
    merged.apply_changes([root]).expect("valid");
    apply(&mut merged, changes);
    merged
}

fn apply(merged: &mut Automerge, changes: &[(Vec<u8>, EditIdentity)]) {
    let parse = |(bytes, _): &(Vec<u8>, _)| automerge::Change::try_from(&bytes[..]).expect("valid");
    let changes: Vec<automerge::Change> = changes.iter().map(parse).collect();
    merged.apply_changes(changes).expect("valid");
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
