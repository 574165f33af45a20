//! A hostile peer against a real node process: it harms only itself.

use crate::support::peer_processes::Peer;
use klnode_crdt::ids::Digest;
use klnode_federation::proto::ticket::Ticket;
use klnode_tests::hostile_peer::{Attack, End, Outcome, attack};
use std::time::Duration;

/// Each attack lasts this long, and until the node has sent the request that it responds to.
const EACH: End = End::Landed(Duration::from_millis(400));
/// A peer that sends invalid frames is disconnected within this time.
const SENT_AWAY: End = End::SentAway(Duration::from_secs(30));
/// Memory limit of an attacked node: about its usual size.
const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

fn assail(node: &Peer, what: Attack, wanted: &[Digest], until: End) -> Outcome {
    let ticket: Ticket = node.ticket(&["team", "--yes"]).parse().unwrap();
    attack(&ticket, what, what as u64 + 1, wanted, until).unwrap()
}

#[test]
fn no_attack_stops_a_node_or_stores_a_forged_record() {
    let node = Peer::start();
    let kept = node.add("knowledge of the node", &[]);
    node.ticket(&["team", "--yes"]);
    // The flood comes last: its records may still be on their way when it is over.
    let others = Attack::ALL.into_iter().filter(|what| *what != Attack::Flood);
    for what in others.chain([Attack::Flood]) {
        let before = node.json(&["status"])["entries"].as_u64().unwrap();
        let outcome = assail(&node, what, &[], EACH);
        assert!(outcome.sent > 0, "{what:?}: {outcome:?}");
        assert!(outcome.has_landed(what), "{what:?} was never asked for: {outcome:?}");
        node.found("knowledge of the node", &kept);
        let after = node.json(&["status"])["entries"].as_u64().unwrap();
        let may_grow = match what {
            Attack::Flood => u64::MAX,
            // The ticket's workspace gains a member, and one record is valid.
            Attack::Replay | Attack::Strays => 1,
            _ => 0,
        };
        assert!(after - before <= may_grow, "{what:?}: {before} entries, then {after}");
        assert!(node.resident_bytes() < RESIDENT_BYTES_MAX, "{what:?}: {}", node.resident_bytes());
    }
}

#[test]
fn a_peer_that_sends_invalid_frames_is_disconnected() {
    let node = Peer::start();
    for what in [Attack::Garbage, Attack::Bombs, Attack::Forgeries, Attack::Strays] {
        let outcome = assail(&node, what, &[], SENT_AWAY);
        assert!(outcome.sent_away > 0, "{what:?}: {outcome:?}");
    }
}

#[test]
fn a_probing_peer_learns_nothing_about_unreleased_records() {
    let node = Peer::start();
    let entry = node.add("not for the team", &[]);
    let digests = node.digests(&entry);
    assert!(!digests.is_empty());
    let outcome = assail(&node, Attack::Probes, &digests, EACH);
    assert_eq!(outcome.given, 0, "{outcome:?}");
    assert!(outcome.answered > 0, "{outcome:?}");
}
