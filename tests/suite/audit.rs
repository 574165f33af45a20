//! Audit: rule violations, drift and health numbers; and friction records with their report.

use crate::support::conformance::conforms;
use crate::support::node_process::{
    Running, json, klnode, printed, run, start, started, text, told,
};
use crate::tasks::{begin, end};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{Command, MaintenanceCommand, MaintenanceNote, NewEntry};
use klnode_federation::proto::ticket::JoinOffer;
use klnode_query::Cancel;
use klnode_query::audit::{AuditPage, AuditScope};
use klnode_scoring::audit::AuditRule;
use klnode_store::maintenance_journal::{Matter, Service, ServiceRow, Stage};
use klnode_store::peers::row_types::{PeerApproval, PeerRow};
use klnode_tests::checkout::Tree;
use klnode_tests::test_engine::{Node, lesson};
use klnode_tests::workspace_fixture::{Shared, Stranger, paired};
use std::path::Path;
use std::process::Stdio;

fn norm(title: &str) -> NewEntry {
    NewEntry { kind: EntryType::Norm, memory: Memory::Procedural, ..lesson(title) }
}

fn friction(title: &str) -> NewEntry {
    let (kind, memory) = (EntryType::Friction, Memory::Episodic);
    NewEntry { kind, memory, citations: Vec::new(), ..lesson(title) }
}

fn link(relation: Relation, to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation, to })
}

/// Notes a contradiction as maintenance does.
pub(super) fn contradict(node: &mut Node, one: EntryId, two: EntryId) {
    let snapshot = node.engine.store().snapshot().unwrap();
    let seen = [one, two].map(|entry| (entry, snapshot.text_seq(entry).unwrap()));
    let note = MaintenanceNote {
        matter: Matter::Contradiction,
        stage: Stage::Open,
        entries: seen.to_vec(),
        why: "opposite".into(),
        is_foreign: false,
    };
    let act = MaintenanceCommand::Pass {
        service: Service::Contradictions,
        row: ServiceRow::default(),
        notes: vec![note],
        over: Vec::new(),
        faded: Vec::new(),
        edges: Vec::new(),
    };
    node.run(Command::Maintenance(Box::new(act))).unwrap();
}

fn page(node: &Node, asked: AuditScope) -> AuditPage {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    reading.audit(asked, None, &Cancel::default()).unwrap()
}

/// Marks of an entry, and whether each blocks.
fn marks(node: &Node, entry: EntryId) -> Vec<(AuditRule, bool)> {
    let marked = page(node, AuditScope::default()).marked.into_iter();
    marked.filter(|one| one.entry == entry).map(|one| (one.mark, one.blocks)).collect()
}

#[test]
fn binding_entries_are_blocked_and_others_are_reported() {
    let mut node = Node::start(1, 1);
    let (one, two) = (node.create_new(norm("tabs")), node.create_new(norm("spaces")));
    let (lesson, raw) = (node.create("a lesson"), node.create_new(friction("a raw thing")));
    assert_eq!(page(&node, AuditScope::default()).marked, []);

    contradict(&mut node, one, two);
    assert_eq!(marks(&node, one), [(AuditRule::Contradiction, true)]);
    contradict(&mut node, one, lesson);
    assert_eq!(
        marks(&node, lesson),
        [(AuditRule::Contradiction, false)],
        "a lesson is not binding"
    );

    let nowhere = EntryId::from_bytes([9; 16]);
    node.claim(lesson, link(Relation::RELATED, nowhere));
    assert_eq!(marks(&node, lesson).last(), Some(&(AuditRule::Links, false)));
    let made = node.create_new(norm("made of something raw"));
    node.claim(made, link(Relation::DERIVED_FROM, raw));
    assert_eq!(marks(&node, made), [(AuditRule::Backflow, true)], "it was not promoted");

    node.wait_days(91);
    let outdated = (AuditRule::Outdated, false);
    assert!(marks(&node, one).contains(&outdated) && !marks(&node, lesson).contains(&outdated));
    let found = page(&node, AuditScope::default());
    let tally = found.tally;
    assert_eq!((tally.entries, tally.stale, tally.disputed), (4, 4, 3), "no entry was ever served");
    assert_eq!(tally.friction, 0, "it is no longer recent");
}

#[test]
fn members_entries_are_audited_without_blocking_and_non_members_are_not() {
    let (mut node, mut member) = (Node::start(1, 1), Node::start(2, 2));
    let mut shared = Shared::new(9);
    for author in [node.author(), member.author()] {
        shared.admit(author);
    }
    shared.tell(&mut node);
    shared.tell(&mut member);
    node.meet(member.author(), paired("member"));
    let inside = member.create_new(NewEntry { workspace: shared.id, ..norm("a norm of theirs") });
    let outside = member.create_new(norm("a norm by a non-member"));
    let raw = member.create_new(NewEntry { workspace: shared.id, ..friction("theirs") });
    for entry in [inside, outside] {
        member.claim(entry, link(Relation::RELATED, EntryId::from_bytes([9; 16])));
    }
    member.send_to(&mut node);
    assert!(node.found(raw).is_foreign());
    assert_eq!(marks(&node, inside), [(AuditRule::Links, false)]);
    assert_eq!(marks(&node, outside), []);
    let found = page(&node, AuditScope::default());
    assert_eq!((found.tally.entries, found.tally.friction), (1, 0));
    assert_eq!(found.marked[0].by.as_deref(), Some("member"), "the author is named");
    let elsewhere = AuditScope { workspace: Some(WorkspaceId::MAIN), ..AuditScope::default() };
    assert_eq!(page(&node, elsewhere).tally.entries, 0);
}

#[test]
fn a_members_additions_to_a_norm_do_not_affect_its_rules() {
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
    assert_eq!(
        marks(&node, own),
        [(AuditRule::Contradiction, false)],
        "it is listed and does not block"
    );
}

#[test]
fn duplicates_are_audited_once() {
    let mut node = Node::start(1, 1);
    let (one, two, other) = (node.create("one"), node.create("two"), node.create("other"));
    contradict(&mut node, two, other);
    assert_eq!(page(&node, AuditScope::default()).tally.entries, 3);
    node.claim(two, link(Relation::SAME_AS, one));
    let found = page(&node, AuditScope::default());
    assert_eq!((found.tally.entries, found.tally.disputed), (2, 2));
    assert_eq!(
        marks(&node, one),
        [(AuditRule::Contradiction, false)],
        "the contradiction of its duplicate"
    );
    assert_eq!(marks(&node, two), []);
}

#[test]
fn pages_of_an_audit_add_up_and_report_totals_once() {
    let mut node = Node::start(1, 1);
    for number in 0..1_001 {
        node.create(&format!("number {number}"));
    }
    let task = begin(&mut node);
    end(&mut node, task, Vec::new()).unwrap();
    let first = page(&node, AuditScope::default());
    let after = first.next.expect("there is more than a page");
    let second = page(&node, AuditScope { after: Some(after), ..AuditScope::default() });
    assert_eq!((first.tally.entries, second.tally.entries), (1_000, 1));
    assert_eq!(second.next, None);
    let beside = |page: &AuditPage| (page.tally.waiting, page.tally.tasks);
    assert_eq!((beside(&first), beside(&second)), ((Some(0), 1), (None, 0)));
    let main = AuditScope { workspace: Some(WorkspaceId::MAIN), ..AuditScope::default() };
    assert_eq!(beside(&page(&node, main)), (None, 0), "these cover the whole node");
}

#[test]
fn a_peer_awaiting_approval_is_a_pending_decision_and_a_blocked_one_is_not() {
    let mut node = Node::start(1, 1);
    let (approval, is_blocked) = (PeerApproval::Waiting, true);
    let rows = [
        PeerRow { approval, ..paired("knocks") },
        PeerRow { offer: Some(JoinOffer::Mine), ..paired("waits to be more") },
        PeerRow { approval, is_blocked, ..paired("blocked") },
        PeerRow { approval: PeerApproval::Refused, ..paired("refused") },
        paired("paired"),
    ];
    for (number, row) in (2..).zip(rows) {
        node.meet(Stranger::new(number).author(), row);
    }
    assert_eq!(page(&node, AuditScope::default()).tally.waiting, Some(2));
}

#[test]
fn an_empty_node_passes_every_audit() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = start(home);
    assert_eq!(
        printed(&run(home, &["check", "rules"])),
        "Verified 0 entries: every rule is kept.\n"
    );
    assert_eq!(printed(&run(home, &["check", "drift"])), "None of 0 entries has drifted.\n");
    let health = printed(&run(home, &["check", "limits"]));
    assert!(health.ends_with("All limits are kept (0 entries).\n"), "{health}");
    let report = printed(&run(home, &["task", "friction", "report"]));
    assert!(report.starts_with("No friction in 30 days."), "{report}");
    let unknown = run(home, &["check", "rules", "--workspace", "nowhere"]);
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
fn limits_explain_missing_numbers() {
    const FEW: &str = "Fractions of fewer than 3 are not shown (tuning.audit.sample_size_min).\n";
    const PART: &str = "Waiting decisions and failed tasks are counted for the whole node only.\n";
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "tuning.audit.sample_size_min=3");
    for title in ["Pin the linker", "Rotate the keys", "Close the pool", "Bound the queue"] {
        add(home, title, &[]);
    }
    let whole = printed(&run(home, &["check", "limits"]));
    let now = |name: &str| {
        let row = whole.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        row.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!([now("stale"), now("failed")], ["0", "-"], "{whole}");
    assert!(whole.contains(FEW) && !whole.contains(PART), "no task was finished: {whole}");
    let part = printed(&run(home, &["check", "limits", "--workspace", "main"]));
    assert!(part.contains(PART) && !part.contains(FEW), "{part}");
    let empty = printed(&run(home, &["check", "limits", "--workspace", "local"]));
    assert!(empty.contains(PART) && empty.contains(FEW), "{empty}");
}

#[test]
fn entries_with_missing_anchors_have_drifted_in_that_checkout() {
    conforms("S003-21");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "tuning.audit.tag_entries_max=1");
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
    let drift =
        |from: &Path| klnode(home).current_dir(from).args(["check", "drift"]).output().unwrap();
    let drifted = drift(tree.path());
    assert_eq!(drifted.status.code(), Some(1));
    let said = String::from_utf8(drifted.stdout).unwrap();
    assert!(said.starts_with(&format!("{gone}  About a file\n")), "{said}");
    assert!(said.contains("orphaned: path:src/gone.rs: "), "{said}");
    assert!(said.contains("Tag auth has 2 entries, more than 1: `klnode list --tag auth`.\n"));
    assert!(said.contains("; those of other repositories were not.\n"), "{said}");
    assert!(said.contains("Needs review: ") && said.contains("Needs pruning: "), "{said}");
    let elsewhere = drift(folder.path());
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(said.starts_with("There is no checkout here, so no predicate was checked."), "{said}");
    let elsewhere = String::from_utf8(elsewhere.stdout).unwrap();
    assert!(!elsewhere.contains("orphaned"), "there is no checkout to look at: {elsewhere}");
    assert!(elsewhere.contains("Needs pruning: "), "{elsewhere}");
    // A gate reads this as well: an unreadable checkout is not an all-clear.
    let read = |from: &Path| {
        let output =
            klnode(home).current_dir(from).args(["check", "drift", "--json"]).output().unwrap();
        // Something has drifted. Without a checkout the answer says so, which is no error.
        assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["drift"]["checkout"]
            .clone()
    };
    assert_eq!(read(folder.path()), serde_json::Value::Null);
    assert!(read(tree.path()).is_string());
    tree.write(".git/index", b"no index");
    let unlooked = drift(tree.path());
    assert_eq!(unlooked.status.code(), Some(2), "the checkout is unreadable");
    let said = String::from_utf8(unlooked.stderr).unwrap();
    assert!(said.starts_with("No predicate was checked: "), "{said}");
}

#[test]
fn friction_is_stored_raw_reported_by_frequency_and_counts_in_health() {
    conforms("S001-34");
    conforms("S001-52");
    conforms("S002-11");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let _node = set(home, "tuning.audit.friction_max=2");
    let record = |text: &str, kind: &str| {
        json(home, &["task", "friction", "record", text, "--kind", kind]);
    };
    record("zqhangs without a terminal\nfor minutes", "tool_error");
    record("A second thing", "redo");
    assert!(run(home, &["check", "limits"]).status.success(), "two are within the limit");
    record("ZQhangs  without a terminal", "tool_error");

    let report = json(home, &["task", "friction", "report", "--days", "1"]);
    assert_eq!((&report["recorded"], &report["groups"][0]["count"]), (&3.into(), &2.into()));
    assert_eq!(report["groups"][0]["kind"], "tool_error");
    let health = run(home, &["--json", "check", "limits"]);
    assert_eq!(health.status.code(), Some(1));
    let said: serde_json::Value = serde_json::from_slice(&health.stdout).unwrap();
    let measures = said["limits"]["measures"].as_array().unwrap();
    let over: Vec<_> = measures.iter().filter(|one| one["over"] == true).collect();
    assert_eq!((over.len(), &over[0]["name"]), (1, &"friction".into()), "{said}");

    let found = json(home, &["search", "zqhangs without a terminal", "--all"]);
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(0), "friction is not served: {found}");
    let code = text(&report["groups"][0]["code"]);
    printed(&run(home, &["archive", &code]));
    assert!(run(home, &["check", "limits"]).status.success(), "the friction was handled");
    let bare = run(home, &["add", "--from", &code]);
    assert!(!bare.status.success(), "evidence is required");
    let copy = ["add", "--from", &code, "--evidence", "doc:notes", "--approve", "it is known"];
    let lesson = json(home, &copy);
    assert_eq!(lesson["memory"], "semantic");
    assert_eq!(
        json(home, &["check", "rules"])["rules"]["marked"],
        serde_json::json!([]),
        "it was promoted"
    );
    for wrong in [
        &["task", "friction", "record", " "][..],
        &["task", "friction", "record", "x", "--kind", "bad"],
    ] {
        assert_eq!(run(home, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
