//! Entries of a shared workspace that name a host, a path, a customer or a weakness: held, released,
//! rephrased, refused.

use crate::support::conformance::conforms;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{eventually, text, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};

/// A text for each topic of the disclosure rules, with `Blue Harbour` as a configured name.
const LEAKS: [(&str, &str); 5] = [
    ("foreign repository", "Copy it from github.com/them/thing first."),
    ("hostname", "Ask db1.prod.internal first."),
    ("internal endpoint", "Ask 10.20.30.40 first."),
    ("name", "Blue Harbour needs it first."),
    ("weakness", "The login can be bypassed with an empty cookie."),
];

/// Two members of the workspace `team`, the first with this rule.
fn team(rule: &str) -> (Peer, Peer) {
    let config =
        format!("[scan]\ndisclosure = \"{rule}\"\norganisation_names = [\"Blue Harbour\"]\n");
    let (here, there) = (Peer::start_with(&config), Peer::start());
    here.json(&["workspace", "new", "team"]);
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    eventually("both are members", || {
        let shown = here.json(&["workspace", "show", "team"]);
        (shown["members"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    (here, there)
}

fn add(node: &Peer, title: &str, content: &str, more: &[&str]) -> Value {
    let words = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
    node.json(&[&words[..], &["--workspace", "team"], more].concat())
}

fn held(node: &Peer) -> Vec<Value> {
    node.json(&["inbox", "list"])["held"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_held_entry_reaches_neither_peers_nor_agents_until_it_is_released() {
    conforms("S000-44");
    let (here, there) = team("hold");
    let added = add(&here, "About zqheld pools", LEAKS[1].1, &[]);
    let (code, id) = (text(&added["code"]), text(&added["id"]));
    assert_eq!(added["held"], true, "{added}");
    let waiting = held(&here);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["code"], code.as_str());
    let flag = json!({"field": "content", "topic": "hostname", "text": "db1.prod.internal"});
    assert_eq!(waiting[0]["flags"], json!([flag]));
    let listed = String::from_utf8(here.type_in(&["inbox", "list"]).stdout).unwrap();
    assert!(listed.contains("klnode inbox release ENTRY"), "{listed}");

    // An entry that was written later has arrived, so the node has examined both.
    let clean = text(&add(&here, "About zqheld queues", "Bound them.", &[])["id"]);
    there.found("zqheld", &clean);
    assert!(!there.type_in(&["show", &id]).status.success(), "it was not sent");
    let found = here.json(&["search", "zqheld"]);
    let hits: Vec<&Value> =
        found["hits"].as_array().unwrap().iter().map(|hit| &hit["id"]).collect();
    assert_eq!(hits, [&json!(clean)], "a program is not served it");
    let piped = here.type_in(&["show", &code]);
    assert!(told(&piped).contains("klnode inbox list"), "{}", told(&piped));
    let mut agent = Agent::new(&here.home, &[]);
    let read = agent.call("get", &json!({"code": code})).to_string();
    assert!(read.contains("not served to agents") && !read.contains("db1.prod"), "{read}");
    let briefing = here.json(&["briefing", "team"]).to_string();
    assert!(!briefing.contains("db1.prod"), "{briefing}");

    let released = here.json(&["inbox", "release", &code]);
    assert_eq!(released["flags"], json!([flag]));
    assert_eq!(held(&here), [] as [Value; 0]);
    there.found("zqheld pools", &id);
    assert!(here.type_in(&["show", &code]).status.success());
    // From here on a new passage would reach the other node at once.
    let more = ["edit", &code, "--content", "Ask db2.prod.internal or db1.prod.internal first."];
    let refused = here.type_in(&more);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(told(&refused).contains("db2.prod.internal (hostname)"), "{}", told(&refused));
    assert!(!told(&refused).contains("db1.prod"), "the released one may stay: {}", told(&refused));
    let again = here.type_in(&["inbox", "release", &code]);
    assert!(told(&again).contains("is not held"), "{}", told(&again));
}

#[test]
fn rephrasing_a_held_entry_shares_it() {
    let (here, there) = team("hold");
    let id = text(&add(&here, "About zqwords pools", LEAKS[4].1, &[])["id"]);
    assert_eq!(held(&here).len(), 1);
    let general = "Compare cookies in constant time.";
    let edited = here.json(&["edit", &id, "--content", general]);
    assert_eq!((&edited["held"], &edited["flags"]), (&Value::Null, &Value::Null));
    assert_eq!(held(&here), [] as [Value; 0]);
    assert_eq!(there.found("zqwords pools", &id)["content"], general);
}

#[test]
fn with_refuse_no_way_of_writing_stores_a_leak_in_a_shared_workspace() {
    conforms("S000-22");
    conforms("S000-23");
    conforms("S000-24");
    conforms("S000-26");
    let (here, _there) = team("refuse");
    for (topic, content) in LEAKS {
        let words = ["add", "--title", "About zqleaks", "--content", content];
        let words = [&words[..], &["--evidence", "doc:notes", "--workspace", "team"]].concat();
        let refused = here.type_in(&words);
        assert_eq!(refused.status.code(), Some(4), "{topic}: {}", told(&refused));
        assert!(told(&refused).contains(&format!("({topic})")), "{topic}: {}", told(&refused));
        let line = json!({"title": "About zqleaks", "content": content}).to_string();
        let file = here.home.join("leaks.jsonl");
        std::fs::write(&file, line).unwrap();
        let file = file.to_str().unwrap();
        let refused = here.type_in(&["import", file, "--workspace", "team"]);
        assert!(told(&refused).contains(topic), "{topic}: {}", told(&refused));
        // What stays with its owner is unaffected.
        let alone = ["add", "--title", "About zqalone", "--content", content];
        let alone = [&alone[..], &["--evidence", "doc:notes", "--workspace", "local"]].concat();
        assert!(here.type_in(&alone).status.success(), "{topic}");
        let copy = here.json(&alone);
        let moved = here.type_in(&["add", "--from", &text(&copy["code"]), "--workspace", "team"]);
        assert_eq!(moved.status.code(), Some(4), "{topic}: {}", told(&moved));
    }
    let listed = here.json(&["list", "--workspace", "team", "--all"]);
    assert_eq!(listed["entries"], json!([]), "nothing was stored");
    let clean = text(&add(&here, "About zqleaks", "Ask the database first.", &[])["code"]);
    let refused = here.type_in(&["edit", &clean, "--content", LEAKS[0].1]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
}

#[test]
fn an_entry_is_not_held_with_warn_nor_in_a_workspace_without_other_members() {
    let (here, there) = team("warn");
    let added = add(&here, "About zqwarn pools", LEAKS[1].1, &[]);
    assert_eq!(added["held"], Value::Null);
    assert_eq!(added["flags"][0]["topic"], "hostname", "{added}");
    there.found("zqwarn pools", &text(&added["id"]));
    let alone = Peer::start();
    alone.json(&["workspace", "new", "team"]);
    let added = add(&alone, "About zqalone pools", LEAKS[1].1, &[]);
    assert_eq!((&added["held"], &added["flags"][0]["topic"]), (&Value::Null, &json!("hostname")));
    assert_eq!(alone.json(&["search", "zqalone"])["hits"].as_array().map(Vec::len), Some(1));
}
