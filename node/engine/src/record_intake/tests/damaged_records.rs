//! Own records that are dropped because they are damaged.

use super::*;
use crate::testing::{create, lesson};
use crate::{NewEntry, SourceKey};
use klnode_crdt::register::Register;

/// An imported entry, which can be retracted and written again.
fn line() -> NewEntry {
    let source = SourceKey { format: "jsonl".into(), key: "row 1".into() };
    NewEntry { source: Some(source), ..lesson("imported") }
}

#[test]
fn dropping_a_damaged_own_record_makes_the_engine_use_fresh_slots() {
    let (mut node, peer) = (engine(), key(9).author());
    let entry = create(&mut node, line());
    node.step(&[Command::Retract { entry }], NOW).remove(0).expect("taken back");
    assert_eq!(create(&mut node, line()), entry);
    let held = node.store().snapshot().unwrap().holding(entry, node.author()).unwrap();
    let of = |facet: Facet| held.facet(facet).next().cloned().expect("it is held");
    let (said, taken_back) = (of(Facet::Claims), of(Facet::Retraction));
    let batch = node.store().batch(Durability::Durable).unwrap();
    batch.corrupt_record(said.digest()).unwrap();
    batch.commit().unwrap();
    let first = node.boot();
    let told = bring(&mut node, vec![taken_back.clone()], peer);
    assert!(matches!(told[..], [IngestOutcome::Known]), "{told:?}");
    let second = node.boot();
    assert_ne!(second, first);
    bring(&mut node, vec![taken_back], peer);
    assert_eq!(node.boot(), second, "no damage is left");
    // As many records as before; the last would take the slot position of the damaged one.
    create(&mut node, line());
    let claims = vec![ClaimEdit::Set(Register::TITLE, "written anew".into())];
    node.step(&[Command::Claim { entry, claims }], NOW).remove(0).expect("claimed");
    let told = bring(&mut node, vec![said], peer);
    assert!(matches!(told[..], [IngestOutcome::Merged(_)]), "the peer's copy returns: {told:?}");
    assert!(!is_convicted(&node, OWN));
}
