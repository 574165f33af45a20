//! Entries of a thread are served in that thread, and elsewhere only on request.

use crate::support::conformance::conforms;
use crate::support::mcp_client::{Agent, text as answer_text};
use crate::support::node_process::{done, eventually, json, printed, run, start, text};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const QUESTION: &str = "how does the zqlogin page refresh its token";

fn add(node: &Served, title: &str, thread: Option<&str>) -> String {
    let new = json!({
        "title": title, "content": "The zqlogin page refreshes its token.", "thread": thread,
        "evidence": ["doc:notes"],
    });
    let added = node.json("POST", "/v1/entries", &new);
    assert_eq!(added.status, 200, "{}", added.text());
    text(&added.json()["code"])
}

fn begin(node: &Served, asked: &Value) -> String {
    text(&node.json("POST", "/v1/tasks", asked).json()["task"])
}

/// Codes of the hits, and the number of omitted entries of other threads.
fn found(node: &Served, with: &Value) -> (BTreeSet<String>, u64) {
    let mut asked = json!({"query": QUESTION, "deterministic": true});
    asked.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    let answer = node.json("POST", "/v1/search", &asked);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let hits = answer["hits"].as_array().unwrap().iter();
    (hits.map(|hit| text(&hit["code"])).collect(), answer["other_threads"].as_u64().unwrap())
}

#[test]
fn a_search_serves_only_the_callers_thread_unless_more_is_requested() {
    conforms("S004-29");
    let node = Served::start(Limits::default(), Doors::Socket);
    let wide = add(&node, "The zqlogin page refreshes its token every hour", None);
    let fix = add(&node, "The zqlogin page refreshes its token on fix", Some("fix"));
    let other = add(&node, "The zqlogin page refreshes its token on other", Some("other"));
    let set = |codes: &[&String]| codes.iter().map(|code| (*code).clone()).collect::<BTreeSet<_>>();
    let in_fix = begin(&node, &json!({"agent": "a", "goal": "g", "thread": "fix"}));
    let below = begin(&node, &json!({"agent": "a", "goal": "g", "parent": in_fix}));
    let in_none = begin(&node, &json!({"agent": "a", "goal": "g"}));
    for (with, expect) in [
        (json!({}), (set(&[&wide]), 2)),
        (json!({"all": true}), (set(&[&wide]), 2)),
        (json!({"task": in_none}), (set(&[&wide]), 2)),
        (json!({"thread": "fix"}), (set(&[&wide, &fix]), 1)),
        (json!({"task": in_fix}), (set(&[&wide, &fix]), 1)),
        (json!({"task": below}), (set(&[&wide, &fix]), 1)),
        (json!({"thread": "other", "task": in_fix}), (set(&[&wide, &other]), 1)),
        (json!({"only_thread": "other"}), (set(&[&other]), 0)),
        (json!({"all_threads": true}), (set(&[&wide, &fix, &other]), 0)),
    ] {
        assert_eq!(found(&node, &with), expect, "{with}");
    }
    // An entry can be read by its id from anywhere.
    let shown = node.json("GET", &format!("/v1/entries/{fix}"), &Value::Null);
    assert_eq!(shown.json()["registers"]["thread"], "fix");
}

#[test]
fn many_entries_of_other_threads_do_not_displace_the_answer() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let wide = add(&node, "A page of zqlogin has a token", None);
    // More than both engines return at first.
    for number in 0..260 {
        let thread = format!("job-{}", number % 7);
        add(&node, &format!("The zqlogin page refreshes its token, {number}"), Some(&thread));
    }
    eventually("the index has everything", || {
        let answer = node.json("POST", "/v1/search", &json!({"query": QUESTION})).json();
        (answer["index_lag"] == 0).then_some(())
    });
    let (codes, left_out) = found(&node, &json!({}));
    assert_eq!(codes, BTreeSet::from([wide]));
    assert!(left_out > 0);
}

#[test]
fn a_briefing_lists_only_entries_of_the_callers_thread() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let verified = |title: &str, thread: Option<&str>| {
        let task = begin(&node, &json!({"agent": "a", "goal": "g", "thread": thread}));
        let new = json!({"title": title, "content": "It is so.", "task": task});
        assert_eq!(node.json("POST", "/v1/entries", &new).status, 200);
        let done = json!({"outcome": "success"});
        node.json("POST", &format!("/v1/tasks/{task}/finish"), &done);
        task
    };
    verified("Known to all", None);
    let task = verified("Known in fix", Some("fix"));
    let told = |query: &str| {
        let briefing = node.json("GET", &format!("/v1/briefing{query}"), &Value::Null);
        assert_eq!(briefing.status, 200, "{}", briefing.text());
        let text = text(&briefing.json()["text"]);
        [text.contains("Known to all"), text.contains("Known in fix")]
    };
    assert_eq!(told(""), [true, false]);
    assert_eq!(told("?thread=other"), [true, false]);
    assert_eq!(told("?thread=fix"), [true, true]);
    assert_eq!(told(&format!("?task={task}")), [true, true]);
}

#[test]
fn people_and_agents_see_the_number_of_omitted_entries_of_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let title = "The zqlogin page refreshes its token on fix";
    let words = ["add", "--title", title, "--content", "It does.", "--evidence", "doc:notes"];
    let code = text(&done(home, &[&words[..], &["--thread", "fix"]].concat())["code"]);
    let answer = json(home, &["search", QUESTION]);
    assert_eq!((&answer["hits"], &answer["other_threads"]), (&json!([]), &json!(1)), "{answer}");
    let said = String::from_utf8(run(home, &["search", QUESTION]).stdout).unwrap();
    assert!(said.contains("1 entry in other threads hidden; use --all-threads to show"), "{said}");
    for way in [&["--all-threads"][..], &["--thread", "fix"]] {
        let said = printed(&run(home, &[&["search", QUESTION], way].concat()));
        assert!(said.contains(&code) && !said.contains("hidden"), "{said}");
    }
    let mut agent = Agent::new(home, &[]);
    let answer = agent.call("search", &json!({"query": QUESTION}));
    let said = answer_text(&answer);
    assert!(said.ends_with("\n1 in other threads; see `thread`.\n"), "{said}");
    for thread in ["fix", "*"] {
        let answer = agent.done("search", &json!({"query": QUESTION, "thread": thread}));
        assert_eq!(answer["hits"][0]["code"], code, "{answer}");
    }
    // A task of the thread is in the thread.
    agent.done("task_begin", &json!({"goal": "fix it", "thread": "fix"}));
    let answer = agent.done("search", &json!({"query": QUESTION}));
    assert_eq!(answer["hits"][0]["code"], code, "{answer}");
}
