//! A hostile peer against a real node process: it costs itself, and nobody else anything.

use crate::peer::Peer;
use klnode_crdt::ids::Digest;
use klnode_federation::proto::ticket::Ticket;
use klnode_tests::hostile::{Attack, End, Outcome, attack};
use std::time::Duration;

/// Each attack lasts so long, and until the node has asked for what it answers with.
const EACH: End = End::Landed(Duration::from_millis(400));
/// Who sends nonsense is sent away before this is over.
const SENT_AWAY: End = End::SentAway(Duration::from_secs(30));
/// A node that is attacked takes at most so much memory: about what it has when it is not.
const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

fn assail(node: &Peer, what: Attack, wanted: &[Digest], until: End) -> Outcome {
    let ticket: Ticket = node.ticket(&["team", "--yes"]).parse().unwrap();
    attack(&ticket, what, what as u64 + 1, wanted, until).unwrap()
}

#[test]
fn no_attack_stops_a_node_or_puts_a_record_into_it_that_nobody_made() {
    let node = Peer::start();
    let kept = node.add("what the node knows", &[]);
    node.ticket(&["team", "--yes"]);
    // A flood comes last: what it brought may still be on its way when it is over.
    let others = Attack::ALL.into_iter().filter(|what| *what != Attack::Flood);
    for what in others.chain([Attack::Flood]) {
        let before = node.json(&["status"])["entries"].as_u64().unwrap();
        let outcome = assail(&node, what, &[], EACH);
        assert!(outcome.sent > 0, "{what:?}: {outcome:?}");
        assert!(outcome.has_landed(what), "{what:?} was never asked for: {outcome:?}");
        node.found("what the node knows", &kept);
        let after = node.json(&["status"])["entries"].as_u64().unwrap();
        let may_grow = match what {
            Attack::Flood => u64::MAX,
            // The ticket's workspace gains a member; and one record is good.
            Attack::Replay | Attack::Strays => 1,
            _ => 0,
        };
        assert!(after - before <= may_grow, "{what:?}: {before} entries, then {after}");
        assert!(node.resident_bytes() < RESIDENT_BYTES_MAX, "{what:?}: {}", node.resident_bytes());
    }
}

#[test]
fn who_sends_nonsense_is_sent_away() {
    let node = Peer::start();
    for what in [Attack::Garbage, Attack::Bombs, Attack::Forgeries, Attack::Strays] {
        let outcome = assail(&node, what, &[], SENT_AWAY);
        assert!(outcome.sent_away > 0, "{what:?}: {outcome:?}");
    }
}

#[test]
fn who_probes_learns_nothing_about_what_is_not_released() {
    let node = Peer::start();
    let entry = node.add("not for the team", &[]);
    let digests = node.digests(&entry);
    assert!(!digests.is_empty());
    let outcome = assail(&node, Attack::Probes, &digests, EACH);
    assert_eq!(outcome.given, 0, "{outcome:?}");
    assert!(outcome.answered > 0, "{outcome:?}");
}
