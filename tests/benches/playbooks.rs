//! Cost of a long playbook on a node: 200 KB of text with 5,000 edits by 5 authors, in real processes
//! that are asked over their sockets; and of the same document in automerge alone, in the same run.
//!
//! `cargo bench -p klnode-tests --bench playbooks [-- EDITS]`
//!
//! The home of the first node is made in memory: its engine takes the signed edits of five authors as
//! from a peer. The process then starts in that home with nothing in memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_crdt::document_edit::DocumentEdit;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::signed_edit::EditPosition;
use klnode_crdt::time::Hlc;
use klnode_document::testing::long_playbook::{self, PlainAutomerge, WrittenChange};
use klnode_engine::{Command, DeliveredRecord, DocumentCommand, NewEntry, checked_change};
use klnode_federation::sim::Knobs;
use klnode_tests::bench_timing::{bench_arguments, percentile};
use klnode_tests::benchmark_node::{Place, Running, sizes_and_words};
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_engine::{created, in_workspace};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_klnode-under-test");
const LISTEN: &str = "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]";
const EDITS: usize = 5_000;
const AUTHORS: usize = 5;
const SECTIONS: usize = 40;
const LINES_PER_SECTION: usize = 94;
/// Number of measured requests of each kind.
const TURNS: usize = 9;
/// Interval between two looks at a node, which cost it time as well.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, _) = sizes_and_words(arguments, &[EDITS]);
    for edits in sizes {
        let (home, entry, changes) = write_home(edits);
        automerge_alone(&changes);
        let node = Node::start(home, entry);
        reads(&node);
        edits_of_this_node(&node);
        let other = first_sync(&node);
        edits_of_another_node(&node, &other);
        let resident = node.running.resident();
        println!("resident memory at the end: {:.0} MB, {:.0} own", resident.all, resident.own);
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what:<58} {:>9.1} ms", milliseconds(start));
    result
}

/// Prints the first of several requests, the median of the others and their maximum.
fn repeated(what: &str, mut work: impl FnMut()) {
    let mut times: Vec<f64> = (0..TURNS)
        .map(|_| {
            let start = Instant::now();
            work();
            milliseconds(start)
        })
        .collect();
    let first = times.remove(0);
    let (middle, last) = (percentile(&mut times, 50.0), percentile(&mut times, 100.0));
    println!("{what:<58} {first:>9.1} ms, then p50 {middle:.1}, max {last:.1}");
}

fn first_text() -> String {
    let mut text = String::new();
    for section in 0..SECTIONS {
        let _ = writeln!(text, "## Topic{section} of the release\n");
        for line in 0..LINES_PER_SECTION {
            let _ =
                writeln!(text, "Step {line} of topic{section}: run the checks, then go on to it.");
        }
        text.push('\n');
    }
    text
}

/// A home whose store contains a playbook with edits of five members, its entry, and its changes.
fn write_home(edits: usize) -> (TempDir, EntryId, Vec<WrittenChange>) {
    let mut nodes = Cluster::new(1, AUTHORS + 1, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3, 4, 5]);
    let entry = write_first_text(&mut nodes, team);
    let first = nodes.snapshot(0).edits(entry).expect("readable");
    let first = first.iter().map(|record| {
        let change = checked_change(record).expect("an edit").expect("its own");
        (change.bytes().to_vec(), *change.identity())
    });
    let mut changes: Vec<WrittenChange> = first.collect();
    let authors: Vec<AuthorId> = (0..AUTHORS).map(|at| nodes.author(at)).collect();
    let more = long_playbook::edits(&changes, &authors, edits);
    let from = nodes.author(1);
    let records = more.iter().map(|(bytes, identity)| {
        let by = authors.iter().position(|author| *author == identity.author).expect("one of them");
        let edit = DocumentEdit { branch: identity.branch, change: bytes.clone() };
        let (boot, number, stamp) = (identity.boot, identity.number, Hlc::from_bits(1));
        let at = EditPosition { entry, boot, number, stamp };
        let record = edit.seal(&at, &nodes.key(by)).expect("within the limits");
        DeliveredRecord { record, from }
    });
    let delivery = Command::Ingest(records.collect());
    changes.extend(more);
    let bytes: usize = changes.iter().map(|(bytes, _)| bytes.len()).sum();
    println!("{} changes of {AUTHORS} authors, {bytes} bytes", changes.len());
    measured("engine: take all edits in one transaction", || {
        nodes.run(0, delivery).expect("members may");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("made");
    for (name, bytes) in [("node.key", vec![1; 32]), ("store.redb", nodes.disk(0).bytes())] {
        std::fs::write(home.join(name), bytes).expect("written");
        let mode = PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(home.join(name), mode).expect("permitted");
    }
    bytes_of_a_sync(&mut nodes, entry);
    (folder, entry, changes)
}

fn write_first_text(nodes: &mut Cluster, workspace: WorkspaceId) -> EntryId {
    let new = NewEntry {
        kind: EntryType::Playbook,
        memory: Memory::Procedural,
        content: String::new(),
        ..in_workspace(workspace, "How we release")
    };
    let create = DocumentCommand::Create { new: Box::new(new), text: first_text() };
    created(&nodes.run(0, Command::Document(create)).expect("a member may"))
}

/// Bytes that the protocol sends to a new member, without the encryption around it.
fn bytes_of_a_sync(nodes: &mut Cluster, entry: EntryId) {
    let expected = nodes.snapshot(0).document(entry).expect("readable").expect("written");
    let before = nodes.sent.len();
    let start = Instant::now();
    nodes.pair(0, AUTHORS, false);
    nodes.pass(10 * REST_MS);
    let took = start.elapsed().as_secs_f64();
    let arrived = nodes.snapshot(AUTHORS).document(entry).expect("readable");
    assert_eq!(arrived.map(|row| row.heads), Some(expected.heads));
    let part = &nodes.sent[before..];
    let bytes: usize = part.iter().map(|one| one.frame.len()).sum();
    println!(
        "first sync in memory: {bytes} bytes in {} frames, {took:.1} s on one core for both nodes",
        part.len()
    );
}

/// The same document without klnode's checks, records and store.
fn automerge_alone(changes: &[WrittenChange]) {
    let mut merged =
        measured("automerge alone: parse and build", || PlainAutomerge::build(changes));
    let saved = merged.save();
    println!("{} bytes of text, saved by automerge in {}", merged.text().len(), saved.len());
    measured("automerge alone: load", || PlainAutomerge::load(&saved));
    let mut other = merged.clone();
    let change = measured("automerge alone: one edit", || other.edit(1_000));
    measured("automerge alone: merge one edit", || merged.merge(&change));
}

/// A process, its home, and the path of the playbook in its API.
struct Node {
    folder: TempDir,
    running: Running,
    path: String,
    entry: EntryId,
}

impl Node {
    fn start(folder: TempDir, entry: EntryId) -> Self {
        let home = folder.path().join("home");
        let running = Place::new(PROGRAM, &home).start(&[LISTEN]);
        Self { folder, running, path: format!("/v1/playbooks/{entry}"), entry }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn get(&self, rest: &str) -> Value {
        let answer = Place::new(PROGRAM, &self.home()).get(&format!("{}{rest}", self.path));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// The version that the node shows; `None` if it does not hold the playbook.
    fn version(&self) -> Option<Value> {
        let answer = Place::new(PROGRAM, &self.home()).get(&self.path);
        (answer.status == 200).then(|| answer.json()["version"].clone())
    }

    fn edit(&self, edit: &Value) -> Value {
        Place::new(PROGRAM, &self.home()).send("PATCH", &self.path, edit)
    }

    fn typed(&self, words: &[&str]) -> Value {
        let home = self.home();
        let output = Place::new(PROGRAM, &home).command().args(words).arg("--json").output();
        let output = output.expect("runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Replaces the first word `Step` of a section.
    fn edit_section(&self, section: &str, word: &str) {
        let shown = self.get(&format!("?section={section}"));
        let text = shown["text"].as_str().expect("text").replacen("Step", word, 1);
        self.edit(&json!({ "version": shown["version"], "section": section, "text": text }));
    }

    /// Does something while a client writes one small thing after the other to the node; prints the
    /// longest of its waits.
    fn beside_other_writes<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let home = self.home();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (place, mut waits) = (Place::new(PROGRAM, &home), Vec::new());
                while !is_over.load(Ordering::Relaxed) || waits.len() < 2 {
                    let start = Instant::now();
                    place.post("/v1/tasks", &json!({ "agent": "bench", "goal": "beside it" }));
                    waits.push(milliseconds(start));
                }
                waits
            });
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            let mut waits = writer.join().expect("it writes");
            let (middle, last) = (percentile(&mut waits, 50.0), percentile(&mut waits, 100.0));
            println!("  other writes, {what}: p50 {middle:.1} ms, longest {last:.1} ms");
            done
        })
    }
}

fn reads(node: &Node) {
    let home = node.home();
    let place = Place::new(PROGRAM, &home);
    repeated("show the text", || drop(node.get("")));
    let section = section_of(node, 7);
    repeated("show one section", || drop(node.get(&format!("?section={section}"))));
    repeated("history", || drop(node.get("/history")));
    repeated("blame", || drop(node.get("/blame")));
    repeated("diff of the last edit", || drop(node.get("/diff")));
    let middle = edit_in_the_middle(node);
    repeated("diff with the version in the middle", || {
        drop(node.get(&format!("/diff?from={middle}")));
    });
    repeated("show the version in the middle", || {
        drop(node.get(&format!("?version={middle}")));
    });
    measured("wait until the sections are indexed", || place.settle());
    repeated("search for a section", || {
        let found = place.post("/v1/search", &json!({ "query": "steps of topic7" }));
        assert_eq!(found["hits"][0]["id"], node.entry.to_string(), "{found}");
    });
}

/// The name of the section at this place, which edits may have changed.
fn section_of(node: &Node, at: usize) -> String {
    let shown = node.get("");
    let sections = shown["sections"].as_array().expect("a list");
    let long = sections.iter().filter(|of| of["bytes"].as_u64() > Some(1_000));
    let long: Vec<_> = long.collect();
    long[at % long.len()]["slug"].as_str().expect("text").to_owned()
}

fn edit_in_the_middle(node: &Node) -> String {
    let history = node.get("/history");
    let edits = history["edits"].as_array().expect("a list");
    edits[edits.len() / 2]["edit"].as_str().expect("text").to_owned()
}

fn edits_of_this_node(node: &Node) {
    node.beside_other_writes("alone", || std::thread::park_timeout(Duration::from_secs(1)));
    let section = section_of(node, 3);
    let mut number = 0;
    node.beside_other_writes("during edits of a section", || {
        repeated("read and edit one section", || {
            number += 1;
            node.edit_section(&section, &format!("Pace{number}"));
        });
    });
    let middle = edit_in_the_middle(node);
    let old = node.get(&format!("?version={middle}"));
    node.beside_other_writes("during edits of an old version", || {
        repeated("edit the whole text of the version in the middle", || {
            number += 1;
            let text = old["text"].as_str().expect("text");
            let text = text.replacen("Step", &format!("Walk{number}"), 1);
            node.edit(&json!({ "version": old["version"], "text": text }));
        });
    });
}

/// Lets a new node join the workspace, and waits until it shows the same text.
fn first_sync(node: &Node) -> Node {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("home")).expect("made");
    let other = Node::start(folder, node.entry);
    let ticket = node.typed(&["peer", "invite", "team", "--yes"]);
    let ticket = ticket["ticket"].as_str().expect("a ticket").to_owned();
    let version = node.version();
    node.beside_other_writes("at the older node", || {
        other.beside_other_writes("at the new node", || {
            measured("first sync: from the ticket to the whole text", || {
                other.typed(&["peer", "join", &ticket]);
                wait_for(|| other.version() == version);
            });
        });
    });
    let (here, there) = (node.running.processor_time(), other.running.processor_time());
    println!("processor time so far: {here:.1?} at the older node, {there:.1?} at the new one");
    other
}

fn wait_for(is_done: impl Fn() -> bool) {
    while !is_done() {
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

/// Edits at a new node that arrive at the older one.
fn edits_of_another_node(node: &Node, other: &Node) {
    let section = section_of(other, 5);
    let mut number = 0;
    node.beside_other_writes("during arriving edits", || {
        repeated("edit at another node, until it is shown here", || {
            number += 1;
            other.edit_section(&section, &format!("Trot{number}"));
            let version = other.version();
            wait_for(|| node.version() == version);
        });
    });
}
