//! Cost of replication, between two real processes on loopback and in the protocol alone.
//!
//! `cargo bench -p klnode-tests --bench federation [-- NAME] [-- ENTRIES]` runs all parts, or those
//! whose name contains NAME: sync, commit, bytes, differences, hostile. ENTRIES is the size of the
//! first exchange.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::signing_key::{Purpose, SecretKey, Signature};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::message::{SyncRequest, SyncResponse};
use klnode_federation::proto::ticket::Ticket;
use klnode_federation::sim::Knobs;
use klnode_replication::{ReplicaAction, ReplicaEvent};
use klnode_tests::bench_timing::{bench_arguments, percentile};
use klnode_tests::cluster::Cluster;
use klnode_tests::hostile_peer::{Attack, End, attack};
use klnode_tests::peer_with_chosen_records::Puppet;
use klnode_tests::test_engine::{Node, lesson};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Interval between two status requests, which cost the node time as well.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

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
    if wanted("differences") {
        differences(100_000);
    }
    if wanted("hostile") {
        hostile();
    }
}

/// A real node; killed with the benchmark.
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

    /// Processor time of the process, in microseconds.
    fn processor_us(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
        // The kernel counts in hundredths of a second.
        (ticks(12) + ticks(13)) * 10_000
    }

    fn entries(&self) -> u64 {
        self.json(&["status"])["entries"].as_u64().unwrap_or(0)
    }
}

fn pair() -> (Peer, Peer) {
    let (here, there) = (Peer::start(), Peer::start());
    let invited = here.json(&["peer", "invite", "--mine"]);
    let ticket = invited["ticket"].as_str().expect("a ticket");
    assert_eq!(there.json(&["peer", "join", ticket])["mine"], true);
    (here, there)
}

/// Number of signatures that one core verifies per second.
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
    let invited = here.json(&["peer", "invite", "--mine"]);
    let ticket = invited["ticket"].as_str().expect("a ticket").to_owned();
    let start = Instant::now();
    there.json(&["peer", "join", &ticket]);
    while there.entries() < entries as u64 {
        std::thread::park_timeout(LOOK_AGAIN);
    }
    let took = start.elapsed().as_secs_f64();
    let (rate, bound) = (entries as f64 / took, verification_rate());
    println!(
        "first exchange of {entries} records: {took:.1} s, {rate:.0} records/s, {:.2} of the \
         {bound:.0} signatures one core checks in a second",
        rate / bound
    );
    let start = Instant::now();
    let synced = there.json(&["peer", "sync"]);
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
        let added = here.json(&words);
        let start = Instant::now();
        // Earlier entries are similar and found at once, so the id must match.
        let is_it = |hit: &Value| hit["id"] == added["id"];
        while !there.json(&["search", &title, "--all"])["hits"]
            .as_array()
            .is_some_and(|hits| hits.iter().any(is_it))
        {
            std::thread::yield_now();
        }
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    let (middle, last) = (percentile(&mut times, 50.0), percentile(&mut times, 99.0));
    println!("commit here to searchable there: p50 {middle:.0} ms, p99 {last:.0} ms");
}

/// Bytes that the protocol itself sends, without the encryption around it.
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

/// Whether one side lacks a number out of a count.
type Missing = fn(u64, u64) -> bool;

/// Cost of finding differences, compared with sending a header of each record.
fn differences(count: u64) {
    let cases: [(&str, Missing); 3] = [
        ("none", |_, _| false),
        ("1,000 scattered", |number, count| number.is_multiple_of(count / 1_000)),
        ("1,000 recent", |number, count| number >= count - 1_000),
    ];
    let raw = |number: u64| RawRecord {
        header: number.to_be_bytes().to_vec(),
        signature: Signature::from_bytes([0; 64]),
        payload: None,
    };
    let mut node = Node::start(1, 1);
    let entry = node.create("a lesson as others are");
    let record = node.engine.store().snapshot().expect("readable").entry_records(entry);
    let headers = count as usize * (record.expect("readable")[0].to_raw().header.len() + 64);
    for (name, is_missing) in cases {
        let all = (0..count).map(|number| (number << 16, raw(number)));
        let part = (0..count).filter(|number| !is_missing(*number, count));
        let part = part.map(|number| (number << 16, raw(number)));
        let sides = [
            Puppet::holding(StoreId::from_bytes([1; 16]), part),
            Puppet::holding(StoreId::from_bytes([2; 16]), all),
        ];
        let (rounds, bytes) = compared(sides);
        println!(
            "{name} differences in {count}: {bytes} bytes in {rounds} round trips; every signed \
             header is {} bytes, {:.0} times as much",
            headers,
            headers as f64 / bytes as f64
        );
    }
}

/// Makes one side compare with the other; returns the round trips and bytes.
fn compared(mut sides: [Puppet; 2]) -> (usize, usize) {
    let names = [AuthorId::from_bytes([1; 32]), AuthorId::from_bytes([2; 32])];
    let now = WallTime::from_millis(1_790_000_000_000);
    let (mut rounds, mut bytes, mut exchange) = (0, 0, 0);
    let mut waiting: Vec<(usize, ReplicaAction)> = Vec::new();
    let mut asked: Vec<(u64, usize, u64)> = Vec::new();
    for at in 0..2 {
        let actions = sides[at].handle(&ReplicaEvent::Connected(names[1 - at]), now, 0);
        waiting.extend(actions.into_iter().map(|action| (at, action)));
    }
    while !waiting.is_empty() {
        let (from, action) = waiting.remove(0);
        let to = 1 - from;
        let (target, actions) = match action {
            ReplicaAction::Ask(_, id, frame) => {
                if from == 0 && matches!(SyncRequest::decode(&frame), Ok(SyncRequest::Compare(..)))
                {
                    (rounds, bytes) = (rounds + 1, bytes + frame.len());
                }
                exchange += 1;
                asked.push((exchange, from, id));
                (to, sides[to].handle(&ReplicaEvent::Asked(names[from], exchange, &frame), now, 0))
            }
            ReplicaAction::Answer(of, frame) => {
                let at = asked.iter().position(|(one, ..)| *one == of).expect("it was asked");
                let (_, asker, id) = asked.remove(at);
                if asker == 0
                    && matches!(SyncResponse::decode(&frame), Ok(SyncResponse::Compare(_)))
                {
                    bytes += frame.len();
                }
                let event = ReplicaEvent::Answered(names[from], id, &frame);
                (asker, sides[asker].handle(&event, now, 0))
            }
            ReplicaAction::Disconnect(..) => continue,
        };
        waiting.extend(actions.into_iter().map(|action| (target, action)));
    }
    (rounds, bytes)
}

/// Cost of an honest record while eight hostile peers attack the node.
fn hostile() {
    let quiet = cost_of_records(&[]);
    let attacks = [Attack::Garbage, Attack::Bombs, Attack::Forgeries, Attack::Strays];
    let assailed = cost_of_records(&[attacks, attacks].concat());
    println!(
        "an honest record costs {quiet:.0} \u{b5}s of the node's processor; {assailed:.0} \u{b5}s, \
         {:.2} times as much, while eight hostile peers are at it",
        assailed / quiet
    );
}

/// Microseconds of processor time that a node spends per record of an honest peer.
fn cost_of_records(attacks: &[Attack]) -> f64 {
    const RECORDS: u64 = 5_000;
    let (here, there) = (Peer::start(), Peer::start());
    let mut lines = String::new();
    for number in 0..RECORDS {
        let _ = writeln!(lines, "{{\"title\": \"note {number}\", \"content\": \"About it.\"}}");
    }
    let file = here.home.join("notes.jsonl");
    std::fs::write(&file, lines).expect("written");
    here.json(&["import", file.to_str().expect("text")]);
    let tickets = attacks.iter().map(|_| {
        let invited = there.json(&["peer", "invite", "team", "--yes"]);
        invited["ticket"].as_str().expect("a ticket").parse::<Ticket>().expect("its own")
    });
    let tickets: Vec<Ticket> = tickets.collect();
    let invited = here.json(&["peer", "invite", "--mine"]);
    let ours = invited["ticket"].as_str().expect("a ticket").to_owned();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, (what, ticket)) in attacks.iter().zip(&tickets).enumerate() {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let for_ = Duration::from_secs(1);
                    let _ = attack(ticket, *what, number as u64, &[], End::After(for_));
                }
            });
        }
        let before = there.processor_us();
        there.json(&["peer", "join", &ours]);
        while there.entries() < RECORDS {
            std::thread::yield_now();
        }
        let spent = there.processor_us() - before;
        is_over.store(true, Ordering::Relaxed);
        spent as f64 / RECORDS as f64
    })
}
