//! Who may see a proof that somebody signed two things as one: its headers name an entry. And what is
//! read to compare.

use super::*;
use crate::engine::testing::{self, NOW, OWN, key, lesson};
use crate::engine::{Arrival, Command, Engine, NewEntry, PeerAct, SourceKey, refusal};
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::Nonce;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::writer::{Claim, Writer};

mod costs;

// Peers, each with the number of its key.
const LIAR: u32 = 5;
const MINE: u32 = 21;
const KNOWS: u32 = 22;
const BROUGHT: u32 = 23;
const OTHER: u32 = 24;
const LATER: u32 = 25;

/// A workspace that is not this person's alone.
const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

fn peer(number: u32) -> AuthorId {
    key(number).author()
}

fn note(node: &mut Engine, act: PeerAct) {
    node.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

fn approve(node: &mut Engine, number: u32, is_mine: bool) {
    let row = PeerRow { approval: Approval::Approved, is_mine, ..PeerRow::default() };
    note(node, PeerAct::Put(peer(number), Box::new(row)));
}

/// Two observations of an entry that somebody signed as one.
fn twins(entry: EntryId) -> [Record; 2] {
    let (key, own) = (key(LIAR), Holding::default());
    let writer = Writer { key: &key, boot: Boot(900), entry, own: &own };
    [1, 2].map(|at| {
        let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn convict(from: u32, entry: EntryId) -> PeerAct {
    let [one, two] = twins(entry);
    let proof = Proof::find(one.signed(), two.signed()).expect("they contradict each other");
    PeerAct::Convict(peer(from), Box::new(proof))
}

fn view(node: &Engine) -> StoreView {
    let snapshot = node.store().snapshot().unwrap();
    let society = Arc::new(Society::read(&snapshot, key(OWN).author(), NOW).unwrap());
    let (held, lost) = (BTreeSet::new(), BTreeMap::new());
    let (refused, waiting) = (OnceCell::new(), OnceCell::new());
    let store = node.store().id();
    StoreView { snapshot, society, store, now: NOW, held, lost, refused, waiting }
}

/// Whether a peer finds the proof in its outbox, and whether it is given to it.
fn hears(node: &Engine, number: u32) -> (bool, bool) {
    let view = view(node);
    let rows = view.outbox(peer(number), 0, 1_000).unwrap();
    let is_told = rows.iter().any(|(_, row)| *row == Outgoing::Proof(peer(LIAR)));
    (is_told, view.proof(peer(number), peer(LIAR)).unwrap().is_some())
}

#[test]
fn a_proof_goes_to_ones_own_machines_and_to_peers_that_may_know_of_its_entry() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, NewEntry { workspace: TEAM, ..lesson("Retries") });
    for number in [MINE, KNOWS, BROUGHT, OTHER] {
        approve(&mut node, number, number == MINE);
    }
    note(&mut node, PeerAct::Release(peer(KNOWS), entry, true));
    // Who brings half of it need not have told of the entry before.
    let arrivals = twins(entry).into_iter().zip([MINE, BROUGHT]);
    let arrivals = arrivals.map(|(record, from)| Arrival { record, from: peer(from) });
    node.step(&[Command::Ingest(arrivals.collect())], NOW).remove(0).expect("taken");
    for number in [MINE, KNOWS, BROUGHT] {
        assert_eq!(hears(&node, number), (true, true), "{number}");
    }
    assert_eq!(hears(&node, OTHER), (false, false));
    // The entry is released to one, and the other is one's own by now.
    approve(&mut node, LATER, false);
    assert_eq!(hears(&node, LATER), (false, false));
    note(&mut node, PeerAct::Release(peer(OTHER), entry, true));
    approve(&mut node, LATER, true);
    for number in [OTHER, LATER] {
        assert_eq!(hears(&node, number), (true, true), "{number}");
    }
    // What it has not read it is not given any more.
    approve(&mut node, LATER, false);
    assert_eq!(hears(&node, LATER), (true, false));
}

#[test]
fn a_proof_that_names_what_is_this_persons_alone_is_given_to_nobody_for_what_it_brought_of_that() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, lesson("Retries"));
    for number in [MINE, BROUGHT] {
        approve(&mut node, number, number == MINE);
    }
    let arrivals = twins(entry).map(|record| Arrival { record, from: peer(BROUGHT) });
    node.step(&[Command::Ingest(arrivals.into())], NOW).remove(0).expect("taken");
    let is_given = |number: u32| view(&node).proof(peer(number), peer(LIAR)).unwrap().is_some();
    assert_eq!([MINE, BROUGHT].map(is_given), [true, false]);
}

#[test]
fn of_two_proofs_against_one_author_the_one_is_kept_that_more_may_see() {
    let mut node = testing::engine();
    let [personal, shared] =
        ["Retries", "Queues"].map(|title| testing::create(&mut node, lesson(title)));
    approve(&mut node, MINE, true);
    approve(&mut node, KNOWS, false);
    note(&mut node, PeerAct::Release(peer(KNOWS), shared, true));
    for (entry, kept) in [(personal, personal), (shared, shared), (personal, shared)] {
        note(&mut node, convict(MINE, entry));
        let proof = node.store().snapshot().unwrap().equivocation(peer(LIAR)).unwrap();
        assert_eq!(proof.map(|proof| proof.entry()), Some(kept));
        let is_shared = kept == shared;
        assert_eq!(hears(&node, KNOWS), (is_shared, is_shared));
    }
}

/// How much is compared with a peer, and how many rows count as read for it.
fn compared(node: &Engine) -> (usize, u64) {
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    let (items, rows) = view(node).comparable(offer).unwrap();
    (items.len(), rows)
}

#[test]
fn of_what_passes_neither_way_nothing_is_read_to_compare_but_a_tombstone() {
    let mut node = testing::engine();
    let entry = testing::create(&mut node, lesson("Retries"));
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    node.step(&[Command::Observe { entry, of, amount }], NOW).remove(0).expect("observed");
    note(&mut node, PeerAct::Release(peer(KNOWS), entry, true));
    assert_eq!(compared(&node), (2, 2));
    note(&mut node, PeerAct::Release(peer(KNOWS), entry, false));
    assert_eq!(compared(&node), (0, 1), "the release alone is looked at");
    node.step(&[Command::Forget { entry }], NOW).remove(0).expect("forgotten");
    assert_eq!(compared(&node), (1, 1), "both keep the tombstone");
}

#[test]
fn a_tombstone_that_a_peer_has_brought_is_compared_with_it_whatever_it_may_hear_by_now() {
    let mut node = testing::engine();
    approve(&mut node, KNOWS, true);
    let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
    let (format, name) = ("jsonl".into(), "row 1".into());
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let (key, own, entry) = (key(KNOWS), Holding::default(), origin.id());
    let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
    let stone = Tombstone { origin, grounds: Grounds::Origin };
    let record = writer.forget(stone, Hlc::new(NOW, 1)).unwrap();
    let arrival = Arrival { record, from: peer(KNOWS) };
    node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("taken");
    assert_eq!(compared(&node).0, 1);
    approve(&mut node, KNOWS, false);
    assert_eq!(compared(&node).0, 1, "it is no longer one's own, and has it all the same");
}

#[test]
fn of_what_is_not_released_to_a_peer_only_its_own_records_count_as_read() {
    // That what is this person's alone was forgotten is nobody else's to hear.
    for (workspace, stones) in [(TEAM, 1), (WorkspaceId::MAIN, 0)] {
        let mut node = testing::engine();
        let entry = testing::create(&mut node, NewEntry { workspace, ..lesson("Retries") });
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        node.step(&[Command::Observe { entry, of, amount }], NOW).remove(0).expect("observed");
        note(&mut node, PeerAct::Released(peer(KNOWS), entry, true));
        assert_eq!(compared(&node), (0, 1), "as if nobody had said anything");
        let (key, own, stamp) = (key(KNOWS), Holding::default(), Hlc::new(NOW, 1));
        let arrivals = [1, 2, 3].map(|boot| {
            let writer = Writer { key: &key, boot: Boot(boot), entry, own: &own };
            let record = writer.observe(of, amount, NOW.day(), stamp).unwrap();
            Arrival { record, from: peer(KNOWS) }
        });
        node.step(&[Command::Ingest(arrivals.into())], NOW).remove(0).expect("taken");
        assert_eq!(compared(&node), (3, 3));
        node.step(&[Command::Forget { entry }], NOW).remove(0).expect("forgotten");
        assert_eq!(compared(&node), (stones, 1), "whose tombstone it is does not matter");
        let snapshot = node.store().snapshot().unwrap();
        let stone = snapshot.tombstone(entry).unwrap().expect("it was forgotten").digest();
        let given = view(&node).records_for(peer(KNOWS), &[stone]).unwrap();
        assert_eq!(given.len(), stones, "{workspace}");
    }
}

#[test]
fn what_was_refused_of_an_import_is_asked_for_once_that_is_here_but_not_where_it_stays_here() {
    let (mut node, memory) = (testing::engine(), Memory::Semantic);
    let (workspace, format, name) = (WorkspaceId::MAIN, "jsonl".to_owned(), "row 1".to_owned());
    let source = Some(SourceKey { format: format.clone(), key: name.clone() });
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let own = Holding::default();
    let refused = [MINE, OTHER].map(|number| {
        approve(&mut node, number, number == MINE);
        let key = key(number);
        let writer = Writer { key: &key, boot: Boot(900), entry: origin.id(), own: &own };
        let record = writer.retract(Some(origin.clone()), Hlc::new(NOW, 1)).unwrap();
        let offer = Offerer { peer: peer(number), store: StoreId::default() };
        let (slot, row) = refusal(&record, "its type is not in the filter".into());
        let row = RefusalRow { is_unknown: true, ..row };
        note(&mut node, PeerAct::Refuse(offer, slot, Box::new(row)));
        (record.digest(), offer)
    });
    let stand = |node: &Engine| {
        refused.map(|(digest, offer)| view(node).is_refused(digest, offer).unwrap())
    };
    assert_eq!(stand(&node), [true, true]);
    testing::create(&mut node, NewEntry { source, ..lesson("Notes") });
    assert_eq!(stand(&node), [false, true], "to ask would be to tell that it is here");
}

/// What somebody says on the charter of a workspace, with its origin.
fn on_charter(workspace: WorkspaceId, number: u32, set: TextSet, text: String) -> Record {
    let (key, own, entry) = (key(number), Holding::default(), charter::entry(workspace));
    let writer = Writer { key: &key, boot: Boot(900), entry, own: &own };
    let (origin, claims) = (charter::origin(workspace), [Claim::Add(set, text)]);
    writer.claim(&Entry::default(), Some(origin), &claims, Hlc::new(NOW, 1)).unwrap()
}

#[test]
fn what_was_refused_before_it_was_known_who_has_a_say_is_asked_for_once_that_is_known() {
    let (mut node, nonce) = (testing::engine(), Nonce::default());
    let workspace = WorkspaceId::of(peer(LATER), nonce);
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(&mut node, PeerAct::NameWorkspace(workspace, row));
    let by_admin = on_charter(workspace, OTHER, TextSet::MEMBERS, peer(MINE).to_string());
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    let refuse = |node: &mut Engine, is_unknown: bool| {
        let (slot, row) = refusal(&by_admin, "the entry is full".into());
        note(node, PeerAct::Refuse(offer, slot, Box::new(RefusalRow { is_unknown, ..row })));
    };
    let is_refused = |node: &Engine| view(node).is_refused(by_admin.digest(), offer).unwrap();
    let bring = |node: &mut Engine, record: Record| {
        let arrival = Arrival { record, from: peer(KNOWS) };
        node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("taken");
    };
    refuse(&mut node, true);
    assert!(is_refused(&node), "nothing is known of the entry");
    bring(&mut node, on_charter(workspace, LIAR, TextSet::TAGS, "junk".into()));
    assert!(is_refused(&node), "whose workspace it is is not");
    bring(&mut node, on_charter(workspace, LATER, TextSet::OWNER_NONCES, nonce.to_string()));
    assert!(!is_refused(&node), "now it may be somebody's who is listed");
    refuse(&mut node, false);
    assert!(is_refused(&node), "it was asked for again");
    refuse(&mut node, true);
    assert!(is_refused(&node));
}
