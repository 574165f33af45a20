//! Whole nodes on a simulated network: what becomes of releases when a machine is blocked, after a
//! restart, and by time alone.

use klnode::engine::{Command, NewEntry};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use klnode_federation::sim::{Fault, Knobs};
use klnode_tests::cluster::{Cluster, REST_MS, Sent};
use klnode_tests::node::lesson;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[test]
fn a_machine_of_ones_own_that_is_blocked_gets_nothing_more_of_what_is_personal() {
    let mut nodes = Cluster::new(70, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let shared = nodes.create(0, lesson("shared"));
    nodes.pass(REST_MS);
    assert!(nodes.is_released(0, 1, shared));
    let lost = nodes.author(1);
    nodes.block(0, lost, true);
    let edit = Claim::Set(Register::CONTENT, "What we learned zq-since.".into());
    nodes.run(0, Command::Claim { entry: shared, claims: vec![edit] }).expect("set");
    let later = nodes.create(0, lesson("written zq-since"));
    nodes.pass(2 * REST_MS);
    for entry in [shared, later] {
        assert!(!nodes.is_released(0, 1, entry));
    }
    let has = |sent: &Sent| sent.holds(b"zq-since");
    assert!(!nodes.sent.iter().any(|sent| sent.from == 0 && has(sent)));
}

/// Nobody is a member of anything: that would be looked at anew after a start for its own sake.
#[test]
fn a_release_that_was_about_to_end_when_the_node_stopped_ends_when_it_is_back() {
    // More than are examined in two pieces.
    const ENTRIES: usize = 600;
    let mut nodes = Cluster::new(71, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    for number in 0..ENTRIES {
        nodes.create(0, lesson(&format!("entry {number}")));
    }
    nodes.pass(REST_MS);
    assert_eq!(nodes.preview(0, 1).released.len(), ENTRIES);
    nodes.set_egress(0, 1, |filter| {
        filter.tags_allow.insert("never".into());
    });
    assert!(!nodes.preview(0, 1).would_end.is_empty(), "it is cut short");
    nodes.crash(0);
    nodes.restart(0);
    nodes.pass(REST_MS);
    let preview = nodes.preview(0, 1);
    assert!(preview.would_end.is_empty(), "{} would end", preview.would_end.len());
}

#[test]
fn what_time_alone_lets_pass_is_released_when_everything_is_examined_again() {
    let mut nodes = Cluster::new(72, 2, Knobs::calm());
    let team = nodes.found(&[0, 1]);
    let entry = nodes.create(0, NewEntry { workspace: team, ..lesson("doubted") });
    let (of, amount) = (Observation::Failure, Thousandths(15_000));
    nodes.run(0, Command::Observe { entry, of, amount }).expect("observed");
    nodes.pair(0, 1, false);
    nodes.pass(REST_MS);
    assert!(!nodes.is_released(0, 1, entry), "five in twenty-five speak for it");
    // What was observed fades, and nothing is written meanwhile.
    nodes.disturb_clock(&Fault::Jumped { node: 0, by_ms: 60 * DAY_MS });
    nodes.pass(700_000);
    assert!(nodes.is_released(0, 1, entry));
}
