//! Own records that are dropped because they are damaged.

use super::*;
use crate::engine::testing::{create, lesson};
use crate::engine::{NewEntry, SourceKey};
use klnode_crdt::lww::Register;

/// A line of a file: an entry that can be taken back and written again.
fn line() -> NewEntry {
    let source = SourceKey { format: "jsonl".into(), key: "row 1".into() };
    NewEntry { source: Some(source), ..lesson("imported") }
}

#[test]
fn a_life_that_drops_a_damaged_record_of_its_own_writes_into_fresh_slots() {
    let (mut node, peer) = (engine(), key(9).author());
    let entry = create(&mut node, line());
    node.step(&[Command::Retract { entry }], NOW).remove(0).expect("taken back");
    assert_eq!(create(&mut node, line()), entry);
    let held = node.store().snapshot().unwrap().holding(entry, node.author()).unwrap();
    let of = |facet: Facet| held.facet(facet).next().cloned().expect("it is held");
    let (said, taken_back) = (of(Facet::Claims), of(Facet::Retraction));
    let batch = node.store().batch(Durability::Durable).unwrap();
    batch.spoil(said.digest()).unwrap();
    batch.commit().unwrap();
    let first = node.boot();
    let told = bring(&mut node, vec![taken_back.clone()], peer);
    assert!(matches!(told[..], [Ingested::Known]), "{told:?}");
    let second = node.boot();
    assert_ne!(second, first);
    bring(&mut node, vec![taken_back], peer);
    assert_eq!(node.boot(), second, "nothing is damaged by now");
    // As many as were written before: the last of them would stand where the damaged one did.
    create(&mut node, line());
    let claims = vec![Claim::Set(Register::TITLE, "written anew".into())];
    node.step(&[Command::Claim { entry, claims }], NOW).remove(0).expect("claimed");
    let told = bring(&mut node, vec![said], peer);
    assert!(matches!(told[..], [Ingested::Merged(_)]), "what a peer held comes back: {told:?}");
    assert!(!is_convicted(&node, OWN));
}
