//! Forged and excessive edits of a playbook: they count for nothing, and erase nothing.

use crate::support::playbook_team::{
    Forger, TEXT, assert_same, deliver, edit, heads, new_playbook, remove, row, team, text, write,
};
use crate::support::row_damage::strike;
use klnode_crdt::claims::TextSet;
use klnode_crdt::document_edit::DocumentEdit;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::limits::EDIT_COPIES_MAX;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::workspace_charter;
use klnode_document::document::TextDocument;
use klnode_document::limits::AuthorQuota;
use klnode_engine::{
    Command, DeliveredRecord, DocumentCommand, IngestOutcome, PeerCommand, Receipt, Rejection,
    open_document, refusal,
};
use klnode_federation::proto::Offerer;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::disk::Disk;
use klnode_tests::test_engine::in_workspace;
use redb::{Database, ReadableTable, TableDefinition};

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

/// The document that a node merges.
fn document(nodes: &mut Cluster, at: usize, entry: EntryId) -> TextDocument {
    let (snapshot, membership) = (nodes.snapshot(at), nodes.membership(at));
    open_document(&snapshot, &membership, entry).expect("readable")
}

/// The present text with one more line, as an edit by another key.
fn another_line(nodes: &mut Cluster, at: usize, by: &Forger, line: &str) -> Record {
    let document = document(nodes, at, by.entry);
    let text = format!("{}{line}\n", document.text());
    let made = document.edit(&document.heads(), &text, &by.context(77, 1));
    by.sealed(&made.expect("an edit")[0])
}

/// As many copies of an edit's number as a node keeps, all with lesser digests.
fn lesser_copies(by: &Forger, of: &Record) -> Vec<Record> {
    let empty = TextDocument::new(AuthorQuota::FORMAT);
    let copies = (100..).map(|boot| {
        let made = empty.edit(&[], &format!("forged {boot}\n"), &by.context(boot, 1));
        by.sealed(&made.expect("an edit")[0])
    });
    copies.filter(|copy| copy.digest() < of.digest()).take(EDIT_COPIES_MAX).collect()
}

fn records(nodes: &mut Cluster, at: usize, entry: EntryId) -> Vec<Record> {
    nodes.snapshot(at).whole_records(entry).expect("readable")
}

fn deliver_all(
    nodes: &mut Cluster,
    at: usize,
    from: AuthorId,
    records: Vec<Record>,
) -> Vec<IngestOutcome> {
    let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
    match nodes.run(at, Command::Ingest(arrivals)).expect("the writer answers") {
        Receipt::Ingested(outcomes) => outcomes,
        other => panic!("no outcome: {other:?}"),
    }
}

#[test]
fn copies_of_a_number_erase_neither_an_edit_in_a_cut_nor_the_work_built_on_it() {
    for are_copies_first in [false, true] {
        let (mut nodes, team) = team(11);
        let entry = write(&mut nodes, 0, team);
        nodes.pass(3 * REST_MS);
        let (forger, from) = (Forger { key: nodes.key(3), entry }, nodes.author(1));
        let first = another_line(&mut nodes, 1, &forger, "by the member");
        let copies = lesser_copies(&forger, &first);
        if are_copies_first {
            nodes.part(2);
            let outcomes = deliver_all(&mut nodes, 2, from, copies.clone());
            assert!(outcomes.iter().all(|of| matches!(of, IngestOutcome::Merged(_))));
        }
        deliver(&mut nodes, 1, from, &first);
        edit(&mut nodes, 1, entry, "by the member", "by the member and another");
        nodes.pass(2 * REST_MS);
        remove(&mut nodes, team, 3);
        nodes.pass(2 * REST_MS);
        nodes.heal();
        nodes.pass(4 * REST_MS);
        for at in 0..3 {
            deliver_all(&mut nodes, at, from, copies.clone());
        }
        nodes.pass(4 * REST_MS);
        let expect = format!("{TEXT}by the member and another\n");
        assert_same(&mut nodes, &[0, 1, 2], entry, &expect);
        for at in 0..3 {
            assert!(nodes.digests(at, entry).contains(&first.digest()), "at {at}");
            assert_eq!(row(&mut nodes, at, entry).waiting, 0, "at {at}");
        }
    }
}

#[test]
fn copies_of_a_number_do_not_erase_an_edit_that_another_member_built_on() {
    for are_copies_first in [false, true] {
        let (mut nodes, team) = team(12);
        let entry = write(&mut nodes, 0, team);
        nodes.pass(3 * REST_MS);
        let (forger, from) = (Forger { key: nodes.key(3), entry }, nodes.author(1));
        let first = another_line(&mut nodes, 1, &forger, "by the member");
        let copies = lesser_copies(&forger, &first);
        nodes.part(2);
        if are_copies_first {
            deliver_all(&mut nodes, 2, from, copies.clone());
        }
        deliver(&mut nodes, 1, from, &first);
        edit(&mut nodes, 1, entry, "by the member", "by the member and another");
        nodes.heal();
        nodes.pass(4 * REST_MS);
        deliver_all(&mut nodes, 2, from, copies);
        nodes.pass(6 * REST_MS);
        for at in 0..4 {
            let shown = text(&mut nodes, at, entry);
            assert!(shown.contains("by the member and another"), "at {at}: {shown}");
            assert!(nodes.digests(at, entry).contains(&first.digest()), "at {at}");
        }
        let shown: Vec<String> = (0..4).map(|at| text(&mut nodes, at, entry)).collect();
        assert!(shown.iter().all(|text| *text == shown[0]), "{shown:?}");
    }
}

/// Edits by a key until their bytes exceed the limit of an author that is no member, oldest first.
fn long_edits(by: &Forger) -> (TextDocument, Vec<Record>) {
    let mut document = TextDocument::new(AuthorQuota::FORMAT);
    let (mut whole, mut records, mut bytes) = (String::new(), Vec::new(), 0);
    for number in 1_u32.. {
        let mut state = u64::from(number);
        for _ in 0..12_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            whole.push(char::from(b'a' + (state >> 59) as u8 % 26));
        }
        let made = document.edit(&document.heads(), &whole, &by.context(5, number));
        let changes = made.expect("an edit");
        document.insert(changes.clone(), |_| true);
        bytes += changes[0].bytes().len();
        records.push(by.sealed(&changes[0]));
        if bytes > 300 * 1024 {
            break;
        }
    }
    (document, records)
}

#[test]
fn edits_in_a_cut_are_accepted_beyond_the_bytes_of_an_outsider() {
    let (mut nodes, team) = team(13);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    let (member, from) = (nodes.author(3), nodes.author(1));
    let (_, edits) = long_edits(&Forger { key: nodes.key(3), entry });
    deliver_all(&mut nodes, 0, from, edits.clone());
    remove(&mut nodes, team, 3);
    let page = RemovalPage { workspace: team, member, number: 0 }.entry();
    let removal = records(&mut nodes, 0, page);
    deliver_all(&mut nodes, 2, from, removal);
    assert!(!nodes.membership(2).is_member(member, team));
    let outcomes = deliver_all(&mut nodes, 2, from, edits);
    let is_merged = |of: &IngestOutcome| matches!(of, IngestOutcome::Merged(_));
    assert!(outcomes.iter().all(is_merged), "{outcomes:?}");
    assert_eq!(text(&mut nodes, 2, entry), text(&mut nodes, 0, entry));
}

#[test]
fn an_edit_that_a_later_one_of_its_delivery_needs_is_not_refused_for_good() {
    let (mut nodes, team) = team(14);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let outsider = Forger { key: SecretKey::from_bytes(&[9; 32]), entry };
    let (mut document, mut edits) = long_edits(&outsider);
    let needed = edits.pop().expect("there are many");
    let from = nodes.author(1);
    let outcomes = deliver_all(&mut nodes, 2, from, edits.clone());
    assert!(matches!(outcomes.last(), Some(IngestOutcome::Refused(_))), "{outcomes:?}");
    let refuse = |nodes: &mut Cluster, record: &Record, outcome: &IngestOutcome| {
        let IngestOutcome::Refused(reason) = outcome else { panic!("{outcome:?}") };
        let offer = Offerer { peer: from, store: nodes.store(1) };
        let (slot, row) = refusal(record, reason.clone());
        let refuse = PeerCommand::Refuse(offer, slot, Box::new(row));
        nodes.run(2, Command::Peers(vec![refuse])).expect("noted");
        let refused = nodes.refusals(2, 1);
        refused.into_iter().any(|(digest, _)| digest == record.digest())
    };
    // No edit needs this one.
    let (last, outcome) = (edits.last().expect("many"), outcomes.last().expect("many"));
    assert!(refuse(&mut nodes, last, outcome));
    // A member, whose node holds all edits of the outsider, built on them.
    let member = Forger { key: nodes.key(1), entry };
    let whole = document.text().replacen('a', "", 1);
    let made = document.edit(&document.heads(), &whole, &member.context(8, 1));
    let changes = made.expect("an edit");
    document.insert(changes.clone(), |_| true);
    let delivery = vec![needed.clone(), member.sealed(&changes[0])];
    let outcomes = deliver_all(&mut nodes, 2, from, delivery);
    assert!(matches!(outcomes[1], IngestOutcome::Merged(_)), "{outcomes:?}");
    assert!(!refuse(&mut nodes, &needed, &outcomes[0]), "the refusal is void");
    assert_eq!(nodes.refusals(2, 1), [], "and so is the earlier one");
    for record in edits.iter().chain([&needed]).rev() {
        deliver(&mut nodes, 2, from, record);
    }
    assert_eq!(row(&mut nodes, 2, entry).waiting, 0);
}

#[test]
fn a_node_that_is_no_member_can_neither_write_nor_edit_a_playbook() {
    let (mut nodes, team) = team(15);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let author = nodes.author(3).to_string();
    let unlist = ClaimEdit::Withdraw(TextSet::MEMBERS, author);
    let charter = workspace_charter::entry(team);
    nodes.run(0, Command::Claim { entry: charter, claims: vec![unlist] }).expect("the owner may");
    // The node is told nothing, but a copy of the charter may reach it.
    let (records, from) = (records(&mut nodes, 0, charter), nodes.author(2));
    deliver_all(&mut nodes, 3, from, records);
    let (base, text) = (heads(&mut nodes, 3, entry), "mine".to_owned());
    let change = DocumentCommand::Edit { entry, base, text: text.clone() };
    let new = Box::new(new_playbook(team));
    for command in [change, DocumentCommand::Create { new, text }] {
        let told = nodes.run(3, Command::Document(command)).unwrap_err();
        assert!(matches!(told, Rejection::NotMember(_)), "{told}");
    }
}

/// Replaces bytes of the stored text of a document by as many others.
fn rewrite_stored_text(disk: &Disk, entry: EntryId, from: &[u8], to: &[u8]) {
    const DOCUMENTS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("documents");
    assert_eq!(from.len(), to.len());
    let database = Database::builder().create_with_backend(disk.clone()).expect("it opens");
    let transaction = database.begin_write().expect("no other writer");
    {
        let mut table = transaction.open_table(DOCUMENTS).expect("it exists");
        let row = table.get(entry.as_bytes()).expect("readable");
        let mut row = row.expect("it is stored").value().to_vec();
        let at = row.windows(from.len()).position(|part| part == from).expect("it is there");
        row[at..at + from.len()].copy_from_slice(to);
        table.insert(entry.as_bytes(), row.as_slice()).expect("written");
    }
    transaction.commit().expect("committed");
}

fn claim_on_charter(nodes: &mut Cluster, team: WorkspaceId, claim: ClaimEdit) {
    let entry = workspace_charter::entry(team);
    nodes.run(0, Command::Claim { entry, claims: vec![claim] }).expect("the owner may");
}

#[test]
fn a_charter_change_merges_only_the_documents_of_the_authors_concerned() {
    let (mut nodes, team) = team(16);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag every commit.");
    nodes.pass(3 * REST_MS);
    // A mark in the stored text shows whether the document is merged again.
    nodes.crash(0);
    let disk = nodes.disk(0);
    rewrite_stored_text(&disk, entry, b"every", b"EVERY");
    nodes.restart_on(0, disk);
    claim_on_charter(&mut nodes, team, ClaimEdit::Set(Register::TITLE, "renamed".into()));
    let stranger = SecretKey::from_bytes(&[9; 32]).author().to_string();
    claim_on_charter(&mut nodes, team, ClaimEdit::Add(TextSet::MEMBERS, stranger));
    assert!(text(&mut nodes, 0, entry).contains("EVERY"), "nothing was merged");
    let editor = nodes.author(3).to_string();
    claim_on_charter(&mut nodes, team, ClaimEdit::Withdraw(TextSet::MEMBERS, editor.clone()));
    assert_eq!(text(&mut nodes, 0, entry), TEXT);
    claim_on_charter(&mut nodes, team, ClaimEdit::Add(TextSet::MEMBERS, editor));
    assert_eq!(text(&mut nodes, 0, entry), TEXT.replace("the commit", "every commit"));
}

#[test]
fn a_damaged_charter_leaves_the_text_as_it_is_until_it_is_whole_again() {
    let (mut nodes, team) = team(17);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.part(1);
    let charter = workspace_charter::entry(team);
    let whole = records(&mut nodes, 1, charter);
    let of_owner = whole.iter().find(|of| of.header().facet == Facet::Claims).expect("its claims");
    strike(&mut nodes, 1, of_owner, 200);
    assert!(nodes.membership(1).is_damaged(team));
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag every commit.");
    let (edits, from) = (records(&mut nodes, 0, entry), nodes.author(0));
    deliver_all(&mut nodes, 1, from, edits);
    assert_eq!(text(&mut nodes, 1, entry), TEXT);
    let (base, mine) = (heads(&mut nodes, 1, entry), "mine".to_owned());
    let edit = DocumentCommand::Edit { entry, base, text: mine };
    assert!(nodes.run(1, Command::Document(edit)).is_err(), "the members are unknown");
    nodes.heal();
    nodes.pass(4 * REST_MS);
    assert!(!nodes.membership(1).is_damaged(team));
    let expect = TEXT.replace("the commit", "every commit");
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, &expect);
}
