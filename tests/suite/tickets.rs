//! What a ticket is still good for once it was used: for nothing but a lost answer.

use crate::peer::Peer;
use crate::program::{eventually, told};
use serde_json::{Value, json};

fn members(peer: &Peer) -> usize {
    peer.json(&["workspace", "show", "team"])["members"].as_array().map_or(0, Vec::len)
}

fn strike_off(peer: &Peer, who: &str) {
    let struck = peer.type_in(&["workspace", "members", "team", "--remove", who]);
    assert!(struck.status.success(), "{}", told(&struck));
}

fn expect_refused(peer: &Peer, ticket: &str, why: &str) {
    let refused = peer.type_in(&["join", ticket]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(told(&refused).contains(why), "{}", told(&refused));
}

#[test]
fn whoever_was_struck_off_is_no_member_again_by_the_ticket_it_used() {
    let (here, there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["team"]);
    there.json(&["join", &ticket]);
    let head = || here.json(&["status"])["head"].clone();
    let since = || there.json(&["peer", "show", &here.key()])["since"].clone();
    let (signed, known) = (head(), since());
    // Its answer was lost: it is told once more, and nothing is signed for that.
    let joined = there.json(&["join", &ticket]);
    assert_eq!((&joined["waiting"], &joined["workspace"]), (&json!(false), &json!("team")));
    assert_eq!((head(), members(&here)), (signed, 2));
    assert_eq!(since(), known, "nor is the other known anew");
    let listed = here.json(&["peer", "list"]);
    assert_eq!(listed["peers"][0]["code"], joined["code"], "both operators see one code");
    strike_off(&here, &there.key());
    assert_eq!(members(&here), 1);
    expect_refused(&there, &ticket, "the ticket has been used");
    assert_eq!(members(&here), 1);
    there.json(&["join", &here.ticket(&["team"])]);
    assert_eq!(members(&here), 2);
}

#[test]
fn a_blocked_machine_comes_back_by_no_ticket() {
    let (here, lost) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    let (used, spare) = (here.ticket(&["--mine"]), here.ticket(&["--mine"]));
    lost.json(&["join", &used]);
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
fn what_is_to_be_confirmed_waits_for_the_operator_also_of_a_peer_that_is_approved() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["team"])]);
    let key = there.key();
    let is_mine = || -> Value { here.json(&["peer", "show", &key])["mine"].clone() };
    let ticket = here.ticket(&["--mine", "--confirm"]);
    // Asking twice is no confirmation either.
    for _ in 0..2 {
        assert_eq!(there.json(&["join", &ticket])["waiting"], true);
        assert_eq!(is_mine(), false);
    }
    // Nor is that this side asks to talk to it.
    let address = there.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    here.type_in(&["join", &address, "--no-wait"]);
    assert_eq!(is_mine(), false);
    here.json(&["peer", "approve", &key]);
    assert_eq!(is_mine(), true);
    assert_eq!(there.json(&["join", &ticket])["waiting"], false);
}

#[test]
fn a_ticket_for_a_workspace_takes_nothing_from_a_machine_of_the_same_person() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["--mine"])]);
    there.json(&["join", &here.ticket(&["team"])]);
    for (one, other) in [(&here, &there), (&there, &here)] {
        assert_eq!(one.json(&["peer", "show", &other.key()])["mine"], true);
        let entry = one.add("how the gateway retries", &[]);
        other.found("how the gateway retries", &entry);
    }
}

#[test]
fn what_was_refused_from_a_node_comes_when_it_becomes_a_machine_of_the_same_person() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["--mine"])]);
    // One side alone takes the other for somebody else's.
    there.json(&["peer", "remove", &here.key()]);
    there.json(&["join", &here.ticket(&["team"])]);
    let entry = here.add("how the gateway retries", &[]);
    eventually("it is refused", || {
        let refused = &there.json(&["peer", "show", &here.key()])["refused"];
        (*refused == json!(1)).then_some(())
    });
    there.json(&["join", &here.ticket(&["--mine"])]);
    there.found("how the gateway retries", &entry);
}
