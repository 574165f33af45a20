//! Removals that an admin, a removed key or a lost record tries to undo.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, WorkspaceId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::{Absence, Record, RecordError};
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};

use klnode_crdt::register::Register;
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::workspace_charter;
use klnode_engine::{
    Command, DeliveredRecord, IngestOutcome, REMOVED, Receipt, Rejection, RemovalCommand,
};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_engine::in_workspace;

/// A chain of four members; 0 owns the workspace.
fn chain(seed: u64) -> (Cluster, WorkspaceId) {
    let mut nodes = Cluster::new(seed, 4, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3]);
    for (one, two) in [(0, 1), (1, 2), (2, 3)] {
        nodes.pair(one, two, false);
    }
    nodes.pass(REST_MS);
    (nodes, team)
}

fn remove(
    nodes: &mut Cluster,
    by: usize,
    workspace: WorkspaceId,
    who: usize,
) -> Result<Receipt, Rejection> {
    let member = nodes.author(who);
    let command = RemovalCommand::Remove { workspace, member, keep: Vec::new() };
    nodes.run(by, Command::Removal(command))
}

fn charter_claim(nodes: &mut Cluster, by: usize, team: WorkspaceId, claim: ClaimEdit) {
    let entry = workspace_charter::entry(team);
    nodes.run(by, Command::Claim { entry, claims: vec![claim] }).expect("it may");
}

fn make_admin(nodes: &mut Cluster, team: WorkspaceId, who: usize) {
    let author = nodes.author(who).to_string();
    charter_claim(nodes, 0, team, ClaimEdit::Add(TextSet::ADMINS, author));
    nodes.pass(2 * REST_MS);
}

fn title(entry: EntryId, text: &str) -> Command {
    Command::Claim { entry, claims: vec![ClaimEdit::Set(Register::TITLE, text.into())] }
}

/// The title that a node shows; `None` if it shows none.
fn shown(nodes: &mut Cluster, at: usize, entry: EntryId) -> Option<String> {
    let (snapshot, membership, now) = (nodes.snapshot(at), nodes.membership(at), nodes.now(at));
    let held = snapshot.entry(entry).expect("readable").to_entry();
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    let view = held.view(now, &membership.entitlement(workspace));
    view.text(Register::TITLE).map(str::to_owned)
}

fn is_out(nodes: &mut Cluster, at: usize, team: WorkspaceId, who: AuthorId) -> bool {
    let shared = nodes.membership(at).workspaces.remove(&team);
    shared.is_some_and(|shared| shared.charter.removed.contains_key(&who))
}

fn deliver(nodes: &mut Cluster, at: usize, records: Vec<Record>) -> Vec<IngestOutcome> {
    let from = nodes.author(1);
    let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
    match nodes.run(at, Command::Ingest(arrivals)).expect("the writer answers") {
        Receipt::Ingested(outcomes) => outcomes,
        other => panic!("no outcome: {other:?}"),
    }
}

fn set_aside(nodes: &mut Cluster, at: usize) -> Vec<(Digest, EntryId)> {
    let rows = nodes.snapshot(at).quarantine().expect("readable");
    let rows = rows.map(|row| row.expect("readable"));
    let rows = rows.filter(|(_, row)| row.reason == REMOVED);
    rows.map(|(digest, row)| {
        let record = Record::read_back(&row.record, Absence::Stripped);
        (digest, record.expect("it was stored").entry())
    })
    .collect()
}

#[test]
fn an_admin_cannot_forget_the_pages_of_its_removal_in_advance() {
    let (mut nodes, team) = chain(21);
    make_admin(&mut nodes, team, 3);
    let member = nodes.author(3);
    let charter = nodes.membership(3).workspaces.remove(&team).expect("named").charter;
    let held = nodes.snapshot(3).entry(workspace_charter::entry(team)).expect("readable");
    let grant = charter.admin_grant(&held.to_entry(), member).expect("it is an admin");
    let page = RemovalPage { workspace: team, member, number: 0 };
    let (key, own) = (nodes.key(3), LiveRecords::default());
    let builder = RecordBuilder { key: &key, boot: Boot(1), entry: page.entry(), own: &own };
    let tombstone = Tombstone { origin: page.origin(), grounds: Grounds::Admin(grant) };
    // Every node checks the same when it reads a record.
    let sealed = builder.forget(tombstone, Hlc::from_bits(1 << 20));
    assert!(matches!(sealed, Err(RecordError::NotEntitled)), "{sealed:?}");
    remove(&mut nodes, 0, team, 3).expect("the owner may");
    nodes.pass(2 * REST_MS);
    for at in 0..4 {
        assert!(is_out(&mut nodes, at, team, member), "at {at}");
    }
}

#[test]
fn a_cut_does_not_shrink_when_the_admin_who_made_it_is_removed() {
    let (mut nodes, team) = chain(22);
    nodes.pair(0, 2, false);
    make_admin(&mut nodes, team, 1);
    let entry = nodes.create(3, in_workspace(team, "first"));
    nodes.pass(2 * REST_MS);
    // The owner and the admin remove the member apart, and only the admin holds the second title.
    nodes.part(0);
    remove(&mut nodes, 0, team, 3).expect("the owner may");
    nodes.run(3, title(entry, "second")).expect("it does not know");
    nodes.pass(2 * REST_MS);
    remove(&mut nodes, 1, team, 3).expect("an admin may");
    nodes.heal();
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("second"), "at {at}");
    }
    remove(&mut nodes, 0, team, 1).expect("the owner may");
    nodes.pass(4 * REST_MS);
    for at in [0, 2] {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("second"), "at {at}");
    }
}

#[test]
fn members_that_leave_with_an_admin_are_removed_and_told() {
    let (mut nodes, team) = chain(23);
    nodes.pair(0, 3, false);
    make_admin(&mut nodes, team, 2);
    let member = nodes.author(3);
    charter_claim(&mut nodes, 2, team, ClaimEdit::Add(TextSet::MEMBERS, member.to_string()));
    nodes.pass(2 * REST_MS);
    charter_claim(&mut nodes, 0, team, ClaimEdit::Withdraw(TextSet::MEMBERS, member.to_string()));
    nodes.pass(2 * REST_MS);
    remove(&mut nodes, 0, team, 2).expect("the owner may");
    nodes.pass(4 * REST_MS);
    assert!(is_out(&mut nodes, 0, team, member) && is_out(&mut nodes, 1, team, member));
    let told = nodes.run(3, Command::Create(Box::new(in_workspace(team, "more")))).unwrap_err();
    assert!(matches!(told, Rejection::RemovedHere(_)), "{told}");
}

#[test]
fn a_lifted_tombstone_brings_back_no_entry_that_its_creator_forgot() {
    let (mut nodes, team) = chain(24);
    make_admin(&mut nodes, team, 3);
    let entries: Vec<EntryId> =
        (0..8).map(|at| nodes.create(2, in_workspace(team, &format!("entry {at}")))).collect();
    nodes.pass(2 * REST_MS);
    // The two nodes forget the entries apart, and the owner hears of neither.
    nodes.part_side(&[0, 1]);
    nodes.part_side(&[0, 1, 2]);
    let mut digests = [Vec::new(), Vec::new()];
    for entry in &entries {
        for (at, digests) in [2, 3].into_iter().zip(&mut digests) {
            nodes.run(at, Command::Forget { entry: *entry }).expect("it may");
            let tombstone = nodes.snapshot(at).tombstone(*entry).expect("readable");
            digests.push(tombstone.expect("it is forgotten").digest());
        }
    }
    let is_lower = |(by_creator, by_admin): (&Digest, &Digest)| by_admin < by_creator;
    assert!(digests[0].iter().zip(&digests[1]).any(is_lower), "one of the admin's goes first");
    remove(&mut nodes, 0, team, 3).expect("the owner may");
    // The two tombstones meet before the removal is known.
    let by_admin = entries.iter().map(|entry| {
        let tombstone = nodes.snapshot(3).tombstone(*entry).expect("readable");
        tombstone.expect("it is forgotten")
    });
    let by_admin: Vec<Record> = by_admin.collect();
    deliver(&mut nodes, 2, by_admin);
    nodes.heal();
    nodes.pass(6 * REST_MS);
    for at in 0..3 {
        for entry in &entries {
            assert_eq!(shown(&mut nodes, at, *entry), None, "at {at}");
            let tombstone = nodes.snapshot(at).tombstone(*entry).expect("readable");
            let author = tombstone.map(|of| of.author());
            assert_eq!(author, Some(nodes.author(2)), "at {at}");
        }
    }
}

#[test]
fn a_charter_record_that_was_set_aside_is_not_adopted() {
    let (mut nodes, team) = chain(25);
    make_admin(&mut nodes, team, 2);
    make_admin(&mut nodes, team, 1);
    nodes.part(0);
    let (stranger, victim) = (AuthorId::from_bytes([9; 32]), nodes.author(3));
    charter_claim(&mut nodes, 2, team, ClaimEdit::Add(TextSet::MEMBERS, stranger.to_string()));
    // The admin also removes a member.
    remove(&mut nodes, 2, team, 3).expect("an admin may");
    nodes.pass(2 * REST_MS);
    remove(&mut nodes, 0, team, 2).expect("the owner may");
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let aside = set_aside(&mut nodes, 1);
    let charter = workspace_charter::entry(team);
    let page = RemovalPage { workspace: team, member: victim, number: 0 }.entry();
    for entry in [charter, page] {
        assert!(aside.iter().any(|(_, of)| *of == entry), "{aside:?}");
    }
    for (digest, _) in aside {
        let adopt = Command::Removal(RemovalCommand::Adopt(digest));
        let told = nodes.run(1, adopt).unwrap_err();
        assert!(matches!(told, Rejection::NotQuarantined(_)), "{told}");
    }
    let members = nodes.membership(1).workspaces.remove(&team).expect("named").charter.members;
    assert!(!members.contains(&stranger) && members.contains(&victim));
}

#[test]
fn records_that_find_no_room_when_they_return_stay_set_aside() {
    let (mut nodes, team) = chain(26);
    let entry = nodes.create(0, in_workspace(team, "by the owner"));
    nodes.pass(2 * REST_MS);
    let (key, own) = (nodes.key(3), LiveRecords::default());
    let record = |boot: u64| {
        let builder = RecordBuilder { key: &key, boot: Boot(boot), entry, own: &own };
        let claims = [ClaimEdit::Add(TextSet::TAGS, format!("tag/{boot}"))];
        let stamp = Hlc::from_bits(1 << 20);
        builder.claim(&Entry::default(), None, &claims, stamp).expect("within the limits")
    };
    let many = LIVE_SLOTS_MAX as u64 * 2 / 3;
    let (kept, others) = ((1..=many).map(record), (many + 1..=2 * many).map(record));
    let (kept, others): (Vec<Record>, Vec<Record>) = (kept.collect(), others.collect());
    // The owner holds some records of the member, its neighbour others.
    deliver(&mut nodes, 0, kept.clone());
    deliver(&mut nodes, 1, others);
    remove(&mut nodes, 0, team, 3).expect("the owner may");
    let member = nodes.author(3);
    let page = RemovalPage { workspace: team, member, number: 0 }.entry();
    let tell = |nodes: &mut Cluster| {
        let records = nodes.snapshot(0).whole_records(page).expect("readable");
        deliver(nodes, 1, records);
    };
    tell(&mut nodes);
    assert_eq!(set_aside(&mut nodes, 1).len() as u64, many);
    deliver(&mut nodes, 1, kept);
    let back = RemovalCommand::Reinstate { workspace: team, member };
    nodes.run(0, Command::Removal(back)).expect("taken back");
    tell(&mut nodes);
    let count = |nodes: &mut Cluster| {
        let records = nodes.snapshot(1).whole_records(entry).expect("readable");
        records.iter().filter(|of| of.author() == member).count()
    };
    let (held, aside) = (count(&mut nodes), set_aside(&mut nodes, 1).len());
    assert_eq!(held, LIVE_SLOTS_MAX);
    assert_eq!((held + aside) as u64, 2 * many, "no record is lost");
}
