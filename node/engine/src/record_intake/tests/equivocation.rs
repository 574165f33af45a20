//! Equivocation proofs formed on this node: two contradicting records are a proof.

use super::*;
use crate::peer_command_handling::PROOFS_TOLD_MAX;
use crate::testing::{engine_on, lesson};
use klnode_crdt::ids::StoreId;
use klnode_crdt::workspace_charter;
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::WorkspaceRow;
use klnode_store::{FileMedium, Options, Store};

/// A node for which one peer has used up its share of proofs about unknown keys.
fn with_proof_limit_reached(peer: AuthorId) -> Engine {
    let mut node = engine();
    let numbers = 1_000..1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.map(|number| convict(peer, number)).collect();
    node.step(&[Command::Peers(acts)], NOW).remove(0).expect("noted");
    node
}

fn convicted(node: &Engine) -> u64 {
    node.store().snapshot().unwrap().convicted_authors().unwrap().len() as u64
}

/// Two observations of the author's own entry, signed under the same counter.
fn two_apart(number: u32) -> [Record; 2] {
    let mut bytes = [5; 16];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    let entry = EntryId::from_bytes(bytes);
    [1, 2].map(|at| {
        with_writer(number, |writer| {
            let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
            let writer = RecordBuilder { entry, ..writer };
            writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
        })
    })
}

#[test]
fn contradicting_records_share_the_limits_of_delivered_proofs() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..1_008 + PROOFS_MAX as u32;
    // Each about another entry, since one entry accepts fewer unknown authors.
    let told = bring(&mut node, numbers.flat_map(two_apart).collect(), peer);
    let is_taken =
        |one: &IngestOutcome| matches!(one, IngestOutcome::Merged(_) | IngestOutcome::Known);
    assert!(told.iter().all(is_taken), "the records themselves are accepted");
    assert_eq!(convicted(&node), PROOFS_MAX);
    let own = node.author();
    bring(&mut node, two_apart(22).into(), own);
    assert_eq!(convicted(&node), PROOFS_MAX, "a file counts as one more peer");
    // Known authors are convicted all the same, and so is this node.
    note(&mut node, PeerCommand::Put(key(20).author(), Box::default()));
    for number in [20, OWN] {
        bring(&mut node, two_apart(number).into(), peer);
        assert!(is_convicted(&node, number), "{number}");
    }
}

#[test]
fn the_stored_one_of_two_contradicting_records_does_not_depend_on_the_proof() {
    let peer = key(9).author();
    let mut full = with_proof_limit_reached(peer);
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
        // Repeated deliveries change nothing.
        bring(&mut full, twins, peer);
        assert_eq!(held(&other, number), held(&full, number));
        let said = full.store().snapshot().unwrap().entry(entry()).unwrap().to_entry();
        let tally = &said.tallies[&key(number).author()];
        assert_eq!(tally.successes.total(NOW.day(), &tally.reset), Thousandths::ONE);
    }
}

#[test]
fn convictions_of_unknown_authors_are_limited_over_all_peers() {
    let mut node = engine();
    let told = |node: &mut Engine, peer: u32, count: u64| {
        let (from, first) = (key(peer).author(), peer * 10_000);
        let acts = (first..first + count as u32).flat_map(|number| {
            [PeerCommand::Distance(key(number).author(), from, 0), convict(from, number)]
        });
        node.step(&[Command::Peers(acts.collect())], NOW).remove(0).expect("noted");
    };
    let peers = (PROOFS_TOLD_MAX / PROOFS_OF_PEER_MAX) as u32;
    for peer in 0..peers {
        told(&mut node, 100 + peer, PROOFS_OF_PEER_MAX);
    }
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX);
    told(&mut node, 200, 1);
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX, "the limit is reached");
    note(&mut node, PeerCommand::Put(key(200 * 10_000).author(), Box::default()));
    told(&mut node, 200, 1);
    assert_eq!(convicted(&node), PROOFS_TOLD_MAX + 1, "this author is known");
}

/// Names a workspace, and returns the charter that lists a member.
fn workspace_with(node: &mut Engine, member: u32) -> Record {
    let (owner, nonce, own) = (key(30), Nonce::default(), LiveRecords::default());
    let id = WorkspaceId::of(owner.author(), nonce);
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(node, PeerCommand::NameWorkspace(id, row));
    let claims = [
        ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string()),
        ClaimEdit::Add(TextSet::MEMBERS, key(member).author().to_string()),
    ];
    let writer = RecordBuilder {
        key: &owner,
        boot: Boot(900),
        entry: workspace_charter::entry(id),
        own: &own,
    };
    let origin = Some(workspace_charter::origin(id));
    writer.claim(&<_>::default(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

#[test]
fn any_peer_can_convict_a_member_listed_in_the_same_step() {
    let peer = key(9).author();
    let mut node = with_proof_limit_reached(peer);
    let listed = workspace_with(&mut node, 22);
    let twins = || two_as_one(22).into_iter().chain(two_as_one(23));
    bring(&mut node, twins().chain([listed]).chain(twins()).collect(), peer);
    assert!(is_convicted(&node, 22));
    assert!(!is_convicted(&node, 23), "the author is unknown");
}

#[test]
fn membership_lists_convicted_peers_and_members_but_no_unknown_key() {
    let peer = key(9).author();
    let mut node = with_proof_limit_reached(peer);
    let listed = workspace_with(&mut node, 22);
    note(&mut node, PeerCommand::Put(key(20).author(), Box::default()));
    let twins = two_as_one(20).into_iter().chain(two_as_one(22));
    bring(&mut node, [listed].into_iter().chain(twins).collect(), peer);
    assert_eq!(convicted(&node), PROOFS_OF_PEER_MAX + 2);
    let snapshot = node.store().snapshot().unwrap();
    let membership = Membership::read(&snapshot, node.author(), NOW).unwrap();
    assert_eq!(membership.unheard, [20, 22].map(|number| key(number).author()).into());
}

#[test]
fn proofs_that_were_not_written_do_not_count_against_the_delivering_peer() {
    let folder = tempfile::tempdir().unwrap();
    let medium = FileMedium::new(folder.path().join("store.redb"));
    let store = Store::open(Box::new(medium), &Options::new(StoreId::default())).unwrap();
    let mut node = engine_on(store, |_| panic!("as a damaged page would"));
    let numbers = 1_000..1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.map(|number| convict(key(9).author(), number)).collect();
    let create = Command::Create(Box::new(lesson("causes the panic")));
    let told = node.step_catching_panics(&[Command::Peers(acts), create], NOW);
    assert!(matches!(told[..], [Ok(_), Err(_)]), "the second fails: {told:?}");
    assert_eq!(convicted(&node), PROOFS_OF_PEER_MAX);
}
