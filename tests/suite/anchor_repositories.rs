//! Anchors belong to the repository in which they were written: they are checked there and in its
//! clones, skipped everywhere else, and recorded by every way of creating an entry.

use crate::support::git_repos::{Ground, done, type_in};
use crate::support::mcp_client::Agent;
use crate::support::node_process::{eventually, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const OURS: &str = "https://somebody:a-token@git.example.org/acme/shop.git";
const FILE: &str = "src/lib.rs";
const ANCHOR: &str = "path:src/lib.rs";

/// A repository in which git tracks one file.
fn repository(ground: &Ground, name: &str, remote: Option<&str>) {
    ground.repository(name, remote, 1);
    fs::create_dir(ground.path(name).join("src")).unwrap();
    fs::write(ground.path(name).join(FILE), "fn f() {}\n").unwrap();
    ground.git(name, &["add", "."]);
    ground.commit(name, "a file");
}

fn delete(ground: &Ground, name: &str) {
    fs::remove_file(ground.path(name).join(FILE)).unwrap();
}

fn add(node: &Peer, from: &Path, more: &[&str]) -> String {
    let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let added = done(node, from, &[&words[..], &["--evidence", "doc:notes"], more].concat());
    added["code"].as_str().unwrap().to_owned()
}

/// Exit code and JSON output of `check anchors` in a folder.
fn check(node: &Peer, from: &Path) -> (i32, Value) {
    let output = type_in(node, from, &["check", "anchors", "--json"]);
    let checked = serde_json::from_slice::<Value>(&output.stdout);
    let checked = checked.unwrap_or_else(|_| panic!("{}", told(&output)));
    (output.status.code().unwrap(), checked["anchors"].clone())
}

/// Counts of predicates: of this repository, broken, of another repository, without a repository.
fn counts(node: &Peer, from: &Path) -> [u64; 4] {
    let (code, checked) = check(node, from);
    let number = |name: &str| checked[name].as_u64().unwrap();
    let broken = checked["broken"].as_array().unwrap().len() as u64;
    assert_eq!(code, i32::from(broken > 0), "{checked}");
    [number("predicates"), broken, number("skipped_elsewhere"), number("skipped_unrecorded")]
}

/// Caveats of the only hit.
fn caveats(node: &Peer, from: &Path) -> Vec<String> {
    let answer = done(node, from, &["search", "flush the queue", "--deterministic"]);
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1, "{answer}");
    let caveats = hits[0]["caveats"].as_array().unwrap().iter();
    caveats.map(|caveat| caveat.as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_anchor_is_checked_in_its_repository_and_in_no_other() {
    let (ground, node) = (Ground::new(), Peer::start());
    repository(&ground, "shop", Some(OURS));
    ground.repository("other", Some("https://git.example.org/acme/other"), 2);
    ground.clone("shop", "clone", None);
    ground.clone("shop", "fork", Some("https://git.example.org/else/shop"));
    ground.git("shop", &["worktree", "add", "-q", "../tree", "-b", "feature"]);
    let from = format!("file://{}", ground.path("shop").display());
    ground.git(".", &["clone", "-q", "--depth", "1", &from, "shallow"]);
    ground.git("shallow", &["remote", "set-url", "origin", OURS]);
    let code = add(&node, &ground.path("shop"), &["--depends-on", ANCHOR, "--anchor", "the loop"]);
    let show = ["show", code.as_str()];

    for name in ["other", "."] {
        let from = ground.path(name);
        assert_eq!(caveats(&node, &from), [""; 0], "{name}");
        let shown = done(&node, &from, &show);
        assert!(shown["checked"].is_null() && shown["caveats"].is_null(), "{shown}");
        let anchored = &shown["anchored"][0];
        assert_eq!(anchored["predicate"], ANCHOR);
        assert_eq!(anchored["repositories"], json!(["git.example.org/acme/shop"]));
        assert_eq!(anchored["here"], false);
        let briefed = String::from_utf8(type_in(&node, &from, &["briefing"]).stdout).unwrap();
        assert!(!briefed.contains("broken") && !briefed.contains("checked"), "{briefed}");
    }
    assert_eq!(counts(&node, &ground.path("other")), [0, 0, 1, 0]);
    let said = type_in(&node, &ground.path("other"), &["check", "anchors"]).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("Skipped: 1 predicate was written in another repository.\n"), "{said}");
    let said = String::from_utf8(type_in(&node, &ground.path("other"), &show).stdout).unwrap();
    let row = "in git.example.org/acme/shop: not checked here (path:src/lib.rs)\n";
    assert!(said.contains(row) && !said.contains("a-token"), "{said}");

    for name in ["shop", "clone", "fork", "tree", "shallow"] {
        assert_eq!(counts(&node, &ground.path(name)), [1, 0, 0, 0], "{name}");
    }
    delete(&ground, "shop");
    let broken = "broken: \"path:src/lib.rs\" (the file has been deleted)";
    assert_eq!(caveats(&node, &ground.path("shop")), [broken]);
    assert_eq!(counts(&node, &ground.path("shop")), [1, 1, 0, 0]);
    assert_eq!(done(&node, &ground.path("shop"), &show)["checked"]["outcome"], "broken");
    assert_eq!(caveats(&node, &ground.path("clone")), [""; 0]);
    assert_eq!(caveats(&node, &ground.path("other")), [""; 0]);
}

#[test]
fn an_anchor_without_a_repository_is_not_checked_until_it_is_written_again() {
    let (ground, node) = (Ground::new(), Peer::start());
    repository(&ground, "shop", None);
    delete(&ground, "shop");
    let (outside, shop) = (ground.path("."), ground.path("shop"));
    let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let more = ["--evidence", "doc:notes", "--anchor", ANCHOR];
    let output = type_in(&node, &outside, &[&words[..], &more].concat());
    assert!(told(&output).contains("No checkout can check its predicates"), "{}", told(&output));
    let code = String::from_utf8(output.stdout).unwrap();
    let code = code.split_whitespace().next().unwrap().to_owned();
    assert_eq!(counts(&node, &shop), [0, 0, 0, 1]);
    assert_eq!(caveats(&node, &shop), [""; 0]);
    let said = String::from_utf8(type_in(&node, &shop, &["show", &code]).stdout).unwrap();
    assert!(said.contains("in no recorded repository: not checked"), "{said}");
    let said = String::from_utf8(type_in(&node, &shop, &["check", "anchors"]).stdout).unwrap();
    assert!(said.contains("Skipped: 1 predicate has no recorded repository. "), "{said}");

    done(&node, &shop, &["edit", &code, "--anchor", ANCHOR]);
    assert_eq!(counts(&node, &shop), [1, 1, 0, 0]);
    // An anchor that is withdrawn and written again elsewhere belongs to that repository.
    ground.repository("other", None, 1);
    done(&node, &outside, &["edit", &code, "--remove-anchor", ANCHOR]);
    done(&node, &ground.path("other"), &["edit", &code, "--anchor", ANCHOR]);
    assert_eq!(counts(&node, &shop), [0, 0, 1, 0]);
    assert_eq!(counts(&node, &ground.path("other")), [1, 1, 0, 0]);
}

#[test]
fn one_entry_has_anchors_of_two_repositories() {
    let (ground, node) = (Ground::new(), Peer::start());
    for name in ["shop", "other"] {
        repository(&ground, name, None);
    }
    let code = add(&node, &ground.path("shop"), &["--anchor", ANCHOR]);
    let more = ["edit", &code, "--depends-on", "path:src/gone.rs"];
    done(&node, &ground.path("other"), &more);
    assert_eq!(counts(&node, &ground.path("shop")), [1, 0, 1, 0]);
    assert_eq!(counts(&node, &ground.path("other")), [1, 1, 1, 0]);
    assert_eq!(caveats(&node, &ground.path("shop")), [""; 0]);
}

#[test]
fn exports_promotions_findings_and_tools_keep_the_repository() {
    let (ground, node) = (Ground::new(), Peer::start());
    repository(&ground, "shop", Some(OURS));
    ground.repository("other", None, 1);
    let (shop, other) = (ground.path("shop"), ground.path("other"));
    let anchored = |node: &Peer, code: &str| {
        let shown = done(node, &other, &["show", code]);
        let anchored = shown["anchored"].as_array().unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(anchored.len(), 1, "{shown}");
        anchored[0]["repositories"].clone()
    };
    let ours = json!(["git.example.org/acme/shop"]);

    let code = add(&node, &shop, &["--depends-on", ANCHOR]);
    let promoted = done(&node, &other, &["add", "--from", &code, "--workspace", "local"]);
    assert_eq!(anchored(&node, promoted["code"].as_str().unwrap()), ours);

    let task = done(&node, &shop, &["task", "begin", "--agent", "reviewer", "--goal", "review"]);
    let task = task["task"].as_str().unwrap();
    let text = "The lock is held while a request is sent to the server.";
    let finding = ["task", "finding", task, "--text", text, "--severity", "high"];
    let rest = ["--confidence", "0.8", "--anchor", ANCHOR, "--verify", "read the function"];
    done(&node, &shop, &[&finding[..], &rest].concat());
    let kept = done(&node, &other, &["task", "keep", task, "1"]);
    assert_eq!(anchored(&node, kept["code"].as_str().unwrap()), ours);

    let mut agent = Agent::within(&shop, &node.home, &[]);
    agent.hello("2025-06-18");
    let remembered = agent.done(
        "remember",
        &json!({"title": "Close the pool", "content": "First.", "depends_on": [ANCHOR]}),
    );
    agent.close();
    assert_eq!(anchored(&node, remembered["code"].as_str().unwrap()), ours);

    // Export with records, and as plain lines.
    let exported = String::from_utf8(type_in(&node, &shop, &["export"]).stdout).unwrap();
    let plain = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("records");
        line.to_string()
    };
    let stripped: Vec<String> = exported.lines().skip(1).map(plain).collect();
    for (name, lines) in [("whole", exported.clone()), ("plain", stripped.join("\n"))] {
        let file = ground.path(name);
        fs::write(&file, lines).unwrap();
        let there = Peer::start();
        done(&there, &other, &["import", file.to_str().unwrap()]);
        let again = String::from_utf8(type_in(&there, &other, &["export"]).stdout).unwrap();
        let lines = again.lines().filter(|line| line.contains("remote:git.example.org/acme/shop"));
        assert_eq!(lines.count(), 4, "{name}: {again}");
        // Entries signed by another key are not checked; plain lines are this node's own.
        let checked = if name == "plain" { 4 } else { 0 };
        assert_eq!(counts(&there, &shop), [checked, 0, 0, 0], "{name}");
        assert_eq!(counts(&there, &other), [0, 0, checked, 0], "{name}");
    }
    let wrong = r#"{"title":"t","content":"c","repositories":[{"repository":"shop"}]}"#;
    fs::write(ground.path("wrong"), wrong).unwrap();
    let output = type_in(&node, &other, &["import", ground.path("wrong").to_str().unwrap()]);
    assert!(
        told(&output).contains("repositories: `shop` is not a repository"),
        "{}",
        told(&output)
    );
}

#[test]
fn members_check_each_others_anchors_and_learn_no_unknown_remote() {
    let (ground, alice, bob) = (Ground::new(), Peer::start(), Peer::start());
    repository(&ground, "shop", Some(OURS));
    ground.clone("shop", "clone", Some("https://mirror.example.org/shop"));
    ground.repository("other", None, 1);
    let here = ground.path(".");
    done(&alice, &here, &["workspace", "new", "team"]);
    done(&bob, &here, &["peer", "join", &alice.ticket(&["team"])]);
    let shared = ["--workspace", "team", "--depends-on", ANCHOR];
    add(&alice, &ground.path("shop"), &shared);
    let exported = || String::from_utf8(type_in(&bob, &here, &["export"]).stdout).unwrap();
    eventually("the entry arrives", || exported().contains("Flush the queue").then_some(()));
    assert_eq!(counts(&bob, &ground.path("clone")), [1, 0, 0, 0]);
    assert_eq!(counts(&bob, &ground.path("other")), [0, 0, 1, 0]);
    delete(&ground, "clone");
    assert_eq!(counts(&bob, &ground.path("clone")), [1, 1, 0, 0]);
    let line = exported().lines().find(|line| line.contains("Flush the queue")).map(plain_fields);
    let repositories = line.expect("the entry")["repositories"].to_string();
    assert!(repositories.contains("root:") && !repositories.contains("remote:"), "{repositories}");
    // Members know the remote of a repository that is mapped to their workspace.
    done(&alice, &ground.path("shop"), &["workspace", "map", "team"]);
    let words = ["add", "--title", "Close the pool", "--content", "First.", "--anchor", ANCHOR];
    let added = done(&alice, &ground.path("shop"), &words);
    assert_eq!(added["repository"], "git.example.org/acme/shop", "{added}");
}

fn plain_fields(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}
