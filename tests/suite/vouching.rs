//! Vouching for a peer: its effects, its limits, and how it ends.

use crate::support::node_process::{eventually, printed, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};
use std::fs;

/// A node, and a colleague that is a member of its workspace.
fn colleagues() -> (Peer, Peer) {
    let here = Peer::start();
    let there = Peer::start_with("[network]\nname = \"bert\"\n");
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    eventually("the colleague has a name here", || {
        here.type_in(&["peer", "show", "bert"]).status.success().then_some(())
    });
    (here, there)
}

fn trust(node: &Peer) -> Value {
    node.json(&["peer", "show", "bert"])["trust"].clone()
}

#[track_caller]
fn near(value: &Value, expect: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - expect).abs() < 0.005, "{value}, not {expect}");
}

#[test]
fn a_vouched_peer_starts_with_trust() {
    let (here, there) = colleagues();
    near(&trust(&here)["value"], 0.10);
    let said = printed(&here.type_in(&["peer", "vouch", "bert"]));
    assert!(said.contains("is vouched for"), "{said}");
    let vouched = trust(&here);
    near(&vouched["value"], 0.56);
    near(&vouched["earned"], 0.10);
    near(&vouched["vouched"]["successes"], 3.0);
    assert_eq!(vouched["successes"], 0, "nothing of it was observed");
    let shown = printed(&here.type_in(&["peer", "show", "bert"]));
    assert!(shown.contains("vouched       by you since 20"), "{shown}");
    assert!(shown.contains("counts as 3.0 successes today"), "{shown}");
    // A second vouch adds nothing.
    here.json(&["peer", "vouch", "bert"]);
    near(&trust(&here)["value"], 0.56);
    // It opens no gate: untried entries stay in the last places.
    let entry = there.add("seed the clock in integration tests", &["--workspace", "team"]);
    let hit = here.found("seed clock integration tests", &entry);
    near(&hit["trust"], 0.56);
    let entry = here.json(&["show", &entry]);
    assert_eq!((&entry["gate"], &entry["corroborated"]), (&json!("last_places"), &json!(false)));
    let back = printed(&here.type_in(&["peer", "vouch", "bert", "--undo"]));
    assert!(back.contains("no longer"), "{back}");
    near(&trust(&here)["value"], 0.10);
    let again = here.type_in(&["peer", "vouch", "bert", "--undo"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(told(&again).contains("There is no vouch for bert"), "{}", told(&again));
}

#[test]
fn a_vouch_ends_with_a_block_and_with_a_removal() {
    let (here, _there) = colleagues();
    for (away, back) in [("block", "unblock"), ("remove", "approve")] {
        here.json(&["peer", "vouch", "bert"]);
        assert!(trust(&here)["vouched"].is_object(), "{away}");
        here.json(&["peer", away, "bert"]);
        let refused = here.type_in(&["peer", "vouch", "bert"]);
        assert_eq!(refused.status.code(), Some(4), "{away}: {}", told(&refused));
        here.json(&["peer", back, "bert"]);
        let trust = trust(&here);
        assert!(trust["vouched"].is_null(), "{back}: {trust}");
        near(&trust["value"], 0.10);
    }
}

#[test]
fn an_own_machine_needs_no_vouch() {
    let (here, there) = (Peer::start(), Peer::start_with("[network]\nname = \"bert\"\n"));
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let refused = here.type_in(&["peer", "vouch", "bert"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("is one of your own nodes"), "{}", told(&refused));
}

#[test]
fn a_vouch_needs_the_persons_key_if_there_is_one() {
    let (here, _there) = colleagues();
    let file = here.home.with_file_name("passphrase");
    fs::write(&file, "correct horse battery\n").unwrap();
    let file = file.to_str().unwrap();
    let made = here.type_in(&["identity", "new", "--passphrase-file", file]);
    assert!(made.status.success(), "{}", told(&made));
    let refused = here.type_in(&["peer", "vouch", "bert"]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(trust(&here)["vouched"].is_null());
    let given = here.type_in(&["peer", "vouch", "bert", "--passphrase-file", file]);
    assert!(given.status.success(), "{}", told(&given));
    assert!(trust(&here)["vouched"].is_object());
}
