//! Two agents on two nodes of one team, from the first search to a report of harm: the session of
//! `docs/guide/walkthrough.md`, typed into real processes.

use crate::support::node_process::{PROGRAM, eventually};
use crate::support::peer_processes::Peer;
use klnode_tests::documented_sessions::{self, Names, Step};
use serde_json::Value;
use std::os::unix::fs::symlink;

/// Disables maintenance, which would merge two entries with the same words.
const CONFIG: &str = "[tuning.maintenance]\ncheck_interval = \"1 day\"\n";
/// Codes of the two entries, as the page shows them.
const ENTRIES: [&str; 2] = ["L-7F3KQ2MX", "L-2MXA77QD"];

/// An entry as a node shows it, once it holds it.
fn shown(peer: &Peer, code: &str) -> Option<Value> {
    let output = peer.type_in(&["show", code, "--json"]);
    let is_held = output.status.success();
    is_held.then(|| serde_json::from_slice(&output.stdout).expect("an entry"))
}

/// Waits until a node's index is complete: hits do not depend on it, but the similarity of two
/// equal texts does.
fn indexed(peer: &Peer) {
    eventually("all is indexed", || {
        let index = peer.json(&["status"])["index"].clone();
        (index["lag"] == 0 && index["rebuild"].is_null()).then_some(())
    });
}

#[test]
fn the_two_node_session_of_the_documentation_works() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/walkthrough.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let parts: Vec<_> = page.split("\n```\n\n").map(|part| format!("{part}\n```\n")).collect();
    let parts: Vec<_> = parts.iter().map(|part| documented_sessions::sessions(part)).collect();
    let [learns, hears, is_served, tells, asks, answers] = &parts[..] else {
        panic!("the page has {} parts", parts.len());
    };

    let (ann, bob) = (Peer::start_with(CONFIG), Peer::start_with(CONFIG));
    let folder = tempfile::tempdir().unwrap();
    let (programs, at) = (folder.path().join("bin"), |name: &str| folder.path().join(name));
    std::fs::create_dir(&programs).unwrap();
    symlink(PROGRAM, programs.join("klnode")).unwrap();
    symlink(&ann.home, at("ann")).unwrap();
    symlink(&bob.home, at("bob")).unwrap();
    bob.json(&["peer", "join", &ann.ticket(&["team"])]);
    let mut names = Names::from([("ANN".to_owned(), ann.key()[..16].to_owned())]);
    let mut play = |steps: &[Step]| {
        documented_sessions::go_on(steps, &programs, &at("ann"), &mut names);
        ENTRIES.map(|code| names.get(code).expect("the page has shown it").clone())
    };

    let [first, second] = play(learns);
    eventually("Bob's node holds both entries and Ann's observation of the first", || {
        let entry = shown(&bob, &first)?;
        shown(&bob, &second)?;
        (entry["observations"].as_f64()? > 0.0).then_some(())
    });
    indexed(&bob);
    play(hears);
    let here = |peer: &Peer| shown(peer, &first).expect("it is held")["mean"].as_f64().unwrap();
    assert!(here(&bob) < here(&ann), "remote observations count less");
    play(is_served);
    play(tells);
    indexed(&bob);
    play(asks);
    eventually("Ann's node hears of the harm", || {
        (shown(&ann, &first)?["beta"].as_f64()? > 5.0).then_some(())
    });
    play(answers);
}
