//! What an operator decides about a node, and what a decision that does not fit it comes to. Real
//! processes.

use crate::peer::Peer;
use crate::program::{eventually, printed, told};
use serde_json::json;

/// Types a command that is refused with this exit code and these words.
#[track_caller]
fn expect_refused(peer: &Peer, words: &[&str], code: i32, why: &str) {
    let refused = peer.type_in(words);
    assert_eq!(refused.status.code(), Some(code), "{}", told(&refused));
    assert!(told(&refused).contains(why), "{}", told(&refused));
}

#[test]
fn a_no_to_a_machine_that_waits_for_nothing_leaves_it_the_persons_own() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["--mine"])]);
    let key = there.key();
    let shown = || here.json(&["peer", "show", &key]);
    let words = ["peer", "refuse", &key];
    expect_refused(&here, &words, 2, "it does not wait for your word");
    expect_refused(&here, &words, 2, "hint: `klnode peer remove`");
    assert_eq!((&shown()["mine"], &shown()["state"]), (&json!(true), &json!("approved")));
    expect_refused(&here, &["peer", "unblock", &key], 2, "it is not blocked");

    let removed = printed(&here.type_in(&["peer", "remove", &key]));
    assert!(removed.contains("is refused now: "), "{removed}");
    assert_eq!(shown()["state"], "refused");
    // Who was sent away and is let in again is told by what it is then.
    let approved = printed(&here.type_in(&["peer", "approve", &key]));
    assert!(approved.contains("may talk now: neither yours nor a member"), "{approved}");
    assert_eq!(shown()["mine"], false);
    there.json(&["join", &here.ticket(&["--mine"])]);
    assert_eq!(shown()["mine"], true);
}

#[test]
fn a_no_to_what_a_member_was_offered_leaves_it_a_member() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["team"])]);
    let key = there.key();
    let ticket = here.ticket(&["--mine", "--confirm"]);
    assert_eq!(there.json(&["join", &ticket])["waiting"], true);
    let refused = printed(&here.type_in(&["peer", "refuse", &key]));
    assert!(refused.contains("goes on as it was"), "{refused}");
    let shown = here.json(&["peer", "show", &key]);
    assert_eq!((&shown["state"], &shown["mine"]), (&json!("approved"), &json!(false)));
    assert_eq!(shown["workspaces"], json!(["team"]));
    expect_refused(&there, &["join", &ticket], 4, "the ticket has been used");
}

#[test]
fn a_node_that_waits_is_refused_and_hears_of_it_when_it_asks_again() {
    let (here, there) = (Peer::start(), Peer::start());
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    there.json(&["join", &address]);
    let key = there.key();
    let refused = printed(&here.type_in(&["peer", "refuse", &key]));
    assert!(refused.contains("is refused; it hears of that"), "{refused}");
    eventually("it hears of that", || {
        (there.json(&["peer", "list"])["peers"] == json!([])).then_some(())
    });
    expect_refused(&there, &["join", &address], 4, "its operator has refused yours");
}

#[test]
fn a_node_is_no_peer_of_its_own_and_no_owner_leaves_a_workspace() {
    let here = Peer::start();
    let key = here.key();
    expect_refused(&here, &["peer", "block", &key], 2, "cannot block: that is this node itself");
    for verb in ["approve", "refuse", "remove"] {
        expect_refused(&here, &["peer", verb, &key], 2, "that is this node itself");
    }
    expect_refused(&here, &["peer", "unblock", &key], 2, "it is not blocked");
    assert_eq!(here.json(&["peer", "list"])["peers"], json!([]));
    here.json(&["workspace", "new", "team"]);
    let words = ["workspace", "members", "team", "--remove", &key];
    expect_refused(&here, &words, 4, "cannot strike off yourself: you own `team`");
}

#[test]
fn whoever_is_paired_already_is_not_asked_again() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["--mine"])]);
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    // Whoever has greeted has told its clock: by then it is clear that nobody has to decide.
    let joined = eventually("they are paired already", || {
        there.json(&["peer", "show", &here.key()])["clock_ahead"].as_i64()?;
        let joined = there.json(&["join", &address]);
        (joined["waiting"] == false).then_some(joined)
    });
    assert_eq!((&joined["mine"], &joined["code"]), (&json!(true), &json!(null)));
    assert_eq!(there.json(&["peer", "show", &here.key()])["mine"], true);
}

#[test]
fn a_plain_member_is_told_that_it_may_not_invite_before_anything_is_asked() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["join", &here.ticket(&["team"])]);
    let entry = here.add("how the gateway retries", &["--workspace", "team"]);
    there.found("how the gateway retries", &entry);
    eventually("it knows what it is there", || {
        let members = there.json(&["workspace", "show", "team"])["members"].clone();
        let is_known = members.as_array()?.iter().any(|one| one["name"] == "you");
        is_known.then_some(())
    });
    expect_refused(&there, &["invite", "team"], 4, "only its owner and admins may");
    // Whoever may is still asked.
    expect_refused(&here, &["invite", "team"], 1, "would become visible");
}

#[test]
fn a_node_is_called_what_its_configuration_says_and_found_as_it_is_shown() {
    let here = Peer::start_with("[network]\nname = \"desk at home\"\n");
    let there = Peer::start();
    there.json(&["join", &here.ticket(&["--mine"])]);
    let key = here.key();
    for name in ["desk at home".to_owned(), format!("desk at home ({})", &key[..8])] {
        assert_eq!(there.json(&["peer", "show", &name])["peer"], key.as_str(), "{name}");
    }
    let shown = printed(&there.type_in(&["peer", "list"]));
    assert!(shown.contains(&format!("desk at home ({})  yours", &key[..8])), "{shown}");
}
