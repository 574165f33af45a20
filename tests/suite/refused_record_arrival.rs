//! Refused records arrive once the operator unblocks their author or widens the filter. Real
//! processes.

use crate::support::node_process::eventually;
use crate::support::peer_processes::Peer;

/// Waits until `count` records of a node are refused.
fn refuses(peer: &Peer, of: &str, count: u64) {
    eventually(&format!("{count} are refused"), || {
        (peer.json(&["peer", "show", of])["refused"] == count).then_some(())
    });
}

#[test]
fn refused_records_arrive_after_an_unblock_or_a_wider_filter() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let (key, team) = (here.key(), ["--workspace", "team"]);
    let known = here.add("rotating the signing keys", &team);
    there.found("rotating the signing keys", &known);

    there.json(&["peer", "block", &key]);
    let unheard = here.add("draining the queue by hand", &team);
    refuses(&there, &key, 1);
    assert_eq!(there.type_in(&["show", &unheard]).status.code(), Some(1));
    there.json(&["peer", "unblock", &key]);
    there.found("draining the queue by hand", &unheard);
    refuses(&there, &key, 0);

    let filter = ["peer", "filter", &key, "--from-peer", "--deny-tag"];
    there.json(&[&filter[..], &["noise"]].concat());
    let noise = here.add("flapping alerts at night", &[&team[..], &["--tag", "noise"]].concat());
    refuses(&there, &key, 1);
    assert_eq!(there.type_in(&["show", &noise]).status.code(), Some(1));
    there.json(&[&filter[..], &[""]].concat());
    there.found("flapping alerts at night", &noise);
    refuses(&there, &key, 0);
}
