//! One damaged thing at a time, where it matters most: the key, the charter of a workspace, the row of
//! a record. Each is noticed, nothing wrong leaves the node, and what a peer holds comes back.

use crate::followed::Followed;
use crate::program::{self, refusal, run, start, told};
use crate::strikes::{RECORDS, damage, spoil, stopped, strike, strike_file};
use klnode::engine::{Command, Finish, NewTask, Receipt, TaskAct, TaskDone};
use klnode::query::{Audience, BriefingQuestion, Cancel, doctor};
use klnode::store::rows::ServedRow;
use klnode_crdt::charter;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::lww::Register;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::writer::Claim;
use klnode_federation::proto::message::{Answer, Item};
use klnode_federation::sim::Knobs;
use klnode_scoring::outcome::{Outcome, Verdict};
use klnode_tests::cluster::Cluster;
use klnode_tests::node::{Node, START, in_workspace, lesson, success};
use klnode_tests::served::{PATIENCE, ask};
use klnode_tests::society::Indexed;
use redb::Database;
use serde_json::{Value, json};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Long enough for a comparison and what follows from it.
const REST_MS: u64 = 90_000;

// The key.

fn flipped(key: &[u8; 32], bit: usize) -> [u8; 32] {
    let mut other = *key;
    other[bit / 8] ^= 1 << (bit % 8);
    other
}

#[test]
fn a_store_knows_whose_it_is_and_every_flipped_bit_makes_another() {
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

/// A home in which a node has written an entry and made a backup, and then stopped.
fn lived_in(home: &Path, backup: &Path) {
    let (node, _) = start(home);
    let words = ["add", "--title", "kept", "--content", "What was kept.", "--evidence", "doc:a"];
    assert!(run(home, &words).status.success());
    assert!(run(home, &["backup", backup.to_str().unwrap()]).status.success());
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
    let doctor = run(&home, &["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert!(text.contains("the store is author"), "{text}");
    fs::remove_file(home.join("node.key")).unwrap();
    let said = refusal(&home);
    assert!(said.contains("cannot start without the key"), "{said}");
    assert!(!home.join("node.key").exists(), "no other key is drawn");
    fs::write(home.join("node.key"), key).unwrap();
    let (_node, banner) = start(&home);
    assert!(banner[1].contains(&author_of(&key).to_string()[..8]), "{banner:?}");
}

#[test]
fn a_backup_brings_its_key_and_an_operator_may_go_on_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
    lived_in(&home, &backup);
    let key = key_in(&home);
    fs::write(home.join("node.key"), flipped(&key, 100)).unwrap();
    let refused = run(&home, &["restore", backup.to_str().unwrap(), "--yes"]);
    assert!(told(&refused).contains("if node.key is damaged, move it away"), "{refused:?}");
    fs::remove_file(home.join("node.key")).unwrap();
    let restored = run(&home, &["restore", backup.to_str().unwrap(), "--yes"]);
    assert!(restored.status.success(), "{}", told(&restored));
    assert_eq!(key_in(&home), key);
    drop(start(&home));
    // Taken as another author's, the store is this home's own.
    let other = folder.path().join("other");
    drop(start(&other));
    let taken = run(&other, &["restore", backup.to_str().unwrap(), "--as-this-node", "--yes"]);
    assert!(taken.status.success(), "{}", told(&taken));
    drop(start(&other));
    // Nobody has the key any more: somebody has to say so.
    fs::remove_file(home.join("node.key")).unwrap();
    let unsaid = run(&home, &["identity", "adopt"]);
    assert_eq!(unsaid.status.code(), Some(1), "{}", told(&unsaid));
    assert!(told(&unsaid).contains("go on as a new author"), "{}", told(&unsaid));
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
        "klnode: cannot adopt a key in {}: a node is running on it\n  hint: stop it first\n",
        home.display()
    );
    assert_eq!(told(&running), expected);
    let listed = program::json(&home, &["list", "--all"]);
    assert_eq!(listed["entries"][0]["title"], "kept");
}

// Rows of records.

fn record(nodes: &mut Cluster, at: usize, entry: EntryId) -> Record {
    nodes.snapshot(at).entry_records(entry).expect("readable").remove(0)
}

/// Every record that a node has sent since, by page or on demand.
fn sent_by(nodes: &Cluster, at: usize, since: usize) -> Vec<RawRecord> {
    let of = |frame: &[u8]| match Answer::decode(frame) {
        Ok(Answer::Records(records)) => records,
        Ok(Answer::Page(items, ..)) => items
            .into_iter()
            .filter_map(|item| match item {
                Item::Whole(_, raw) | Item::First(_, raw) => Some(raw),
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
fn a_damaged_row_is_never_read_as_another_nor_sent_and_comes_back() {
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
fn what_is_damaged_and_covered_meanwhile_goes() {
    let mut nodes = Cluster::new(3, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let entry = nodes.create(0, lesson("before"));
    settle(&mut nodes);
    let whole = record(&mut nodes, 1, entry);
    nodes.crash(1);
    let disk = nodes.disk(1);
    damage(&disk, &whole, 40);
    // The author says something else, and has nothing left of what was damaged.
    let claims = vec![Claim::Set(Register::TITLE, "after".into())];
    nodes.run(0, Command::Claim { entry, claims }).unwrap();
    nodes.restart_on(1, disk);
    assert!(nodes.snapshot(1).entry(entry).is_err(), "it is damaged");
    settle(&mut nodes);
    assert_eq!(nodes.digests(1, entry), nodes.digests(0, entry));
    assert!(nodes.snapshot(1).check().unwrap().is_empty());
    assert!(nodes.is_equal(1, 0) && nodes.is_equal(0, 1));
}

#[test]
fn a_task_ends_whatever_is_damaged_of_what_was_served_in_it() {
    let mut node = Node::start(1, 1);
    let about = |node: &mut Node, act: TaskAct| match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Task(done)) => done,
        other => panic!("nothing was done about the task: {other:?}"),
    };
    let [struck, whole] = ["struck", "whole"].map(|title| node.create(title));
    let begin =
        NewTask { agent: "builder".into(), goal: "mend".into(), thread: None, parent: None };
    let TaskDone::Began(task) = about(&mut node, TaskAct::Begin(begin)) else { panic!("no task") };
    let served = ServedRow {
        caller: "builder".into(),
        query: "what".into(),
        entries: vec![struck, whole],
        task: Some(task.to_string()),
        ..ServedRow::default()
    };
    node.run(Command::Served(served)).unwrap();
    // What was served is made durable by what is written next.
    node.create("another");
    let snapshot = node.engine.store().snapshot().unwrap();
    let record = snapshot.entry_records(struck).unwrap().remove(0);
    drop(snapshot);
    let disk = stopped(node);
    damage(&disk, &record, 40);
    let mut node = Node::start_on(disk, 1, 2, START).unwrap();
    let outcome = Outcome { verdict: Verdict::Success, quality: 1.0 };
    let finish = Finish::new(outcome, vec![struck, whole]);
    let TaskDone::Finished(finished) = about(&mut node, TaskAct::Finish(task, finish)) else {
        panic!("it did not end")
    };
    let credited: Vec<EntryId> = finished.credits.iter().map(|credit| credit.entry).collect();
    assert_eq!(credited, [whole]);
}

#[test]
fn a_damaged_duplicate_takes_none_of_its_equals_along() {
    let mut node = Node::start(1, 1);
    let title = "Bound the retry queue of the billing gateway";
    let [whole, struck, unused] = [title; 3].map(|title| node.create(title));
    for to in [struck, unused] {
        node.claim(whole, Claim::Link(Link { relation: Relation::SAME_AS, to }));
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
fn a_briefing_tells_what_is_whole_whatever_row_is_damaged() {
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
fn one_damaged_record_costs_one_entry_and_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
    let (node, _) = start(&home);
    let mut ids = Vec::new();
    for title in ["struck", "whole", "also whole"] {
        let content = format!("What there is to say of the {title} lamp.");
        let words = ["add", "--title", title, "--content", &content, "--evidence", "doc:a"];
        ids.push(program::json(&home, &words)["id"].as_str().unwrap().to_owned());
    }
    let file = backup.to_str().unwrap();
    assert!(run(&home, &["backup", file]).status.success());
    let good = fs::read(&backup).unwrap();
    // It is in the index by then.
    assert!(run(&home, &["search", "struck lamp", "--all"]).status.success());
    node.stop();
    strike_file(&home, b"of the struck lamp");
    let (_node, _) = start(&home);
    let listed = program::json(&home, &["list"]);
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2), "{listed}");
    let found = run(&home, &["search", "lamp", "--all"]);
    assert!(found.status.success(), "{}", told(&found));
    assert!(run(&home, &["briefing"]).status.success());
    let exported = run(&home, &["export"]);
    assert_eq!(exported.status.code(), Some(1));
    let text = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(text.contains("also whole") && !text.contains("struck"), "{text}");
    assert!(text.contains(&format!(r#"{{"id":"{}""#, ids[0])), "{text}");
    assert!(told(&exported).contains("1 entry is damaged and not in it"), "{}", told(&exported));
    let refused = run(&home, &["backup", file, "--force"]);
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    assert_eq!(fs::read(&backup).unwrap(), good, "the good one stays");
    let forgotten = run(&home, &["forget", &ids[0], "--now"]);
    assert!(!forgotten.status.success(), "nothing whole tells whose it is");
}

#[test]
fn an_entry_is_forgotten_whatever_is_damaged_of_what_its_author_counted() {
    let mut node = Node::start(1, 1);
    let entry = node.create("a secret");
    node.succeed(entry);
    let records = node.engine.store().snapshot().unwrap().entry_records(entry).unwrap();
    let is_tally = |record: &&Record| record.header().facet == Facet::Tally;
    let tally = records.iter().find(is_tally).expect("it was counted");
    let disk = stopped(node);
    damage(&disk, tally, 40);
    let mut node = Node::start_on(disk, 1, 2, START).unwrap();
    assert!(node.run(success(entry)).is_err(), "nothing is counted beside what is damaged");
    node.run(Command::Forget { entry }).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    assert!(snapshot.tombstone(entry).unwrap().is_some());
    assert!(snapshot.check().unwrap().is_empty(), "and nothing damaged is left");
}

#[test]
fn a_damaged_tombstone_holds_up_nothing_that_a_peer_brings() {
    let mut nodes = Cluster::new(2, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let entry = nodes.create(1, lesson("forgotten there"));
    settle(&mut nodes);
    nodes.part(1);
    nodes.run(1, Command::Forget { entry }).unwrap();
    let tombstone = record(&mut nodes, 1, entry);
    // A byte of the header, past where the row begins.
    strike(&mut nodes, 1, &tombstone, 40);
    assert!(nodes.snapshot(1).tombstone(entry).is_err(), "it is damaged");
    nodes.run(0, success(entry)).unwrap();
    let another = nodes.create(0, lesson("comes after it"));
    nodes.heal();
    settle(&mut nodes);
    assert_eq!(nodes.digests(1, another), nodes.digests(0, another));
}

// The charter.

/// Whether the doctor names a workspace.
fn is_named(nodes: &mut Cluster, at: usize) -> bool {
    let (snapshot, own, now) = (nodes.snapshot(at), nodes.author(at), nodes.now(at));
    let mut watch = |_: u64, _: u64| ControlFlow::Continue(());
    let findings = doctor::store(&snapshot, Some(own), now, &mut watch).unwrap();
    let mut failed = findings.iter().filter(|one| one.verdict == doctor::Verdict::Fail);
    failed.any(|one| one.check == "workspace" && one.says.contains("`team`"))
}

#[test]
fn a_damaged_charter_is_told_stops_nobody_and_comes_back() {
    // Of the owner's record, held by a member and by the owner itself.
    for struck in [1, 0] {
        let other = 1 - struck;
        let mut nodes = Cluster::new(5, 2, Knobs::calm());
        let team = nodes.found(&[0, 1]);
        nodes.pair(0, 1, false);
        let shared = nodes.create(struck, in_workspace(team, "shared before"));
        settle(&mut nodes);
        assert!(nodes.is_released(struck, other, shared));
        let entry = charter::entry(team);
        let whole = record(&mut nodes, struck, entry);
        // Somewhere in the signature or the payload: what the row says of itself is at its ends.
        strike(&mut nodes, struck, &whole, 200);
        assert!(nodes.society(struck).is_damaged(team), "it is shown as damaged");
        assert!(is_named(&mut nodes, struck), "the doctor names it");
        assert!(nodes.is_released(struck, other, shared), "what was released stays so");
        let fresh = nodes.create(other, in_workspace(team, "shared since"));
        let late = nodes.create(struck, in_workspace(team, "written meanwhile"));
        nodes.pass(30_000);
        assert!(!nodes.digests(struck, fresh).is_empty(), "replication goes on");
        settle(&mut nodes);
        let society = nodes.society(struck);
        assert!(!society.is_damaged(team), "it has come back");
        assert_eq!(society.workspaces[&team].charter.members.len(), 2);
        assert!(!is_named(&mut nodes, struck));
        assert!(!nodes.digests(other, late).is_empty(), "and what waited for it has passed");
        assert!(nodes.is_equal(struck, other) && nodes.is_equal(other, struck));
        assert!(nodes.run(struck, Command::Retract { entry: late }).is_ok(), "it works on");
    }
}

// What is told of it.

#[test]
fn who_follows_events_is_told_of_all_that_is_whole() {
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
        let new = json!({"title": title, "content": "What we learned.", "evidence": ["run:1"]});
        post("/v1/entries", &new)["id"].clone()
    };
    let [one, two] = ["Bound the queue", "Bound the queue"].map(create);
    let third = create("Something else");
    let ran = post("/v1/upkeep/run", &json!({"service": "duplicates"}));
    assert_eq!(ran["noted"][0]["stage"], "made", "{ran}");
    node.stop();
    let database = Database::open(home.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let first = 1_u64.to_be_bytes();
    let mut records = transaction.open_table(RECORDS).unwrap();
    let is_live = records.insert(&first, &[1, 0x80][..]).unwrap().is_some();
    assert!(is_live, "it is told unless it is damaged");
    drop(records);
    transaction.commit().unwrap();
    drop(database);

    let (_node, _) = start(&home);
    let mut followed = Followed::on(connect(), "?since=0&noted_since=0");
    let mut told = Vec::new();
    let noted = loop {
        let (_, name, data) = followed.next().unwrap();
        if name == "upkeep" {
            break data;
        }
        assert!(data["code"].as_str().unwrap().starts_with("L-"), "{data}");
        told.push(data["entry"].clone());
    };
    assert_eq!(told, [third, two.clone()]);
    let [gone, whole] = [0, 1].map(|at| noted["entries"][at].clone());
    assert_eq!((&gone["id"], &whole["id"]), (&one, &two));
    // Of what is damaged nobody knows the type.
    assert!(!gone["code"].as_str().unwrap().contains('-'), "{gone}");
    assert!(whole["code"].as_str().unwrap().starts_with("L-"), "{whole}");
    let later = create("Later");
    assert_eq!(followed.next().unwrap().2["entry"], later);
}
