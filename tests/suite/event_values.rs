//! Events carry the changes of a record: the values before and after.

use crate::support::conformance::conforms;
use crate::support::event_stream::Followed;
use crate::support::node_process::{Running, done, klnode, run, start, text};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const NEW: &str = "Check ctx.Err() after each zqread";

fn add(node: &Served) -> String {
    let new = json!({
        "title": "Check ctx.Err()", "content": format!("{}It ends.", "A word. ".repeat(60)),
        "evidence": ["doc:notes"], "tags": ["go"],
    });
    let added = node.json("POST", "/v1/entries", &new);
    assert_eq!(added.status, 200, "{}", added.text());
    text(&added.json()["id"])
}

fn edit(node: &Served, entry: &str, edit: &Value) {
    let edited = node.json("PATCH", &format!("/v1/entries/{entry}"), edit);
    assert_eq!(edited.status, 200, "{}", edited.text());
}

/// Change of a field in an event: before and after.
fn change(event: &Value, field: &str) -> Option<(Value, Value)> {
    let changes = event["changes"].as_array().unwrap_or_else(|| panic!("{event}"));
    let of = changes.iter().find(|change| change["field"] == field)?;
    Some((of["old"].clone(), of["new"].clone()))
}

#[test]
fn an_event_carries_the_values_before_and_after() {
    conforms("S004-127");
    conforms("S004-129");
    conforms("S004-130");
    let node = Served::start(Limits::default(), Doors::Socket);
    let mut events = Followed::new(&node, "?since=0");
    let entry = add(&node);
    let mut next = || events.next().unwrap().2;
    let created = next();
    assert_eq!(change(&created, "title"), Some((Value::Null, json!("Check ctx.Err()"))));
    assert_eq!(change(&created, "status"), Some((Value::Null, json!("candidate"))));

    edit(&node, &entry, &json!({"registers": {"title": NEW}, "add_tags": ["ctx"]}));
    let edited = next();
    assert_eq!(change(&edited, "title"), Some((json!("Check ctx.Err()"), json!(NEW))));
    assert_eq!(change(&edited, "tags"), Some((json!("go"), json!("ctx, go"))));
    assert_eq!(change(&edited, "content"), None, "it is the same");

    let content = format!("{}It does not end.", "A word. ".repeat(60));
    edit(&node, &entry, &json!({"registers": {"content": content}}));
    let (old, new) = change(&next(), "content").unwrap();
    assert!(text(&old).ends_with("It ends.") && text(&new).ends_with("It does not end."));
    assert!(text(&new).chars().count() <= 201, "{new}");

    let path = format!("/v1/entries/{entry}/observations");
    node.json("POST", &path, &json!({"outcome": "success"}));
    let observed = next();
    assert_eq!(change(&observed, "status"), Some((json!("candidate"), json!("active"))));
    assert_eq!(change(&observed, "confidence"), Some((json!("0.500"), json!("0.545"))));
    assert_eq!(change(&observed, "alpha"), Some((json!("5.000"), json!("6.000"))));
    assert_eq!(change(&observed, "beta"), None, "it is the same");

    edit(&node, &entry, &json!({"archived": true}));
    assert_eq!(change(&next(), "status"), Some((json!("active"), json!("archived"))));
}

#[test]
fn a_late_subscriber_gets_the_last_value_it_had() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let entry = add(&node);
    let since = Followed::new(&node, "?since=0").next().unwrap().0;
    for title in ["Between", NEW] {
        edit(&node, &entry, &json!({"registers": {"title": title}}));
    }
    let (_, _, event) = Followed::new(&node, &format!("?since={since}")).next().unwrap();
    assert_eq!(change(&event, "title"), Some((json!("Check ctx.Err()"), json!(NEW))));
}

#[test]
fn retracted_values_are_in_no_event() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let entry = add(&node);
    edit(&node, &entry, &json!({"registers": {"title": NEW}}));
    let retracted = node.json("POST", &format!("/v1/entries/{entry}/retract"), &json!({}));
    assert_eq!(retracted.status, 200, "{}", retracted.text());
    let mut events = Followed::new(&node, "?since=0");
    let mut told = Vec::new();
    while let Some((_, name, event)) = events.next() {
        assert!(!event.to_string().contains("ctx.Err"), "{event}");
        told.push(name.clone());
        if name == "retraction" {
            break;
        }
    }
    assert_eq!(told.last().map(String::as_str), Some("retraction"));
}

#[test]
fn watch_prints_old_and_new_values() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let mut command = klnode(home);
    command.args(["list", "--follow", "--since", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let mut until = |part: &str| lines.find(|line| line.as_ref().unwrap().contains(part));
    let words = ["add", "--title", "Old zqname", "--content", "c", "--evidence", "doc:notes"];
    let code = text(&done(home, &words)["code"]);
    assert_eq!(until("title:").unwrap().unwrap().trim(), "title: \"Old zqname\"");
    assert!(run(home, &["edit", &code, "--title", "New zqname"]).status.success());
    let line = until("title:").unwrap().unwrap();
    assert_eq!(line.trim(), "title: \"Old zqname\" -> \"New zqname\"");
}
