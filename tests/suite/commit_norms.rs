//! `klnode check --norms`: the commits of a range, made by git itself, against the norms of a node.

use crate::support::conformance::conforms;
use crate::support::git_repos::Ground;
use crate::support::node_process::{text, told};
use crate::support::node_with_home::Scene;
use serde_json::{Value, json};

/// Adds the commit norms that ship as examples.
fn add_norms(scene: &Scene) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/norms");
    for name in ["conventional-commits.md", "no-work-in-progress.md"] {
        scene.done(&["add", &format!("{folder}/{name}")]);
    }
}

fn check(scene: &Scene, ground: &Ground, range: &str) -> (Option<i32>, Value) {
    let output = scene.run_in(&ground.path("shop"), &["check", "--norms", range, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{range}: {error}: {}", told(&output)));
    (output.status.code(), report["norms"].clone())
}

#[test]
fn the_commits_of_a_range_are_tested_against_the_commit_norms() {
    conforms("S001-22");
    let (scene, ground) = (Scene::new(), Ground::new());
    ground.repository("shop", None, 2);
    let (code, report) = check(&scene, &ground, "HEAD~1..HEAD");
    assert_eq!((code, &report["passed"], &report["norms"]), (Some(0), &json!(true), &json!([])));
    add_norms(&scene);
    ground.git("shop", &["tag", "-m", "the first release", "v1"]);
    ground.git("shop", &["switch", "-q", "-c", "work"]);
    ground.commit("shop", "store: Add a table\n\nIt holds rows.");
    let (code, report) = check(&scene, &ground, "v1..work");
    assert_eq!((code, &report["commits"], &report["violations"]), (Some(0), &json!(1), &json!([])));

    ground.commit("shop", "WIP");
    ground.commit("shop", &format!("store: Add {}.", "a table ".repeat(10).trim_end()));
    let head = ground.git("shop", &["rev-parse", "HEAD"]);
    // A merge has no message of its own, and the commits of the other side are in the range.
    ground.git("shop", &["switch", "-q", "main"]);
    ground.commit("shop", "On main alone");
    ground.git("shop", &["merge", "-q", "--no-ff", "-m", "Merge work", "work"]);
    let (code, report) = check(&scene, &ground, "main^..main");
    assert_eq!(code, Some(1), "{report}");
    assert_eq!((&report["commits"], &report["merges"]), (&json!(3), &json!(1)), "{report}");
    assert_eq!((&report["blocking"], &report["warnings"]), (&json!(4), &json!(0)), "{report}");
    let violations = report["violations"].as_array().unwrap();
    let why: Vec<(&Value, &Value)> =
        violations.iter().map(|one| (&one["subject"], &one["why"])).collect();
    assert!(why.contains(&(&json!("WIP"), &json!("subject must match \"*: *\""))), "{why:?}");
    let long = violations.iter().filter(|one| one["commit"] == head.as_str()).count();
    assert_eq!(long, 2, "too long, and it ends with a full stop: {violations:?}");

    // Packed commits and references read the same.
    ground.git("shop", &["gc", "-q", "--prune=now"]);
    assert_eq!(check(&scene, &ground, "main^..main").1, report);
    assert_eq!(check(&scene, &ground, &head).1["commits"], 1, "one commit by its name");
    let said = scene.run_in(&ground.path("shop"), &["check", "--norms", "main^..main"]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(
        said.ends_with("norms  failed: 3 commits tested against 2 norms, 4 block, 0 warn\n"),
        "{said}"
    );
    // An archived norm no longer applies.
    for norm in report["norms"].as_array().unwrap() {
        scene.done(&["archive", &text(&norm["code"])]);
    }
    assert_eq!(check(&scene, &ground, "main^..main").0, Some(0));
}

#[test]
fn a_range_or_a_rule_that_cannot_be_read_neither_passes_nor_fails() {
    let (scene, ground) = (Scene::new(), Ground::new());
    ground.repository("shop", None, 1);
    let refused = |range: &str| {
        let output = scene.run_in(&ground.path("shop"), &["check", "--norms", range]);
        assert_eq!(output.status.code(), Some(2), "{range}: {}", told(&output));
        told(&output)
    };
    for range in ["nowhere..HEAD", "HEAD~9..HEAD", "../x", &"0".repeat(40)] {
        let told = refused(range);
        assert!(told.contains("commit") || told.contains("names no"), "{range}: {told}");
    }
    let outside = scene.run(&["check", "--norms", "HEAD"]);
    assert_eq!(outside.status.code(), Some(2), "{}", told(&outside));
    let words = ["--type", "norm", "--sub-type", "commit"];
    let code = scene.add("A norm", "Check: subject is nice", &words);
    let told = refused("HEAD");
    assert!(told.contains(&code) && told.contains("subject is nice"), "{told}");
}
