//! Private entries of this person: peers receive nothing about them, even if they refer to them.

use super::*;
use crate::testing::{create, lesson};
use crate::{NewEntry, SourceKey};

const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);
// Another person's node, and another machine of this person.
const PEER: u32 = 9;
const LAPTOP: u32 = 10;

/// The entry's workspace, the delivering peer, and whether that peer receives the tombstone.
const CASES: [(WorkspaceId, u32, bool); 5] = [
    (WorkspaceId::LOCAL, PEER, false),
    (WorkspaceId::LOCAL, LAPTOP, false),
    (WorkspaceId::MAIN, PEER, false),
    (WorkspaceId::MAIN, LAPTOP, true),
    (TEAM, PEER, true),
];

/// A node that knows both.
fn acquainted() -> Engine {
    let mut node = engine();
    for (number, is_mine) in [(PEER, false), (LAPTOP, true)] {
        let row = PeerRow { approval: PeerApproval::Approved, is_mine, ..PeerRow::default() };
        note(&mut node, PeerCommand::Put(key(number).author(), Box::new(row)));
    }
    node
}

/// An observation of an entry.
fn counted(number: u32, entry: EntryId) -> Record {
    let (of, stamp) = (Observation::Success, Hlc::new(NOW, 1));
    with_writer(number, |writer| {
        RecordBuilder { entry, ..writer }.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn run(node: &mut Engine, command: Command) {
    node.step(&[command], NOW).remove(0).expect("done");
}

/// Whether anything was ever queued in a peer's outbox.
fn is_notified(node: &Engine, number: u32) -> bool {
    node.store().snapshot().unwrap().outbox_head(key(number).author()).unwrap() > 0
}

#[test]
fn a_peer_that_delivers_a_record_of_a_private_entry_gets_no_tombstone() {
    for (workspace, by, hears) in CASES {
        let mut node = acquainted();
        let entry = create(&mut node, NewEntry { workspace, ..lesson("Retries") });
        run(&mut node, Command::Forget { entry });
        let told = bring(&mut node, vec![counted(by, entry)], key(by).author());
        assert!(matches!(told[..], [IngestOutcome::Forgotten]), "{told:?}");
        assert_eq!(is_notified(&node, by), hears, "{workspace} {by}");
    }
}

#[test]
fn records_about_a_later_private_import_give_a_peer_no_tombstone() {
    for (workspace, by, hears) in CASES {
        let (mut node, from) = (acquainted(), key(by).author());
        let (format, name) = ("jsonl".to_owned(), "row 1".to_owned());
        let source = Some(SourceKey { format: format.clone(), key: name.clone() });
        let memory = Memory::Semantic;
        let entry = Origin::Imported { workspace, memory, format, key: name }.id();
        note(&mut node, PeerCommand::Released(from, entry, true));
        bring(&mut node, vec![counted(by, entry)], from);
        let new = NewEntry { workspace, source, ..lesson("Retries") };
        assert_eq!(create(&mut node, new), entry);
        run(&mut node, Command::Retract { entry });
        if workspace.is_personal() {
            run(&mut node, Command::Forget { entry });
        }
        assert_eq!(is_notified(&node, by), hears, "{workspace} {by}");
    }
}

#[test]
fn the_tombstone_of_a_private_import_reaches_no_other_person() {
    for is_foretold in [false, true] {
        let (mut node, stone, peer) = (acquainted(), forgotten_import(LAPTOP), key(PEER).author());
        if is_foretold {
            note(&mut node, PeerCommand::Released(peer, stone.entry(), true));
        }
        let told = bring(&mut node, vec![stone.clone()], key(LAPTOP).author());
        assert!(matches!(told[..], [IngestOutcome::Merged(_)]), "{told:?}");
        bring(&mut node, vec![counted(PEER, stone.entry())], peer);
        assert!(!is_notified(&node, PEER), "{is_foretold}");
    }
}
