//! The built-in transformer in a real node: questions in other words, grades, a kill in the middle
//! of the background work, and the choice of `static`.

use crate::support::process::{Running, done, eventually, json, klnode, started};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// Short notes of a team: titles and contents.
const NOTES: [(&str, &str); 8] = [
    (
        "Releases are cut on Tuesday",
        "The release train leaves on Tuesday at noon; hotfixes any day.",
    ),
    ("Connection pool", "Raise max_connections or return clients to the pool sooner."),
    ("Flaky snapshot tests", "Snapshot tests fail when the locale of the runner is not C.UTF-8."),
    ("Signing keys", "The signing keys rotate every ninety days; the old pair stays valid a week."),
    ("Slow imports", "The nightly import is slow because each row opens its own transaction."),
    ("Log retention", "Access logs are kept for thirty days and then deleted."),
    ("Editor settings", "The linter runs on save; disable it in large generated files."),
    ("Backups", "The database is copied to another region every night at two."),
];

fn start_node(home: &Path, kind: &str) -> Running {
    let mut command = klnode(home);
    command.env("KLNODE_TEST_TRANSFORMER", "1").args(["--set", &format!("embedder.kind={kind}")]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    started(command).0
}

fn add_notes(home: &Path) {
    for (title, content) in NOTES {
        done(home, &["add", "--title", title, "--content", content, "--evidence", "doc:notes"]);
    }
}

/// Waits until all entries have vectors of the transformer.
fn wait_for_vectors(home: &Path) {
    eventually("every entry has vectors", || {
        let index = done(home, &["status"])["index"].clone();
        let (done, documents) =
            (index["transformer"]["done"].as_u64(), index["documents"].as_u64());
        (done == documents && index["lag"] == 0).then_some(())
    });
}

fn first_title(answer: &Value) -> &str {
    answer["hits"][0]["title"].as_str().unwrap_or_default()
}

#[test]
fn a_question_in_other_words_finds_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let node = start_node(home, "transformer");
    add_notes(home);
    wait_for_vectors(home);
    for (question, title) in [
        ("which weekday do we ship?", "Releases are cut on Tuesday"),
        ("too many clients already", "Connection pool"),
        ("how long do we store who visited the site?", "Log retention"),
    ] {
        let answer = json(home, &["search", question, "--explain", "--deterministic"]);
        assert_eq!(first_title(&answer), title, "{question}: {answer}");
        let hit = &answer["hits"][0];
        let probability = hit["probability"].as_f64().unwrap();
        assert!(probability > 0.0 && probability <= 1.0, "{hit}");
        assert!(hit["explain"]["transformer"].as_f64().unwrap() > 0.2, "{hit}");
    }
    node.stop();
}

#[test]
fn answers_are_strong_weak_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let node = start_node(home, "transformer");
    add_notes(home);
    wait_for_vectors(home);
    let strong = json(home, &["search", "when do the signing keys rotate?"]);
    assert_eq!((strong["grade"].as_str(), first_title(&strong)), (Some("strong"), "Signing keys"));
    assert!(strong["hits"][0]["content"].as_str().unwrap().contains("ninety days"), "{strong}");
    let nothing = json(home, &["search", "what does a giraffe eat for breakfast?"]);
    assert_eq!((nothing["grade"].as_str(), &nothing["abstained"]), (Some("nothing"), &true.into()));
    // Near the topic, and no entry answers it.
    let weak = json(home, &["search", "how often do nightly jobs fail?"]);
    assert_eq!(weak["grade"], "weak", "{weak}");
    let hits = weak["hits"].as_array().unwrap();
    assert!((1..=3).contains(&hits.len()), "{weak}");
    assert!(hits.iter().all(|hit| hit["content"] == ""), "{weak}");
    // The log of an answer without entries is written after the answer.
    let row = eventually("the answer is in the log", || {
        let served = done(home, &["status", "usage", "--log"]);
        let rows = served["answers"].as_array().unwrap();
        rows.iter().find(|row| row["query"].as_str().unwrap().contains("nightly")).cloned()
    });
    assert_eq!((row["weak"].as_bool(), row["entries"].as_array().unwrap().len()), (Some(true), 0));
    node.stop();
}

#[test]
fn a_killed_node_continues_and_static_deletes_the_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let node = start_node(home, "transformer");
    add_notes(home);
    eventually("some entries have vectors", || {
        let index = done(home, &["status"])["index"].clone();
        (index["transformer"]["done"].as_u64()? > 0).then_some(())
    });
    // Dropping kills the process.
    drop(node);
    let node = start_node(home, "transformer");
    wait_for_vectors(home);
    // Saved vectors are counted before the model is loaded; until then the table answers.
    eventually("the saved vectors answer", || {
        let answer = json(home, &["search", "which weekday do we ship?"]);
        (first_title(&answer) == "Releases are cut on Tuesday").then_some(())
    });
    node.stop();
    let vectors = home.join("index").join("transformer");
    assert!(vectors.exists());
    let node = start_node(home, "static");
    assert!(done(home, &["status"])["index"].get("transformer").is_none());
    assert!(!vectors.exists());
    node.stop();
}
