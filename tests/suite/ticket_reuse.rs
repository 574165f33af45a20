//! A used ticket is valid only for repeating a lost response.

use crate::support::node_process::{eventually, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};

fn members(peer: &Peer) -> usize {
    peer.json(&["workspace", "show", "team"])["members"].as_array().map_or(0, Vec::len)
}

fn strike_off(peer: &Peer, who: &str) {
    let struck = peer.type_in(&["workspace", "members", "team", "--remove", who]);
    assert!(struck.status.success(), "{}", told(&struck));
}

fn expect_refused(peer: &Peer, ticket: &str, why: &str) {
    let refused = peer.type_in(&["peer", "join", ticket]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(told(&refused).contains(why), "{}", told(&refused));
}

#[test]
fn a_removed_member_cannot_return_with_its_used_ticket() {
    let (here, there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["team"]);
    there.json(&["peer", "join", &ticket]);
    let head = || here.json(&["status"])["head"].clone();
    let since = || there.json(&["peer", "show", &here.key()])["since"].clone();
    let (signed, known) = (head(), since());
    // The response was lost: it is repeated, and nothing is signed for that.
    let joined = there.json(&["peer", "join", &ticket]);
    assert_eq!((&joined["waiting"], &joined["workspace"]), (&json!(false), &json!("team")));
    assert_eq!((head(), members(&here)), (signed, 2));
    assert_eq!(since(), known, "the peer row is unchanged");
    let listed = here.json(&["peer", "list"]);
    assert_eq!(listed["peers"][0]["code"], joined["code"], "both operators see one code");
    strike_off(&here, &there.key());
    assert_eq!(members(&here), 1);
    expect_refused(&there, &ticket, "the ticket has been used");
    assert_eq!(members(&here), 1);
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    assert_eq!(members(&here), 2);
}

#[test]
fn a_blocked_machine_cannot_return_by_a_ticket() {
    let (here, lost) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    let (used, spare) = (here.ticket(&["--mine"]), here.ticket(&["--mine"]));
    lost.json(&["peer", "join", &used]);
    assert_eq!(members(&here), 2, "it administers the workspace");
    let key = lost.key();
    here.json(&["peer", "block", &key]);
    strike_off(&here, &key);
    for ticket in [&used, &spare] {
        expect_refused(&lost, ticket, "its operator has blocked yours");
        assert_eq!(members(&here), 1);
    }
}

#[test]
fn a_ticket_that_needs_confirmation_waits_even_for_an_approved_peer() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let key = there.key();
    let is_mine = || -> Value { here.json(&["peer", "show", &key])["mine"].clone() };
    let ticket = here.ticket(&["--mine", "--confirm"]);
    // Asking twice is no confirmation either.
    for _ in 0..2 {
        assert_eq!(there.json(&["peer", "join", &ticket])["waiting"], true);
        assert_eq!(is_mine(), false);
    }
    // Nor is a request of this side to connect to it.
    let address = there.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    here.type_in(&["peer", "join", &address, "--no-wait"]);
    assert_eq!(is_mine(), false);
    here.json(&["peer", "approve", &key]);
    assert_eq!(is_mine(), true);
    assert_eq!(there.json(&["peer", "join", &ticket])["waiting"], false);
}

#[test]
fn a_workspace_ticket_keeps_an_own_machine_own() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    for (one, other) in [(&here, &there), (&there, &here)] {
        assert_eq!(one.json(&["peer", "show", &other.key()])["mine"], true);
        let entry = one.add("how the gateway retries", &[]);
        other.found("how the gateway retries", &entry);
    }
}

#[test]
fn refused_records_arrive_when_a_node_becomes_an_own_machine() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    // One side treats the other as another person's node.
    there.json(&["peer", "remove", &here.key()]);
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let entry = here.add("how the gateway retries", &[]);
    eventually("it is refused", || {
        let refused = &there.json(&["peer", "show", &here.key()])["refused"];
        (*refused == json!(1)).then_some(())
    });
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    there.found("how the gateway retries", &entry);
}
