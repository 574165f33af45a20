//! What peers hear of entries that are this person's alone: nothing, whatever they say of them.

use super::*;
use crate::engine::testing::{create, lesson};
use crate::engine::{NewEntry, SourceKey};

const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);
// Somebody else, and another machine of the person's.
const PEER: u32 = 9;
const LAPTOP: u32 = 10;

/// Where an entry is, who brings something of it, and whether that one hears what becomes of it.
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
        let row = PeerRow { approval: Approval::Approved, is_mine, ..PeerRow::default() };
        note(&mut node, PeerAct::Put(key(number).author(), Box::new(row)));
    }
    node
}

/// What somebody counts on an entry.
fn counted(number: u32, entry: EntryId) -> Record {
    let (of, stamp) = (Observation::Success, Hlc::new(NOW, 1));
    with_writer(number, |writer| {
        Writer { entry, ..writer }.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn run(node: &mut Engine, command: Command) {
    node.step(&[command], NOW).remove(0).expect("done");
}

/// Whether anything was ever put into a peer's outbox.
fn is_told(node: &Engine, number: u32) -> bool {
    node.store().snapshot().unwrap().outbox_head(key(number).author()).unwrap() > 0
}

#[test]
fn whoever_brings_something_of_what_was_this_persons_alone_is_not_told_that_it_was_forgotten() {
    for (workspace, by, hears) in CASES {
        let mut node = acquainted();
        let entry = create(&mut node, NewEntry { workspace, ..lesson("Retries") });
        run(&mut node, Command::Forget { entry });
        let told = bring(&mut node, vec![counted(by, entry)], key(by).author());
        assert!(matches!(told[..], [Ingested::Forgotten]), "{told:?}");
        assert_eq!(is_told(&node, by), hears, "{workspace} {by}");
    }
}

#[test]
fn what_is_said_of_an_import_before_it_is_here_lets_nobody_hear_what_becomes_of_it() {
    for (workspace, by, hears) in CASES {
        let (mut node, from) = (acquainted(), key(by).author());
        let (format, name) = ("jsonl".to_owned(), "row 1".to_owned());
        let source = Some(SourceKey { format: format.clone(), key: name.clone() });
        let memory = Memory::Semantic;
        let entry = Origin::Imported { workspace, memory, format, key: name }.id();
        note(&mut node, PeerAct::Released(from, entry, true));
        bring(&mut node, vec![counted(by, entry)], from);
        let new = NewEntry { workspace, source, ..lesson("Retries") };
        assert_eq!(create(&mut node, new), entry);
        run(&mut node, Command::Retract { entry });
        if workspace.is_personal() {
            run(&mut node, Command::Forget { entry });
        }
        assert_eq!(is_told(&node, by), hears, "{workspace} {by}");
    }
}

#[test]
fn of_an_import_that_was_forgotten_before_it_came_nobody_else_hears_either() {
    for is_foretold in [false, true] {
        let (mut node, stone, peer) = (acquainted(), forgotten_import(LAPTOP), key(PEER).author());
        if is_foretold {
            note(&mut node, PeerAct::Released(peer, stone.entry(), true));
        }
        let told = bring(&mut node, vec![stone.clone()], key(LAPTOP).author());
        assert!(matches!(told[..], [Ingested::Merged(_)]), "{told:?}");
        bring(&mut node, vec![counted(PEER, stone.entry())], peer);
        assert!(!is_told(&node, PEER), "{is_foretold}");
    }
}
