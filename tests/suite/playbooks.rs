//! Playbooks: members edit one text apart and together, and all of them show the same text.

use klnode_crdt::edit::DocumentEdit;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::Record;
use klnode_crdt::signed_edit::EditPosition;
use klnode_document::change::CheckedChange;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_document::edit::EditContext;
use klnode_document::limits::AuthorQuota;
use klnode_engine::{
    Command, DeliveredRecord, DocumentCommand, IngestOutcome, NewEntry, Receipt, Rejection,
    RemovalCommand, open_document,
};
use klnode_federation::sim::Knobs;
use klnode_store::documents::DocumentRow;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_engine::in_workspace;

const TEXT: &str = "# Releasing\n\nTag the commit.\n\n# Review\n\nRead the tests first.\n";

fn new_playbook(workspace: WorkspaceId) -> NewEntry {
    NewEntry {
        kind: EntryType::Playbook,
        memory: Memory::Procedural,
        content: String::new(),
        ..in_workspace(workspace, "How we work")
    }
}

fn write(nodes: &mut Cluster, at: usize, workspace: WorkspaceId) -> EntryId {
    let new = Box::new(new_playbook(workspace));
    let command = DocumentCommand::Create { new, text: TEXT.into() };
    match nodes.run(at, Command::Document(command)).expect("a member may") {
        Receipt::Created(entry) => entry,
        other => panic!("no entry: {other:?}"),
    }
}

fn row(nodes: &mut Cluster, at: usize, entry: EntryId) -> DocumentRow {
    nodes.snapshot(at).document(entry).expect("readable").unwrap_or_default()
}

fn text(nodes: &mut Cluster, at: usize, entry: EntryId) -> String {
    row(nodes, at, entry).text
}

fn heads(nodes: &mut Cluster, at: usize, entry: EntryId) -> Vec<ChangeHash> {
    row(nodes, at, entry).heads.iter().map(|head| ChangeHash::from_bytes(**head)).collect()
}

/// Replaces a part of the present text at a node.
fn edit(nodes: &mut Cluster, at: usize, entry: EntryId, from: &str, to: &str) {
    let before = text(nodes, at, entry);
    assert!(before.contains(from), "{before}");
    let (base, text) = (heads(nodes, at, entry), before.replacen(from, to, 1));
    let command = DocumentCommand::Edit { entry, base, text };
    nodes.run(at, Command::Document(command)).expect("a member may");
}

/// A chain of four members; 0 owns the workspace.
fn team(seed: u64) -> (Cluster, WorkspaceId) {
    let mut nodes = Cluster::new(seed, 4, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3]);
    for (one, two) in [(0, 1), (1, 2), (2, 3)] {
        nodes.pair(one, two, false);
    }
    nodes.pass(REST_MS);
    (nodes, team)
}

fn remove(nodes: &mut Cluster, workspace: WorkspaceId, who: usize) {
    let member = nodes.author(who);
    let command = RemovalCommand::Remove { workspace, member, keep: Vec::new() };
    nodes.run(0, Command::Removal(command)).expect("the owner may");
}

fn assert_same(nodes: &mut Cluster, members: &[usize], entry: EntryId, expect: &str) {
    for at in members {
        assert_eq!(text(nodes, *at, entry), expect, "at {at}");
        let (snapshot, membership) = (nodes.snapshot(*at), nodes.membership(*at));
        let opened = open_document(&snapshot, &membership, entry).expect("readable");
        assert_eq!(opened.text(), expect, "a reader merges like the writer at {at}");
    }
}

#[test]
fn edits_made_apart_in_two_sections_and_in_one_sentence_all_stay() {
    let (mut nodes, team) = team(1);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, TEXT);
    nodes.part(3);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag the commit and push.");
    edit(&mut nodes, 3, entry, "Tag the commit.", "Sign and tag the commit.");
    edit(&mut nodes, 3, entry, "Read the tests first.", "Read the tests first. Then run them.");
    nodes.pass(REST_MS);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let expect = "# Releasing\n\nSign and tag the commit and push.\n\n# Review\n\nRead the tests \
                  first. Then run them.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
    let (snapshot, membership) = (nodes.snapshot(1), nodes.membership(1));
    let blame = open_document(&snapshot, &membership, entry).expect("readable").blame();
    let by = |line: &str| {
        let found = blame.iter().find(|of| of.text.starts_with(line)).expect("the line exists");
        found.authors.clone()
    };
    let mut both = vec![nodes.author(0), nodes.author(3)];
    both.sort_unstable();
    assert_eq!(by("Sign and tag"), both);
    assert_eq!(by("# Review"), [nodes.author(0)]);
}

#[test]
fn a_text_that_was_read_earlier_does_not_revert_the_edits_since() {
    let (mut nodes, team) = team(2);
    let entry = write(&mut nodes, 0, team);
    let base = heads(&mut nodes, 0, entry);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag the commit twice.");
    let text = TEXT.replace("Read the tests", "Read all tests");
    let command = DocumentCommand::Edit { entry, base, text };
    nodes.run(0, Command::Document(command)).expect("the version is known");
    nodes.pass(3 * REST_MS);
    let expect = "# Releasing\n\nTag the commit twice.\n\n# Review\n\nRead all tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
    let unknown = DocumentCommand::Edit {
        entry,
        base: vec![ChangeHash::from_bytes([7; 32])],
        text: "gone".into(),
    };
    let told = nodes.run(0, Command::Document(unknown)).unwrap_err();
    assert!(matches!(told, Rejection::NotEdited(_)), "{told}");
}

#[test]
fn restarts_copies_and_restored_homes_lose_no_edit() {
    let (mut nodes, team) = team(3);
    let entry = write(&mut nodes, 3, team);
    nodes.pass(3 * REST_MS);
    let copy = nodes.disk(3);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag the commit. One.");
    nodes.pass(3 * REST_MS);
    nodes.crash(3);
    nodes.restart(3);
    edit(&mut nodes, 3, entry, "One.", "One. Two.");
    nodes.pass(3 * REST_MS);
    // The old copy writes with a number that the lost process used already.
    nodes.crash(3);
    nodes.restart_on(3, copy);
    assert_eq!(text(&mut nodes, 3, entry), TEXT);
    nodes.part(3);
    edit(&mut nodes, 3, entry, "Read the tests", "Read all tests");
    nodes.pass(REST_MS);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let expect = "# Releasing\n\nTag the commit. One. Two.\n\n# Review\n\nRead all tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
}

#[test]
fn edits_of_a_removed_member_count_if_the_owner_held_them_or_a_member_built_on_them() {
    let (mut nodes, team) = team(4);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag the commit early.");
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    edit(&mut nodes, 3, entry, "Read the tests", "Read ALL the tests");
    nodes.pass(3 * REST_MS);
    // A member builds on an edit that the owner does not hold.
    edit(&mut nodes, 1, entry, "Read ALL the tests", "Read ALL the new tests");
    nodes.pass(REST_MS);
    remove(&mut nodes, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    edit(&mut nodes, 0, entry, "early", "late");
    nodes.pass(4 * REST_MS);
    let expect =
        "# Releasing\n\nTag the commit late.\n\n# Review\n\nRead ALL the new tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2], entry, expect);
    let (base, text) = (heads(&mut nodes, 3, entry), "mine now".to_owned());
    let edit = DocumentCommand::Edit { entry, base, text };
    let told = nodes.run(3, Command::Document(edit)).unwrap_err();
    assert!(matches!(told, Rejection::RemovedHere(_)), "the removed node knows: {told}");
}

#[test]
fn an_edit_outside_the_cut_on_which_no_member_built_disappears() {
    let (mut nodes, team) = team(5);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Delete the repository.");
    nodes.pass(3 * REST_MS);
    assert!(text(&mut nodes, 1, entry).contains("Delete"), "a member's edit counts");
    remove(&mut nodes, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2], entry, TEXT);
    let member = nodes.author(3);
    let back = RemovalCommand::Reinstate { workspace: team, member };
    nodes.run(0, Command::Removal(back)).expect("taken back");
    let again = klnode_crdt::record_builder::ClaimEdit::Add(
        klnode_crdt::claims::TextSet::MEMBERS,
        member.to_string(),
    );
    let charter = klnode_crdt::workspace_charter::entry(team);
    nodes.run(0, Command::Claim { entry: charter, claims: vec![again] }).expect("listed again");
    nodes.pass(4 * REST_MS);
    assert_same(
        &mut nodes,
        &[0, 1, 2, 3],
        entry,
        &TEXT.replace("Tag the commit", "Delete the repository"),
    );
}

#[test]
fn blocks_do_not_change_the_text() {
    let (mut nodes, team) = team(6);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let author = nodes.author(3);
    nodes.block(1, author, true);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag it.");
    nodes.pass(4 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, &TEXT.replace("Tag the commit.", "Tag it."));
}

fn is_on_disk(nodes: &Cluster, at: usize, bytes: &[u8]) -> bool {
    nodes.disk(at).bytes().windows(bytes.len()).any(|part| part == bytes)
}

#[test]
fn forgetting_a_playbook_erases_its_text_and_its_edits_everywhere() {
    let (mut nodes, team) = team(7);
    let entry = write(&mut nodes, 0, team);
    edit(&mut nodes, 0, entry, "Tag the commit.", "The password is swordfish.");
    edit(&mut nodes, 0, entry, "swordfish", "elsewhere");
    nodes.pass(3 * REST_MS);
    assert!(is_on_disk(&nodes, 2, b"swordfish"), "the history has it");
    nodes.run(0, Command::Forget { entry }).expect("its author may");
    nodes.pass(3 * REST_MS);
    for at in 0..4 {
        let snapshot = nodes.snapshot(at);
        assert_eq!(snapshot.document(entry).expect("readable"), None, "at {at}");
        assert!(snapshot.edits(entry).expect("readable").is_empty(), "at {at}");
        assert!(snapshot.check().expect("readable").is_empty(), "at {at}");
        drop(snapshot);
        nodes.run(at, Command::Rewrite).expect("the store is rewritten");
        assert!(!is_on_disk(&nodes, at, b"swordfish"), "at {at}");
    }
}

/// A hostile author with records of its own making.
struct Forger {
    key: SecretKey,
    entry: EntryId,
}

impl Forger {
    fn context(&self, boot: u64, number: u32) -> EditContext {
        let (author, time) = (self.key.author(), klnode_crdt::time::WallTime::from_millis(1));
        EditContext { author, boot: klnode_crdt::ids::Boot(boot), number, time }
    }

    fn sealed(&self, change: &CheckedChange) -> Record {
        let identity = change.identity();
        let edit = DocumentEdit { branch: identity.branch, change: change.bytes().to_vec() };
        self.record(edit, identity.boot.0, identity.number)
    }

    fn record(&self, edit: DocumentEdit, boot: u64, number: u32) -> Record {
        let at = EditPosition {
            entry: self.entry,
            boot: klnode_crdt::ids::Boot(boot),
            number,
            stamp: klnode_crdt::time::Hlc::from_bits(1),
        };
        edit.seal(&at, &self.key).expect("within the limits")
    }
}

fn deliver(nodes: &mut Cluster, at: usize, from: AuthorId, record: &Record) -> IngestOutcome {
    let command = Command::Ingest(vec![DeliveredRecord { record: record.clone(), from }]);
    match nodes.run(at, command).expect("the writer answers") {
        Receipt::Ingested(mut outcomes) => outcomes.remove(0),
        other => panic!("no outcome: {other:?}"),
    }
}

#[test]
fn forged_edits_are_refused_wait_or_count_for_nothing() {
    let (mut nodes, team) = team(8);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let (key, from) = (SecretKey::from_bytes(&[9; 32]), nodes.author(1));
    let forger = Forger { key, entry };
    let empty = TextDocument::new(AuthorQuota::FORMAT);
    let changes = empty.edit(&[], "hello", &forger.context(1, 1)).expect("an edit");
    // The bytes are a valid change, but the actor is that of another boot.
    let stolen = DocumentEdit { branch: 0, change: changes[0].bytes().to_vec() };
    for (what, record) in [
        ("another actor", forger.record(stolen.clone(), 2, 1)),
        ("no change", forger.record(DocumentEdit { change: b"junk".to_vec(), ..stolen }, 1, 1)),
    ] {
        let outcome = deliver(&mut nodes, 2, from, &record);
        assert!(matches!(outcome, IngestOutcome::Refused(_)), "{what}: {outcome:?}");
    }
    // An outsider's edit is stored and does not count.
    let outcome = deliver(&mut nodes, 2, from, &forger.sealed(&changes[0]));
    assert!(matches!(outcome, IngestOutcome::Merged(_)), "{outcome:?}");
    assert_eq!(text(&mut nodes, 2, entry), TEXT);
    assert_eq!(row(&mut nodes, 2, entry).left_out, 1);
    // An edit whose predecessor never comes waits.
    let mut longer = empty;
    longer.insert(changes.clone(), |_| true);
    let next = longer.edit(&longer.heads(), "hello there", &forger.context(1, 2)).expect("an edit");
    let other = Forger { key: SecretKey::from_bytes(&[9; 32]), entry };
    longer.insert(next.clone(), |_| true);
    let third = longer.edit(&longer.heads(), "hello you", &forger.context(1, 3)).expect("an edit");
    deliver(&mut nodes, 2, from, &other.sealed(&third[0]));
    assert_eq!(row(&mut nodes, 2, entry).waiting, 1);
    deliver(&mut nodes, 2, from, &other.sealed(&next[0]));
    assert_eq!(row(&mut nodes, 2, entry).waiting, 0);
    assert_eq!(text(&mut nodes, 2, entry), TEXT);
    assert!(nodes.snapshot(2).check().expect("readable").is_empty());
}

#[test]
fn outsiders_use_up_their_own_bytes_and_no_more() {
    let (mut nodes, team) = team(9);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let (key, from) = (SecretKey::from_bytes(&[9; 32]), nodes.author(1));
    let forger = Forger { key, entry };
    let mut document = TextDocument::new(AuthorQuota::FORMAT);
    let mut refused = 0;
    let mut whole = String::new();
    for number in 1..40 {
        // Text that automerge cannot shorten.
        let mut state = u64::from(number);
        for _ in 0..12_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            whole.push(char::from(b'a' + (state >> 59) as u8 % 26));
        }
        let made = document.edit(&document.heads(), &whole, &forger.context(1, number));
        let changes = made.expect("an edit");
        document.insert(changes.clone(), |_| true);
        let outcome = deliver(&mut nodes, 2, from, &forger.sealed(&changes[0]));
        refused += u32::from(matches!(outcome, IngestOutcome::Refused(_)));
    }
    assert!(refused > 10, "{refused}");
    let stored: usize = nodes
        .snapshot(2)
        .edits(entry)
        .expect("readable")
        .iter()
        .filter_map(|record| record.edit().map(|edit| edit.edit.change.len()))
        .sum();
    assert!(stored < 300 * 1024, "{stored}");
    edit(&mut nodes, 2, entry, "Tag the commit.", "Tag it.");
    assert!(text(&mut nodes, 2, entry).contains("Tag it."), "members still write");
    let lesson = nodes.create(0, in_workspace(team, "no playbook"));
    nodes.pass(2 * REST_MS);
    for at in 0..3 {
        assert_eq!(nodes.snapshot(at).document(lesson).expect("readable"), None, "at {at}");
    }
}

#[test]
fn two_edits_with_one_number_give_the_same_text_in_both_orders() {
    let orders = [[0, 1], [1, 0]].map(|order| {
        let (mut nodes, team) = team(10);
        let entry = write(&mut nodes, 0, team);
        nodes.pass(3 * REST_MS);
        let (snapshot, membership) = (nodes.snapshot(1), nodes.membership(1));
        let document = open_document(&snapshot, &membership, entry).expect("readable");
        drop(snapshot);
        // Node 3 signs two changes with one actor and sequence number.
        let forger = Forger { key: nodes.key(3), entry };
        let made = ["one", "two"].map(|word| {
            let text = format!("{TEXT}\n{word}\n");
            let changes = document.edit(&document.heads(), &text, &forger.context(77, 1));
            forger.sealed(&changes.expect("an edit")[0])
        });
        let from = nodes.author(3);
        for at in order {
            deliver(&mut nodes, 1, from, &made[at]);
        }
        text(&mut nodes, 1, entry)
    });
    assert_eq!(orders[0], orders[1]);
    assert!(orders[0].contains("one") != orders[0].contains("two"), "{}", orders[0]);
}
