//! What a record does on its way in beside being merged: where a mistake would show much later, and
//! somewhere else.

use super::*;
use crate::engine::{Arrival, Command, Engine, Limits, Receipt, Setup, TaskParams};
use crate::store::peers::rows::Way;
use crate::store::{Durability, MemoryMedium, Options, Store};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, StoreId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use std::collections::BTreeSet;

const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
const OWN: u32 = 1;
const OTHER: u32 = 2;

fn key(number: u32) -> SecretKey {
    let mut bytes = [3; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_bytes(&bytes)
}

/// A node that holds nothing, and whose random numbers count up.
fn engine() -> Engine {
    let options = Options::new(StoreId::from_bytes([1; 16]));
    let store = Store::open(Box::new(MemoryMedium), &options).unwrap();
    let mut drawn = 0_u8;
    let setup = Setup {
        key: key(OWN),
        mine: BTreeSet::new(),
        entropy: Box::new(move |bytes: &mut [u8]| {
            drawn += 1;
            bytes.fill(drawn);
        }),
        judge: Box::new(|_: &Record, _: Source| Verdict::Admit),
        durability: Durability::Durable,
        cooccurrence: klnode_scoring::cooccurrence::Params::default(),
        tasks: TaskParams::default(),
    };
    Engine::start(store, setup, NOW).unwrap()
}

/// The origin of an entry that somebody else has created.
fn origin() -> Origin {
    Origin::Created {
        creator: key(OTHER).author(),
        stamp: Hlc::new(NOW, 0),
        nonce: Nonce::default(),
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
    }
}

fn entry() -> EntryId {
    origin().id()
}

fn with_writer<T>(number: u32, write: impl FnOnce(Writer<'_>) -> T) -> T {
    let (key, own) = (key(number), Holding::default());
    write(Writer { key: &key, boot: Boot(900), entry: entry(), own: &own })
}

fn observation(number: u32) -> Record {
    let stamp = Hlc::new(NOW, 1);
    with_writer(number, |writer| {
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn retraction(number: u32) -> Record {
    with_writer(number, |writer| writer.retract(None, Hlc::new(NOW, 1)).unwrap())
}

fn bring(engine: &mut Engine, records: Vec<Record>, from: AuthorId) -> Vec<Ingested> {
    let arrivals = records.into_iter().map(|record| Arrival { record, from }).collect();
    match engine.step(&[Command::Ingest(arrivals)], NOW).remove(0) {
        Ok(Receipt::Ingested(told)) => told,
        other => panic!("no answer about the records: {other:?}"),
    }
}

#[test]
fn retractions_and_tombstones_take_back_and_nothing_else_does() {
    let stamp = Hlc::new(NOW, 1);
    let forget = |writer: Writer<'_>| {
        let stone = Tombstone { origin: origin(), grounds: Grounds::Origin };
        writer.forget(stone, stamp).unwrap()
    };
    let claim = |writer: Writer<'_>| writer.claim(&<_>::default(), None, &[], stamp).unwrap();
    assert!(takes_back(&retraction(OTHER)));
    assert!(takes_back(&with_writer(OTHER, forget)));
    assert!(!takes_back(&observation(OTHER)));
    assert!(!takes_back(&with_writer(OTHER, claim)));
}

#[test]
fn only_an_own_record_that_this_life_did_not_write_makes_it_draw_a_new_boot() {
    let (mut node, peer) = (engine(), key(9).author());
    let first = node.boot();
    bring(&mut node, vec![observation(OTHER), observation(9)], peer);
    assert_eq!(node.boot(), first, "others write into slots of their own");
    bring(&mut node, vec![observation(OWN)], peer);
    let second = node.boot();
    assert_ne!(second, first);
    assert!(matches!(bring(&mut node, vec![observation(OWN)], peer)[..], [Ingested::Known]));
    assert_eq!(node.boot(), second, "it is known by now");
}

#[test]
fn a_peer_releases_what_it_brings_unless_that_only_comes_back_or_takes_back() {
    for (record, expect) in [
        (observation(OTHER), Way::Open),
        (observation(OWN), Way::Ended),
        (retraction(OTHER), Way::Ended),
        (retraction(OWN), Way::Ended),
    ] {
        let (mut node, peer) = (engine(), key(9).author());
        bring(&mut node, vec![record], peer);
        let snapshot = node.store().snapshot().unwrap();
        assert_eq!(snapshot.release(peer, entry()).unwrap().back, expect);
        let nobody = key(10).author();
        assert_eq!(snapshot.release(nobody, entry()).unwrap().back, Way::Never);
    }
}

#[test]
fn of_an_entry_without_a_known_author_a_peer_brings_as_many_unknown_ones_as_of_any_other() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let (mut node, peer) = (engine(), key(9).author());
    let strangers = (1_000_u32..).map(observation).take(max + 1).collect();
    let told = bring(&mut node, strangers, peer);
    let (taken, beyond) = told.split_at(max);
    assert!(taken.iter().all(|one| matches!(one, Ingested::Merged(_))));
    assert!(matches!(beyond, [Ingested::Refused(_)]), "{beyond:?}");
    let late = bring(&mut node, vec![observation(9_000)], peer);
    assert!(matches!(late[..], [Ingested::Refused(_)]), "{late:?}");
    let own = bring(&mut node, vec![observation(9)], peer);
    assert!(matches!(own[..], [Ingested::Merged(_)]), "it speaks for itself: {own:?}");
}
