//! Whether what is held is in order: what breaks a rule, what has drifted, what wants attention; and
//! friction, recorded and told.

use crate::program::{Running, json, klnode, printed, run, start, started, text, told};
use crate::tasks::{begin, end};
use klnode::engine::{Command, NewEntry, Note, UpkeepAct};
use klnode::query::Cancel;
use klnode::query::survey::{Asked, Survey};
use klnode::store::peers::rows::{Approval, PeerRow};
use klnode::store::upkeep::{Matter, Service, ServiceRow, Stage};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::ticket::Offer;
use klnode_scoring::survey::Mark;
use klnode_tests::checkout::Tree;
use klnode_tests::node::{Node, lesson};
use klnode_tests::society::{Shared, Stranger, paired};
use std::path::Path;
use std::process::Stdio;

fn norm(title: &str) -> NewEntry {
    NewEntry { kind: Kind::Norm, memory: Memory::Procedural, ..lesson(title) }
}

fn friction(title: &str) -> NewEntry {
    let (kind, memory) = (Kind::Friction, Memory::Episodic);
    NewEntry { kind, memory, citations: Vec::new(), ..lesson(title) }
}

fn link(relation: Relation, to: EntryId) -> Claim {
    Claim::Link(Link { relation, to })
}

/// What upkeep writes down where two entries say the opposite.
pub(super) fn contradict(node: &mut Node, one: EntryId, two: EntryId) {
    let snapshot = node.engine.store().snapshot().unwrap();
    let seen = [one, two].map(|entry| (entry, snapshot.text_seq(entry).unwrap()));
    let note = Note {
        matter: Matter::Contradiction,
        stage: Stage::Open,
        entries: seen.to_vec(),
        why: "opposite".into(),
        is_foreign: false,
    };
    let act = UpkeepAct::Pass {
        service: Service::Contradictions,
        row: ServiceRow::default(),
        notes: vec![note],
        over: Vec::new(),
        faded: Vec::new(),
        edges: Vec::new(),
    };
    node.run(Command::Upkeep(Box::new(act))).unwrap();
}

fn page(node: &Node, asked: Asked) -> Survey {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    reading.survey(asked, None, &Cancel::default()).unwrap()
}

/// What is wrong with an entry, and whether that blocks.
fn marks(node: &Node, entry: EntryId) -> Vec<(Mark, bool)> {
    let marked = page(node, Asked::default()).marked.into_iter();
    marked.filter(|one| one.entry == entry).map(|one| (one.mark, one.blocks)).collect()
}

#[test]
fn what_binds_is_blocked_and_everything_else_is_told() {
    let mut node = Node::start(1, 1);
    let (one, two) = (node.create_new(norm("tabs")), node.create_new(norm("spaces")));
    let (lesson, raw) = (node.create("a lesson"), node.create_new(friction("a raw thing")));
    assert_eq!(page(&node, Asked::default()).marked, []);

    contradict(&mut node, one, two);
    assert_eq!(marks(&node, one), [(Mark::Contradiction, true)]);
    contradict(&mut node, one, lesson);
    assert_eq!(marks(&node, lesson), [(Mark::Contradiction, false)], "it binds nobody");

    let nowhere = EntryId::from_bytes([9; 16]);
    node.claim(lesson, link(Relation::RELATED, nowhere));
    assert_eq!(marks(&node, lesson).last(), Some(&(Mark::Links, false)));
    let made = node.create_new(norm("made of something raw"));
    node.claim(made, link(Relation::DERIVED_FROM, raw));
    assert_eq!(marks(&node, made), [(Mark::Backflow, true)], "nobody promoted it");

    node.wait_days(91);
    let outdated = (Mark::Outdated, false);
    assert!(marks(&node, one).contains(&outdated) && !marks(&node, lesson).contains(&outdated));
    let survey = page(&node, Asked::default());
    let tally = survey.tally;
    assert_eq!((tally.entries, tally.stale, tally.disputed), (4, 4, 3), "nobody was ever served");
    assert_eq!(tally.friction, 0, "it is not recent any more");
}

#[test]
fn a_member_may_warn_and_nobody_from_outside_is_surveyed() {
    let (mut node, mut member) = (Node::start(1, 1), Node::start(2, 2));
    let mut shared = Shared::new(9);
    for author in [node.author(), member.author()] {
        shared.admit(author);
    }
    shared.tell(&mut node);
    shared.tell(&mut member);
    node.meet(member.author(), paired("member"));
    let inside = member.create_new(NewEntry { workspace: shared.id, ..norm("a norm of theirs") });
    let outside = member.create_new(norm("a norm of nobody here"));
    let raw = member.create_new(NewEntry { workspace: shared.id, ..friction("theirs") });
    for entry in [inside, outside] {
        member.claim(entry, link(Relation::RELATED, EntryId::from_bytes([9; 16])));
    }
    member.send_to(&mut node);
    assert!(node.found(raw).is_foreign());
    assert_eq!(marks(&node, inside), [(Mark::Links, false)]);
    assert_eq!(marks(&node, outside), []);
    let survey = page(&node, Asked::default());
    assert_eq!((survey.tally.entries, survey.tally.friction), (1, 0));
    assert_eq!(survey.marked[0].by.as_deref(), Some("member"), "whose it is is told");
    let elsewhere = Asked { workspace: Some(WorkspaceId::MAIN), after: None };
    assert_eq!(page(&node, elsewhere).tally.entries, 0);
}

#[test]
fn what_a_member_puts_beside_a_norm_neither_breaks_a_rule_nor_keeps_one() {
    let (mut node, mut member) = (Node::start(1, 1), Node::start(2, 2));
    let mut shared = Shared::new(9);
    for author in [node.author(), member.author()] {
        shared.admit(author);
    }
    shared.tell(&mut node);
    shared.tell(&mut member);
    node.meet(member.author(), paired("member"));
    member.meet(node.author(), paired("node"));
    let inside = |new: NewEntry| NewEntry { workspace: shared.id, ..new };
    let own = node.create_new(inside(norm("ours")));
    node.send_to(&mut member);
    let (theirs, raw) =
        (member.create_new(inside(norm("theirs"))), member.create_new(inside(friction("raw"))));
    member.claim(own, link(Relation::DERIVED_FROM, raw));
    member.claim(own, link(Relation::RELATED, EntryId::from_bytes([9; 16])));
    member.send_to(&mut node);
    assert!(node.found(own).view.links.len() == 2, "the links are shown as the member's");
    assert_eq!(marks(&node, own), []);
    contradict(&mut node, own, theirs);
    assert_eq!(marks(&node, own), [(Mark::Contradiction, false)], "it is told, and blocks nothing");
}

#[test]
fn what_is_held_to_be_the_same_is_surveyed_once() {
    let mut node = Node::start(1, 1);
    let (one, two, other) = (node.create("one"), node.create("two"), node.create("other"));
    contradict(&mut node, two, other);
    assert_eq!(page(&node, Asked::default()).tally.entries, 3);
    node.claim(two, link(Relation::SAME_AS, one));
    let survey = page(&node, Asked::default());
    assert_eq!((survey.tally.entries, survey.tally.disputed), (2, 2));
    assert_eq!(marks(&node, one), [(Mark::Contradiction, false)], "what the same is opposed by");
    assert_eq!(marks(&node, two), []);
}

#[test]
fn pages_of_a_survey_add_up_and_tell_the_rest_once() {
    let mut node = Node::start(1, 1);
    for number in 0..1_001 {
        node.create(&format!("number {number}"));
    }
    let task = begin(&mut node);
    end(&mut node, task, Vec::new()).unwrap();
    let first = page(&node, Asked::default());
    let after = first.next.expect("there is more than a page");
    let second = page(&node, Asked { after: Some(after), ..Asked::default() });
    assert_eq!((first.tally.entries, second.tally.entries), (1_000, 1));
    assert_eq!(second.next, None);
    let beside = |survey: &Survey| (survey.tally.waiting, survey.tally.tasks);
    assert_eq!((beside(&first), beside(&second)), ((Some(0), 1), (None, 0)));
    let main = Asked { workspace: Some(WorkspaceId::MAIN), after: None };
    assert_eq!(beside(&page(&node, main)), (None, 0), "that is of the whole node");
}

#[test]
fn a_node_that_waits_to_be_approved_waits_for_a_decision_and_one_that_is_blocked_has_its_own() {
    let mut node = Node::start(1, 1);
    let (approval, is_blocked) = (Approval::Waiting, true);
    let rows = [
        PeerRow { approval, ..paired("knocks") },
        PeerRow { offer: Some(Offer::Mine), ..paired("waits to be more") },
        PeerRow { approval, is_blocked, ..paired("blocked") },
        PeerRow { approval: Approval::Refused, ..paired("refused") },
        paired("paired"),
    ];
    for (number, row) in (2..).zip(rows) {
        node.meet(Stranger::new(number).author(), row);
    }
    assert_eq!(page(&node, Asked::default()).tally.waiting, Some(2));
}

#[test]
fn an_empty_node_is_in_order_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = start(home);
    assert_eq!(printed(&run(home, &["verify"])), "Verified 0 entries: every rule is kept.\n");
    assert_eq!(printed(&run(home, &["drift"])), "Nothing of 0 entries has drifted.\n");
    let health = printed(&run(home, &["health"]));
    assert!(health.ends_with("Nothing among 0 entries wants your attention.\n"), "{health}");
    let report = printed(&run(home, &["friction", "report"]));
    assert!(report.starts_with("No friction in 30 days."), "{report}");
    let unknown = run(home, &["verify", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", told(&unknown));
}

/// Starts a node with one setting.
fn set(home: &Path, setting: &str) -> Running {
    let mut command = klnode(home);
    command.args(["--set", setting]).stdout(Stdio::piped()).stderr(Stdio::null());
    started(command).0
}

fn add(home: &Path, title: &str, more: &[&str]) -> String {
    let words = ["add", "--title", title, "--content", "Said once.", "--evidence", "doc:notes"];
    text(&json(home, &[&words[..], more].concat())["code"])
}

#[test]
fn health_says_why_a_part_is_not_told_and_only_where_that_is_why() {
    const FEW: &str = "A part of fewer than 3 is not told (survey.sample_min).\n";
    const PART: &str = "What waits and how tasks went is told of the whole node alone.\n";
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "survey.sample_min=3");
    for title in ["Pin the linker", "Rotate the keys", "Close the pool", "Bound the queue"] {
        add(home, title, &[]);
    }
    let whole = printed(&run(home, &["health"]));
    let now = |name: &str| {
        let row = whole.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        row.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!([now("stale"), now("failed")], ["0", "-"], "{whole}");
    assert!(whole.contains(FEW) && !whole.contains(PART), "no task was finished: {whole}");
    let part = printed(&run(home, &["health", "main"]));
    assert!(part.contains(PART) && !part.contains(FEW), "{part}");
    let empty = printed(&run(home, &["health", "local"]));
    assert!(empty.contains(PART) && empty.contains(FEW), "{empty}");
}

#[test]
fn what_rests_on_something_gone_has_drifted_in_the_checkout_where_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "survey.tag_entries_max=1");
    let tree = Tree::new(&["src/here.rs"]);
    tree.write("src/here.rs", b"fn f() {}\n");
    let add = |title: &str, more: &[&str]| {
        let words = ["add", "--title", title, "--content", "Said once.", "--evidence", "doc:notes"];
        let words = [&words[..], more, &["--json"]].concat();
        let output = klnode(home).current_dir(tree.path()).args(words).output().unwrap();
        text(&serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["code"])
    };
    let gone = add("About a file", &["--anchor", "path:src/gone.rs", "--tag", "auth/jwt"]);
    add("About another", &["--anchor", "path:src/here.rs", "--tag", "auth"]);
    let drift = |from: &Path| klnode(home).current_dir(from).arg("drift").output().unwrap();
    let drifted = drift(tree.path());
    assert_eq!(drifted.status.code(), Some(1));
    let said = String::from_utf8(drifted.stdout).unwrap();
    assert!(said.starts_with(&format!("{gone}  About a file\n")), "{said}");
    assert!(said.contains("orphaned: path:src/gone.rs: "), "{said}");
    assert!(said.contains("Tag auth has 2 entries, more than 1: `klnode list --tag auth`.\n"));
    assert!(said.contains("predicates of other repositories are not checked there.\n"), "{said}");
    assert!(said.contains("Needs review: ") && said.contains("Needs pruning: "), "{said}");
    let elsewhere = drift(folder.path());
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(said.starts_with("There is no checkout here: "), "{said}");
    let elsewhere = String::from_utf8(elsewhere.stdout).unwrap();
    assert!(!elsewhere.contains("orphaned"), "there is no checkout to look at: {elsewhere}");
    assert!(elsewhere.contains("Needs pruning: "), "{elsewhere}");
    // A gate reads it, too: what could not be looked at is no all-clear.
    let read = |from: &Path| {
        let output = klnode(home).current_dir(from).args(["drift", "--json"]).output().unwrap();
        // Something has drifted. Where nobody looked, the answer says so, and that is no error.
        assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["checkout"].clone()
    };
    assert_eq!(read(folder.path()), serde_json::Value::Null);
    assert!(read(tree.path()).is_string());
    tree.write(".git/index", b"no index");
    let unlooked = drift(tree.path());
    assert_eq!(unlooked.status.code(), Some(2), "nobody could look");
    let said = String::from_utf8(unlooked.stderr).unwrap();
    assert!(said.starts_with("What entries depend on was not looked at: cannot "), "{said}");
}

#[test]
fn friction_is_kept_raw_told_by_frequency_and_makes_a_node_unwell() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "survey.friction_max=2");
    let record = |text: &str, kind: &str| {
        json(home, &["friction", "record", text, "--kind", kind]);
    };
    record("zqhangs without a terminal\nfor minutes", "tool_error");
    record("A second thing", "redo");
    assert!(run(home, &["health"]).status.success(), "two are an ordinary week");
    record("ZQhangs  without a terminal", "tool_error");

    let report = json(home, &["friction", "report", "--days", "1"]);
    assert_eq!((&report["recorded"], &report["groups"][0]["count"]), (&3.into(), &2.into()));
    assert_eq!(report["groups"][0]["kind"], "tool_error");
    let health = run(home, &["--json", "health"]);
    assert_eq!(health.status.code(), Some(1));
    let said: serde_json::Value = serde_json::from_slice(&health.stdout).unwrap();
    let measures = said["measures"].as_array().unwrap();
    let over: Vec<_> = measures.iter().filter(|one| one["over"] == true).collect();
    assert_eq!((over.len(), &over[0]["name"]), (1, &"friction".into()), "{said}");

    let found = json(home, &["search", "zqhangs without a terminal", "--all"]);
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(0), "it answers nothing: {found}");
    let code = text(&report["groups"][0]["code"]);
    printed(&run(home, &["archive", &code]));
    assert!(run(home, &["health"]).status.success(), "that is dealt with");
    let bare = run(home, &["promote", &code]);
    assert!(!bare.status.success(), "not without evidence");
    let lesson = json(home, &["promote", &code, "--evidence", "doc:notes"]);
    assert_eq!(lesson["memory"], "semantic");
    assert_eq!(json(home, &["verify"])["marked"], serde_json::json!([]), "it was promoted");
    for wrong in [&["friction", "record", " "][..], &["friction", "record", "x", "--kind", "bad"]] {
        assert_eq!(run(home, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
