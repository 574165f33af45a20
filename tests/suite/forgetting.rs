//! Forgetting: entitled authors, the remaining tombstone, and that no peer restores the entry.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, Nonce, WorkspaceId};
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, IngestOutcome, MarkChange, NewEntry, Receipt, Rejection, SourceKey};
use klnode_store::row_types::MarksRow;
use klnode_tests::test_engine::{Node, exchange, lesson};

fn create(node: &mut Node, new: NewEntry) -> EntryId {
    match node.run(Command::Create(Box::new(new))) {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("{other:?}"),
    }
}

fn imported() -> NewEntry {
    let source = SourceKey { format: "jsonl".into(), key: "row 1".into() };
    NewEntry { source: Some(source), ..lesson("imported") }
}

#[test]
fn forgetting_erases_every_payload_and_a_late_peer_does_not_bring_it_back() {
    let (mut home, mut peer, mut late) = (Node::start(1, 1), Node::start(2, 2), Node::start(3, 3));
    let entry = home.create("unforgettable");
    exchange(&mut home, &mut peer);
    exchange(&mut home, &mut late);
    peer.retitle(entry, "unforgettable, by a peer");
    late.succeed(entry);
    let marks = MarkChange { note: Some("unforgettable note".into()), ..MarkChange::default() };
    home.run(Command::Mark { entry, marks }).unwrap();
    home.run(Command::Forget { entry }).expect("the creator may");
    exchange(&mut home, &mut peer);
    exchange(&mut late, &mut peer);
    exchange(&mut late, &mut home);
    for node in [&home, &peer, &late] {
        assert!(matches!(node.records(entry), EntryRecords::Forgotten(_)));
        let snapshot = node.engine.store().snapshot().unwrap();
        assert_eq!(snapshot.overlay(entry).unwrap(), MarksRow::default());
        let feed: Vec<_> = snapshot.changes_since(Default::default()).unwrap().collect();
        assert_eq!(feed.len(), 1, "a forgotten entry counts as its tombstone alone");
        assert!(snapshot.check().unwrap().is_empty());
    }
    assert_eq!(exchange(&mut home, &mut late), 0);
    let rejection = home.run(Command::Retract { entry }).unwrap_err();
    assert!(matches!(rejection, Rejection::Forgotten(_)));
}

#[test]
fn records_of_a_forgotten_entry_are_in_no_page_after_a_rewrite() {
    let mut home = Node::start(1, 1);
    let entry = home.create("zq-left-0");
    // Their records are adjacent, in pages that the same transaction changes repeatedly.
    for number in 2..8_u8 {
        let mut peer = Node::start(number, u64::from(number));
        exchange(&mut home, &mut peer);
        peer.retitle(entry, &format!("zq-left-{number}"));
        exchange(&mut home, &mut peer);
    }
    home.create("stays");
    let is_left = |node: &Node| {
        node.medium.disk().bytes().windows(8).any(|part| part == b"zq-left-".as_slice())
    };
    assert!(is_left(&home), "the search finds an existing text");
    home.run(Command::Forget { entry }).expect("the creator may");
    home.run(Command::Rewrite).expect("there is no reader");
    assert!(!is_left(&home));
}

#[test]
fn a_stranger_may_not_forget() {
    let (mut home, mut stranger) = (Node::start(1, 1), Node::start(2, 2));
    let entry = home.create("mine");
    exchange(&mut home, &mut stranger);
    let rejection = stranger.run(Command::Forget { entry }).unwrap_err();
    assert!(matches!(rejection, Rejection::NotEntitled(_)));
    assert_eq!(stranger.title(entry).as_deref(), Some("mine"));
}

/// The charter of a workspace that a node owns, with another node as its admin.
fn found(owner: &mut Node, admin: &Node) -> WorkspaceId {
    let nonce = Nonce::from_bytes([4; 16]);
    let workspace = WorkspaceId::of(owner.author(), nonce);
    let source =
        SourceKey { format: workspace_charter::FORMAT.into(), key: workspace_charter::KEY.into() };
    let claims = vec![ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string())];
    let (kind, memory, source) = (EntryType::Signal, Memory::Episodic, Some(source));
    let new = NewEntry { workspace, kind, memory, claims, source, ..lesson("team") };
    let entry = create(owner, new);
    let claims = vec![ClaimEdit::Add(TextSet::ADMINS, admin.author().to_string())];
    owner.run(Command::Claim { entry, claims }).expect("the owner may");
    workspace
}

#[test]
fn an_admin_can_forget_a_members_entry_until_removed() {
    let (mut owner, mut admin, mut member) =
        (Node::start(1, 1), Node::start(2, 2), Node::start(3, 3));
    let workspace = found(&mut owner, &admin);
    let [one, two] =
        ["one", "two"].map(|title| create(&mut member, NewEntry { workspace, ..lesson(title) }));
    for _ in 0..2 {
        exchange(&mut owner, &mut admin);
        exchange(&mut admin, &mut member);
    }
    admin.run(Command::Forget { entry: one }).expect("the admin may");
    exchange(&mut admin, &mut member);
    assert!(matches!(member.records(one), EntryRecords::Forgotten(_)), "by its own proof");
    for node in [&mut member, &mut admin] {
        let rejection =
            node.run(Command::Forget { entry: workspace_charter::entry(workspace) }).unwrap_err();
        assert!(matches!(rejection, Rejection::NotEntitled(_)), "it would end the workspace");
    }
    let claims = vec![ClaimEdit::Withdraw(TextSet::ADMINS, admin.author().to_string())];
    owner
        .run(Command::Claim { entry: workspace_charter::entry(workspace), claims })
        .expect("struck off");
    exchange(&mut owner, &mut admin);
    let rejection = admin.run(Command::Forget { entry: two }).unwrap_err();
    assert!(matches!(rejection, Rejection::NotEntitled(_)));
}

#[test]
fn concurrent_forgets_by_creator_and_admin_converge_on_one_tombstone() {
    let (mut owner, mut creator, mut admin) =
        (Node::start(9, 9), Node::start(1, 1), Node::start(2, 2));
    let workspace = found(&mut owner, &admin);
    let entry = create(&mut creator, NewEntry { workspace, ..lesson("shared") });
    exchange(&mut owner, &mut creator);
    exchange(&mut creator, &mut admin);
    admin.run(Command::Forget { entry }).expect("the admin may");
    creator.run(Command::Forget { entry }).expect("the creator may");
    // The two tombstones cross on the way.
    let (EntryRecords::Forgotten(one), EntryRecords::Forgotten(two)) =
        (creator.records(entry), admin.records(entry))
    else {
        panic!("not forgotten");
    };
    assert_ne!(one, two);
    admin.ingest(*one, creator.author());
    creator.ingest(*two, admin.author());
    assert_eq!(creator.everything(), admin.everything());
    assert_eq!(exchange(&mut creator, &mut admin), 0);
}

#[test]
fn an_import_is_one_entry_on_all_nodes_and_stays_forgotten() {
    let (mut one, mut two) = (Node::start(1, 1), Node::start(2, 2));
    let entry = create(&mut one, imported());
    assert_eq!(create(&mut two, imported()), entry);
    one.run(Command::Forget { entry }).expect("at home");
    let again = one.run(Command::Create(Box::new(imported()))).unwrap_err();
    assert!(matches!(again, Rejection::Forgotten(_)), "{again}");
    // Another person's node does not accept a stranger's tombstone for its own `main`.
    let EntryRecords::Forgotten(tombstone) = one.records(entry) else { panic!("not forgotten") };
    assert!(matches!(two.ingest(*tombstone, one.author()), IngestOutcome::Refused(_)));
    assert_eq!(two.title(entry).as_deref(), Some("imported"));
}
