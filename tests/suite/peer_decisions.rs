//! Decisions of an operator about a peer, and refusals of decisions that do not apply. Real
//! processes.

use crate::support::node_process::{eventually, printed, told};
use crate::support::peer_processes::Peer;
use serde_json::json;

/// Runs a command that is refused with this exit code and message.
#[track_caller]
fn expect_refused(peer: &Peer, words: &[&str], code: i32, why: &str) {
    let refused = peer.type_in(words);
    assert_eq!(refused.status.code(), Some(code), "{}", told(&refused));
    assert!(told(&refused).contains(why), "{}", told(&refused));
}

#[test]
fn refusing_a_machine_without_a_request_keeps_it_own() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let key = there.key();
    let shown = || here.json(&["peer", "show", &key]);
    let words = ["peer", "refuse", &key];
    expect_refused(&here, &words, 2, "does not wait for a decision");
    expect_refused(&here, &words, 2, "hint: Run `klnode peer remove`");
    assert_eq!((&shown()["mine"], &shown()["state"]), (&json!(true), &json!("approved")));
    expect_refused(&here, &["peer", "unblock", &key], 2, "is not blocked");

    let removed = printed(&here.type_in(&["peer", "remove", &key]));
    assert!(removed.contains("is removed: "), "{removed}");
    assert_eq!(shown()["state"], "refused");
    // A removed peer that is admitted again is described by its new relation.
    let approved = printed(&here.type_in(&["peer", "approve", &key]));
    assert!(approved.contains("is approved: neither yours nor a member"), "{approved}");
    assert_eq!(shown()["mine"], false);
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    assert_eq!(shown()["mine"], true);
}

#[test]
fn refusing_an_offer_to_a_member_keeps_it_a_member() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let key = there.key();
    let ticket = here.ticket(&["--mine", "--confirm"]);
    assert_eq!(there.json(&["peer", "join", &ticket])["waiting"], true);
    let refused = printed(&here.type_in(&["peer", "refuse", &key]));
    assert!(refused.contains("keeps its present role"), "{refused}");
    let shown = here.json(&["peer", "show", &key]);
    assert_eq!((&shown["state"], &shown["mine"]), (&json!("approved"), &json!(false)));
    assert_eq!(shown["workspaces"], json!(["team"]));
    expect_refused(&there, &["peer", "join", &ticket], 4, "the ticket has been used");
}

#[test]
fn a_refused_node_learns_of_it_when_it_asks_again() {
    let (here, there) = (Peer::start(), Peer::start());
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    there.json(&["peer", "join", &address]);
    let key = there.key();
    let refused = printed(&here.type_in(&["peer", "refuse", &key]));
    assert!(refused.contains("is refused; it learns this"), "{refused}");
    eventually("it hears of that", || {
        (there.json(&["peer", "list"])["peers"] == json!([])).then_some(())
    });
    expect_refused(&there, &["peer", "join", &address], 4, "its operator has refused yours");
}

#[test]
fn a_node_cannot_be_its_own_peer_and_an_owner_cannot_leave_its_workspace() {
    let here = Peer::start();
    let key = here.key();
    expect_refused(
        &here,
        &["peer", "block", &key],
        2,
        "The key or address is that of this node, which cannot block itself",
    );
    for verb in ["approve", "refuse", "remove"] {
        expect_refused(&here, &["peer", verb, &key], 2, "which cannot");
    }
    expect_refused(&here, &["peer", "unblock", &key], 2, "is not blocked");
    assert_eq!(here.json(&["peer", "list"])["peers"], json!([]));
    here.json(&["workspace", "new", "team"]);
    let words = ["workspace", "members", "team", "--remove", &key];
    expect_refused(&here, &words, 4, "You cannot be removed from `team` because you own it.");
}

#[test]
fn joining_a_paired_node_asks_no_confirmation() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    // After the greeting it is clear that no decision is needed.
    let joined = eventually("they are paired already", || {
        there.json(&["peer", "show", &here.key()])["clock_ahead"].as_i64()?;
        let joined = there.json(&["peer", "join", &address]);
        (joined["waiting"] == false).then_some(joined)
    });
    assert_eq!((&joined["mine"], &joined["code"]), (&json!(true), &json!(null)));
    assert_eq!(there.json(&["peer", "show", &here.key()])["mine"], true);
}

#[test]
fn a_plain_members_invitation_is_refused_without_a_prompt() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let entry = here.add("how the gateway retries", &["--workspace", "team"]);
    there.found("how the gateway retries", &entry);
    eventually("it knows what it is there", || {
        let members = there.json(&["workspace", "show", "team"])["members"].clone();
        let is_known = members.as_array()?.iter().any(|one| one["name"] == "you");
        is_known.then_some(())
    });
    expect_refused(
        &there,
        &["peer", "invite", "team"],
        4,
        "Only the owner and admins of workspace `team` may",
    );
    // An entitled user is still asked for confirmation.
    expect_refused(&here, &["peer", "invite", "team"], 1, "would see the existing");
}

#[test]
fn a_node_uses_its_configured_name_and_is_found_by_it() {
    let here = Peer::start_with("[network]\nname = \"desk at home\"\n");
    let there = Peer::start();
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let key = here.key();
    for name in ["desk at home".to_owned(), format!("desk at home ({})", &key[..8])] {
        assert_eq!(there.json(&["peer", "show", &name])["peer"], key.as_str(), "{name}");
    }
    let shown = printed(&there.type_in(&["peer", "list"]));
    assert!(shown.contains(&format!("desk at home ({})  yours", &key[..8])), "{shown}");
}
