//! Display of entries with several authors (the newest claim among one person's machines, and every
//! version in an edit conflict), and of the evidence for a single entry.

use crate::attacks_on_answers::{ask_for_all, settled};
use crate::audit::contradict;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry::Entry;
use klnode_crdt::ids::{AuthorId, Boot, EntryId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_engine::{Command, Confirmation, DeliveredRecord, PeerCommand};
use klnode_query::HitCaveat;
use klnode_scoring::status::Status;
use klnode_server::Limits;
use klnode_store::peers::row_types::PeerRow;
use klnode_tests::test_engine::{Node, exchange};
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::paired;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn mine(name: &str) -> PeerRow {
    PeerRow { is_mine: true, ..paired(name) }
}

#[test]
fn an_entry_archived_on_one_machine_can_be_restored_on_another() {
    let (mut desk, mut laptop) = (Node::start(1, 1), Node::start(2, 2));
    desk.meet(laptop.author(), mine("laptop"));
    laptop.meet(desk.author(), mine("desk"));
    let entry = desk.create("put away at the desk");
    desk.claim(entry, ClaimEdit::Archive(Presence::Present));
    exchange(&mut desk, &mut laptop);
    let statuses = |desk: &Node, laptop: &Node| {
        [desk, laptop].map(|node| node.found(entry).assessment.standing.status)
    };
    assert_eq!(statuses(&desk, &laptop), [Status::Archived; 2]);
    // Its clock is slightly behind.
    laptop.now = laptop.now.minus(Duration::from_secs(60));
    laptop.claim(entry, ClaimEdit::Archive(Presence::Withdrawn));
    assert_eq!(statuses(&desk, &laptop), [Status::Archived, Status::Candidate]);
    exchange(&mut desk, &mut laptop);
    assert_eq!(statuses(&desk, &laptop), [Status::Candidate; 2]);
    desk.wait_days(1);
    laptop.wait_days(2);
    desk.claim(entry, ClaimEdit::Archive(Presence::Present));
    exchange(&mut desk, &mut laptop);
    assert_eq!(statuses(&desk, &laptop), [Status::Archived; 2], "and archives again");
}

/// Writes a claim by another machine of the same person that has not seen the claims here.
fn laptop_says(served: &Served, entry: &str, claim: ClaimEdit, at: WallTime) -> AuthorId {
    let (key, own) = (SecretKey::from_bytes(&[7; 32]), LiveRecords::default());
    let entry = EntryId::from_hex(entry).unwrap();
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    // After all claims of the same moment.
    let stamp = Hlc::new(at, 1_000);
    let record = writer.claim(&Entry::default(), None, &[claim], stamp).unwrap();
    let from = key.author();
    let laptop = PeerCommand::Put(from, Box::new(mine("laptop")));
    served.engine.submit_blocking(Command::Peers(vec![laptop])).unwrap();
    served.engine.submit_blocking(Command::Ingest(vec![DeliveredRecord { record, from }])).unwrap();
    from
}

#[test]
fn an_entry_lists_all_versions_of_a_conflicting_field() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Ours", "content": "Said here.", "evidence": ["doc:d"]});
    let entry = served.json("POST", "/v1/entries", &new).json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/entries/{entry}");
    let shown = || served.json("GET", &path, &json!(null)).json();
    assert_eq!(shown()["rivals"], json!(null));
    let at = 1_000;
    let theirs = ClaimEdit::Set(Register::TITLE, "Theirs".to_owned());
    let from = laptop_says(&served, &entry, theirs, WallTime::from_millis(at));
    let shown = shown();
    assert_eq!((&shown["title"], &shown["contested"]), (&json!("Ours"), &json!(["title"])));
    let rival = json!({
        "author": from.to_string(), "author_name": "laptop", "register": "title",
        "text": "Theirs", "at": at,
    });
    assert_eq!(shown["rivals"], json!([rival]));
}

#[test]
fn an_entry_shows_its_last_confirmation_and_its_idle_tasks() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let done = |method: &str, path: &str, body: &Value| {
        let answer = served.json(method, path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let add = |title: &str| {
        let new = json!({"title": title, "content": "Rare words.", "evidence": ["doc:d"]});
        text(&done("POST", "/v1/entries", &new)["id"])
    };
    let read = |entry: &str| done("GET", &format!("/v1/entries/{entry}"), &json!(null));
    let entry = add("About zqidle");
    let shown = || {
        let shown = read(&entry);
        ["confirmed_days_ago", "idle_tasks", "archive_after"].map(|name| shown[name].clone())
    };
    assert_eq!(shown(), [json!(null), json!(0), json!(10)]);
    let work = json!({"agent": "builder", "goal": "mend the build"});
    let begin = || text(&done("POST", "/v1/tasks", &work)["task"]);
    let fail_with = |query: &str, entry: &str| {
        let task = begin();
        let search = json!({"query": query, "task": task, "limit": 1, "all": true});
        assert_eq!(done("POST", "/v1/search", &search)["hits"][0]["id"], json!(entry));
        done("POST", &format!("/v1/tasks/{task}/finish"), &json!({"outcome": "failure"}));
    };
    for number in 1..=3 {
        fail_with("zqidle", &entry);
        assert_eq!(shown(), [json!(null), json!(number), json!(10)]);
    }
    assert_eq!(served.confirm_as_another(&entry, &begin()), Confirmation::Independent);
    assert_eq!(shown(), [json!(0), json!(0), json!(10)], "it was confirmed");
    // A listing has the count of idle tasks, and does not read the last confirmation.
    let listed = done("GET", "/v1/entries", &json!(null))["entries"][0].clone();
    assert!(listed.get("confirmed_days_ago").is_none(), "{listed}");
    assert_eq!([&listed["idle_tasks"], &listed["archive_after"]], [&json!(0), &json!(10)]);
    // Its duplicate is counted separately.
    let twin = add("On marmalade");
    fail_with("marmalade", &twin);
    let [to, other] = [&entry, &twin].map(|id| EntryId::from_hex(id).unwrap());
    let claims = vec![ClaimEdit::Link(Link { relation: Relation::SAME_AS, to })];
    served.engine.submit_blocking(Command::Claim { entry: other, claims }).unwrap();
    assert_eq!(read(&entry)["merged"], json!([twin]));
    assert_eq!([&entry, &twin].map(|id| read(id)["idle_tasks"].clone()), [json!(0), json!(1)]);
}

#[test]
fn search_and_show_agree_on_the_last_confirmation() {
    let mut node = Node::start(1, 1);
    let entry = node.create("retry the billing gateway with backoff");
    let never = node.create("the billing gateway needs a retry");
    node.run(Command::ConfirmAsPerson { entry }).unwrap();
    node.wait_days(12);
    let index = settled(&node);
    let hits = ask_for_all(&index, &node, "retry billing gateway").hits;
    let snapshot = node.engine.store().snapshot().unwrap();
    let reader = node.reader();
    let reading = reader.at(&snapshot, node.now).unwrap();
    for (entry, days) in [(entry, Some(12)), (never, None)] {
        let hit = hits.iter().find(|hit| hit.found.entry == entry).expect("it is found");
        assert_eq!(hit.confirmed.map(|day| node.now.day().days_since(day)), days);
        assert_eq!(reading.confirmed_days_ago(&node.found(entry)).unwrap(), days);
    }
}

#[test]
fn an_invalid_old_finding_can_be_repaired_edit_by_edit() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Streams leak", "content": "It leaks.", "evidence": ["doc:d"]});
    let entry = served.json("POST", "/v1/entries", &new).json()["id"].as_str().unwrap().to_owned();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(u64::try_from(since.as_millis()).unwrap());
    laptop_says(&served, &entry, ClaimEdit::Set(Register::TYPE, "finding".to_owned()), now);
    let path = format!("/v1/entries/{entry}");
    assert_eq!(served.json("GET", &path, &json!(null)).json()["type"], "finding");
    let promote = || served.json("POST", &format!("{path}/promote"), &json!({"to": "local"}));
    let promoted = promote();
    assert_eq!(promoted.status, 400, "{}", promoted.text());
    assert!(promoted.text().contains("Complete it with `klnode edit`"), "{}", promoted.text());
    for (edit, status) in [
        (json!({"registers": {"content": "It leaks at the end."}}), 200),
        (json!({"add_anchors": ["path:src/stream.rs"]}), 200),
        (json!({"add_verify_steps": ["Run the leak test."]}), 200),
        // Now it satisfies the rule, and has to keep it.
        (json!({"registers": {"content": "It leaks. It did. It does. It will."}}), 400),
    ] {
        let edited = served.json("PATCH", &path, &edit);
        assert_eq!(edited.status, status, "{edit}: {}", edited.text());
    }
    let promoted = promote();
    assert_eq!(promoted.status, 200, "{}", promoted.text());
}

#[test]
fn every_hit_of_a_long_answer_names_its_contradictions() {
    let mut node = Node::start(1, 1);
    let speaks = |way: &str| ClaimEdit::Set(Register::POLARITY, way.to_owned());
    let against = node.create("marmalade");
    node.claim(against, speaks("negative"));
    let topic = "retry the billing gateway with backoff";
    let mut own = BTreeSet::new();
    for number in 0..60 {
        let entry = node.create(&format!("{topic}, case {number}"));
        node.claim(entry, speaks("positive"));
        contradict(&mut node, entry, against);
        own.insert(entry);
    }
    let hits = ask_for_all(&settled(&node), &node, topic).hits;
    assert_eq!(hits.len(), 60);
    let names = |one: &HitCaveat| matches!(one, HitCaveat::ContradictedBy { entry, .. } if *entry == against);
    let places = hits.iter().enumerate().filter(|(_, hit)| own.contains(&hit.found.entry));
    for (place, hit) in places {
        assert!(hit.caveats.iter().any(names), "in place {place}: {:?}", hit.caveats);
    }
}
