//! Playbooks in memory: readers and the writer share one document, and the writer builds none.

use crate::support::playbook_team::{TEXT, edit, heads, remove, team, text, write};
use klnode_crdt::ids::EntryId;
use klnode_document::document::TextDocument;
use klnode_engine::{BuildCounts, Command, DocumentCommand, open_document};
use klnode_server::Limits;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::sync::Arc;

/// The document that a reader gets.
fn open(nodes: &mut Cluster, at: usize, entry: EntryId) -> Arc<TextDocument> {
    let (snapshot, membership) = (nodes.snapshot(at), nodes.membership(at));
    nodes.documents(at).open(&snapshot, &membership, entry).expect("readable")
}

/// A document with all that readers show of it is the same as one that is built anew.
#[track_caller]
fn assert_as_built(nodes: &mut Cluster, at: usize, entry: EntryId) {
    let (snapshot, membership) = (nodes.snapshot(at), nodes.membership(at));
    let built = open_document(&snapshot, &membership, entry).expect("readable");
    let opened = open(nodes, at, entry);
    assert_eq!(opened.text(), built.text());
    assert_eq!(opened.heads(), built.heads());
    assert_eq!(opened.blame(), built.blame());
    let history = |of: &TextDocument| of.history().map(|of| of.hash()).collect::<Vec<_>>();
    assert_eq!(history(&opened), history(&built));
    assert_eq!(opened.held_count(), built.held_count());
}

#[test]
fn a_reader_builds_a_document_once_and_the_writer_takes_it_over() {
    let (mut nodes, team) = team(30);
    let entry = write(&mut nodes, 0, team);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag it.");
    nodes.crash(0);
    nodes.restart(0);
    let first = open(&mut nodes, 0, entry);
    assert!(Arc::ptr_eq(&first, &open(&mut nodes, 0, entry)), "the second reader finds it");
    assert_eq!(nodes.documents(0).builds(), BuildCounts { readers: 1, writer: 0 });
    edit(&mut nodes, 0, entry, "Tag it.", "Tag it twice.");
    assert_eq!(first.text(), TEXT.replace("the commit", "it"), "the reader's copy stays");
    assert_as_built(&mut nodes, 0, entry);
    assert_eq!(nodes.documents(0).builds(), BuildCounts { readers: 1, writer: 0 });
}

#[test]
fn edits_that_arrive_are_merged_before_the_writer_has_to() {
    let (mut nodes, team) = team(31);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.crash(1);
    nodes.restart(1);
    nodes.pass(REST_MS);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag it.");
    nodes.pass(3 * REST_MS);
    assert_eq!(text(&mut nodes, 1, entry), TEXT.replace("the commit", "it"));
    assert_as_built(&mut nodes, 1, entry);
    assert_eq!(nodes.documents(1).builds(), BuildCounts { readers: 1, writer: 0 });
}

#[test]
fn a_document_in_memory_follows_removals() {
    let (mut nodes, team) = team(32);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Delete the repository.");
    nodes.pass(3 * REST_MS);
    assert!(open(&mut nodes, 1, entry).text().contains("Delete"));
    remove(&mut nodes, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        assert_eq!(open(&mut nodes, at, entry).text(), TEXT, "at {at}");
        assert_as_built(&mut nodes, at, entry);
    }
}

#[test]
fn a_reader_of_an_old_snapshot_gets_the_later_document_and_does_not_replace_it() {
    let (mut nodes, team) = team(33);
    let entry = write(&mut nodes, 0, team);
    let (snapshot, membership) = (nodes.snapshot(0), nodes.membership(0));
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag it.");
    let later = open(&mut nodes, 0, entry);
    let opened = nodes.documents(0).open(&snapshot, &membership, entry).expect("readable");
    assert!(Arc::ptr_eq(&opened, &later));
    assert!(Arc::ptr_eq(&open(&mut nodes, 0, entry), &later));
}

#[test]
fn a_forgotten_document_leaves_the_memory_and_no_late_reader_brings_it_back() {
    let (mut nodes, team) = team(34);
    let entry = write(&mut nodes, 0, team);
    open(&mut nodes, 0, entry);
    assert!(nodes.documents(0).holds(entry));
    let (snapshot, membership) = (nodes.snapshot(0), nodes.membership(0));
    nodes.run(0, Command::Forget { entry }).expect("its author may");
    assert!(!nodes.documents(0).holds(entry));
    nodes.documents(0).open(&snapshot, &membership, entry).expect("readable");
    assert!(!nodes.documents(0).holds(entry), "the snapshot is older than the tombstone");
}

#[test]
fn a_rejected_edit_changes_no_document_in_memory() {
    let (mut nodes, team) = team(35);
    let entry = write(&mut nodes, 0, team);
    let before = open(&mut nodes, 0, entry);
    let (base, text) = (heads(&mut nodes, 0, entry), "x".repeat((1 << 20) + 1));
    let long = DocumentCommand::Edit { entry, base, text };
    assert!(nodes.run(0, Command::Document(long)).is_err());
    assert!(Arc::ptr_eq(&before, &open(&mut nodes, 0, entry)));
}

#[test]
fn requests_about_one_playbook_build_it_once() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let send = |method: &str, path: &str, body: &Value| {
        let answer = served.json(method, path, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let get = |path: &str| {
        let answer = served.ask("GET", path, &[], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let new = send("POST", "/v1/playbooks", &json!({ "title": "How we work", "text": TEXT }));
    let path = format!("/v1/playbooks/{}", new["id"].as_str().expect("an id"));
    let first = get(&path)["version"].clone();
    for word in ["one", "two", "three"] {
        let edit = json!({ "version": first, "section": "review", "text": format!("# Review\n\n{word}\n") });
        send("PATCH", &path, &edit);
        for part in ["/history", "/blame", "/diff"] {
            get(&format!("{path}{part}"));
        }
        get(&format!("{path}?version={}", first.as_str().expect("text")));
    }
    let builds = served.engine.documents().builds();
    assert_eq!(builds, BuildCounts { readers: 0, writer: 0 }, "the writer left it to the readers");
}
