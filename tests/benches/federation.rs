//! What replication costs, between two real processes on loopback and in the protocol alone.
//!
//! `cargo bench -p klnode-tests --bench federation [-- NAME] [-- ENTRIES]` runs all, or those whose
//! name contains NAME: sync, commit, bytes. ENTRIES is the size of the first exchange.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use klnode_crdt::key::{Purpose, SecretKey};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::Cluster;
use klnode_tests::measure::{bench_arguments, percentile};
use klnode_tests::node::lesson;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn main() {
    let Some(arguments) = bench_arguments() else { return };
    let (sizes, names): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<usize>().is_ok());
    let entries = sizes.first().and_then(|size| size.parse().ok()).unwrap_or(100_000);
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| name.contains(one));
    if wanted("sync") {
        sync(entries);
    }
    if wanted("commit") {
        commit();
    }
    if wanted("bytes") {
        bytes();
    }
}

/// A real node; ended with the benchmark.
struct Peer {
    child: Child,
    home: PathBuf,
    _folder: TempDir,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_klnode-under-test"));
        command.env_clear().arg("--home").arg(&home).args(["--log", "warn"]);
        command.args(["--set", "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("starts");
        let peer = Self { child, home, _folder: folder };
        while !peer.home.join("klnode.sock").exists() {
            std::thread::yield_now();
        }
        peer
    }

    fn json(&self, words: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_klnode-under-test"));
        command.env_clear().arg("--home").arg(&self.home).args(words).arg("--json");
        let output = command.output().expect("runs");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn entries(&self) -> u64 {
        self.json(&["status"])["entries"].as_u64().unwrap_or(0)
    }
}

fn pair() -> (Peer, Peer) {
    let (here, there) = (Peer::start(), Peer::start());
    let invited = here.json(&["invite", "--mine"]);
    let ticket = invited["ticket"].as_str().expect("a ticket");
    assert_eq!(there.json(&["join", ticket])["mine"], true);
    (here, there)
}

/// Signatures that one core checks in a second.
fn verification_rate() -> f64 {
    let key = SecretKey::from_bytes(&[1; 32]);
    let bytes = [7; 200];
    let signature = key.sign(Purpose::Record, &bytes);
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(1) {
        assert!(key.author().has_signed(Purpose::Record, &bytes, &signature));
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

fn sync(entries: usize) {
    let here = Peer::start();
    let mut lines = String::new();
    for number in 0..entries {
        let _ = writeln!(
            lines,
            "{{\"title\": \"note {number}\", \"content\": \"What was learned about {number}, in a \
             sentence or two that say enough to be found again.\"}}"
        );
    }
    let file = here.home.join("notes.jsonl");
    std::fs::write(&file, lines).expect("written");
    here.json(&["import", file.to_str().expect("text")]);
    let there = Peer::start();
    let invited = here.json(&["invite", "--mine"]);
    let ticket = invited["ticket"].as_str().expect("a ticket").to_owned();
    let start = Instant::now();
    there.json(&["join", &ticket]);
    while there.entries() < entries as u64 {
        std::thread::yield_now();
    }
    let took = start.elapsed().as_secs_f64();
    let (rate, bound) = (entries as f64 / took, verification_rate());
    println!(
        "first exchange of {entries} records: {took:.1} s, {rate:.0} records/s, {:.2} of the \
         {bound:.0} signatures one core checks in a second",
        rate / bound
    );
    let start = Instant::now();
    let synced = there.json(&["sync"]);
    println!(
        "then compared: {} in {:.0} ms",
        synced["peers"][0]["sync"],
        start.elapsed().as_secs_f64() * 1_000.0
    );
}

fn commit() {
    let (here, there) = pair();
    let mut times = Vec::new();
    for number in 0..60 {
        let title = format!("zanzibar{number} quokka{number}");
        let words = ["add", "--title", &title, "--content", "x y z", "--evidence", "doc:x"];
        here.json(&words);
        let start = Instant::now();
        loop {
            let answer = there.json(&["search", &title, "--all"]);
            let is_there = answer["hits"].as_array().is_some_and(|hits| !hits.is_empty());
            if is_there {
                break;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    let (middle, last) = (percentile(&mut times, 50.0), percentile(&mut times, 99.0));
    println!("commit here to searchable there: p50 {middle:.0} ms, p99 {last:.0} ms");
}

/// What the protocol itself sends, without the encryption around it.
fn bytes() {
    let mut nodes = Cluster::new(1, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    for number in 0..2_000 {
        nodes.create(0, lesson(&format!("entry {number}")));
    }
    nodes.pass(60_000);
    let sent = |nodes: &Cluster, from: usize| {
        let part = &nodes.sent[from..];
        (part.len(), part.iter().map(|one| one.frame.len()).sum::<usize>())
    };
    let before = nodes.sent.len();
    nodes.sync(0, 1);
    nodes.pass(5_000);
    let (frames, total) = sent(&nodes, before);
    println!("idle check of equal stores: {total} bytes in {frames} frames");
    let before = nodes.sent.len();
    let mut own = 0;
    for number in 0..100 {
        let entry = nodes.create(0, lesson(&format!("small {number}")));
        let records = nodes.snapshot(0).entry_records(entry).expect("readable");
        own += records
            .iter()
            .map(|record| {
                let raw = record.to_raw();
                raw.header.len() + 64 + raw.payload.map_or(0, |payload| payload.len())
            })
            .sum::<usize>();
    }
    nodes.pass(5_000);
    let (frames, total) = sent(&nodes, before);
    println!(
        "100 new small records: {total} bytes in {frames} frames for {own} of their own, {:.0} \
         over each",
        (total as f64 - own as f64) / 100.0
    );
}
