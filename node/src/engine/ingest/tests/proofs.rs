//! Proofs of equivocation that are made here: two records that contradict each other are one.

use super::*;
use crate::engine::peers::PROOFS_TOLD_MAX;
use crate::engine::testing::{engine_on, lesson};
use crate::store::peers::Society;
use crate::store::peers::rows::WorkspaceRow;
use crate::store::{FileMedium, Options, Store};
use klnode_crdt::charter;
use klnode_crdt::ids::StoreId;

/// A node to which a peer has proved as much about made-up keys as is kept of one peer.
fn told_enough(peer: AuthorId) -> Engine {
    let mut node = engine();
    let numbers = 1_000..1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.map(|number| convict(peer, number)).collect();
    node.step(&[Command::Peers(acts)], NOW).remove(0).expect("noted");
    node
}

fn convicted(node: &Engine) -> u64 {
    node.store().snapshot().unwrap().convicted().unwrap().len() as u64
}

/// Two observations that somebody signed as one, of an entry of its own.
fn two_apart(number: u32) -> [Record; 2] {
    let mut bytes = [5; 16];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    let entry = EntryId::from_bytes(bytes);
    [1, 2].map(|at| {
        with_writer(number, |writer| {
            let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
            let writer = Writer { entry, ..writer };
            writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
        })
    })
}

#[test]
fn records_that_contradict_each_other_convict_as_many_made_up_keys_as_proofs_do() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..1_008 + PROOFS_MAX as u32;
    // Each of another entry: of one so many unknown authors are not heard.
    let told = bring(&mut node, numbers.flat_map(two_apart).collect(), peer);
    let is_taken = |one: &Ingested| matches!(one, Ingested::Merged(_) | Ingested::Known);
    assert!(told.iter().all(is_taken), "the records themselves are as welcome as any");
    assert_eq!(convicted(&node), PROOFS_MAX);
    let own = node.author();
    bring(&mut node, two_apart(22).into(), own);
    assert_eq!(convicted(&node), PROOFS_MAX, "a file is one more peer");
    // Whoever is known here is convicted all the same, and so is this node.
    note(&mut node, PeerAct::Put(key(20).author(), Box::default()));
    for number in [20, OWN] {
        bring(&mut node, two_apart(number).into(), peer);
        assert!(is_convicted(&node, number), "{number}");
    }
}

#[test]
fn which_of_two_contradicting_records_is_held_is_the_same_without_the_proof() {
    let peer = key(9).author();
    let mut full = told_enough(peer);
    let held = |node: &Engine, number: u32| -> Vec<Digest> {
        let snapshot = node.store().snapshot().unwrap();
        let held = snapshot.holding(entry(), key(number).author()).unwrap();
        held.records().map(Record::digest).collect()
    };
    for (number, is_reversed) in [(22, false), (23, true)] {
        let mut twins = two_as_one(number).to_vec();
        if is_reversed {
            twins.reverse();
        }
        let mut other = engine();
        bring(&mut full, twins.clone(), peer);
        bring(&mut other, twins.clone(), peer);
        assert!(!is_convicted(&full, number) && is_convicted(&other, number));
        let greatest = twins.iter().map(Record::digest).max();
        assert_eq!(held(&full, number), Vec::from_iter(greatest));
        assert_eq!(held(&other, number), held(&full, number));
        // However often they come.
        bring(&mut full, twins, peer);
        assert_eq!(held(&other, number), held(&full, number));
        let said = full.store().snapshot().unwrap().entry(entry()).unwrap().to_entry();
        let tally = &said.tallies[&key(number).author()];
        assert_eq!(tally.successes.total(NOW.day(), &tally.reset), Thousandths::ONE);
    }
}

#[test]
fn however_many_peers_tell_of_them_so_many_unknown_authors_are_convicted() {
    let mut node = engine();
    let told = |node: &mut Engine, peer: u32, count: u64| {
        let (from, first) = (key(peer).author(), peer * 10_000);
        let acts = (first..first + count as u32).flat_map(|number| {
            [PeerAct::Distance(key(number).author(), from, 0), convict(from, number)]
        });
        node.step(&[Command::Peers(acts.collect())], NOW).remove(0).expect("noted");
    };
    let peers = (PROOFS_TOLD_MAX / PROOFS_OF_PEER_MAX) as u32;
    for peer in 0..peers {
        told(&mut node, 100 + peer, PROOFS_OF_PEER_MAX);
    }
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX);
    told(&mut node, 200, 1);
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX, "enough are told of");
    note(&mut node, PeerAct::Put(key(200 * 10_000).author(), Box::default()));
    told(&mut node, 200, 1);
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX + 1, "this one is known");
}

/// A workspace that is known here, and the charter that lists somebody.
fn workspace_with(node: &mut Engine, member: u32) -> Record {
    let (owner, nonce, own) = (key(30), Nonce::default(), Holding::default());
    let id = WorkspaceId::of(owner.author(), nonce);
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(node, PeerAct::NameWorkspace(id, row));
    let claims = [
        Claim::Add(TextSet::OWNER_NONCES, nonce.to_string()),
        Claim::Add(TextSet::MEMBERS, key(member).author().to_string()),
    ];
    let writer = Writer { key: &owner, boot: Boot(900), entry: charter::entry(id), own: &own };
    let origin = Some(charter::origin(id));
    writer.claim(&<_>::default(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

#[test]
fn a_member_is_convicted_by_anyone_also_if_it_was_listed_in_the_same_step() {
    let peer = key(9).author();
    let mut node = told_enough(peer);
    let listed = workspace_with(&mut node, 22);
    let twins = || two_as_one(22).into_iter().chain(two_as_one(23));
    bring(&mut node, twins().chain([listed]).chain(twins()).collect(), peer);
    assert!(is_convicted(&node, 22));
    assert!(!is_convicted(&node, 23), "nobody knows it");
}

#[test]
fn who_is_who_names_convicted_peers_and_members_and_no_made_up_key() {
    let peer = key(9).author();
    let mut node = told_enough(peer);
    let listed = workspace_with(&mut node, 22);
    note(&mut node, PeerAct::Put(key(20).author(), Box::default()));
    let twins = two_as_one(20).into_iter().chain(two_as_one(22));
    bring(&mut node, [listed].into_iter().chain(twins).collect(), peer);
    assert_eq!(convicted(&node), PROOFS_OF_PEER_MAX + 2);
    let snapshot = node.store().snapshot().unwrap();
    let society = Society::read(&snapshot, node.author(), NOW).unwrap();
    assert_eq!(society.unheard, [20, 22].map(|number| key(number).author()).into());
}

#[test]
fn proofs_that_could_not_be_written_are_not_counted_against_who_brought_them() {
    let folder = tempfile::tempdir().unwrap();
    let medium = FileMedium::new(folder.path().join("store.redb"));
    let store = Store::open(Box::new(medium), &Options::new(StoreId::default())).unwrap();
    let mut node = engine_on(store, |_| panic!("as a damaged page would"));
    let numbers = 1_000..1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.map(|number| convict(key(9).author(), number)).collect();
    let create = Command::Create(Box::new(lesson("met by the panic")));
    let told = node.step_over(&[Command::Peers(acts), create], NOW);
    assert!(matches!(told[..], [Ok(_), Err(_)]), "the second is what fails: {told:?}");
    assert_eq!(convicted(&node), PROOFS_OF_PEER_MAX);
}
