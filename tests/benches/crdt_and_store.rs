//! Cost of the CRDT and the store, each against a baseline measured in the same run.
//!
//! `cargo bench -p klnode-tests --bench crdt_and_store [-- NAME]` runs all parts, or those whose
//! name contains NAME: group-commit, verify, join, disk.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId, StoreId};
use klnode_crdt::live_records::{EntryRecords, LiveRecords};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::{Purpose, SecretKey};
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::origin;
use klnode_crdt::time::{Day, Hlc};
use klnode_engine::{Command, Engine, Limits, NewEntry, Receipt, Setup, spawn};
use klnode_store::{Durability, FileMedium, Options, Store};
use klnode_tests::bench_timing::{bench_arguments, in_turns, median};
use klnode_tests::test_engine::{START, Seeded, lesson, setup};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

fn main() {
    let Some(filters) = bench_arguments() else { return };
    let wanted = |name: &str| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let all: [(&str, fn()); 4] =
        [("group-commit", group_commit), ("verify", verify), ("join", join), ("disk", disk)];
    for (_, bench) in all.iter().filter(|(name, _)| wanted(name)) {
        bench();
    }
}

fn engine(folder: &Path, durability: Durability) -> Engine {
    let medium = FileMedium::new(folder.join("store.redb"));
    let store = Store::open(Box::new(medium), &Options::new(StoreId::default())).expect("opens");
    Engine::start(store, Setup { durability, ..setup(1, 1) }, START).expect("starts")
}

/// 64 callers with 200 writes each; returns writes per second.
fn callers(durability: Durability) -> f64 {
    const CALLERS: usize = 64;
    const WRITES: usize = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let running = spawn(engine(folder.path(), durability), Limits::default(), || START);
    let create = Command::Create(Box::new(lesson("busy")));
    let Ok(Receipt::Created(entry)) = running.handle().submit_blocking(create) else {
        panic!("no entry was created");
    };
    let start = Instant::now();
    let threads: Vec<_> = (0..CALLERS)
        .map(|_| {
            let handle = running.handle();
            std::thread::spawn(move || {
                for _ in 0..WRITES {
                    let of = Observation::Success;
                    let observe = Command::Observe { entry, of, amount: Thousandths::ONE };
                    handle.submit_blocking(observe).expect("acknowledged");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    let elapsed = start.elapsed();
    running.stop();
    (CALLERS * WRITES) as f64 / elapsed.as_secs_f64()
}

fn group_commit() {
    let [durable, deferred, ratio] =
        in_turns(7, || callers(Durability::Durable), || callers(Durability::Deferred));
    println!("group commit, 64 callers, one observation each time (median of 7):");
    println!("  durable            {durable:>10.0} writes/s");
    println!("  durability off     {deferred:>10.0} writes/s");
    println!("  ratio              {ratio:>10.2}   (goal: at least 0.70)");
}

fn verify() {
    const RECORDS: usize = 500;
    let records: Vec<RawRecord> = (0..RECORDS).map(|at| claim(at, 1_024).to_raw()).collect();
    let author = SecretKey::from_bytes(&[1; 32]).author();
    let rate = |mut check: Box<dyn FnMut(&RawRecord) + '_>| {
        let start = Instant::now();
        records.iter().for_each(&mut check);
        RECORDS as f64 / start.elapsed().as_secs_f64()
    };
    let whole = || {
        rate(Box::new(|raw| {
            black_box(Record::verify(raw).expect("valid"));
        }))
    };
    let bare = || {
        rate(Box::new(|raw| {
            black_box(author.has_signed(Purpose::Record, &raw.header, &raw.signature));
        }))
    };
    let [whole, bare, ratio] = in_turns(41, whole, bare);
    println!("verification of records with 1 KiB of claims (one thread, median of 41):");
    println!("  bare ed25519       {bare:>10.0} signatures/s");
    println!("  whole records      {whole:>10.0} records/s");
    println!("  ratio              {ratio:>10.2}   (goal: at least 0.80)");
}

fn claim(number: usize, bytes: usize) -> Record {
    let key = SecretKey::from_bytes(&[1; 32]);
    let own = LiveRecords::default();
    let writer = RecordBuilder {
        key: &key,
        boot: Boot(number as u64 + 1),
        entry: origin(1).id(),
        own: &own,
    };
    let text = prose(&mut Seeded(number as u64), bytes);
    let claims = [ClaimEdit::Set(Register::CONTENT, text)];
    let stamp = Hlc::new(START, number as u16);
    writer.claim(&Entry::default(), Some(origin(1)), &claims, stamp).expect("written")
}

fn join() {
    let entry = origin(1).id();
    let mut held = EntryRecords::default();
    let mut all = Vec::new();
    for author in 1..=100_u8 {
        let key = SecretKey::from_bytes(&[author; 32]);
        let own = LiveRecords::default();
        let writer = RecordBuilder { key: &key, boot: Boot(7), entry, own: &own };
        let origin = (author == 1).then(|| origin(1));
        let claims = [
            ClaimEdit::Set(Register::TITLE, format!("title {author}")),
            ClaimEdit::Add(TextSet::TAGS, format!("tag/{author}")),
        ];
        let stamp = Hlc::new(START, u16::from(author));
        all.push(writer.claim(&held.to_entry(), origin, &claims, stamp).expect("written"));
        let of = Observation::Success;
        let day = Day(20_000);
        all.push(writer.observe(of, Thousandths::ONE, day, stamp).expect("written"));
        held.merge(all[all.len() - 2].clone());
        held.merge(all[all.len() - 1].clone());
    }
    let joined = median(101, || held.to_entry());
    let entry = held.to_entry();
    let entitlement = klnode_crdt::entry_view::Entitlement {
        mine: [].into(),
        members: entry.claims.keys().copied().collect(),
    };
    let viewed = median(101, || entry.view(START, &entitlement));
    let merged = median(21, || {
        let mut fresh = EntryRecords::default();
        for record in &all {
            fresh.merge(record.clone());
        }
        fresh
    });
    println!("an entry of 100 authors, each with claims and a tally (median):");
    println!("  merge 200 records  {:>10.1} µs", merged.as_secs_f64() * 1e6);
    println!("  join               {:>10.1} µs", joined.as_secs_f64() * 1e6);
    println!("  view               {:>10.1} µs", viewed.as_secs_f64() * 1e6);
}

/// Words as in prose, so that the text does not compress unusually well.
fn prose(random: &mut Seeded, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "middleware",
        "context",
        "returns",
        "the",
        "error",
        "when",
        "a",
        "request",
        "is",
        "cancelled",
        "and",
        "handler",
        "must",
        "check",
        "before",
        "retry",
    ];
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(WORDS[random.below(16) as usize]);
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

fn disk() {
    const ENTRIES: usize = 100_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = engine(folder.path(), Durability::Durable);
    let mut random = Seeded(1);
    let mut ids: Vec<EntryId> = Vec::new();
    let start = Instant::now();
    for _ in 0..ENTRIES / 1_000 {
        let commands: Vec<Command> = (0..1_000)
            .map(|_| {
                let bytes = 700 + random.below(400) as usize;
                let tag = ClaimEdit::Add(TextSet::TAGS, format!("area/{}", random.below(50)));
                let new = NewEntry {
                    content: prose(&mut random, bytes),
                    claims: vec![tag],
                    ..lesson("An entry with a title of ordinary length")
                };
                Command::Create(Box::new(new))
            })
            .collect();
        for receipt in engine.step(&commands, START) {
            let Ok(Receipt::Created(entry)) = receipt else { panic!("{receipt:?}") };
            ids.push(entry);
        }
    }
    let written = start.elapsed();
    // A third of the entries has observations.
    let observed: Vec<EntryId> = ids.into_iter().step_by(3).collect();
    for chunk in observed.chunks(1_000) {
        let observe = chunk.iter().map(|entry| Command::Observe {
            entry: *entry,
            of: Observation::Success,
            amount: Thousandths::ONE,
        });
        engine.step(&observe.collect::<Vec<_>>(), START);
    }
    let payload: u64 = {
        let snapshot = engine.store().snapshot().expect("readable");
        let changes = snapshot.changes_since(<_>::default()).expect("readable");
        let bytes = |record: klnode_crdt::record::Record| record.header().payload_bytes;
        changes.map(|change| u64::from(bytes(change.expect("readable").record))).sum()
    };
    let file = folder.path().join("store.redb");
    let size = || std::fs::metadata(&file).expect("there").len();
    let before = size();
    engine.step(&[Command::Rewrite], START).remove(0).expect("written anew");
    let after = size();
    let per = |bytes: u64| bytes as f64 / ENTRIES as f64;
    println!("100,000 entries of about 1 KiB, a third of them observed:");
    println!("  written            {:>10.0} entries/s", ENTRIES as f64 / written.as_secs_f64());
    println!("  payload            {:>10.0} bytes/entry", per(payload));
    println!("  file as written    {:>10.0} bytes/entry", per(before));
    println!("  file written anew  {:>10.0} bytes/entry", per(after));
    let ratio = after as f64 / payload as f64;
    println!("  ratio              {ratio:>10.2}   (goal: at most 2.50 times the payload)");
}
