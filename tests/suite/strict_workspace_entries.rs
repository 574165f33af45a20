//! Workspaces that ask for the strict form: a general statement with places and steps, whichever command
//! writes the entry. A real process.

use crate::support::conformance::conforms;
use crate::support::node_process::text;
use crate::support::node_with_home::Scene;

const GOOD: &str =
    "Auth middleware often swallows cancellation. Check ctx.Err() after upstream calls.";
const PLACE: [&str; 2] = ["--anchor", "path:middleware/auth.go"];
const STEP: [&str; 2] = ["--verify", "look for ctx.Err()"];

#[test]
fn a_strict_workspace_takes_only_general_entries_with_places_and_steps() {
    conforms("S000-04");
    conforms("S000-05");
    conforms("S000-06");
    conforms("S000-27");
    conforms("S000-41");
    let scene = Scene::with(&["entries.strict_workspaces=[\"team\"]"]);
    scene.done(&["workspace", "new", "team"]);
    let words = |content: &str, workspace: &str| -> Vec<String> {
        let words = ["add", "--title", "t", "--content", content, "--evidence", "doc:d"];
        words.iter().chain(&["--workspace", workspace]).map(|word| (*word).to_owned()).collect()
    };
    let refused = |content: &str, more: &[&str]| {
        let words = words(content, "team");
        let words: Vec<&str> =
            words.iter().map(String::as_str).chain(more.iter().copied()).collect();
        scene.refused(&words, 2)
    };
    let both = [&PLACE[..], &STEP].concat();
    assert!(refused(GOOD, &STEP).contains("anchors are missing"));
    assert!(refused(GOOD, &PLACE).contains("verify steps are 0"));
    assert!(refused("One. Two. Three. Four.", &both).contains("begins with 4 sentences"));
    let told = refused("middleware/auth.go in Project X has a bug at line 47", &both);
    assert!(told.contains("names `middleware/auth.go` in its first paragraph"), "{told}");
    let good = words(GOOD, "team");
    let good: Vec<&str> = good.iter().map(String::as_str).chain(both.iter().copied()).collect();
    let code = text(&scene.done(&good)["code"]);
    // An edit and a finding cannot break the rule either.
    let told = scene.refused(&["edit", &code, "--remove-anchor", PLACE[1]], 2);
    assert!(told.contains("anchors are missing"), "{told}");
    let task = scene.begin();
    let finding =
        ["task", "finding", &task, "--text", "It fails in src/a.rs:47.", "--severity", "low"];
    let rest = ["--confidence", "1", "--workspace", "team"];
    let told = scene.refused(&[&finding[..], &rest, &both].concat(), 2);
    assert!(told.contains("names `src/a.rs:47`"), "{told}");
    // Other workspaces take any entry.
    let other = words("One. Two. Three. Four.", "main");
    scene.done(&other.iter().map(String::as_str).collect::<Vec<_>>());
}
