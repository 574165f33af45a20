//! Weak answers: an entry that hardly matches a question is ranked lower for similar questions, and
//! stays findable for any number of repetitions.

use klnode_crdt::ids::EntryId;
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};

/// A question that two entries answer, each just well enough.
const QUESTION: &str = "jobs of printers and firewalls";

/// A node that holds [`RIGHT`] and some other entries.
struct Asked {
    node: Served,
    right: Vec<String>,
}

const RIGHT: [(&str, &str); 2] = [
    (
        "Builds after the weekend",
        "The cache of the shop expires on sundays, so nightly jobs start cold.",
    ),
    (
        "Builds after a holiday",
        "The index of the shop expires on holidays, so nightly jobs start cold.",
    ),
];

const OTHERS: [(&str, &str); 4] = [
    ("Log levels", "Log levels are read from the environment at every start."),
    ("Cache keys", "Cache keys hold the tenant first, so that one tenant can be evicted alone."),
    ("Release notes", "Release notes are written by hand and reviewed before a tag is made."),
    ("Database pool", "The connection pool waits 30 seconds for a free connection, then fails."),
];

impl Asked {
    fn new() -> Self {
        let node = Served::start(Limits::default(), Doors::Socket);
        let add = |(title, content): &(&str, &str)| {
            let new = json!({"title": title, "content": content, "evidence": ["doc:notes"]});
            let made = node.json("POST", "/v1/entries", &new);
            assert_eq!(made.status, 200, "{}", made.text());
            made.json()["id"].as_str().unwrap().to_owned()
        };
        let right = RIGHT.iter().map(add).collect();
        OTHERS.iter().for_each(|other| drop(add(other)));
        Self { node, right }
    }

    fn begin(&self) -> String {
        let new = json!({"agent": "builder", "goal": "mend the build"});
        self.node.json("POST", "/v1/tasks", &new).json()["task"].as_str().unwrap().to_owned()
    }

    /// Asks as an agent does, in a task or outside any; returns the ids of the hits.
    fn ask(&self, task: Option<&str>) -> Vec<String> {
        let search = json!({"query": QUESTION, "task": task, "deterministic": true});
        let answer = self.node.json("POST", "/v1/search", &search);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let hits = answer.json()["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    }

    fn shown(&self, entry: &str) -> Value {
        self.node.json("GET", &format!("/v1/entries/{entry}"), &json!(null)).json()
    }

    fn prediction_errors(&self, entry: &str) -> u32 {
        let entry = EntryId::from_hex(entry).unwrap();
        self.node.engine.store().snapshot().unwrap().uses(entry).unwrap().prediction_errors
    }

    /// Whether the last answer was weak.
    fn was_weak(&self) -> bool {
        let served = self.node.json("GET", "/v1/served", &json!(null)).json();
        served["answers"][0]["weak"] == true
    }

    #[track_caller]
    fn all_are_found(&self, hits: &[String]) {
        for entry in &self.right {
            assert!(hits.contains(entry), "{hits:?}");
            assert_ne!(self.shown(entry)["status"], "stale");
        }
    }
}

#[test]
fn a_question_asked_24_times_hides_none_of_its_right_answers() {
    let node = Asked::new();
    let first = node.ask(None);
    node.all_are_found(&first);
    let is_counted = || node.right.iter().map(|of| node.prediction_errors(of)).sum::<u32>();
    // In a task an answer is recorded before it is given, together with the earlier ones.
    node.ask(Some(&node.begin()));
    assert!(node.was_weak(), "the question is meant to be answered weakly");
    assert_eq!(is_counted(), 2, "once by the user, once in the task");
    for _ in 0..24 {
        node.all_are_found(&node.ask(None));
    }
    let task = node.begin();
    for _ in 0..24 {
        node.all_are_found(&node.ask(Some(&task)));
    }
    assert!(is_counted() <= 6, "{} prediction errors", is_counted());
    for _ in 0..24 {
        let task = node.begin();
        node.all_are_found(&node.ask(Some(&task)));
    }
}

#[test]
fn a_weak_answer_is_ranked_lower_only_for_similar_questions() {
    let node = Asked::new();
    let before = node.ask(None);
    let orders: Vec<Vec<String>> = (0..6).map(|_| node.ask(Some(&node.begin()))).collect();
    let is_first_elsewhere = orders.iter().any(|order| order[0] != before[0]);
    assert!(is_first_elsewhere, "the other correct entry comes first once: {orders:?}");
    let explain = |query: &str| {
        let search = json!({"query": query, "explain": true, "unrecorded": true});
        node.node.json("POST", "/v1/search", &search).json()["hits"].clone()
    };
    let demotion = |hit: &Value| hit["explain"]["demotion"].as_f64().unwrap();
    let same = explain(QUESTION);
    let same = same.as_array().unwrap();
    assert!(same.iter().any(|hit| demotion(hit) > 0.0), "{same:?}");
    assert!(same.iter().all(|hit| demotion(hit) <= 0.09), "{same:?}");
    let other = explain("what expires on sundays?");
    let other = other.as_array().unwrap();
    assert!(!other.is_empty() && other.iter().all(|hit| demotion(hit) == 0.0), "{other:?}");
}
