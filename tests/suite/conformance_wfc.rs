//! Statements of the seed WFC, typed into a real process: drift of a reviewer's knowledge.

use crate::support::conformance::conforms;
use crate::support::node_process::text;
use crate::support::node_with_home::{Scene, days_ago};
use serde_json::{Value, json};

fn contradict(scene: &Scene, topic: &str, workspace: &str) -> [String; 2] {
    let tags = ["--tag", "review", "--tag", topic, "--workspace", workspace];
    let title = format!("Retry POST requests of {topic}");
    let yes = format!("Retry POST requests to the {topic} service after a timeout.");
    let no = format!("Do not retry POST requests to the {topic} service after a timeout.");
    let pattern = scene.add(&title, &yes, &[&tags[..], &["--polarity", "positive"]].concat());
    let dismissed = ["--polarity", "negative", "--tag", "false-positive"];
    [pattern, scene.add(&title, &no, &[&tags[..], &dismissed].concat())]
}

#[test]
fn a_pattern_that_is_also_a_false_positive_needs_review_in_every_workspace() {
    conforms("S003-19");
    conforms("S003-22");
    let scene = Scene::new();
    let mut expected =
        [contradict(&scene, "billing", "main"), contradict(&scene, "mail", "local")].concat();
    scene.add("Pin the linker", "Builds differ.", &[]);
    let calm = scene.run(&["check", "drift"]);
    assert!(calm.status.success(), "no contradiction was looked for yet");
    scene.done(&["maintain", "contradictions"]);
    let output = scene.run(&["check", "drift", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let drift = &report["drift"];
    assert_eq!(drift["recommendations"], json!(["needs_review"]), "{drift}");
    let marked = drift["marked"].as_array().unwrap();
    assert!(marked.iter().all(|one| one["mark"] == "contradiction"), "{drift}");
    let mut codes: Vec<String> = marked.iter().map(|one| text(&one["code"])).collect();
    codes.sort();
    expected.sort();
    assert_eq!(codes, expected, "both workspaces are analysed");
    assert_eq!(drift["entries"], 5);
}

#[test]
fn the_question_of_a_review_is_built_from_the_diff() {
    conforms("S003-05");
    let scene = Scene::new();
    let wanted = scene.add("verify_token compares in constant time", "Else it leaks.", &[]);
    scene.add("Rotate the logs", "By size.", &[]);
    let other = scene.add("drop_session closes the socket", "Always.", &[]);
    let diff = "--- a/src/auth/token.rs\n+++ b/src/auth/token.rs\n@@ -1,2 +1,3 @@\n use std::fmt;\n\
        -fn drop_session() {}\n+pub fn verify_token(token: &str) -> bool {\n";
    let file = scene.folder().join("change.diff");
    std::fs::write(&file, diff).unwrap();
    let found = scene.found("", &["--diff", file.to_str().unwrap()]);
    assert_eq!(found.first(), Some(&wanted), "{found:?}");
    assert!(!found.contains(&other), "deleted lines do not count: {found:?}");
    std::fs::write(&file, "no diff").unwrap();
    let told = scene.refused(&["search", "--diff", file.to_str().unwrap()], 2);
    assert!(told.contains("adds no path, name or import"), "{told}");
}

#[test]
fn stale_entries_are_reported_and_pruned_together() {
    conforms("S003-24");
    let mut node = days_ago(100);
    let old = ["about zqold", "about zqolder"].map(|title| node.create(title).to_string());
    node.wait_days(50);
    let young = node.create("about zqyoung").to_string();
    let scene = Scene::of(node);
    let report = scene.json(&["check", "drift"]);
    assert_eq!(report["drift"]["recommendations"], json!(["needs_pruning"]), "{report}");
    let said = scene.said(&["check", "drift"]);
    assert!(said.contains("klnode archive --stale"), "{said}");
    let ids = |pruned: &Value| {
        let entries = pruned["entries"].as_array().unwrap();
        let mut ids: Vec<String> = entries.iter().map(|one| text(&one["id"])).collect();
        ids.sort();
        ids
    };
    let mut expected = old.to_vec();
    expected.sort();
    assert_eq!(ids(&scene.done(&["archive", "--stale", "--dry-run"])), expected);
    assert_eq!(ids(&scene.done(&["archive", "--stale"])), expected);
    assert!(old.iter().all(|entry| scene.show(entry)["status"] == "archived"));
    assert_eq!(scene.show(&young)["status"], "candidate");
    assert!(scene.run(&["check", "drift"]).status.success(), "nothing is left to prune");
}
