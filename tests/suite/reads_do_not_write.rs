//! Reading changes no knowledge: it writes no record, and does not make entries fresher.

use crate::attacks_on_answers::{ask_for_all, settled};
use klnode_crdt::ids::Digest;
use klnode_engine::Command;
use klnode_server::{Limits, document};
use klnode_store::row_types::{Seq, ServedRow};
use klnode_tests::test_engine::Node;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};

/// End of a node's feed, and every record in it.
fn feed(node: &Served) -> (Seq, Vec<(Seq, Digest)>) {
    // This write also flushes the notes before it.
    node.engine.submit_blocking(Command::Peers(Vec::new())).expect("written");
    let snapshot = node.engine.store().snapshot().unwrap();
    let changes = snapshot.changes_since(Seq(0)).unwrap().map(Result::unwrap);
    (snapshot.head(), changes.map(|change| (change.seq, change.record.digest())).collect())
}

#[test]
fn no_route_that_reads_and_no_search_writes_a_record() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let made = |path: &str, body: &Value, name: &str| {
        let answer = node.json("POST", path, body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()[name].as_str().unwrap().to_owned()
    };
    let new = json!({"title": "About zqread", "content": "Rare words.", "evidence": ["doc:notes"]});
    let entry = made("/v1/entries", &new, "id");
    let task = made("/v1/tasks", &json!({"agent": "reader", "goal": "read it all"}), "task");
    let before = feed(&node);
    assert_eq!(before.1.len(), 1);
    let mut answered = 0;
    let document: Value = serde_json::from_str(&document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        // The event stream has no end.
        if item["get"].is_null() || path == "/v1/events" {
            continue;
        }
        let path = path.replace("{entry}", &entry).replace("{task}", &task);
        let path = path.replace("{name}", "main");
        let path = path.replace("{peer}", &"0".repeat(64)).replace("{digest}", &"0".repeat(64));
        for _ in 0..5 {
            answered += usize::from(node.ask("GET", &path, &[], b"").status == 200);
        }
    }
    // Routes that need a peer, a quarantined record or the network are not answered here.
    assert!(answered >= 5 * 14, "{answered}");
    for turn in 0..20 {
        for in_task in [None, Some(&task)] {
            let search = json!({"query": "zqread", "limit": 1, "all": true, "task": in_task});
            let answer = node.json("POST", "/v1/search", &search);
            assert_eq!(answer.status, 200, "{answer:?}");
            let is_served = answer.json()["hits"][0]["id"] == entry.as_str();
            assert!(is_served || turn > 0, "{answer:?}");
        }
    }
    assert_eq!(feed(&node), before);
}

#[test]
fn serving_an_entry_does_not_make_it_fresher() {
    let mut node = Node::start(1, 1);
    let entry = node.create("retry the billing gateway with backoff");
    node.run(Command::ConfirmAsPerson { entry }).unwrap();
    node.wait_days(60);
    let index = settled(&node);
    let freshness = |node: &Node| {
        let hits = ask_for_all(&index, node, "retry billing gateway backoff").hits;
        let hit = hits.iter().find(|hit| hit.found.entry == entry).expect("it is found");
        (hit.placed.candidate.signals.freshness, hit.confirmed)
    };
    let (before, held, head) = (freshness(&node), node.everything(), node.engine.head());
    assert!(before.0 < 0.9, "it has decayed: {before:?}");
    for _ in 0..50 {
        let row = ServedRow {
            caller: "agent".into(),
            query: "how to retry".into(),
            entries: vec![entry],
            ..ServedRow::default()
        };
        node.run(Command::Served(row)).unwrap();
    }
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.serving_log().unwrap().count(), 50, "it was logged");
    assert_eq!(freshness(&node), before);
    assert_eq!((node.everything(), node.engine.head()), (held, head));
}
