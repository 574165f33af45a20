//! A disk that says no: nothing is acknowledged that is not there, nothing panics, and it works
//! again when the disk does.

use klnode::engine::{Command, Receipt, Rejection};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation;
use klnode_tests::disk::{Disk, Fault, PowerCut};
use klnode_tests::node::{Node, START, lesson};

const WRITES: u64 = 14;

fn observe(entry: EntryId) -> Command {
    Command::Observe { entry, of: Observation::Success, amount: Thousandths::ONE }
}

/// A node with one entry, on a disk of its own.
fn prepared() -> (Disk, EntryId) {
    let mut node = Node::start(1, 1);
    let entry = node.create("prepared");
    let disk = node.medium.disk();
    drop(node);
    (disk.fork(), entry)
}

/// Runs a script with one fault and returns how many calls it took. Every other write is a new
/// entry, so that the writes spread over many pages.
fn survive(fault: Fault, at_call: u64) -> u64 {
    let (disk, entry) = prepared();
    let mut node = Node::start_on(disk, 1, 3, START).expect("opens");
    let faulty = node.medium.disk();
    let calls_before = faulty.counts().calls();
    faulty.fail_at_call(at_call, fault);
    let (mut observed, mut created, mut in_doubt) = (0, Vec::new(), 0);
    for write in 0..WRITES {
        let command = match write % 2 {
            0 => observe(entry),
            _ => Command::Create(Box::new(lesson(&format!("{write} {}", "x".repeat(150))))),
        };
        match node.run(command) {
            Ok(Receipt::Created(entry)) => created.push(entry),
            Ok(_) => observed += 1,
            Err(rejection) => {
                in_doubt += 1;
                let told = rejection.to_string();
                let expected = if fault == Fault::NoSpace { "the disk is full" } else { "failed" };
                assert!(told.contains(expected), "{told}");
            }
        }
    }
    assert!(in_doubt <= 1, "{fault:?} at call {at_call}: it works again at the next write");
    let calls = faulty.counts().calls() - calls_before;
    for cut in [PowerCut::DropAll, PowerCut::Scatter] {
        let image = node.medium.disk().crash_image(cut, at_call);
        let after = Node::start_on(image, 1, 4, START)
            .unwrap_or_else(|error| panic!("{fault:?} at call {at_call}, {cut:?}: {error}"));
        let found = after.successes(entry);
        assert!(
            (observed..=observed + in_doubt).contains(&found),
            "{fault:?} at call {at_call}, {cut:?}: {observed} observed, {found} found"
        );
        for entry in &created {
            assert!(after.title(*entry).is_some(), "{fault:?} at call {at_call}, {cut:?}");
        }
        assert!(after.engine.store().snapshot().unwrap().check().unwrap().is_empty());
    }
    calls
}

#[test]
fn a_fault_at_any_call_costs_at_most_the_write_it_hits() {
    for fault in Fault::ALL {
        let calls = survive(fault, u64::MAX / 2);
        for at_call in 0..calls {
            survive(fault, at_call);
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room() {
    let mut node = Node::start(1, 1);
    let entry = node.create("room");
    let disk = node.medium.disk();
    disk.capacity_bytes(Some(disk.filled_bytes()));
    let mut written = 0;
    let rejection = loop {
        match node.run(Command::Create(Box::new(lesson("more")))) {
            Ok(_) => written += 1,
            Err(rejection) => break rejection,
        }
        assert!(written < 10_000, "the disk never filled up");
    };
    assert!(matches!(rejection, Rejection::Store(_) | Rejection::Reopen(_)), "{rejection}");
    for _ in 0..3 {
        assert!(node.run(Command::Create(Box::new(lesson("more")))).is_err());
    }
    assert_eq!(node.title(entry).as_deref(), Some("room"), "reading goes on");
    disk.capacity_bytes(None);
    node.succeed(entry);
    assert_eq!(node.successes(entry), 1);
    let entries = node.engine.store().snapshot().unwrap().entry_count().unwrap();
    assert!(entries > written, "what was acknowledged is there");
}
