//! Which peers may see a proof of equivocation, whose headers name an entry; and which records a
//! comparison reads.

use super::*;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::Nonce;
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::workspace_charter;
use klnode_engine::testing::{self, NOW, OWN, key, lesson};
use klnode_engine::{Command, DeliveredRecord, Engine, NewEntry, PeerCommand, SourceKey, refusal};
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};

mod read_cost;

// Peers, each with the number of its key.
const LIAR: u32 = 5;
const MINE: u32 = 21;
const KNOWS: u32 = 22;
const BROUGHT: u32 = 23;
const OTHER: u32 = 24;
const LATER: u32 = 25;

/// A shared workspace.
const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

fn peer(number: u32) -> AuthorId {
    key(number).author()
}

fn note(node: &mut Engine, act: PeerCommand) {
    node.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

fn approve(node: &mut Engine, number: u32, is_mine: bool) {
    let row = PeerRow { approval: PeerApproval::Approved, is_mine, ..PeerRow::default() };
    note(node, PeerCommand::Put(peer(number), Box::new(row)));
}

/// Two observations of an entry that one author signed with the same version.
fn twins(entry: EntryId) -> [Record; 2] {
    let (key, own) = (key(LIAR), LiveRecords::default());
    let writer = RecordBuilder { key: &key, boot: Boot(900), entry, own: &own };
    [1, 2].map(|at| {
        let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn convict(from: u32, entry: EntryId) -> PeerCommand {
    let [one, two] = twins(entry);
    let proof = EquivocationProof::find(one.signed_header(), two.signed_header())
        .expect("they contradict each other");
    PeerCommand::Convict(peer(from), Box::new(proof))
}

fn view(node: &Engine) -> StoreView {
    let snapshot = node.store().snapshot().unwrap();
    let membership = Arc::new(Membership::read(&snapshot, key(OWN).author(), NOW).unwrap());
    let (held, lost) = (BTreeSet::new(), BTreeMap::new());
    let (refused, waiting) = (OnceCell::new(), OnceCell::new());
    let store = node.store().id();
    StoreView { snapshot, membership, store, now: NOW, held, lost, refused, waiting }
}

/// Whether a peer finds the proof in its outbox, and whether it may read the proof.
fn hears(node: &Engine, number: u32) -> (bool, bool) {
    let view = view(node);
    let rows = view.outbox(peer(number), 0, 1_000).unwrap();
    let is_told = rows.iter().any(|(_, row)| *row == OutboxTarget::Proof(peer(LIAR)));
    (is_told, view.proof(peer(number), peer(LIAR)).unwrap().is_some())
}

#[test]
fn a_proof_goes_to_own_nodes_and_to_peers_that_may_know_its_entry() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, NewEntry { workspace: TEAM, ..lesson("Retries") });
    for number in [MINE, KNOWS, BROUGHT, OTHER] {
        approve(&mut node, number, number == MINE);
    }
    note(&mut node, PeerCommand::Release(peer(KNOWS), entry, true));
    // A peer that sends half of the proof need not have released the entry.
    let arrivals = twins(entry).into_iter().zip([MINE, BROUGHT]);
    let arrivals = arrivals.map(|(record, from)| DeliveredRecord { record, from: peer(from) });
    node.step(&[Command::Ingest(arrivals.collect())], NOW).remove(0).expect("taken");
    for number in [MINE, KNOWS, BROUGHT] {
        assert_eq!(hears(&node, number), (true, true), "{number}");
    }
    assert_eq!(hears(&node, OTHER), (false, false));
    // The entry is released to one peer, and the other becomes one of the person's own nodes.
    approve(&mut node, LATER, false);
    assert_eq!(hears(&node, LATER), (false, false));
    note(&mut node, PeerCommand::Release(peer(OTHER), entry, true));
    approve(&mut node, LATER, true);
    for number in [OTHER, LATER] {
        assert_eq!(hears(&node, number), (true, true), "{number}");
    }
    // The peer may no longer read a proof that it has not read yet.
    approve(&mut node, LATER, false);
    assert_eq!(hears(&node, LATER), (true, false));
}

#[test]
fn a_proof_about_a_personal_entry_goes_to_own_nodes_only() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, lesson("Retries"));
    for number in [MINE, BROUGHT] {
        approve(&mut node, number, number == MINE);
    }
    let arrivals = twins(entry).map(|record| DeliveredRecord { record, from: peer(BROUGHT) });
    node.step(&[Command::Ingest(arrivals.into())], NOW).remove(0).expect("taken");
    let is_given = |number: u32| view(&node).proof(peer(number), peer(LIAR)).unwrap().is_some();
    assert_eq!([MINE, BROUGHT].map(is_given), [true, false]);
}

#[test]
fn of_two_proofs_the_one_visible_to_more_peers_is_kept() {
    let mut node = testing::engine();
    let [personal, shared] =
        ["Retries", "Queues"].map(|title| testing::create(&mut node, lesson(title)));
    approve(&mut node, MINE, true);
    approve(&mut node, KNOWS, false);
    note(&mut node, PeerCommand::Release(peer(KNOWS), shared, true));
    for (entry, kept) in [(personal, personal), (shared, shared), (personal, shared)] {
        note(&mut node, convict(MINE, entry));
        let proof = node.store().snapshot().unwrap().equivocation(peer(LIAR)).unwrap();
        assert_eq!(proof.map(|proof| proof.entry()), Some(kept));
        let is_shared = kept == shared;
        assert_eq!(hears(&node, KNOWS), (is_shared, is_shared));
    }
}

/// The number of compared records and the rows that count as read.
fn compared(node: &Engine) -> (usize, u64) {
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    let (items, rows) = view(node).comparable(offer).unwrap();
    (items.len(), rows)
}

#[test]
fn only_the_tombstone_of_an_unreleased_entry_is_compared() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, lesson("Retries"));
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    node.step(&[Command::Observe { entry, of, amount }], NOW).remove(0).expect("observed");
    note(&mut node, PeerCommand::Release(peer(KNOWS), entry, true));
    assert_eq!(compared(&node), (2, 2));
    note(&mut node, PeerCommand::Release(peer(KNOWS), entry, false));
    assert_eq!(compared(&node), (0, 1), "only the release is read");
    node.step(&[Command::Forget { entry }], NOW).remove(0).expect("forgotten");
    assert_eq!(compared(&node), (1, 1), "both keep the tombstone");
}

#[test]
fn a_tombstone_that_a_peer_sent_is_always_compared_with_it() {
    let mut node = testing::engine();
    approve(&mut node, KNOWS, true);
    let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
    let (format, name) = ("jsonl".into(), "row 1".into());
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let (key, own, entry) = (key(KNOWS), LiveRecords::default(), origin.id());
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    let stone = Tombstone { origin, grounds: Grounds::Origin };
    let record = writer.forget(stone, Hlc::new(NOW, 1)).unwrap();
    let arrival = DeliveredRecord { record, from: peer(KNOWS) };
    node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("taken");
    assert_eq!(compared(&node).0, 1);
    approve(&mut node, KNOWS, false);
    assert_eq!(compared(&node).0, 1, "it is no longer an own node and still has the tombstone");
}

#[test]
fn of_an_unreleased_entry_only_the_peers_own_records_count() {
    // Other people must not learn that a personal entry was forgotten.
    for (workspace, stones) in [(TEAM, 1), (WorkspaceId::MAIN, 0)] {
        let mut node = testing::engine();
        let entry = testing::create(&mut node, NewEntry { workspace, ..lesson("Retries") });
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        node.step(&[Command::Observe { entry, of, amount }], NOW).remove(0).expect("observed");
        note(&mut node, PeerCommand::Released(peer(KNOWS), entry, true));
        assert_eq!(compared(&node), (0, 1), "as if there were no records");
        let (key, own, stamp) = (key(KNOWS), LiveRecords::default(), Hlc::new(NOW, 1));
        let arrivals = [1, 2, 3].map(|boot| {
            let writer = RecordBuilder { key: &key, boot: Boot(boot), entry, own: &own };
            let record = writer.observe(of, amount, NOW.day(), stamp).unwrap();
            DeliveredRecord { record, from: peer(KNOWS) }
        });
        node.step(&[Command::Ingest(arrivals.into())], NOW).remove(0).expect("taken");
        assert_eq!(compared(&node), (3, 3));
        node.step(&[Command::Forget { entry }], NOW).remove(0).expect("forgotten");
        assert_eq!(compared(&node), (stones, 1), "the author of the tombstone does not matter");
        let snapshot = node.store().snapshot().unwrap();
        let stone = snapshot.tombstone(entry).unwrap().expect("it was forgotten").digest();
        let given = view(&node).records_for(peer(KNOWS), &[stone]).unwrap();
        assert_eq!(given.len(), stones, "{workspace}");
    }
}

#[test]
fn a_refused_retraction_of_an_import_is_requested_again_only_from_own_nodes() {
    let (mut node, memory) = (testing::engine(), Memory::Semantic);
    let (workspace, format, name) = (WorkspaceId::MAIN, "jsonl".to_owned(), "row 1".to_owned());
    let source = Some(SourceKey { format: format.clone(), key: name.clone() });
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let own = LiveRecords::default();
    let refused = [MINE, OTHER].map(|number| {
        approve(&mut node, number, number == MINE);
        let key = key(number);
        let writer = RecordBuilder { key: &key, boot: Boot(900), entry: origin.id(), own: &own };
        let record = writer.retract(Some(origin.clone()), Hlc::new(NOW, 1)).unwrap();
        let offer = Offerer { peer: peer(number), store: StoreId::default() };
        let (slot, row) = refusal(&record, "its type is not in the filter".into());
        let row = RefusalRow { is_unknown: true, ..row };
        note(&mut node, PeerCommand::Refuse(offer, slot, Box::new(row)));
        (record.digest(), offer)
    });
    let stand = |node: &Engine| {
        refused.map(|(digest, offer)| view(node).is_refused(digest, offer).unwrap())
    };
    assert_eq!(stand(&node), [true, true]);
    testing::create(&mut node, NewEntry { source, ..lesson("Notes") });
    assert_eq!(stand(&node), [false, true], "a request would reveal the entry");
}

/// A claim of an author on the charter of a workspace, with its origin.
fn on_charter(workspace: WorkspaceId, number: u32, set: TextSet, text: String) -> Record {
    let (key, own, entry) =
        (key(number), LiveRecords::default(), workspace_charter::entry(workspace));
    let writer = RecordBuilder { key: &key, boot: Boot(900), entry, own: &own };
    let (origin, claims) = (workspace_charter::origin(workspace), [ClaimEdit::Add(set, text)]);
    writer.claim(&Entry::default(), Some(origin), &claims, Hlc::new(NOW, 1)).unwrap()
}

#[test]
fn a_record_refused_for_unknown_authors_is_requested_once_they_are_known() {
    let (mut node, nonce) = (testing::engine(), Nonce::default());
    let workspace = WorkspaceId::of(peer(LATER), nonce);
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(&mut node, PeerCommand::NameWorkspace(workspace, row));
    let by_admin = on_charter(workspace, OTHER, TextSet::MEMBERS, peer(MINE).to_string());
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    let refuse = |node: &mut Engine, is_unknown: bool| {
        let (slot, row) = refusal(&by_admin, "the entry is full".into());
        note(node, PeerCommand::Refuse(offer, slot, Box::new(RefusalRow { is_unknown, ..row })));
    };
    let is_refused = |node: &Engine| view(node).is_refused(by_admin.digest(), offer).unwrap();
    let bring = |node: &mut Engine, record: Record| {
        let arrival = DeliveredRecord { record, from: peer(KNOWS) };
        node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("taken");
    };
    refuse(&mut node, true);
    assert!(is_refused(&node), "the entry is unknown");
    bring(&mut node, on_charter(workspace, LIAR, TextSet::TAGS, "junk".into()));
    assert!(is_refused(&node), "the owner of the workspace is unknown");
    bring(&mut node, on_charter(workspace, LATER, TextSet::OWNER_NONCES, nonce.to_string()));
    assert!(!is_refused(&node), "its author may be a listed admin");
    refuse(&mut node, false);
    assert!(is_refused(&node), "it was requested again");
    refuse(&mut node, true);
    assert!(is_refused(&node));
}
