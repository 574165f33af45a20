//! Golden bytes: every facet on the wire, a person's key, and every table of the store, compared
//! with files in `tests/golden`.
//!
//! `KLNODE_BLESS=1` rewrites the files. That is a change of format and belongs into the changelog,
//! under wire or store compatibility.

use klnode_crdt::encrypted_key::{KdfCost, LockedKey};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::record_builder::RecordBuilder;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::key;
use klnode_crdt::time::{Day, WallTime};
use klnode_engine::{
    CheckoutCommand, Command, FindingCommand, Finish, InsightCommand, MarkChange, NewEntry,
    NewFinding, NewTask, PeerCommand, Receipt, RecordSource, ScreenDecision, TaskCommand,
    TaskReceipt,
};
use klnode_federation::proto::Offerer;
use klnode_home::CallerLabel;
use klnode_scoring::credit::{self, TaskOutcome};
use klnode_store::checkouts::CheckoutRow;
use klnode_store::dismissed_insights::{DismissedInsightRow, evidence_hash, insight_key};
use klnode_store::peers::row_types::{FeedCursor, RefusalRow};
use klnode_store::row_types::{self, CallerRow, HitCost, Seq, ServedRow};
use klnode_tests::disk::Disk;
use klnode_tests::sample_records::{every_facet, stamp};
use klnode_tests::test_engine::{Node, START, lesson};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fmt::Write;
use std::path::PathBuf;

pub(crate) fn check(name: &str, found: &str) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden")).join(name);
    if std::env::var_os("KLNODE_BLESS").is_some() {
        std::fs::write(&path, found).expect("written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, golden, "{name}: the bytes have changed");
}

#[test]
fn the_api_description_is_unchanged() {
    check("openapi.json", &klnode_server::document());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn records_of_every_facet_have_their_golden_bytes() {
    let mut text = String::new();
    for (name, record) in every_facet() {
        let raw = record.to_raw();
        let _ = writeln!(text, "{name}");
        let _ = writeln!(text, "  digest    {}", record.digest());
        let _ = writeln!(text, "  header    {}", hex(&raw.header));
        let _ = writeln!(text, "  signature {}", hex(raw.signature.as_bytes()));
        let _ = writeln!(text, "  payload   {}", hex(&raw.payload.expect("whole")));
    }
    check("records-v1.txt", &text);
}

#[test]
fn records_of_format_1_still_verify_with_the_same_content() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/records-v1.txt");
    let golden = std::fs::read_to_string(path).expect("kept in the repository");
    let lines: Vec<&str> = golden.lines().collect();
    for (block, (name, written)) in lines.chunks(5).zip(every_facet()) {
        let bytes = |line: &str| {
            let hex = line.split_whitespace().nth(1).expect("two columns").as_bytes();
            hex.chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect::<Vec<u8>>()
        };
        assert_eq!(block[0], name);
        let signature = Signature::from_bytes(bytes(block[3]).try_into().unwrap());
        let raw = RawRecord { header: bytes(block[2]), signature, payload: Some(bytes(block[4])) };
        let read = Record::verify(&raw).expect("still valid");
        assert_eq!(read.digest().to_string(), block[1].split_whitespace().nth(1).unwrap());
        assert_eq!(read.payload(), written.payload());
    }
}

#[test]
fn a_persons_key_has_its_golden_bytes() {
    let cost = KdfCost { memory_kib: 64, passes: 1 };
    let locked = LockedKey::lock(&key(1), "correct horse", cost, [1; 16], [2; 24]).unwrap();
    check("person-key-v1.txt", &format!("{}\n", hex(&locked.encode())));
}

/// Every row of every table in hex. Opening a table needs its key and value widths, which
/// `store::tables` documents.
fn dump(disk: Disk) -> String {
    fn fixed<const K: usize>(name: &str, database: &Database, out: &mut String) {
        let table: TableDefinition<'_, &[u8; K], &[u8]> = TableDefinition::new(name);
        let reader = database.begin_read().unwrap();
        let _ = writeln!(out, "{name}");
        for row in reader.open_table(table).unwrap().iter().unwrap() {
            let (key, value) = row.unwrap();
            let _ = writeln!(out, "  {} = {}", hex(key.value()), hex(value.value()));
        }
    }
    fn narrow<const K: usize, const V: usize>(name: &str, database: &Database, out: &mut String) {
        let table: TableDefinition<'_, &[u8; K], &[u8; V]> = TableDefinition::new(name);
        let reader = database.begin_read().unwrap();
        let _ = writeln!(out, "{name}");
        for row in reader.open_table(table).unwrap().iter().unwrap() {
            let (key, value) = row.unwrap();
            let _ = writeln!(out, "  {} = {}", hex(key.value()), hex(value.value()));
        }
    }
    let database = Database::builder().create_with_backend(disk).expect("opens");
    let mut out = String::new();
    fixed::<8>("meta", &database, &mut out);
    fixed::<8>("records", &database, &mut out);
    narrow::<81, 8>("held", &database, &mut out);
    narrow::<32, 8>("digests", &database, &mut out);
    fixed::<16>("views", &database, &mut out);
    narrow::<16, 8>("epochs", &database, &mut out);
    narrow::<16, 8>("tombstones", &database, &mut out);
    fixed::<32>("equivocations", &database, &mut out);
    fixed::<81>("quarantine", &database, &mut out);
    fixed::<48>("releases", &database, &mut out);
    narrow::<40, 33>("outgoing", &database, &mut out);
    narrow::<64, 8>("queued", &database, &mut out);
    narrow::<32, 8>("heads", &database, &mut out);
    narrow::<40, 8>("stretches", &database, &mut out);
    fixed::<32>("refusals", &database, &mut out);
    narrow::<32, 32>("cursors", &database, &mut out);
    fixed::<16>("overlays", &database, &mut out);
    fixed::<16>("ledger", &database, &mut out);
    fixed::<8>("callers", &database, &mut out);
    fixed::<16>("tasks", &database, &mut out);
    fixed::<32>("parts", &database, &mut out);
    fixed::<16>("sessions", &database, &mut out);
    narrow::<32, 8>("primed", &database, &mut out);
    fixed::<21>("usage", &database, &mut out);
    fixed::<16>("checkouts", &database, &mut out);
    fixed::<16>("promotions", &database, &mut out);
    fixed::<20>("findings", &database, &mut out);
    narrow::<20, 8>("unsettled", &database, &mut out);
    fixed::<16>("dismissed", &database, &mut out);
    out
}

fn served(task: String, entry: EntryId) -> ServedRow {
    ServedRow {
        caller: "agent".into(),
        task: Some(task),
        query: "what".into(),
        entries: vec![entry],
        client: CallerLabel::parse("client"),
        session: CallerLabel::parse("session"),
        cost: row_types::AnswerCost {
            hits: vec![HitCost { author: Some(key(1).author()), tokens: 7, ..HitCost::default() }],
            millis: 3,
        },
        ..ServedRow::default()
    }
}

/// A task in which an entry is served, from its start to its end.
fn work(node: &mut Node, entry: EntryId) {
    let begin = NewTask {
        agent: "agent".into(),
        goal: "goal".into(),
        thread: Some("thread".into()),
        parent: None,
        workspace: None,
    };
    let begun = node.run(Command::Task(Box::new(TaskCommand::Begin(begin)))).unwrap();
    let Receipt::Task(TaskReceipt::Began(task)) = begun else { panic!("{begun:?}") };
    node.run(Command::Served(served(task.to_string(), entry))).unwrap();
    let found = NewFinding {
        text: "What was found.".into(),
        severity: "high".into(),
        confidence: 0.75,
        anchors: vec!["path:src/lib.rs".into()],
        repositories: Vec::new(),
        verify: vec!["look".into()],
        dismissal: Some("reason".into()),
        workspace: WorkspaceId::MAIN,
        is_once: false,
    };
    node.run(Command::Finding(Box::new(FindingCommand::Record(task, found)))).unwrap();
    let outcome = TaskOutcome { verdict: credit::TaskVerdict::Success, quality: 0.5 };
    let finish = Finish { rounds: Some(2), ..Finish::new(outcome, vec![]) };
    node.run(Command::Task(Box::new(TaskCommand::Finish(task, finish)))).unwrap();
}

/// Digest of the record that a node holds by an author about an entry.
fn word_of(node: &Node, author: AuthorId, entry: EntryId) -> Digest {
    let records = node.engine.store().snapshot().unwrap().entry_records(entry).unwrap();
    records.iter().find(|record| record.author() == author).expect("one").digest()
}

fn quarantine_author_three(record: &Record, source: RecordSource) -> ScreenDecision {
    match source {
        RecordSource::Peer(_) if record.author() == key(3).author() => {
            ScreenDecision::Quarantine("odd".into())
        }
        _ => ScreenDecision::Admit,
    }
}

#[test]
fn every_table_of_the_store_has_its_golden_bytes() {
    let mut node = Node::start_with_screen(1, 1, Box::new(quarantine_author_three));
    let mut peer = Node::start(3, 3);
    let entry = node.create("kept");
    let gone = node.create("forgotten");
    node.succeed(entry);
    node.run(Command::Forget { entry: gone }).unwrap();
    peer.create("from a peer");
    peer.send_to(&mut node);
    for twin in [0, 1] {
        let own = LiveRecords::default();
        let author = key(4);
        let writer = RecordBuilder { key: &author, boot: Boot(4), entry, own: &own };
        let day = Day(20_000 + twin);
        let record = writer.observe(Observation::Success, Thousandths::ONE, day, stamp(7)).unwrap();
        node.ingest(record, author.author());
    }
    let peer = peer.author();
    let other = key(4).author();
    let brought = word_of(&node, other, entry);
    let refusal = RefusalRow {
        header: vec![1, 2, 3],
        signature: Signature::from_bytes([4; 64]),
        counter: 5,
        digest: Digest::from_bytes([1; 32]),
        reason: "filter".into(),
        is_unknown: false,
    };
    let marks = MarkChange { pinned: Some(true), note: Some("note".into()), ..<_>::default() };
    let cursor = FeedCursor { store: StoreId::default(), epoch: 7, position: Seq(9) };
    let checkout = CheckoutRow {
        workspace: WorkspaceId::MAIN,
        identity: "remote:example.org/shop".into(),
        folder: "/src/shop".into(),
        since: START,
    };
    for command in [
        Command::Peers(vec![
            PeerCommand::Release(peer, entry, true),
            PeerCommand::Requeue(other, vec![brought]),
            PeerCommand::Refuse(Offerer { peer, store: cursor.store }, [6; 16], Box::new(refusal)),
            PeerCommand::Advance(peer, cursor),
        ]),
        Command::Mark { entry, marks },
        Command::Insight(InsightCommand::Dismiss(
            insight_key(WorkspaceId::MAIN, 4, "auth"),
            DismissedInsightRow { rule: 4, at: START, evidence: vec![evidence_hash("entry")] },
        )),
        Command::Checkout(CheckoutCommand::Map([3; 16], checkout)),
        Command::Served(served("task".into(), entry)),
        Command::As {
            caller: CallerRow {
                uid: Some(1_000),
                pid: Some(4_242),
                client: CallerLabel::parse("client"),
                session: CallerLabel::parse("session"),
                ..CallerRow::default()
            },
            command: Box::new(Command::Create(Box::new(NewEntry {
                workspace: WorkspaceId::LOCAL,
                ..lesson("kept at home")
            }))),
        },
    ] {
        node.run(command).unwrap();
    }
    work(&mut node, entry);
    assert_eq!(node.now, WallTime::from_millis(START.as_millis()));
    let disk = node.medium.disk();
    drop(node);
    check("store-v9.txt", &dump(disk.fork()));
}
