//! One damaged item at a time: the key, the charter of a workspace, the row of a record. Each
//! damage is noticed, no damaged data leaves the node, and a peer restores the rows it holds.

use crate::support::event_stream::Followed;
use crate::support::node_process::{self, refusal, run, start, told};
use crate::support::row_damage::{RECORDS, damage, spoil, stopped, strike, strike_file};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, Finish, NewTask, Receipt, TaskCommand, TaskReceipt};
use klnode_federation::proto::message::{OutboxItem, SyncResponse};
use klnode_federation::sim::Knobs;
use klnode_query::{Audience, BriefingQuestion, Cancel};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_store::row_types::ServedRow;
use klnode_tests::cluster::Cluster;
use klnode_tests::test_engine::{Node, START, in_workspace, lesson, success};
use klnode_tests::test_server::{PATIENCE, ask};
use klnode_tests::workspace_fixture::Indexed;
use redb::Database;
use serde_json::{Value, json};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Time for a comparison and its consequences.
const REST_MS: u64 = 90_000;

// Damaged keys.

fn flipped(key: &[u8; 32], bit: usize) -> [u8; 32] {
    let mut other = *key;
    other[bit / 8] ^= 1 << (bit % 8);
    other
}

#[test]
fn a_store_names_its_author_and_every_flipped_key_bit_is_detected() {
    let key = [1; 32];
    let node = Node::start(1, 1);
    let author = || node.engine.store().snapshot().unwrap().author().unwrap();
    assert_eq!(author(), Some(node.author()));
    for bit in 0..256 {
        let other = SecretKey::from_bytes(&flipped(&key, bit)).author();
        assert_ne!(Some(other), author(), "bit {bit}");
    }
    let clone = node.clone_home(2);
    assert_eq!(clone.engine.store().snapshot().unwrap().author().unwrap(), Some(node.author()));
}

fn key_in(home: &Path) -> [u8; 32] {
    fs::read(home.join("node.key")).unwrap().try_into().unwrap()
}

/// A home of a stopped node with an entry and a backup.
fn lived_in(home: &Path, backup: &Path) {
    let (node, _) = start(home);
    let words = ["add", "--title", "kept", "--content", "A kept text.", "--evidence", "doc:a"];
    assert!(run(home, &words).status.success());
    assert!(run(home, &["backup", "create", backup.to_str().unwrap()]).status.success());
    node.stop();
}

fn author_of(key: &[u8; 32]) -> AuthorId {
    SecretKey::from_bytes(key).author()
}

#[test]
fn a_node_does_not_start_with_a_damaged_key_or_another_homes() {
    let folder = tempfile::tempdir().unwrap();
    let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
    lived_in(&home, &backup);
    let key = key_in(&home);
    let is_all = std::env::var("KLNODE_DAMAGE").is_ok_and(|text| text == "all");
    let bits = (0..256).step_by(if is_all { 1 } else { 51 });
    let wrong = bits.map(|bit| flipped(&key, bit)).chain([[7; 32]]);
    for other in wrong {
        fs::write(home.join("node.key"), other).unwrap();
        let said = refusal(&home);
        for part in [author_of(&key), author_of(&other)] {
            assert!(said.contains(&part.to_string()), "{part} is not named: {said}");
        }
        assert!(said.contains("node.key") && said.contains("\n  hint: "), "{said}");
        assert_eq!(key_in(&home), other, "it is left as it is");
    }
    let doctor = run(&home, &["check", "home", "store"]);
    assert_eq!(doctor.status.code(), Some(1));
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert!(text.contains("but the store belongs to author"), "{text}");
    fs::remove_file(home.join("node.key")).unwrap();
    let said = refusal(&home);
    assert!(said.contains("Cannot start without the key"), "{said}");
    assert!(!home.join("node.key").exists(), "no other key is drawn");
    fs::write(home.join("node.key"), key).unwrap();
    let (_node, banner) = start(&home);
    assert!(banner[1].contains(&author_of(&key).to_string()[..8]), "{banner:?}");
}

#[test]
fn a_backup_restores_its_key_and_the_operator_may_adopt_another() {
    let folder = tempfile::tempdir().unwrap();
    let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
    lived_in(&home, &backup);
    let key = key_in(&home);
    fs::write(home.join("node.key"), flipped(&key, 100)).unwrap();
    let refused = run(&home, &["backup", "restore", backup.to_str().unwrap(), "--yes"]);
    assert!(told(&refused).contains("if node.key is damaged, move it away"), "{refused:?}");
    fs::remove_file(home.join("node.key")).unwrap();
    let restored = run(&home, &["backup", "restore", backup.to_str().unwrap(), "--yes"]);
    assert!(restored.status.success(), "{}", told(&restored));
    assert_eq!(key_in(&home), key);
    drop(start(&home));
    // Restored as another author's backup, the store belongs to this home.
    let other = folder.path().join("other");
    drop(start(&other));
    let taken =
        run(&other, &["backup", "restore", backup.to_str().unwrap(), "--as-this-node", "--yes"]);
    assert!(taken.status.success(), "{}", told(&taken));
    drop(start(&other));
    // The key is lost for good, which the operator has to confirm.
    fs::remove_file(home.join("node.key")).unwrap();
    let unsaid = run(&home, &["identity", "adopt"]);
    assert_eq!(unsaid.status.code(), Some(1), "{}", told(&unsaid));
    assert!(told(&unsaid).contains("continue as a new author"), "{}", told(&unsaid));
    refusal(&home);
    let adopted = run(&home, &["identity", "adopt", "--yes", "--json"]);
    assert!(adopted.status.success(), "{}", told(&adopted));
    let adopted: serde_json::Value = serde_json::from_slice(&adopted.stdout).unwrap();
    assert_eq!(adopted["before"], author_of(&key).to_string());
    assert_eq!(adopted["author"], author_of(&key_in(&home)).to_string());
    let (_node, _) = start(&home);
    let running = run(&home, &["identity", "adopt", "--yes"]);
    assert_eq!(running.status.code(), Some(1));
    let expected = format!(
        "error: A node is running on the home {}.\n  hint: Run `klnode stop` first.\n",
        home.display()
    );
    assert_eq!(told(&running), expected);
    let listed = node_process::json(&home, &["list", "--all"]);
    assert_eq!(listed["entries"][0]["title"], "kept");
}

// Damaged rows of records.

fn record(nodes: &mut Cluster, at: usize, entry: EntryId) -> Record {
    nodes.snapshot(at).entry_records(entry).expect("readable").remove(0)
}

/// Every record that a node has sent since, by page or on request.
fn sent_by(nodes: &Cluster, at: usize, since: usize) -> Vec<RawRecord> {
    let of = |frame: &[u8]| match SyncResponse::decode(frame) {
        Ok(SyncResponse::Records(records)) => records,
        Ok(SyncResponse::Page(items, ..)) => items
            .into_iter()
            .filter_map(|item| match item {
                OutboxItem::Whole(_, raw) | OutboxItem::First(_, raw) => Some(raw),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let sent = nodes.sent[since..].iter().filter(|sent| sent.from == at);
    sent.flat_map(|sent| of(&sent.frame)).collect()
}

fn settle(nodes: &mut Cluster) {
    nodes.pass(REST_MS);
    nodes.sync(1, 0);
    nodes.pass(5_000);
}

#[test]
fn a_damaged_row_is_never_sent_and_is_restored_by_a_peer() {
    let mut nodes = Cluster::new(1, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let theirs = nodes.create(0, lesson("written there"));
    let own = nodes.create(1, lesson("written here"));
    settle(&mut nodes);
    let (mut byte, mut noticed) = (0, 0);
    loop {
        let entry = if byte % 2 == 0 { theirs } else { own };
        let whole = record(&mut nodes, 1, entry);
        let digest: Digest = whole.digest();
        let since = nodes.sent.len();
        let length = strike(&mut nodes, 1, &whole, byte);
        match nodes.snapshot(1).record_to_send(digest) {
            Ok(read) => assert_eq!(read.as_ref(), Some(&whole), "byte {byte}"),
            Err(_) => {
                noticed += 1;
                assert!(!nodes.snapshot(1).holds(digest).unwrap(), "byte {byte}");
            }
        }
        settle(&mut nodes);
        assert_eq!(nodes.digests(1, entry), nodes.digests(0, entry), "byte {byte}");
        assert!(nodes.snapshot(1).check().unwrap().is_empty(), "byte {byte}");
        assert!(nodes.is_equal(1, 0) && nodes.is_equal(0, 1), "byte {byte}");
        for raw in sent_by(&nodes, 1, since) {
            assert!(Record::verify(&raw).is_ok(), "byte {byte}: it sent what is damaged");
        }
        byte += 17;
        if byte >= length {
            break;
        }
    }
    assert!(noticed > 10, "{noticed}");
}

#[test]
fn a_damaged_row_that_was_superseded_is_removed() {
    let mut nodes = Cluster::new(3, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let entry = nodes.create(0, lesson("before"));
    settle(&mut nodes);
    let whole = record(&mut nodes, 1, entry);
    nodes.crash(1);
    let disk = nodes.disk(1);
    damage(&disk, &whole, 40);
    // The author replaces the claim, and no longer holds the damaged version.
    let claims = vec![ClaimEdit::Set(Register::TITLE, "after".into())];
    nodes.run(0, Command::Claim { entry, claims }).unwrap();
    nodes.restart_on(1, disk);
    assert!(nodes.snapshot(1).entry(entry).is_err(), "it is damaged");
    settle(&mut nodes);
    assert_eq!(nodes.digests(1, entry), nodes.digests(0, entry));
    assert!(nodes.snapshot(1).check().unwrap().is_empty());
    assert!(nodes.is_equal(1, 0) && nodes.is_equal(0, 1));
}

#[test]
fn a_task_ends_despite_damaged_served_entries() {
    let mut node = Node::start(1, 1);
    let about = |node: &mut Node, act: TaskCommand| match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Task(done)) => done,
        other => panic!("nothing was done about the task: {other:?}"),
    };
    let [struck, whole] = ["struck", "whole"].map(|title| node.create(title));
    let begin = NewTask { agent: "builder".into(), goal: "mend".into(), ..NewTask::default() };
    let TaskReceipt::Began(task) = about(&mut node, TaskCommand::Begin(begin)) else {
        panic!("no task")
    };
    let served = ServedRow {
        caller: "builder".into(),
        query: "what".into(),
        entries: vec![struck, whole],
        task: Some(task.to_string()),
        ..ServedRow::default()
    };
    node.run(Command::Served(served)).unwrap();
    // The next write makes the serving log durable.
    node.create("another");
    let snapshot = node.engine.store().snapshot().unwrap();
    let record = snapshot.entry_records(struck).unwrap().remove(0);
    drop(snapshot);
    let disk = stopped(node);
    damage(&disk, &record, 40);
    let mut node = Node::start_on(disk, 1, 2, START).unwrap();
    let outcome = TaskOutcome { verdict: TaskVerdict::Success, quality: 1.0 };
    let finish = Finish::new(outcome, vec![struck, whole]);
    let TaskReceipt::Finished(finished) = about(&mut node, TaskCommand::Finish(task, finish))
    else {
        panic!("it did not end")
    };
    let credited: Vec<EntryId> = finished.credits.iter().map(|credit| credit.entry).collect();
    assert_eq!(credited, [whole]);
}

#[test]
fn a_damaged_duplicate_does_not_affect_the_others() {
    let mut node = Node::start(1, 1);
    let title = "Bound the retry queue of the billing gateway";
    let [whole, struck, unused] = [title; 3].map(|title| node.create(title));
    for to in [struck, unused] {
        node.claim(whole, ClaimEdit::Link(Link { relation: Relation::SAME_AS, to }));
    }
    let snapshot = node.engine.store().snapshot().unwrap();
    let record = snapshot.entry_records(struck).unwrap().remove(0);
    drop(snapshot);
    let disk = stopped(node);
    damage(&disk, &record, 40);
    spoil(&disk, "uses", unused.as_bytes());
    let node = Node::start_on(disk, 1, 2, START).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.group(whole).unwrap().len(), 3);
    assert!(snapshot.entry(struck).is_err() && snapshot.uses(unused).is_err(), "both are damaged");
    let reader = node.reader();
    let reading = reader.at(&snapshot, node.now).unwrap();
    for found in [reading.read_whole(whole), reading.read_shown(whole)] {
        let found = found.unwrap().unwrap();
        assert_eq!((found.entry, &found.merged[..]), (whole, &[unused][..]));
    }
    let answer = Indexed::start(&node).ask(&node, title, Audience::All);
    let hits: Vec<EntryId> = answer.hits.iter().map(|hit| hit.found.entry).collect();
    assert_eq!(hits, [whole]);
}

#[test]
fn a_briefing_lists_intact_entries_despite_a_damaged_row() {
    let mut node = Node::start(1, 1);
    let [struck, whole] = ["struck", "whole"].map(|title| node.create(title));
    for entry in [struck, whole].repeat(4) {
        node.succeed(entry);
    }
    let disk = stopped(node);
    spoil(&disk, "views", struck.as_bytes());
    spoil(&disk, "tasks", &[0xFF; 16]);
    let node = Node::start_on(disk, 1, 2, START).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    assert!(snapshot.view_row(struck).is_err(), "it is damaged");
    let (workspace, cancel) = (WorkspaceId::MAIN, Cancel::default());
    let question = BriefingQuestion {
        workspace,
        thread: None,
        task_thread: None,
        tokens_max: None,
        checkout: None,
    };
    let briefing = node.reader().briefing(&snapshot, &question, node.now, &cancel).unwrap();
    let told = briefing.sections.iter().flat_map(|section| &section.entries);
    let told: Vec<EntryId> = told.map(|one| one.found.entry).collect();
    assert_eq!(told, [whole], "{}", briefing.text);
}

#[test]
fn one_damaged_record_affects_one_entry_and_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
    let (node, _) = start(&home);
    let mut ids = Vec::new();
    for title in ["struck", "whole", "also whole"] {
        let content = format!("All there is to say of the {title} lamp.");
        let words = ["add", "--title", title, "--content", &content, "--evidence", "doc:a"];
        ids.push(node_process::json(&home, &words)["id"].as_str().unwrap().to_owned());
    }
    let file = backup.to_str().unwrap();
    assert!(run(&home, &["backup", "create", file]).status.success());
    let good = fs::read(&backup).unwrap();
    // The entry is indexed by then.
    assert!(run(&home, &["search", "struck lamp", "--all"]).status.success());
    node.stop();
    strike_file(&home, b"of the struck lamp");
    let (_node, _) = start(&home);
    let listed = node_process::json(&home, &["list"]);
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2), "{listed}");
    let found = run(&home, &["search", "lamp", "--all"]);
    assert!(found.status.success(), "{}", told(&found));
    assert!(run(&home, &["briefing"]).status.success());
    let exported = run(&home, &["export"]);
    assert_eq!(exported.status.code(), Some(1));
    let text = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(text.contains("also whole") && !text.contains("struck"), "{text}");
    assert!(text.contains(&format!(r#"{{"id":"{}""#, ids[0])), "{text}");
    assert!(
        told(&exported).contains("1 entry is damaged and missing in the export"),
        "{}",
        told(&exported)
    );
    let refused = run(&home, &["backup", "create", file, "--force"]);
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    assert_eq!(fs::read(&backup).unwrap(), good, "the good one stays");
    let forgotten = run(&home, &["forget", &ids[0], "--now"]);
    assert!(!forgotten.status.success(), "the owner is unknown");
}

#[test]
fn an_entry_with_a_damaged_tally_can_be_forgotten() {
    let mut node = Node::start(1, 1);
    let entry = node.create("a secret");
    node.succeed(entry);
    let records = node.engine.store().snapshot().unwrap().entry_records(entry).unwrap();
    let is_tally = |record: &&Record| record.header().facet == Facet::Tally;
    let tally = records.iter().find(is_tally).expect("it was counted");
    let disk = stopped(node);
    damage(&disk, tally, 40);
    let mut node = Node::start_on(disk, 1, 2, START).unwrap();
    assert!(node.run(success(entry)).is_err(), "a damaged tally refuses observations");
    node.run(Command::Forget { entry }).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    assert!(snapshot.tombstone(entry).unwrap().is_some());
    assert!(snapshot.check().unwrap().is_empty(), "and nothing damaged is left");
}

#[test]
fn a_damaged_tombstone_does_not_block_records_of_a_peer() {
    let mut nodes = Cluster::new(2, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let entry = nodes.create(1, lesson("forgotten there"));
    settle(&mut nodes);
    nodes.part(1);
    nodes.run(1, Command::Forget { entry }).unwrap();
    let tombstone = record(&mut nodes, 1, entry);
    // A byte of the header, past the start of the row.
    strike(&mut nodes, 1, &tombstone, 40);
    assert!(nodes.snapshot(1).tombstone(entry).is_err(), "it is damaged");
    nodes.run(0, success(entry)).unwrap();
    let another = nodes.create(0, lesson("comes after it"));
    nodes.heal();
    settle(&mut nodes);
    assert_eq!(nodes.digests(1, another), nodes.digests(0, another));
}

// Damaged charters.

/// Whether the check of the home names a workspace.
fn is_named(nodes: &mut Cluster, at: usize) -> bool {
    let (snapshot, own, now) = (nodes.snapshot(at), nodes.author(at), nodes.now(at));
    let mut watch = |_: u64, _: u64| ControlFlow::Continue(());
    let findings = klnode_doctor::store(&snapshot, Some(own), now, &mut watch).unwrap();
    let mut failed = findings
        .iter()
        .filter(|one| one.verdict == klnode_api_types::health_check::CheckSeverity::Fail);
    failed.any(|one| one.check == "workspace" && one.says.contains("`team`"))
}

#[test]
fn a_damaged_charter_is_reported_and_restored_by_a_peer() {
    // The owner's record, held by a member and by the owner itself.
    for struck in [1, 0] {
        let other = 1 - struck;
        let mut nodes = Cluster::new(5, 2, Knobs::calm());
        let team = nodes.found(&[0, 1]);
        nodes.pair(0, 1, false);
        let shared = nodes.create(struck, in_workspace(team, "shared before"));
        settle(&mut nodes);
        assert!(nodes.is_released(struck, other, shared));
        let entry = workspace_charter::entry(team);
        let whole = record(&mut nodes, struck, entry);
        // A byte in the signature or the payload: the row's own fields are at its ends.
        strike(&mut nodes, struck, &whole, 200);
        assert!(nodes.membership(struck).is_damaged(team), "it is reported as damaged");
        assert!(is_named(&mut nodes, struck), "the doctor names it");
        assert!(nodes.is_released(struck, other, shared), "existing releases stay");
        let fresh = nodes.create(other, in_workspace(team, "shared since"));
        let late = nodes.create(struck, in_workspace(team, "written meanwhile"));
        nodes.pass(30_000);
        assert!(!nodes.digests(struck, fresh).is_empty(), "replication continues");
        settle(&mut nodes);
        let membership = nodes.membership(struck);
        assert!(!membership.is_damaged(team), "it was restored");
        assert_eq!(membership.workspaces[&team].charter.members.len(), 2);
        assert!(!is_named(&mut nodes, struck));
        assert!(
            !nodes.digests(other, late).is_empty(),
            "and records that waited for it have passed"
        );
        assert!(nodes.is_equal(struck, other) && nodes.is_equal(other, struck));
        assert!(nodes.run(struck, Command::Retract { entry: late }).is_ok(), "it still works");
    }
}

// Events about damaged entries.

#[test]
fn event_subscribers_receive_all_intact_entries() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (node, _) = start(&home);
    let connect = || {
        let stream = UnixStream::connect(home.join("klnode.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let post = |path: &str, body: &Value| {
        let headers = [("Content-Type", "application/json")];
        let answer = ask(connect(), "POST", path, &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let create = |title: &str| {
        let new = json!({"title": title, "content": "A short lesson.", "evidence": ["run:1"]});
        post("/v1/entries", &new)["id"].clone()
    };
    let [one, two] = ["Bound the queue", "Bound the queue"].map(create);
    let third = create("Something else");
    let ran = post("/v1/maintenance/run", &json!({"service": "duplicates"}));
    assert_eq!(ran["noted"][0]["stage"], "made", "{ran}");
    node.stop();
    let database = Database::open(home.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let first = 1_u64.to_be_bytes();
    let mut records = transaction.open_table(RECORDS).unwrap();
    let is_live = records.insert(&first, &[1, 0x80][..]).unwrap().is_some();
    assert!(is_live, "an intact entry is reported");
    drop(records);
    transaction.commit().unwrap();
    drop(database);

    let (_node, _) = start(&home);
    let mut followed = Followed::on(connect(), "?since=0&noted_since=0");
    let mut told = Vec::new();
    let noted = loop {
        let (_, name, data) = followed.next().unwrap();
        if name == "maintenance" {
            break data;
        }
        assert!(data["code"].as_str().unwrap().starts_with("L-"), "{data}");
        told.push(data["entry"].clone());
    };
    assert_eq!(told, [third, two.clone()]);
    let [gone, whole] = [0, 1].map(|at| noted["entries"][at].clone());
    assert_eq!((&gone["id"], &whole["id"]), (&one, &two));
    // The type of a damaged entry is unknown.
    assert!(!gone["code"].as_str().unwrap().contains('-'), "{gone}");
    assert!(whole["code"].as_str().unwrap().starts_with("L-"), "{whole}");
    let later = create("Later");
    assert_eq!(followed.next().unwrap().2["entry"], later);
}
