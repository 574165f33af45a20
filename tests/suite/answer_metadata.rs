//! Metadata that answers give agents along with the text: outcome, sub-type and decay class,
//! contradicting entries, and the tier.

use crate::support::conformance::conforms;
use crate::support::mcp_client::{Agent, text as answer_text};
use crate::support::node_process::{Running, done, klnode, printed, run, start, text};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const SPIKE: &str = "Batching the zqledger writes halves their latency";
const BUG: &str = "The zqparser drops the last byte of a frame";

fn add(home: &Path, words: &[&str]) -> String {
    let added = done(home, &[&["add", "--evidence", "doc:notes"], words].concat());
    text(&added["code"])
}

/// Context that a hook gives an agent for a prompt.
fn prompted(home: &Path, prompt: &str) -> String {
    let mut command = klnode(home);
    command.args(["hook", "prompt"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut hook = Running(command.spawn().unwrap());
    let input = json!({
        "session_id": "b3f1", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": prompt,
    });
    hook.0.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let said: Value = serde_json::from_slice(&hook.finish().stdout).unwrap();
    text(&said["hookSpecificOutput"]["additionalContext"])
}

#[test]
fn every_answer_shows_outcome_sub_type_and_decay_class() {
    conforms("S002-54");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    fs::write(home.join("klnode.toml"), "[hooks]\ntimeout = \"1 min\"\n").unwrap();
    let (_node, _) = start(home);
    let content = "Measured on two machines; the numbers disagree.";
    let spike = ["--type", "spike", "--outcome", "inconclusive", "--decay", "stable"];
    add(home, &[&["--title", SPIKE, "--content", content], &spike[..]].concat());
    let line = json!({
        "title": BUG, "content": "Seen with frames of 64 KiB.", "type": "experience",
        "sub_type": "bug", "decay_class": "ephemeral", "evidence": ["commit:1a2b3c"],
    });
    fs::write(home.join("bug.jsonl"), format!("{line}\n")).unwrap();
    done(home, &["import", home.join("bug.jsonl").to_str().unwrap()]);

    let hit = |query: &str| done(home, &["search", query, "--deterministic"])["hits"][0].clone();
    let (spike, bug) = (hit(SPIKE), hit(BUG));
    let labels = |hit: &Value| ["outcome", "sub_type", "decay_class"].map(|name| hit[name].clone());
    assert_eq!(labels(&spike), [json!("inconclusive"), Value::Null, json!("stable")]);
    assert_eq!(labels(&bug), [Value::Null, json!("bug"), json!("ephemeral")]);

    let shown = printed(&run(home, &["search", SPIKE, "--deterministic"]));
    assert!(shown.contains("outcome inconclusive; decay stable"), "{shown}");
    let shown = printed(&run(home, &["search", BUG, "--deterministic"]));
    assert!(shown.contains("sub-type bug; "), "{shown}");
    assert!(!shown.contains("ephemeral"), "the default class is not shown: {shown}");

    let mut agent = Agent::new(home, &[]);
    let answer = agent.call("search", &json!({"query": SPIKE}));
    let told = answer_text(&answer);
    assert!(told.contains("spike, outcome inconclusive, decay stable, candidate"), "{told}");
    let structured = &answer["structuredContent"]["hits"][0];
    assert_eq!(labels(structured), [json!("inconclusive"), Value::Null, json!("stable")]);
    let read = agent.call("get", &json!({"code": bug["code"]}));
    assert!(answer_text(&read).contains("experience, sub-type bug, candidate"), "{read}");
    assert_eq!(read["structuredContent"]["entry"]["sub_type"], "bug");

    let framed = prompted(home, SPIKE);
    assert!(framed.contains("(candidate, 50 %, outcome inconclusive, decay stable"), "{framed}");
}

#[test]
fn a_contradicting_entry_is_named_with_its_title_and_confidence() {
    conforms("S002-12");
    conforms("S002-46");
    conforms("S004-118");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let title = |word: &str| format!("{word} the zqcache before a zqdeploy");
    let (yes, no) = (title("Warm"), title("Never warm"));
    let tags = ["--tag", "zqcache", "--tag", "deploy"];
    let content = "The zqcache decides how a zqdeploy goes.";
    for (title, polarity) in [(&yes, "positive"), (&no, "negative")] {
        let words = ["--title", title, "--content", content, "--polarity", polarity];
        add(home, &[&words[..], &tags].concat());
    }
    let question = "warm the zqcache before a zqdeploy";
    let answer = done(home, &["search", question, "--deterministic"]);
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2, "{answer}");
    for (hit, other) in [(&hits[0], &hits[1]), (&hits[1], &hits[0])] {
        let rival = &hit["competing_with"][0];
        assert_eq!([&rival["code"], &rival["title"]], [&other["code"], &other["title"]]);
        assert_eq!(rival["mean"], other["mean"], "{rival}");
    }
    let mut agent = Agent::new(home, &[]);
    // With room for only one hit, the contradicting entry is named instead of shown.
    let both = agent.done("search", &json!({"query": question}));
    let rival = &both["hits"][0]["competing_with"][0];
    assert_eq!(rival["quoted"]["title"], both["hits"][1]["quoted"]["title"], "{both}");
    assert_eq!(rival["confidence"], both["hits"][1]["confidence"]);
    let one = agent.call("search", &json!({"query": question, "limit": 1}));
    let (told, hits) = (answer_text(&one), &one["structuredContent"]["hits"]);
    assert_eq!(hits.as_array().unwrap().len(), 1, "{one}");
    let other = text(&hits[0]["competing_with"][0]["quoted"]["title"]);
    assert!(told.contains("\ncompeting, not listed: "), "{told}");
    assert!(told.contains(&format!(", confidence 0.50\n| {other}\n")), "{told}");
}

#[test]
fn harmful_feedback_counts_a_prediction_error() {
    conforms("S004-79");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let code = add(home, &["--title", "Retry at once", "--content", "Retry without a wait."]);
    let errors = || done(home, &["show", &code])["prediction_errors"].clone();
    assert_eq!(errors(), Value::Null);
    done(home, &["feedback", &code, "--harmful"]);
    assert_eq!(errors(), 1);
    let begin = ["task", "begin", "--agent", "suite", "--goal", "another"];
    let task = text(&done(home, &begin)["task"]);
    done(home, &["feedback", &code, "--harmful", "--task", &task]);
    assert_eq!(errors(), 2);
    let shown = printed(&run(home, &["show", &code]));
    assert!(shown.contains("2 prediction errors since it last helped"), "{shown}");
    // It counts once per task, like the failure itself.
    done(home, &["feedback", &code, "--harmful", "--task", &task]);
    assert_eq!(errors(), 2);
}

/// Writes an entry in a task that succeeds.
fn written_in_task(node: &Served, title: &str, content: &str) {
    let begin = json!({"agent": "suite", "goal": title});
    let task = text(&node.json("POST", "/v1/tasks", &begin).json()["task"]);
    let new = json!({"title": title, "content": content, "task": task, "tags": ["zqledger"]});
    let added = node.json("POST", "/v1/entries", &new);
    assert_eq!(added.status, 200, "{}", added.text());
    let finish = json!({"outcome": "success"});
    let finished = node.json("POST", &format!("/v1/tasks/{task}/finish"), &finish);
    assert_eq!(finished.status, 200, "{}", finished.text());
}

#[test]
fn entries_of_one_author_from_two_tasks_are_shown_as_summaries() {
    conforms("S004-40");
    let node = Served::start(Limits::default(), Doors::Socket);
    let question = "how does the zqledger settle a zqpayment";
    let forms = || {
        let asked = json!({"query": question, "deterministic": true, "budget": 150});
        let answer = node.json("POST", "/v1/search", &asked).json();
        let hits = answer["hits"].as_array().unwrap().clone();
        assert!(hits[0]["score"].as_f64().unwrap() > 0.5, "{answer}");
        hits.iter().map(|hit| text(&hit["form"])).collect::<Vec<String>>()
    };
    // The content is too long for the rest of the budget, which would lengthen the first hits.
    let details = "Details of the settlement are in the ledger guide. ".repeat(40);
    let write = |title: &str, content: &str| {
        written_in_task(&node, title, &format!("{content} {details}"));
    };
    write("The zqledger settles a zqpayment at night", "It settles at 02:00.");
    assert_eq!(forms(), ["standard"]);
    write("The zqledger settles a zqpayment twice", "It settles again at noon.");
    assert_eq!(forms(), ["summary", "summary"]);
}
