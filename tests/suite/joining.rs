//! Joining by address, and offers of membership between paired nodes. Real processes on loopback.

use crate::support::conformance::conforms;
use crate::support::node_process::{Running, eventually, klnode, printed, signal, text, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Listening address of a node, without its peer id.
fn address(peer: &Peer) -> String {
    let listed = text(&peer.json(&["peer", "list"])["addresses"][0]);
    listed.split("/p2p/").next().unwrap().to_owned()
}

/// Listening address of a node as `host:port`.
fn host_and_port(peer: &Peer) -> String {
    format!("127.0.0.1:{}", address(peer).rsplit('/').next().unwrap())
}

/// Starts to join, and returns the code that the joining machine shows.
#[track_caller]
fn ask(from: &Peer, words: &[&str]) -> String {
    let joined = from.json(&[&["peer", "join"], words].concat());
    assert_eq!(joined["waiting"], true, "{joined}");
    text(&joined["code"])
}

/// A peer as a node shows it.
fn shown(by: &Peer, of: &Peer) -> Value {
    let key = of.key();
    let listed = by.json(&["peer", "list"])["peers"].as_array().cloned().unwrap();
    listed.into_iter().find(|one| one["peer"] == key.as_str()).unwrap_or(Value::Null)
}

fn approve(peer: &Peer, of: &Peer, code: &str) -> std::process::Output {
    peer.type_in(&["peer", "approve", &of.key(), "--code", code])
}

/// Waits until a node lists another as approved.
fn paired(by: &Peer, of: &Peer) -> Value {
    eventually("they are paired", || {
        let one = shown(by, of);
        (one["state"] == "approved" && one["request"].is_null()).then_some(one)
    })
}

/// A code that differs from this one.
fn other(code: &str) -> String {
    let digits: u32 = code.replace(' ', "").parse().unwrap();
    format!("{:06}", (digits + 1) % 1_000_000)
}

#[test]
fn a_member_joins_by_host_and_port_and_records_flow_both_ways() {
    let (here, there) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    let ours = here.add("how releases are cut", &["--workspace", "team"]);
    let code = ask(&there, &[&host_and_port(&here), "--member", "team"]);
    let request = shown(&here, &there)["request"].clone();
    assert_eq!((&request["wants"], &request["workspace"]), (&json!("member"), &json!("team")));
    assert_eq!(request["code"], code.as_str(), "both machines show the same digits");
    let list = printed(&here.type_in(&["peer", "list"]));
    assert!(list.contains(&format!("asks to be a member of `team`, code {code}")), "{list}");
    let status = printed(&here.type_in(&["status"]));
    assert!(status.contains("asks to join: see `klnode peer list`"), "{status}");
    // A name proves nothing, so neither a name nor a key is enough.
    let bare = here.type_in(&["peer", "approve", &there.key()]);
    assert_eq!(bare.status.code(), Some(2), "{}", told(&bare));
    assert!(told(&bare).contains("needs its code"), "{}", told(&bare));
    let approved = printed(&approve(&here, &there, &code.replace(' ', "")));
    assert!(approved.contains("is approved: member of team"), "{approved}");
    paired(&there, &here);
    there.found("how releases are cut", &ours);
    let theirs = eventually("it knows that it is a member", || {
        let added = there.type_in(&[
            "add",
            "--title",
            "flaky tests need a seeded clock",
            "--content",
            "Seed it.",
            "--evidence",
            "doc:notes",
            "--workspace",
            "team",
            "--json",
        ]);
        let added: Value = serde_json::from_slice(&added.stdout).ok()?;
        Some(text(&added["id"]))
    });
    here.found("flaky tests need a seeded clock", &theirs);
    for (observer, author, entry) in [(&there, &here, &ours), (&here, &there, &theirs)] {
        observer.json(&["feedback", entry, "--success"]);
        eventually("the observation arrives", || {
            (author.json(&["show", entry])["observations"].as_f64()? > 0.0).then_some(())
        });
    }
}

#[test]
fn a_machine_of_the_same_person_needs_the_code_on_both_sides() {
    conforms("C-15");
    let (here, there) = (Peer::start(), Peer::start());
    let before = here.add("cancellation in auth middleware", &[]);
    let code = ask(&there, &[&address(&here), "--mine"]);
    let confirmed = printed(&approve(&here, &there, &code));
    assert!(confirmed.contains("the other operator must type the code too"), "{confirmed}");
    assert_eq!(shown(&here, &there)["mine"], false, "one side is not enough");
    eventually("the joining side hears of it", || {
        (shown(&there, &here)["request"]["confirmed_there"] == true).then_some(())
    });
    printed(&approve(&there, &here, &code));
    for (one, of) in [(&here, &there), (&there, &here)] {
        assert_eq!(paired(one, of)["mine"], true);
    }
    there.found("cancellation in auth middleware", &before);
    let after = there.add("retry storms in the billing worker", &[]);
    here.found("retry storms in the billing worker", &after);
}

#[test]
fn a_wrong_code_ends_the_attempt_on_both_sides_and_the_next_has_a_new_code() {
    let (here, there) = (Peer::start(), Peer::start());
    let address = address(&here);
    let mut codes = Vec::new();
    // First wrong on the side that is asked, then on the side that asks.
    for (typing, about) in [(&here, &there), (&there, &here)] {
        let code = ask(&there, &[&address, "--mine"]);
        let wrong = approve(typing, about, &other(&code));
        assert_eq!(wrong.status.code(), Some(4), "{}", told(&wrong));
        assert!(told(&wrong).contains("The code is wrong"), "{}", told(&wrong));
        for (one, of) in [(&here, &there), (&there, &here)] {
            eventually("it is over on both sides", || shown(one, of).is_null().then_some(()));
        }
        let late = approve(typing, about, &code);
        assert!(!late.status.success(), "the right code is too late");
        codes.push(code);
    }
    assert_ne!(codes[0], codes[1]);
    let text_code = here.type_in(&["peer", "approve", &there.key(), "--code", "12x"]);
    assert_eq!(text_code.status.code(), Some(2), "{}", told(&text_code));
    assert!(told(&text_code).contains("which has six digits"), "{}", told(&text_code));
}

#[test]
fn an_address_with_a_wrong_key_or_no_listener_fails_with_a_reason() {
    let (here, there, third) = (Peer::start(), Peer::start(), Peer::start());
    let named = text(&third.json(&["peer", "list"])["addresses"][0]);
    let (_, other_key) = named.rsplit_once("/p2p/").unwrap();
    let wrong = there.type_in(&["peer", "join", &format!("{}/p2p/{other_key}", address(&here))]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(told(&wrong).contains("another peer"), "{}", told(&wrong));
    let nowhere = there.type_in(&["peer", "join", "127.0.0.1:1"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(told(&nowhere).contains("/ip4/127.0.0.1/tcp/1 is not reachable"), "{}", told(&nowhere));
    let own = there.type_in(&["peer", "join", &address(&there)]);
    assert!(told(&own).contains("this node"), "{}", told(&own));
    for no_address in ["nowhere", "vm:0", "[vm]:1", "a b:1"] {
        let refused = there.type_in(&["peer", "join", no_address]);
        assert_eq!(refused.status.code(), Some(2), "{no_address}: {}", told(&refused));
    }
    let named = host_and_port(&here).replace("127.0.0.1", "localhost");
    for (from, to) in [(&there, address(&here)), (&third, named)] {
        let code = ask(from, &[&to]);
        assert_eq!(shown(&here, from)["request"]["code"], code.as_str());
        let ended = printed(&from.type_in(&["peer", "refuse", &here.key()]));
        assert!(ended.contains("is no longer asked"), "{ended}");
        eventually("it is cancelled", || shown(&here, from).is_null().then_some(()));
    }
}

#[test]
fn a_request_does_not_reveal_whether_the_workspace_exists() {
    let (here, there) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    here.add("how releases are cut", &["--workspace", "team"]);
    let answered = |name: &str| {
        let mut joined = there.json(&["peer", "join", &address(&here), "--member", name]);
        for field in ["code", "expires", "workspace"] {
            joined["request"][field] = Value::Null;
        }
        joined["code"] = Value::Null;
        there.json(&["peer", "refuse", &here.key()]);
        eventually("it is cancelled", || shown(&here, &there).is_null().then_some(()));
        joined
    };
    assert_eq!(answered("team"), answered("nosuch"));
    // The operator is told, and the code stays valid until the workspace exists.
    let code = ask(&there, &[&address(&here), "--member", "later"]);
    let missing = approve(&here, &there, &code);
    assert!(told(&missing).contains("no workspace of that name"), "{}", told(&missing));
    here.json(&["workspace", "new", "later"]);
    printed(&approve(&here, &there, &code));
    paired(&there, &here);
    let invalid = there.type_in(&["peer", "join", &address(&here), "--member", "te\u{202e}am"]);
    assert_eq!(invalid.status.code(), Some(2), "{}", told(&invalid));
}

#[test]
fn ctrl_c_cancels_an_attempt_on_both_sides() {
    let (here, there) = (Peer::start(), Peer::start());
    let mut command = klnode(&there.home);
    command.args(["peer", "join", &address(&here)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut joining = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(joining.0.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("Code ") && first.contains("to be a peer"), "{first}");
    assert_eq!(shown(&here, &there)["state"], "waiting");
    signal(&joining.0, "INT");
    let ended = joining.finish();
    assert_eq!(ended.status.code(), Some(130));
    for (one, of) in [(&here, &there), (&there, &here)] {
        eventually("nothing waits", || shown(one, of).is_null().then_some(()));
    }
}

#[test]
fn a_waiting_joiner_gets_the_decision_and_a_restart_ends_every_attempt() {
    let (mut here, there) = (Peer::start(), Peer::start());
    let mut command = klnode(&there.home);
    command.args(["peer", "join", &address(&here)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let joining = Running(command.spawn().unwrap());
    let code = eventually("the request is there", || {
        shown(&here, &there)["request"]["code"].as_str().map(str::to_owned)
    });
    printed(&approve(&here, &there, &code));
    let out = printed(&joining.finish());
    assert!(out.contains("a peer, but not yet a member of a workspace"), "{out}");
    let third = Peer::start();
    ask(&third, &[&address(&here), "--mine"]);
    assert_eq!(shown(&here, &third)["state"], "waiting");
    here.stop();
    here.run();
    assert_eq!(shown(&here, &third), Value::Null);
}

#[test]
fn a_refused_request_is_reported_at_once() {
    let (here, there) = (Peer::start(), Peer::start());
    let mut command = klnode(&there.home);
    command.args(["peer", "join", &address(&here)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let joining = Running(command.spawn().unwrap());
    eventually("the request is there", || {
        (shown(&here, &there)["state"] == "waiting").then_some(())
    });
    printed(&here.type_in(&["peer", "refuse", &there.key()]));
    let ended = joining.finish();
    assert_eq!(ended.status.code(), Some(4), "{}", told(&ended));
    assert!(told(&ended).contains("its operator has refused yours"), "{}", told(&ended));
}

#[test]
fn an_attempt_expires() {
    let here = Peer::start();
    let there = Peer::start_with("[tuning.federation]\njoin_lifetime = \"3 s\"\n");
    let ended = there.type_in(&["peer", "join", &address(&here)]);
    assert_eq!(ended.status.code(), Some(1), "{}", told(&ended));
    assert!(told(&ended).contains("no operator approved in time"), "{}", told(&ended));
    eventually("it is gone there too", || shown(&here, &there).is_null().then_some(()));
}

#[test]
fn an_event_reports_a_request_with_its_code() {
    let (here, there) = (Peer::start(), Peer::start());
    let mut command = klnode(&here.home);
    command
        .args(["list", "--follow", "--since", "0", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut watching = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    // An entry shows that the stream has started.
    let marker = here.add("the stream has begun", &[]);
    let mut entries = 1;
    loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if line["entry"] == marker.as_str() {
            break;
        }
        entries += 1;
        assert!(entries < 100);
    }
    let code = ask(&there, &[&address(&here), "--mine"]);
    let event = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (line["event"] == "join").then_some(line)
    });
    let event = event.unwrap();
    assert_eq!(event["peer"], there.key());
    assert_eq!(
        (&event["request"]["wants"], &event["request"]["code"]),
        (&json!("mine"), &json!(code))
    );
}

/// Two nodes that are paired by address, and members of no workspace.
fn peers() -> (Peer, Peer) {
    let (here, there) = (Peer::start(), Peer::start());
    let code = ask(&there, &[&address(&here)]);
    printed(&approve(&here, &there, &code));
    paired(&there, &here);
    paired(&here, &there);
    (here, there)
}

#[test]
fn an_added_peer_is_a_member_once_it_accepts() {
    let (here, there) = peers();
    here.json(&["workspace", "new", "team"]);
    let entry = here.add("how releases are cut", &["--workspace", "team"]);
    let added = here.json(&["workspace", "members", "team", "--add", &there.key()]);
    assert_eq!(added["members"].as_array().map(Vec::len), Some(1), "{added}");
    assert_eq!(added["invited"][0]["key"], there.key().as_str());
    let offered = eventually("the offer arrives", || {
        let offers = there.json(&["workspace", "list"])["offers"].as_array().cloned()?;
        offers.into_iter().next()
    });
    assert_eq!((&offered["name"], &offered["peer"]), (&json!("team"), &json!(here.key())));
    let list = printed(&there.type_in(&["workspace", "list"]));
    assert!(list.contains("team  offered by ") && list.contains("workspace accept team"), "{list}");
    let list = printed(&there.type_in(&["peer", "list"]));
    assert!(list.contains("offers membership of `team`"), "{list}");
    let attention = there.json(&["status"])["attention"].to_string();
    assert!(attention.contains("klnode workspace accept team"), "{attention}");
    // No records are sent before that.
    eventually("equal", || there.type_in(&["peer", "sync"]).status.success().then_some(()));
    assert_eq!(there.type_in(&["show", &entry]).status.code(), Some(1));
    assert_eq!(there.type_in(&["workspace", "show", "team"]).status.code(), Some(1));
    let accepted = printed(&there.type_in(&["workspace", "accept", "team"]));
    assert!(accepted.starts_with("team  this node is now a member"), "{accepted}");
    there.found("how releases are cut", &entry);
    assert_eq!(there.json(&["workspace", "list"])["offers"], Value::Null, "the offer was accepted");
    let members = here.json(&["workspace", "show", "team"]);
    assert_eq!(members["members"].as_array().map(Vec::len), Some(2), "{members}");
    assert_eq!(members["invited"], Value::Null);
    let again = here.type_in(&["workspace", "members", "team", "--add", &there.key()]);
    assert!(told(&again).contains("is already a member"), "{}", told(&again));
}

#[test]
fn an_offer_can_be_declined_or_withdrawn_and_needs_a_paired_peer() {
    let (here, there) = peers();
    here.json(&["workspace", "new", "team"]);
    let offers = || there.json(&["workspace", "list"])["offers"].clone();
    let add = || here.json(&["workspace", "members", "team", "--add", &there.key()]);
    let invited = || here.json(&["workspace", "show", "team"])["invited"].clone();
    add();
    eventually("the offer arrives", || offers().is_array().then_some(()));
    printed(&there.type_in(&["workspace", "decline", "team"]));
    assert_eq!(offers(), Value::Null);
    eventually("the offering side hears of it", || invited().is_null().then_some(()));
    // A later offer is a new one, and can be withdrawn.
    add();
    eventually("the offer arrives", || offers().is_array().then_some(()));
    here.json(&["workspace", "members", "team", "--remove", &there.key()]);
    assert_eq!(invited(), Value::Null);
    eventually("it is gone", || offers().is_null().then_some(()));
    let late = there.type_in(&["workspace", "accept", "team"]);
    assert_eq!(late.status.code(), Some(1), "{}", told(&late));
    let members = here.json(&["workspace", "show", "team"])["members"].clone();
    assert_eq!(members.as_array().map(Vec::len), Some(1), "{members}");
    let stranger = Peer::start();
    let refused = here.type_in(&["workspace", "members", "team", "--add", &stranger.key()]);
    assert!(
        told(&refused).contains("is not paired with this node, so it cannot"),
        "{}",
        told(&refused)
    );
}

#[test]
fn an_offer_waits_for_an_offline_peer() {
    let (here, mut there) = peers();
    here.json(&["workspace", "new", "team"]);
    there.stop();
    let key = shown_key(&here);
    here.json(&["workspace", "members", "team", "--add", &key]);
    there.run();
    eventually("the offer arrives", || {
        there.json(&["workspace", "list"])["offers"].is_array().then_some(())
    });
    printed(&there.type_in(&["workspace", "accept", "team", "--from", &here.key()]));
    assert_eq!(
        here.json(&["workspace", "show", "team"])["members"].as_array().map(Vec::len),
        Some(2)
    );
}

/// Key of the only peer of a node.
fn shown_key(of: &Peer) -> String {
    text(&of.json(&["peer", "list"])["peers"][0]["peer"])
}
