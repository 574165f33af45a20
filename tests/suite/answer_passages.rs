//! Excerpts of long entries: a hit shows the matching passage, and more of it if the budget allows.

use crate::support::node_process::{done, printed, run, start};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::fmt::Write;

const QUESTION: &str = "how long does the connection pool wait for a free connection";
const HEADING: &str = "## Waiting";
const ANSWER: &str = "The connection pool waits 30 seconds for a free connection, then it fails.";

/// A long guide about many topics; the answer is at its end.
fn guide() -> String {
    let mut guide = String::from("# Service guide\n\n");
    for section in ["Logs", "Metrics", "Releases", "Secrets", "Backups", "Alerts"] {
        let _ = write!(
            guide,
            "## {section}\n\nThe {section} of the service have an owner. Every change of them is \
             reviewed by two people. Nobody edits them by hand on a machine.\n\n- They are kept for \
             a year.\n- They are documented in the wiki.\n\n"
        );
    }
    guide + HEADING + "\n\n" + ANSWER + " A client then gets an error.\n"
}

/// A node that holds the guide and a short entry on the same subject.
struct Asked(Served);

impl Asked {
    fn new() -> Self {
        let node = Asked(Served::start(Limits::default(), Doors::Socket));
        node.add("Connection pool of the service", &guide());
        node.add("Pool size", "The connection pool has 20 connections and no free ones at noon.");
        node
    }

    fn add(&self, title: &str, content: &str) {
        let new = json!({"title": title, "content": content, "evidence": ["doc:guide"]});
        let made = self.0.json("POST", "/v1/entries", &new);
        assert_eq!(made.status, 200, "{}", made.text());
    }

    /// The answer to a program with these options, and the hit for the guide.
    fn ask(&self, more: &Value) -> (Value, Value) {
        let mut search = json!({"query": QUESTION, "deterministic": true, "unrecorded": true});
        search.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.0.json("POST", "/v1/search", &search).json();
        let hits = answer["hits"].as_array().unwrap();
        let guide = hits.iter().find(|hit| hit["title"] == "Connection pool of the service");
        (answer.clone(), guide.unwrap_or_else(|| panic!("{answer}")).clone())
    }
}

fn content(hit: &Value) -> &str {
    hit["content"].as_str().unwrap()
}

#[test]
fn a_hit_shows_the_matching_passage_below_its_heading() {
    let node = Asked::new();
    for (more, form) in [
        (json!({"budget": 150}), "standard"),
        (json!({"tier": "standard", "all": true}), "standard"),
    ] {
        let (_, hit) = node.ask(&more);
        assert_eq!(hit["form"], form, "{hit}");
        let shown = content(&hit);
        assert!(shown.contains(ANSWER) && shown.contains(HEADING), "{shown}");
        assert!(shown.contains('…') && !shown.contains("Service guide"), "{shown}");
    }
    let (_, hit) = node.ask(&json!({"tier": "summary"}));
    assert_eq!(content(&hit), format!("…{ANSWER}"));
}

#[test]
fn the_remaining_budget_lengthens_the_first_hits() {
    let node = Asked::new();
    let mut length = 0;
    for budget in [100, 150, 200, 300, 400, 600, 900] {
        let (answer, hit) = node.ask(&json!({"budget": budget}));
        assert!(answer["tokens"].as_u64().unwrap() <= budget, "{answer}");
        assert!(content(&hit).contains(ANSWER) || budget == 100, "{budget}: {hit}");
        assert!(content(&hit).len() >= length, "{budget} shows less: {hit}");
        length = content(&hit).len();
    }
    let (answer, hit) = node.ask(&json!({"budget": 2_000}));
    assert_eq!((content(&hit), &hit["form"]), (guide().as_str(), &json!("full")));
    assert!(answer["hits"].as_array().unwrap().iter().all(|hit| hit["form"] == "full"));
    let (_, hit) = node.ask(&json!({"budget": 2_000, "tier": "summary"}));
    assert_eq!(hit["form"], "summary", "the requested tier");
}

#[test]
fn the_command_line_prints_the_matching_passage() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let file = home.path().join("guide.md");
    let front = "---\ntitle: Connection pool of the service\nevidence: [doc:guide]\n---\n";
    std::fs::write(&file, format!("{front}{}", guide())).unwrap();
    done(home.path(), &["add", file.to_str().unwrap()]);
    let shows = |words: &[&str]| printed(&run(home.path(), words));
    let found = shows(&["search", QUESTION, "--tier", "standard", "--all"]);
    assert!(found.contains(&format!("    | {HEADING}\n")) && found.contains('…'), "{found}");
    assert!(found.contains(ANSWER), "{found}");
    let piped = shows(&["search", QUESTION, "--budget", "150"]);
    assert!(piped.contains(ANSWER), "a pipe has a budget: {piped}");
}
