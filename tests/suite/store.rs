//! The store as a file: ownership, schema versions, damage.

use crate::support::homes;
use klnode_crdt::ids::{AuthorId, Digest, StoreId};
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::testing::key;
use klnode_engine::{
    Command, DeliveredRecord, Engine, IngestOutcome, MarkChange, PeerCommand, Receipt,
    RecordSource, ScreenDecision, Setup,
};
use klnode_federation::proto::message::ErasureReceipt as Heard;
use klnode_federation::proto::{Offerer, OutboxTarget};
use klnode_store::peers::row_types::{FeedCursor, RefusalRow};
use klnode_store::row_types::{CallerRow, MarksRow, Seq, ServedRow};
use klnode_store::{Error, FileMedium, Migration, OpenError, Options, Store};
use klnode_tests::disk::Disk;
use klnode_tests::test_engine::{DiskMedium, Node, START, downgrade, exchange, lesson, setup};
use std::path::Path;

fn options() -> Options {
    Options::new(StoreId::from_bytes([5; 16]))
}

fn open_with(path: &Path, options: &Options) -> Result<Store, OpenError> {
    Store::open(Box::new(FileMedium::new(path)), options)
}

fn open(path: &Path) -> Result<Store, OpenError> {
    open_with(path, &options())
}

#[test]
fn a_store_keeps_its_id_and_has_one_owner_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    let store = open(&path).expect("made");
    let second = open(&path).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }));
    let told = second.to_string();
    assert_eq!(
        told,
        format!("The store at {} is in use by another klnode process.", path.display())
    );
    drop(store);
    let other = Options::new(StoreId::from_bytes([6; 16]));
    let again = open_with(&path, &other).expect("opens again");
    assert_eq!(again.id(), StoreId::from_bytes([5; 16]));
}

#[test]
fn a_newer_schema_is_refused_with_a_message_and_left_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    drop(
        open_with(&path, &Options { schema: 10, ..options() }).expect("created by a later version"),
    );
    let told = open(&path).unwrap_err().to_string();
    assert!(told.ends_with("a newer klnode wrote it (schema 10, this one knows 9)."), "{told}");
    drop(
        open_with(&path, &Options { schema: 10, ..options() }).expect("the later version's still"),
    );
}

#[test]
fn an_older_schema_is_migrated_step_by_step_and_a_missing_step_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    drop(open(&path).expect("made"));
    let step = |from| Migration { from, run: |_| Ok(()) };
    let later = Options { schema: 10, migrations: vec![step(8), step(9)], ..options() };
    drop(open_with(&path, &later).expect("migrated"));
    assert!(matches!(open(&path).unwrap_err(), OpenError::Newer { found: 10, known: 9, .. }));
    let gap = Options { schema: 12, migrations: vec![step(11)], ..options() };
    let told = open_with(&path, &gap).unwrap_err().to_string();
    assert!(told.contains("schema 10 is unknown"), "{told}");
    let fails = Migration { from: 10, run: |_| Err(Error::Full) };
    let failing = Options { schema: 11, migrations: vec![fails], ..options() };
    assert!(matches!(open_with(&path, &failing).unwrap_err(), OpenError::Prepare { .. }));
    drop(open_with(&path, &later).expect("a failed step leaves the schema before it"));
}

#[test]
fn files_that_are_no_store_are_refused_and_an_incomplete_one_is_recreated() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    for content in [&b""[..], b"not a store", &[0; 100_000]] {
        std::fs::write(&path, content).unwrap();
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), content, "it is unchanged");
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::write(path.with_extension("new"), b"half made").unwrap();
    drop(open(&path).expect("made anew"));
    assert!(!path.with_extension("new").exists());
}

#[test]
fn the_page_cache_is_emptied_only_without_snapshots_and_the_rows_stay() {
    let mut node = Node::start(1, 1);
    let entry = node.create("kept");
    let reads = |node: &Node| {
        let before = node.medium.disk().counts().reads;
        assert_eq!(node.title(entry).as_deref(), Some("kept"));
        node.medium.disk().counts().reads - before
    };
    reads(&node);
    assert_eq!(reads(&node), 0, "all pages are cached");
    let snapshot = node.engine.store().snapshot().unwrap();
    assert!(!node.engine.release_cache());
    assert_eq!(reads(&node), 0);
    drop(snapshot);
    let before = node.medium.disk().counts().reads;
    assert!(node.engine.release_cache());
    reads(&node);
    assert!(node.medium.disk().counts().reads > before, "pages are read from the disk again");
    node.succeed(entry);
    assert_eq!(node.successes(entry), 1);
}

#[test]
fn a_store_in_memory_keeps_its_rows_when_the_page_cache_should_be_emptied() {
    let memory = Store::in_memory();
    assert!(!memory.release_cache().unwrap());
    assert_eq!(memory.snapshot().unwrap().head(), Seq(0));
}

#[test]
fn damage_is_an_error_or_reported_and_never_a_wrong_text() {
    let mut node = Node::start(1, 1);
    let entry = node.create("sound");
    node.succeed(entry);
    let disk = node.medium.disk();
    drop(node);
    let disk = disk.fork();
    let mut harmed = 0;
    for page in 0..disk.page_count() {
        for at in [17, 700, 2_100] {
            let damaged: Disk = disk.fork();
            damaged.flip_bit(page * 4_096 + at, 3);
            let outcome = std::panic::catch_unwind(|| {
                let node = Node::start_on(damaged, 1, 2, START).map_err(|_| ())?;
                let snapshot = node.engine.store().snapshot().map_err(|_| ())?;
                let held = snapshot.entry(entry).map_err(|_| ())?.to_entry();
                let is_named = !snapshot.check().map_err(|_| ())?.is_empty();
                Ok::<_, ()>((held, is_named))
            });
            // redb itself may panic on an inconsistent page, which gives no wrong text either.
            let Ok(Ok((held, is_named))) = outcome else {
                harmed += 1;
                continue;
            };
            harmed += usize::from(is_named);
            let texts = held.claims.values().flat_map(|claims| claims.registers.values());
            for (_, value) in texts.flat_map(klnode_crdt::register::MvRegister::iter) {
                let content = lesson("sound").content;
                let known = ["sound", content.as_str(), "lesson"];
                assert!(known.contains(&value.text.as_str()), "page {page}: {}", value.text);
            }
        }
    }
    assert!(harmed > 0, "some of the flips must have hit something");
}

#[test]
fn a_store_without_its_schema_number_is_damaged_and_not_new() {
    use redb::TableDefinition;
    const META: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("meta");
    let mut node = Node::start(1, 1);
    node.create("kept");
    let disk = node.medium.disk();
    drop(node);
    let disk = disk.fork();
    let edit = |key: &[u8; 8], value: Option<&[u8]>| {
        let copy = disk.fork();
        let database = redb::Database::builder().create_with_backend(copy.clone()).unwrap();
        let transaction = database.begin_write().unwrap();
        match value {
            Some(value) => drop(transaction.open_table(META).unwrap().insert(key, value).unwrap()),
            None => drop(transaction.open_table(META).unwrap().remove(key).unwrap()),
        }
        transaction.commit().unwrap();
        drop(database);
        Node::start_on(copy.fork(), 1, 2, START)
    };
    let told = edit(b"schema\0\0", None).err().expect("refused").to_string();
    assert!(told.contains("The store is damaged: the schema number"), "{told}");
    // With a head that went back, a new record does not replace an old one.
    let mut node = edit(b"head\0\0\0\0", Some(&[0; 8])).expect("opens");
    node.create("another");
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.changes_since(Seq(0)).unwrap().count(), 2);
    assert!(snapshot.check().unwrap().is_empty());
}

#[test]
fn quarantined_records_wait_for_the_operator() {
    let mut home = Node::start(1, 1);
    let entry = home.create("doubtful");
    let judge = |_: &Record, source: RecordSource| match source {
        RecordSource::Local => ScreenDecision::Admit,
        RecordSource::Peer(_) => ScreenDecision::Quarantine("it looks odd".into()),
    };
    let setup = Setup { judge: Box::new(judge), ..setup(2, 2) };
    let store = Store::open(Box::new(klnode_store::MemoryMedium), &options()).unwrap();
    let mut careful = Engine::start(store, setup, START).unwrap();

    let EntryRecordsOf(record) = only_record(&home, entry);
    let arrival = DeliveredRecord { record: record.clone(), from: home.author() };
    let mut step = |command| careful.step(&[command], START).remove(0).expect("done");
    let told = step(Command::Ingest(vec![arrival.clone()]));
    assert_eq!(told, Receipt::Ingested(vec![IngestOutcome::Quarantined("it looks odd".into())]));
    step(Command::Reject(record.digest()));
    step(Command::Ingest(vec![arrival]));
    let released = step(Command::Release(record.digest()));
    assert!(matches!(released, Receipt::Ingested(of) if matches!(of[0], IngestOutcome::Merged(_))));
    let snapshot = careful.store().snapshot().unwrap();
    assert!(snapshot.holds(record.digest()).unwrap());
    assert_eq!(snapshot.quarantine().unwrap().count(), 0);
    assert!(careful.step(&[Command::Release(record.digest())], START).remove(0).is_err());
}

struct EntryRecordsOf(Record);

fn only_record(node: &Node, entry: klnode_crdt::ids::EntryId) -> EntryRecordsOf {
    let snapshot = node.engine.store().snapshot().unwrap();
    let holding = snapshot.holding(entry, node.author()).unwrap();
    EntryRecordsOf(holding.records().next().expect("one record").clone())
}

#[test]
fn local_facts_are_kept_in_order_and_survive_a_restart() {
    let mut node = Node::start(1, 1);
    let entry = node.create("facts");
    let held = ["one", "two", "three"].map(|title| {
        let entry = node.create(title);
        only_record(&node, entry).0.digest()
    });
    let peer = key(2).author();
    let served = |query: &str| ServedRow {
        caller: "agent".into(),
        task: Some("t1".into()),
        query: query.into(),
        entries: vec![entry],
        ..ServedRow::default()
    };
    let digest = |byte: u8| Digest::from_bytes([byte; 32]);
    let cursor = FeedCursor { store: StoreId::default(), epoch: 7, position: Seq(9) };
    let overlay = MarksRow { is_pinned: true, ..MarksRow::default() };
    let refusal = |counter: u64, reason: &str| RefusalRow {
        header: vec![1, 2],
        signature: Signature::from_bytes([0; 64]),
        counter,
        digest: digest(1),
        reason: reason.into(),
        is_unknown: false,
    };
    let offer = Offerer { peer, store: StoreId::from_bytes([8; 16]) };
    let note = |act| Command::Peers(vec![act]);
    let refuse = |row| note(PeerCommand::Refuse(offer, [1; 16], Box::new(row)));
    for command in [
        Command::Served(served("first")),
        Command::Served(served("second")),
        note(PeerCommand::Advance(peer, cursor)),
        note(PeerCommand::Release(peer, entry, true)),
        note(PeerCommand::Requeue(peer, vec![held[0], held[1], held[0]])),
        // A record that is not held cannot be requeued.
        note(PeerCommand::Requeue(peer, vec![digest(3), held[2]])),
        Command::Mark { entry, marks: MarkChange { pinned: Some(true), ..MarkChange::default() } },
        refuse(refusal(5, "filter")),
        refuse(refusal(3, "older")),
    ] {
        node.run(command).expect("noted");
    }
    // Marks that a change does not name stay.
    let mute = MarkChange { muted: Some(true), note: Some("n".into()), ..MarkChange::default() };
    node.run(Command::Mark { entry, marks: mute }).expect("noted");
    let (mute, note) = (Some(false), Some(String::new()));
    node.run(Command::Mark {
        entry,
        marks: MarkChange { muted: mute, note, ..MarkChange::default() },
    })
    .expect("noted");
    let node = node.restart(2);
    let snapshot = node.engine.store().snapshot().unwrap();
    let queries: Vec<String> =
        snapshot.serving_log().unwrap().map(|row| row.unwrap().1.query).collect();
    assert_eq!(queries, ["second", "first"]);
    assert_eq!(snapshot.cursor(peer).unwrap(), Some(cursor));
    assert_eq!(snapshot.releases(peer).unwrap().count(), 1);
    assert_eq!(snapshot.releases(AuthorId::default()).unwrap().count(), 0);
    let outbox: Vec<_> = snapshot.outbox(peer, 2).unwrap().map(Result::unwrap).collect();
    let queued = [(4, held[1]), (5, held[0]), (6, held[2])];
    let queued = queued.map(|(at, digest)| (at, OutboxTarget::Record(digest)));
    assert_eq!(outbox, queued, "a requeued record is last");
    assert_eq!(snapshot.overlay(entry).unwrap(), overlay);
    let refused: Vec<_> = snapshot.refusals(offer).unwrap().map(Result::unwrap).collect();
    assert_eq!(refused, [refusal(5, "filter")]);
    // Another peer with the same store id has no refusals.
    let another = Offerer { peer: AuthorId::default(), ..offer };
    assert_eq!(snapshot.refusals(another).unwrap().count(), 0);
}

#[test]
fn a_snapshot_is_stable_during_writes_and_the_feed_lists_live_records() {
    let mut node = Node::start(1, 1);
    let entry = node.create("moving");
    let before = node.engine.store().snapshot().unwrap();
    for _ in 0..10 {
        node.succeed(entry);
    }
    assert_eq!(before.head(), Seq(1));
    assert_eq!(before.changes_since(Seq(0)).unwrap().count(), 1);
    let after = node.engine.store().snapshot().unwrap();
    assert_eq!(after.head(), Seq(11));
    let changes: Vec<_> = after.changes_since(Seq(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(changes.len(), 2, "one row per live record, not per write");
    assert_eq!(changes[1].seq, Seq(11));
    for change in changes {
        let found = after.record(change.record.digest()).unwrap();
        assert_eq!(found, Some(change.record));
    }
    let mut peer = Node::start(2, 2);
    exchange(&mut node, &mut peer);
    assert_eq!(peer.successes(entry), 10);
}

#[test]
fn a_store_rewrite_frees_space_and_does_not_wait_for_readers() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    let mut engine = Engine::start(open(&path).unwrap(), setup(1, 1), START).unwrap();
    let create = |number: u32| {
        let mut new = klnode_tests::test_engine::lesson(&format!("entry {number}"));
        new.content = "x".repeat(20_000);
        Command::Create(Box::new(new))
    };
    let made = engine.step(&(0..200).map(create).collect::<Vec<_>>(), START);
    let forget = made.into_iter().map(|receipt| match receipt {
        Ok(Receipt::Created(entry)) => Command::Forget { entry },
        other => panic!("{other:?}"),
    });
    for answer in engine.step(&forget.collect::<Vec<_>>(), START) {
        answer.expect("forgotten");
    }
    let before = std::fs::metadata(&path).unwrap().len();
    let reader = engine.store().snapshot().unwrap();
    engine.step(&[Command::Rewrite], START).remove(0).expect("written anew");
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after * 3 < before, "{before} bytes before, {after} after");
    assert_eq!(reader.entry_count().unwrap(), 200, "the reader continues");
    let engine_now = engine.store().snapshot().unwrap();
    assert_eq!(engine_now.forgotten_count().unwrap(), 200);
    assert!(reader.has_erased().unwrap() && !engine_now.has_erased().unwrap());
    engine.step(&[create(200)], START).remove(0).expect("it goes on");
}

/// Entries of a store and its exchange with a peer, line by line; and the outbox for the peer.
fn inside(store: &Store, offer: Offerer) -> (Vec<String>, Vec<String>) {
    let (snapshot, peer) = (store.snapshot().unwrap(), offer.peer);
    let mut lines = vec![format!("{:?} {:?}", snapshot.head(), snapshot.cursor(peer).unwrap())];
    lines.extend(snapshot.epochs().unwrap().map(|epoch| format!("{:?}", epoch.unwrap())));
    for change in snapshot.changes_since(Seq(0)).unwrap().map(Result::unwrap) {
        lines.push(format!("{:?} {:?}", change.seq, change.record.to_raw()));
    }
    for (entry, row) in snapshot.entries().unwrap().map(Result::unwrap) {
        let (overlay, release) = (snapshot.overlay(entry), snapshot.release(peer, entry));
        lines.push(format!("{entry} {row:?} {overlay:?} {release:?}"));
    }
    lines.extend(snapshot.refusals(offer).unwrap().map(|row| format!("{:?}", row.unwrap())));
    let mut out = vec![snapshot.outbox_head(peer).unwrap().to_string()];
    out.extend(snapshot.outbox(peer, 0).unwrap().map(|row| format!("{:?}", row.unwrap())));
    (lines, out)
}

#[test]
fn a_store_of_any_schema_keeps_its_feed_and_content() {
    let offer = Offerer { peer: key(2).author(), store: StoreId::default() };
    for seed in 11..14 {
        let node = homes::lived(seed);
        let (before, id) = (inside(node.engine.store(), offer), node.engine.store().id());
        assert_ne!(node.engine.head(), Seq(0));
        let disk = node.medium.disk();
        drop(node);
        for schema in 1..=5 {
            let copy = disk.fork();
            downgrade(&copy, schema);
            let medium = DiskMedium::new(copy.fork());
            let store = Store::open(Box::new(medium), &Options::new(id)).expect("migrated");
            let (held, out) = inside(&store, offer);
            assert_eq!(held, before.0, "schema {schema}, seed {seed}");
            // Outboxes exist since the third schema.
            if schema >= 3 {
                assert_eq!(out, before.1, "schema {schema}, seed {seed}");
            }
            assert!(store.snapshot().unwrap().check().unwrap().is_empty());
        }
    }
}

#[test]
fn a_rewritten_store_keeps_its_feed_and_peer_cursors() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    let mut engine = Engine::start(open(&path).unwrap(), setup(1, 1), START).unwrap();
    let created = ["kept", "doomed"].map(|title| Command::Create(Box::new(lesson(title))));
    let created = engine.step(&created, START).into_iter().map(|receipt| match receipt {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("{other:?}"),
    });
    let created: Vec<_> = created.collect();
    let offer = Offerer { peer: key(2).author(), store: StoreId::from_bytes([8; 16]) };
    let refusal = RefusalRow {
        header: vec![1, 2],
        signature: Signature::from_bytes([0; 64]),
        counter: 5,
        digest: Digest::from_bytes([1; 32]),
        reason: "filter".into(),
        is_unknown: false,
    };
    let cursor = FeedCursor { store: offer.store, epoch: 7, position: Seq(9) };
    let acts = vec![
        PeerCommand::Advance(offer.peer, cursor),
        PeerCommand::Release(offer.peer, created[0], true),
        PeerCommand::Release(offer.peer, created[1], true),
        PeerCommand::Refuse(offer, [1; 16], Box::new(refusal)),
    ];
    for command in [Command::Peers(acts), Command::Forget { entry: created[1] }] {
        engine.step(&[command], START).remove(0).expect("done");
    }
    let before = inside(engine.store(), offer);
    let is_there = before.0[0].contains("Seq(9)") && before.0.last().unwrap().contains("filter");
    assert!(is_there, "{before:?}");
    engine.step(&[Command::Rewrite], START).remove(0).expect("written anew");
    assert_eq!(inside(engine.store(), offer), before);
    drop(engine);
    assert_eq!(inside(&open(&path).unwrap(), offer), before);
}

#[test]
fn a_store_of_schema_1_opens_and_records_callers() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    drop(open(&path).expect("made"));
    {
        // The state that the first version left: without the table, and with its number.
        let database = redb::Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        let callers: redb::TableDefinition<'_, &[u8; 8], &[u8]> =
            redb::TableDefinition::new("callers");
        assert!(write.delete_table(callers).unwrap());
        let meta: redb::TableDefinition<'_, &[u8; 8], &[u8]> = redb::TableDefinition::new("meta");
        let number: &[u8] = &1_u32.to_be_bytes();
        write.open_table(meta).unwrap().insert(b"schema\0\0", number).unwrap();
        write.commit().unwrap();
    }
    let store = open(&path).expect("migrated");
    assert_eq!(store.snapshot().unwrap().caller(Seq(1)).unwrap(), None);
}

#[test]
fn a_store_of_schema_3_opens_and_stores_tasks() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    drop(open(&path).expect("made"));
    {
        let database = redb::Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        let tasks: redb::TableDefinition<'_, &[u8; 16], &[u8]> =
            redb::TableDefinition::new("tasks");
        let parts: redb::TableDefinition<'_, &[u8; 32], &[u8]> =
            redb::TableDefinition::new("parts");
        assert!(write.delete_table(tasks).unwrap() && write.delete_table(parts).unwrap());
        let meta: redb::TableDefinition<'_, &[u8; 8], &[u8]> = redb::TableDefinition::new("meta");
        let number: &[u8] = &3_u32.to_be_bytes();
        write.open_table(meta).unwrap().insert(b"schema\0\0", number).unwrap();
        write.commit().unwrap();
    }
    let store = open(&path).expect("migrated");
    assert_eq!(store.snapshot().unwrap().tasks().unwrap().count(), 0);
}

#[test]
fn a_store_of_schema_4_opens_and_stores_findings() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    drop(open(&path).expect("made"));
    {
        let database = redb::Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        let findings: redb::TableDefinition<'_, &[u8; 20], &[u8]> =
            redb::TableDefinition::new("findings");
        let unsettled: redb::TableDefinition<'_, &[u8; 20], &[u8; 8]> =
            redb::TableDefinition::new("unsettled");
        assert!(write.delete_table(findings).unwrap() && write.delete_table(unsettled).unwrap());
        let meta: redb::TableDefinition<'_, &[u8; 8], &[u8]> = redb::TableDefinition::new("meta");
        let number: &[u8] = &4_u32.to_be_bytes();
        write.open_table(meta).unwrap().insert(b"schema\0\0", number).unwrap();
        write.commit().unwrap();
    }
    let store = open(&path).expect("migrated");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(
        (snapshot.findings().unwrap().count(), snapshot.pending_findings().unwrap().count()),
        (0, 0)
    );
}

#[test]
fn a_store_of_schema_5_opens_and_due_receipts_are_found_without_a_scan() {
    use redb::TableDefinition;
    const META: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("meta");
    const RECEIPTS: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("receipts");
    const OWED: TableDefinition<'_, &[u8; 48], u8> = TableDefinition::new("owed");
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let [told, due] = ["told", "due"].map(|title| peer.create(title));
    for entry in [told, due] {
        peer.run(Command::Forget { entry }).unwrap();
    }
    peer.send_to(&mut node);
    let from = peer.author();
    let heard = Heard { entry: told, told: 0, acknowledged: 0 };
    node.run(Command::Peers(vec![PeerCommand::Told(from, vec![heard])])).unwrap();
    let due_now = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.receipts_due(from, 10).unwrap()
    };
    assert_eq!(due_now(&node), [due]);
    let disk = node.medium.disk();
    drop(node);
    let copy = disk.fork();
    {
        let database = redb::Database::builder().create_with_backend(copy.clone()).unwrap();
        let write = database.begin_write().unwrap();
        assert!(write.delete_table(OWED).unwrap());
        // A pass over all sent receipts would fail on this row.
        let at: [u8; 48] = [&from.as_bytes()[..], told.as_bytes()].concat().try_into().unwrap();
        write.open_table(RECEIPTS).unwrap().insert(&at, &b"unreadable"[..]).unwrap();
        let number: &[u8] = &5_u32.to_be_bytes();
        write.open_table(META).unwrap().insert(b"schema\0\0", number).unwrap();
        write.commit().unwrap();
    }
    let mut node = Node::start_on(copy.fork(), 1, 3, START).expect("migrated");
    assert_eq!(due_now(&node), [due]);
    let heard = Heard { entry: due, told: 0, acknowledged: 0 };
    node.run(Command::Peers(vec![PeerCommand::Told(from, vec![heard])])).unwrap();
    assert_eq!(due_now(&node), []);
}

#[test]
fn the_caller_of_a_record_is_removed_with_it() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let caller = |pid| CallerRow { uid: Some(1_000), pid: Some(pid), ..CallerRow::default() };
    let by = |pid, command| Command::As { caller: caller(pid), command: Box::new(command) };
    let created = node.run(by(1, Command::Create(Box::new(lesson("asked for"))))).unwrap();
    let Receipt::Created(entry) = created else { panic!("{created:?}") };
    let callers = |node: &Node| -> Vec<(u64, Option<CallerRow>)> {
        let snapshot = node.engine.store().snapshot().unwrap();
        (0..10)
            .map(|seq| (seq, snapshot.caller(Seq(seq)).unwrap()))
            .filter(|c| c.1.is_some())
            .collect()
    };
    assert_eq!(callers(&node), [(1, Some(caller(1)))]);
    let claims = vec![ClaimEdit::Set(Register::TITLE, "edited".into())];
    node.run(by(2, Command::Claim { entry, claims })).unwrap();
    assert_eq!(
        callers(&node),
        [(2, Some(caller(2)))],
        "the superseded record's caller was removed"
    );
    node.send_to(&mut peer);
    assert_eq!(callers(&peer), [], "callers are not replicated");
    peer.succeed(entry);
    peer.send_to(&mut node);
    assert_eq!(callers(&node).len(), 1, "a record from a peer has no local caller");
    node.run(by(3, Command::Forget { entry })).unwrap();
    assert_eq!(callers(&node), [(4, Some(caller(3)))]);
}
