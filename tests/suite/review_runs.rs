//! Review runs with real processes: reviewers with knowledge of their own, findings with numbers, the
//! policy that accepts the finding of one agent, drift of a reviewer's knowledge.

use crate::findings::{CACHE, SQL};
use crate::support::conformance::conforms;
use crate::support::git_repos::Ground;
use crate::support::node_process::{eventually, text};
use crate::support::node_with_home::{Scene, days_ago};
use klnode_crdt::claims::TextSet;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{Command, NewEntry};
use klnode_tests::test_engine::{Node, lesson};
use serde_json::{Value, json};
use std::path::Path;

/// The five reviewers of the seed.
const REVIEWERS: [&str; 5] =
    ["security", "correctness", "performance", "maintainability", "reliability"];
const SOON: &str = "tuning.tasks.findings_comparison_delay=10 ms";
const ALONE: &str = "tasks.accept_lone_findings=true";

fn begin(scene: &Scene, agent: &str) -> String {
    text(&scene.done(&["task", "begin", "--agent", agent, "--goal", "review"])["task"])
}

/// Records a finding with severity and confidence, and further flags.
fn record(scene: &Scene, task: &str, said: &str, numbers: [&str; 2], more: &[&str]) -> Value {
    let [severity, confidence] = numbers;
    let words = ["task", "finding", task, "--text", said, "--severity", severity];
    let rest = ["--confidence", confidence, "--anchor", "path:src/a.rs", "--verify", "read it"];
    scene.done(&[&words[..], &rest, more].concat())
}

/// The findings of a finished task, once all are compared.
fn settled(scene: &Scene, task: &str) -> Vec<Value> {
    scene.done(&["task", "finish", task, "--success"]);
    eventually("the findings are compared", || {
        let found = scene.done(&["task", "findings", task])["findings"].clone();
        let found = found.as_array().cloned().unwrap();
        let is_queued = |one: &Value| one["reason"] == "it is queued for comparison";
        (!found.iter().any(is_queued)).then_some(found)
    })
}

fn tags(scene: &Scene, code: &Value) -> Vec<String> {
    let shown = scene.show(&text(code));
    shown["tags"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn each_of_five_reviewers_finds_its_own_knowledge_and_that_of_no_other() {
    conforms("S003-01");
    conforms("S003-04");
    let scene = Scene::new();
    let title = |name: &str| format!("The zqnamespace rule of {name}");
    let own = REVIEWERS.map(|name| {
        let tag = format!("review/{name}");
        scene.add(&title(name), "Check the zqnamespace handler.", &["--tag", &tag])
    });
    let shared = scene.add(&title("everyone"), "Check the zqnamespace handler.", &[]);
    for (name, code) in REVIEWERS.iter().zip(&own) {
        let task = begin(&scene, &format!("review/{name}"));
        let by_task = scene.found("zqnamespace handler", &["--task", &task]);
        assert_eq!(by_task.first(), Some(code), "{name}: its own comes first");
        assert!(by_task.contains(&shared) && by_task.len() == 2, "{name}: {by_task:?}");
        let by_flag = scene.found("zqnamespace handler", &["--reviewer", name]);
        assert_eq!(by_flag, by_task, "{name}");
        let only = format!("review/{name}");
        let only = scene.found("zqnamespace handler", &["--reviewer", name, "--tag", &only]);
        assert_eq!(only, std::slice::from_ref(code), "{name}");
    }
    assert_eq!(scene.found("zqnamespace handler", &["-n", "9"]).len(), 6, "others find all");
    let told = scene.refused(&["search", "x", "--reviewer", "Bad Name"], 2);
    assert!(told.contains("`Bad Name` is no name of a reviewer"), "{told}");
}

#[test]
fn words_of_the_reviewers_field_are_part_of_its_question() {
    conforms("S000-28");
    let scene = Scene::new();
    let wanted = scene.add("Check for injection", "Bind zqvalues in every statement.", &[]);
    scene.add("Bound the queue", "Else it grows.", &[]);
    let summary = "A form that takes zqvalues.";
    let explain = |more: &[&str]| {
        let hits = scene.hits(summary, more);
        let hit = hits.iter().find(|hit| hit["code"] == wanted.as_str()).cloned().unwrap();
        hit["explain"]["coverage"].as_f64().unwrap()
    };
    let (plain, security) = (explain(&[]), explain(&["--reviewer", "security"]));
    assert!(plain > 0.0 && security != plain, "the words of security count: {plain} {security}");
    let found = scene.found("review the change", &["--reviewer", "security"]);
    assert_eq!(found.first(), Some(&wanted), "by the word of the field alone: {found:?}");
}

#[test]
fn severe_and_dismissed_findings_of_one_agent_become_knowledge_once() {
    conforms("S003-03");
    conforms("S003-10");
    conforms("S003-11");
    conforms("S003-12");
    conforms("S003-15");
    conforms("S003-16");
    let scene = Scene::with(&[SOON, ALONE]);
    let findings = [
        (SQL[0], ["9", "1"], &[][..]),
        (CACHE[0], ["7", "8"], &[]),
        ("The worker leaks one file handle per upload.", ["8.9", "7.9"], &[]),
        ("A constant is named in capitals.", ["2", "9"], &["--dismiss", "It is the convention."]),
    ];
    let review = |change: fn(&str) -> String| {
        let task = begin(&scene, "review/security");
        for (said, numbers, more) in findings {
            record(&scene, &task, &change(said), numbers, more);
        }
        settled(&scene, &task)
    };
    let first = review(str::to_owned);
    let became: Vec<String> = first.iter().map(|one| text(&one["became"])).collect();
    assert_eq!(became, ["new_entry", "new_entry", "waiting", "false_positive"], "{first:?}");
    for (finding, tag) in [(0, "incident-prevented"), (1, "pattern"), (3, "false-positive")] {
        let tags = tags(&scene, &first[finding]["code"]);
        for tag in [tag, "finding", "review/security"] {
            assert!(tags.iter().any(|one| one == tag), "{tag}: {tags:?}");
        }
    }
    assert_eq!((&first[0]["score"], &first[0]["severity"]), (&json!(9.0), &json!("critical")));
    let entries = |scene: &Scene| scene.done(&["list", "-n", "100"])["entries"].clone();
    let before = entries(&scene);
    assert_eq!(before.as_array().map(Vec::len), Some(3));
    // The same review again, in capitals: nothing is added twice.
    let again = review(str::to_uppercase);
    for (place, became) in [(0, "reinforced"), (1, "reinforced"), (3, "false_positive")] {
        assert_eq!(again[place]["code"], first[place]["code"], "{again:?}");
        assert_eq!(again[place]["became"], became, "{again:?}");
    }
    assert_eq!(entries(&scene).as_array().map(Vec::len), Some(3));
    // As files, each entry is in the section of the seed, with a date and a source.
    let folder = scene.folder().join("wfc");
    scene.done(&["export", "--format", "wfc", folder.to_str().unwrap()]);
    let file = std::fs::read_to_string(folder.join("security/KNOWLEDGE.md")).unwrap();
    let section = |name: &str| file.split("\n## ").find(|part| part.starts_with(name)).unwrap();
    assert!(section("Incidents Prevented").contains("string concatenation"), "{file}");
    assert!(section("Patterns Found").contains("Tenant id is missing"), "{file}");
    assert!(section("False Positives to Avoid").contains("named in capitals"), "{file}");
}

#[test]
fn without_the_setting_a_finding_of_one_agent_waits() {
    let scene = Scene::with(&[SOON]);
    let task = begin(&scene, "review/security");
    record(&scene, &task, SQL[0], ["10", "10"], &[]);
    record(&scene, &task, CACHE[0], ["1", "1"], &["--dismiss", "checked"]);
    let found = settled(&scene, &task);
    assert!(found.iter().all(|one| one["became"] == "waiting"), "{found:?}");
    let told = scene.refused(
        &[
            "task",
            "finding",
            &begin(&scene, "x"),
            "--text",
            "It is slow.",
            "--severity",
            "11",
            "--confidence",
            "1",
            "--anchor",
            "path:a",
            "--verify",
            "run it",
        ],
        2,
    );
    assert!(told.contains("or a number from 0 to 10"), "{told}");
}

#[test]
fn an_entry_of_two_reviewers_belongs_to_both() {
    let scene = Scene::with(&[SOON, ALONE]);
    let root = scene.begin();
    let part = |reviewer: &str, said: &str| {
        let words = ["task", "begin", "--agent", reviewer, "--goal", "review", "--parent", &root];
        let task = text(&scene.done(&words)["task"]);
        record(&scene, &task, said, ["9.5", "9"], &[]);
        settled(&scene, &task)[0].clone()
    };
    let first = part("review/security", SQL[0]);
    let second = part("review/correctness", SQL[1]);
    assert_eq!((&second["became"], &second["code"]), (&json!("reinforced"), &first["code"]));
    let tags = tags(&scene, &first["code"]);
    for tag in ["review/correctness", "review/security"] {
        assert!(tags.iter().any(|one| one == tag), "{tags:?}");
    }
}

#[test]
fn a_one_time_issue_becomes_no_entry() {
    conforms("S000-17");
    let scene = Scene::with(&[SOON]);
    let review = |agent: &str, said: &str, once: &[&str]| {
        let task = begin(&scene, agent);
        record(&scene, &task, said, ["high", "0.9"], once);
        settled(&scene, &task)[0].clone()
    };
    review("one", SQL[0], &["--once"]);
    let second = review("two", SQL[1], &["--once"]);
    assert_eq!(second["became"], "waiting", "{second}");
    assert_eq!(second["reason"], "it is a one-time issue, which becomes no entry by itself");
    // The same as a pattern of two agents becomes one.
    review("three", CACHE[0], &[]);
    let pattern = review("four", CACHE[1], &[]);
    assert_eq!(pattern["became"], "new_entry", "{pattern}");
}

fn of_reviewer(node: &mut Node, title: &str) {
    let tag = ClaimEdit::Add(TextSet::TAGS, "review/security".to_owned());
    let mut new = lesson(title);
    new.claims.push(tag);
    node.run(Command::Create(Box::new(NewEntry { ..new }))).unwrap();
}

#[test]
fn a_reviewers_entry_is_stale_by_its_date_and_too_many_are_bloated() {
    conforms("S003-17");
    conforms("S003-18");
    let mut node = days_ago(91);
    of_reviewer(&mut node, "about zqold");
    node.wait_days(2);
    for number in 0..50 {
        of_reviewer(&mut node, &format!("about zq{number}"));
    }
    // By its use no entry is stale yet.
    let scene = Scene::of_with(node, &["status.stale_after=200 days"]);
    let drift = scene.json(&["check", "drift"])["drift"].clone();
    assert_eq!(drift["recommendations"], json!(["needs_pruning"]), "{drift}");
    let bloated = json!([{"tag": "review/security", "entries": 51, "limit": 50}]);
    assert_eq!(drift["bloated"], bloated);
    let marked = drift["marked"].as_array().unwrap();
    assert_eq!(marked.len(), 1, "{drift}");
    assert_eq!((&marked[0]["mark"], &marked[0]["title"]), (&json!("stale"), &json!("about zqold")));
    assert_eq!(marked[0]["why"], "of a reviewer, and not confirmed for 91 days");
    // Pruning takes what drift lists.
    let pruned = scene.done(&["archive", "--stale"]);
    assert_eq!(pruned["entries"][0]["id"], marked[0]["id"]);
    assert!(scene.run(&["check", "drift"]).status.success(), "50 are not too many");
}

fn write(folder: &Path, name: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "x\n").unwrap();
}

#[test]
fn an_entry_that_names_a_deleted_file_is_orphaned() {
    conforms("S003-20");
    let (scene, ground) = (Scene::new(), Ground::new());
    ground.repository("shop", Some("https://example.org/acme/shop.git"), 1);
    let shop = ground.path("shop");
    for name in ["src/auth.rs", "src/gone.rs"] {
        write(&shop, name);
    }
    ground.git("shop", &["add", "."]);
    ground.commit("shop", "files");
    scene.done(&["workspace", "new", "shop"]);
    assert!(scene.run_in(&shop, &["workspace", "map", "shop"]).status.success());
    let add = |folder: &Path, title: &str, content: &str| {
        let words = ["add", "--title", title, "--content", content, "--tag", "review/security"];
        let output =
            scene.run_in(folder, &[&words[..], &["--evidence", "doc:d", "--json"]].concat());
        let added: Value = serde_json::from_slice(&output.stdout).unwrap();
        text(&added["code"])
    };
    let gone = add(&shop, "Check tokens", "See `src/gone.rs:12` and src/auth.rs.");
    add(&shop, "Check sessions", "See src/auth.rs, and https://example.org/a/b.html.");
    add(scene.folder(), "Another project", "See src/nowhere.rs.");
    let drift = || {
        let output = scene.run_in(&shop, &["check", "drift", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["drift"].clone()
    };
    assert_eq!(drift()["marked"], json!([]), "both files exist");
    ground.git("shop", &["rm", "-q", "src/gone.rs"]);
    let report = drift();
    let marked = report["marked"].as_array().unwrap();
    assert_eq!(marked.len(), 1, "{report}");
    assert_eq!((&marked[0]["mark"], &marked[0]["code"]), (&json!("orphaned"), &json!(gone)));
    assert_eq!(marked[0]["why"], "its text names src/gone.rs, which is not in the checkout");
    assert_eq!(report["recommendations"], json!(["needs_review"]));
}

#[test]
fn a_solved_problem_is_written_up_with_its_parts() {
    conforms("S003-23");
    let scene = Scene::new();
    let told = scene.refused(&["add", "--solved", "--problem", "The login hangs."], 2);
    let missing = "--cause, --solution, --anchor, --verify are missing";
    assert!(told.contains(missing), "{told}");
    let words = ["add", "--solved", "--problem", "The login hangs. Only under load."];
    let parts = ["--cause", "A lock is held.", "--solution", "Drop the lock first."];
    let place = ["--anchor", "path:src/auth.rs", "--verify", "run the load test"];
    let code = text(&scene.done(&[&words[..], &parts, &place].concat())["code"]);
    let shown = scene.show(&code);
    assert_eq!(shown["title"], "The login hangs");
    let content = "## Problem\n\nThe login hangs. Only under load.\n\n## Cause\n\nA lock is held.\n\n\
        ## Solution\n\nDrop the lock first.";
    assert_eq!(shown["content"], content);
    assert_eq!(shown["tags"], json!(["solved-problem"]));
    // The editor gets a form with the missing parts.
    let editor = scene.folder().join("editor.sh");
    let script = "sed -i -e 's/^anchors: .*/anchors: [\"path:b.rs\"]/' \
        -e 's/^verify_steps: .*/verify_steps: [\"run it\"]/' -e '/^## Problem/a It fails.' \
        -e '/^## Cause/a A typo.' -e '/^## Solution/a Mend it.' \"$1\"\n";
    std::fs::write(&editor, script).unwrap();
    let mut command = crate::support::node_process::klnode(&scene.home());
    command.args(["add", "--solved", "--json"]).current_dir(scene.folder());
    command.env("VISUAL", format!("sh {}", editor.display())).env("TMPDIR", scene.folder());
    let output = command.output().unwrap();
    let added: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let shown = scene.show(&text(&added["code"]));
    assert_eq!(
        (&shown["title"], &shown["sets"]["anchors"]),
        (&json!("It fails"), &json!(["path:b.rs"]))
    );
    // The verb of the seed takes the same parts.
    let told = scene.refused(&["compound", "--problem", "The logout hangs."], 2);
    assert!(told.contains(missing), "{told}");
    let words = ["compound", "--problem", "The logout hangs. Only under load.", "--tag", "auth"];
    let code = text(&scene.done(&[&words[..], &parts, &place].concat())["code"]);
    let again = scene.show(&code);
    assert_eq!(again["title"], "The logout hangs");
    assert_eq!(again["tags"], json!(["auth", "solved-problem"]));
    assert_eq!(again["content"], content.replace("login", "logout"));
}

#[test]
fn an_entry_that_two_projects_confirmed_is_proposed_for_main() {
    conforms("S003-25");
    let scene = Scene::with(&[SOON]);
    for name in ["shop", "billing"] {
        scene.done(&["workspace", "new", name]);
    }
    let review = |agent: &str, workspace: &str, said: &str| {
        let task = begin(&scene, agent);
        record(&scene, &task, said, ["high", "0.9"], &["--workspace", workspace]);
        settled(&scene, &task)[0].clone()
    };
    review("one", "shop", SQL[0]);
    let made = review("two", "shop", SQL[1]);
    assert_eq!(made["became"], "new_entry", "{made}");
    let proposed = || scene.done(&["maintain", "list"])["for_main"].clone();
    assert_eq!(proposed(), Value::Null, "one project is not enough");
    // An agent of another project finds the same; the day of the first confirmation has to pass.
    let kept = review("three", "billing", CACHE[0]);
    scene.done(&["task", "keep", &text(&kept["task"]), "1"]);
    let other = review("four", "shop", CACHE[1]);
    assert_eq!(other["became"], "confirmed", "{other}");
    let found = proposed();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found[0]["code"], other["code"]);
    let mut projects: Vec<String> =
        found[0]["projects"].as_array().unwrap().iter().map(text).collect();
    projects.sort();
    assert_eq!(projects, ["billing", "shop"]);
    let code = text(&other["code"]);
    let said = scene.said(&["maintain", "list"]);
    assert!(said.contains(&format!("`klnode add --from {code} --workspace main`")), "{said}");
    scene.done(&["add", "--from", &code, "--workspace", "main"]);
    assert_eq!(proposed(), Value::Null, "main has a copy");
}
