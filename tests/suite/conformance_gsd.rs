//! Statements of the seed GSD Reflect, typed into a real process: asking, answering and reporting.

use crate::support::conformance::conforms;
use crate::support::git_repos::Ground;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{done, text, told};
use crate::support::node_with_home::{Scene, days_ago, near};
use klnode_tests::checkout::Tree;
use serde_json::{Value, json};

#[test]
fn an_agent_is_told_how_to_ask() {
    conforms("S002-06");
    let scene = Scene::new();
    let mut agent = Agent::silent(&scene.home(), &[]);
    let hello = agent.hello("2025-06-18");
    let instructions = text(&hello["instructions"]);
    for word in ["search", "task_begin", "task_finish"] {
        assert!(instructions.contains(word), "{word}: {instructions}");
    }
    agent.close();
}

#[test]
fn an_agent_asks_at_the_start_in_the_middle_and_in_a_part_of_the_work() {
    conforms("S002-07");
    conforms("S002-21");
    conforms("S002-26");
    conforms("S002-29");
    let scene = Scene::new();
    let content = format!("Bound the zqflow queue. {}", "The details fill a page. ".repeat(30));
    let code = scene.add("Bound the zqflow queue", &content, &[]);
    let task = scene.begin();
    // A menu first: the summary and the code, which leads to the whole entry.
    let menu = scene.hits("zqflow queue", &["--task", &task, "--tier", "summary"]);
    assert_eq!((text(&menu[0]["code"]), &menu[0]["form"]), (code.clone(), &json!("summary")));
    assert!(text(&menu[0]["content"]).chars().count() <= 101, "{menu:?}");
    assert_eq!(scene.show(&code)["content"], content);
    let later = scene.add("Drain the zqflow queue at night", "It is empty then.", &[]);
    assert!(scene.found("zqflow queue", &["--task", &task]).contains(&later), "in the middle");
    let begin = ["task", "begin", "--agent", "tester", "--goal", "test it", "--parent", &task];
    let part = text(&scene.done(&begin)["task"]);
    assert!(scene.found("drain zqflow", &["--task", &part]).contains(&later), "further down");
    assert_eq!(scene.done(&["task", "show", &part])["entries"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_search_without_a_result_says_that_it_looked() {
    conforms("S002-13");
    let scene = Scene::new();
    scene.add("Pin the linker version", "Builds differ between lld 17 and 18.", &[]);
    let output = scene.run(&["search", "recipe for apple pie"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("No relevant entries (best score 0."), "{said}");
    assert!(said.contains(", threshold 0."), "{said}");
}

#[test]
fn an_entry_without_a_checkable_condition_fades_with_time() {
    conforms("S002-16");
    conforms("S002-33");
    let mut node = days_ago(85);
    let old = node.create("how the zqfade gateway retries");
    for _ in 0..10 {
        node.succeed(old);
    }
    let old = old.to_string();
    let scene = Scene::of(node);
    // Ten successes gave a mean of 15/20; of each a fifth is left.
    let shown = scene.show(&old);
    near(&shown["alpha"], 5.0 + 10.0 * 0.98_f64.powi(85), 0.05);
    assert!(shown["mean"].as_f64().unwrap() < 0.6, "{shown}");
    let tree = Tree::new(&["src/lib.rs"]);
    tree.write("src/lib.rs", b"");
    let words = ["add", "--title", "How the zqfade gateway drains", "--content", "By hand."];
    let more = ["--evidence", "doc:d", "--depends-on", "path:src/lib.rs", "--json"];
    assert!(scene.run_in(tree.path(), &[&words[..], &more].concat()).status.success());
    let hits = |folder: &std::path::Path| {
        let words = ["search", "zqfade gateway", "--deterministic", "--explain", "--json"];
        let output = scene.run_in(folder, &words);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["hits"].as_array().unwrap().clone()
    };
    let all = hits(scene.folder());
    let of = |hits: &[Value], id: &str| {
        hits.iter().find(|hit| (hit["id"] == id) != id.is_empty()).cloned().unwrap()
    };
    let faded = of(&all, &old);
    near(&faded["explain"]["signals"]["freshness"], 0.5_f64.powf(85.0 / 90.0), 0.02);
    // With an unreadable index of git the condition cannot be checked: a caveat says so.
    tree.write(".git/index", b"no index");
    let unchecked = hits(tree.path());
    let unchecked = unchecked.iter().find(|hit| hit["id"] != old.as_str()).unwrap();
    assert_eq!(unchecked["caveats"], json!(["its predicates were not checked"]), "{unchecked}");
}

#[test]
fn an_entry_of_failed_work_is_found_with_a_caveat() {
    conforms("S002-17");
    let scene = Scene::new();
    let task = scene.begin();
    let failed = scene.add("The zqgave up approach", "We tried it.", &["--task", &task]);
    scene.done(&["task", "finish", &task, "--failure"]);
    let fine = scene.add("The zqgave in approach", "It worked.", &[]);
    let hits = scene.hits("zqgave approach", &[]);
    let caveats = |code: &str| {
        let hit = hits.iter().find(|hit| hit["code"] == code).expect("it is found");
        hit["caveats"].clone()
    };
    assert_eq!(caveats(&failed), json!(["from work that failed"]));
    assert_eq!(caveats(&fine), json!([]));
}

#[test]
fn codes_have_one_form_that_can_be_searched_for() {
    conforms("S002-20");
    let scene = Scene::new();
    let is_code = |word: &str| {
        let (letter, digits) = word.split_once('-').unwrap_or_default();
        letter.len() == 1
            && letter.chars().all(|one| one.is_ascii_uppercase())
            && digits.len() == 8
            && digits.chars().all(|one| one.is_ascii_uppercase() || ('2'..='7').contains(&one))
    };
    for (kind, letter) in [("lesson", "L"), ("spike", "S"), ("experience", "E"), ("norm", "N")] {
        let code = scene.add(&format!("A zqcode {kind}"), "Text.", &["--type", kind]);
        assert!(is_code(&code) && code.starts_with(letter), "{kind}: {code}");
    }
    let said = scene.said(&["search", "zqcode", "--deterministic"]);
    let heads = said.lines().filter(|line| !line.starts_with(' '));
    let words: Vec<&str> = heads.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(words.len() >= 4 && words.iter().all(|word| is_code(word)), "{said}");
}

#[test]
fn a_small_budget_shortens_entries_before_it_drops_the_last_ones() {
    conforms("S002-23");
    let scene = Scene::new();
    for number in 0..7 {
        let content = "Every retry doubles its waiting time. ".repeat(30);
        scene.add(&format!("Backoff rule {number} of zqbudget"), &content, &[]);
    }
    let ask = |budget: &str| {
        let words = ["search", "zqbudget backoff rule", "-n", "7", "--tier", "full"];
        let answer = scene.json(&[&words[..], &["--deterministic", "--budget", budget]].concat());
        let hits = answer["hits"].as_array().cloned().unwrap();
        let forms: Vec<String> = hits.iter().map(|hit| text(&hit["form"])).collect();
        let left_out = answer["left_out"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(forms.len() + left_out, 7, "{answer}");
        (forms, left_out)
    };
    let (whole, _) = ask("5000");
    assert!(whole.iter().all(|form| form == "full"), "{whole:?}");
    let (short, left_out) = ask("300");
    assert_eq!(left_out, 0, "they are shortened first: {short:?}");
    assert!(short.iter().any(|form| form == "line"), "{short:?}");
    let (few, left_out) = ask("100");
    assert!(left_out > 0, "{few:?}");
    let is_one_line = |form: &String| form == "line" || form == "summary";
    assert!(!few.is_empty() && few.iter().all(is_one_line), "{few:?}");
}

#[test]
fn the_report_of_a_task_names_applied_dismissed_and_avoided_entries() {
    conforms("S002-19");
    conforms("S002-27");
    conforms("S002-34");
    let scene = Scene::new();
    let used = scene.add("Zqreport in parsers", "Recursion needs a limit.", &[]);
    let wrong = scene.add("Zqreport in caches", "Evict before you insert.", &[]);
    scene.add("Zqreport in clocks", "They go backwards.", &[]);
    let spike = ["--type", "spike", "--outcome", "confirmed"];
    let spike = scene.add("Zqreport in queues", "A bound of ten was fast.", &spike);
    let task = scene.begin();
    assert_eq!(scene.found("zqreport", &["--task", &task]).len(), 4);
    let finish = ["task", "finish", &task, "--success", "--used", &used, "--dismissed", &wrong];
    let said = scene.said(&[&finish[..], &["--avoided", &spike, "--report"]].concat());
    assert!(
        said.contains(&format!("  {wrong}  dismissed: neither credited nor blamed\n")),
        "{said}"
    );
    assert!(said.contains(&format!("\nSpikes avoided: 1 ({spike})\n")), "{said}");
    let (_, section) = said.split_once("\n## Knowledge Applied\n\n").expect("a section");
    let mut lines: Vec<&str> = section.lines().collect();
    assert_eq!(lines.pop(), Some("1 entry served and not applied."), "{section}");
    lines.sort_unstable();
    let mut expected = [
        format!("- {used}: Zqreport in parsers (applied)"),
        format!("- {wrong}: Zqreport in caches (dismissed: it contradicted the observations)"),
        format!("- {spike}: Zqreport in queues (spike avoided)"),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn the_stack_of_a_checkout_does_not_change_the_order() {
    conforms("S002-37");
    let scene = Scene::new();
    scene.add("Retry zqstack calls in Python", "Use tenacity.", &["--tag", "python"]);
    scene.add("Retry zqstack calls in Rust", "Use a loop.", &["--tag", "rust"]);
    let tree = Tree::new(&["Cargo.toml"]);
    tree.write("Cargo.toml", b"[package]\nname = \"shop\"\n");
    let order = |question: &str, folder: &std::path::Path| {
        let words = ["search", question, "--deterministic", "--explain", "--json"];
        let output = scene.run_in(folder, &words);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hits = answer["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| (text(&hit["title"]), hit["score"].to_string())).collect::<Vec<_>>()
    };
    let question = "retry zqstack calls";
    let (here, there) = (order(question, scene.folder()), order(question, tree.path()));
    let titles = |of: &[(String, String)]| of.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
    assert_eq!((here.len(), titles(&here)), (2, titles(&there)), "{here:?} {there:?}");
    let named = order("retry zqstack calls in rust", tree.path());
    assert_eq!(named[0].0, "Retry zqstack calls in Rust", "the words of the question decide");
}

#[test]
fn a_plain_question_ranks_partial_and_double_matches() {
    conforms("S002-38");
    conforms("S002-48");
    conforms("S002-49");
    let scene = Scene::new();
    let both = scene.add(
        "Wombat sessions lock the database",
        "The wombat auth session and the wombat database share one lock.",
        &["--tag", "auth", "--tag", "database"],
    );
    let one = scene.add("Wombat auth sessions expire", "After an hour.", &["--tag", "auth"]);
    let other = scene.add("Wombat database lock", "It is held too long.", &["--tag", "database"]);
    for query in ["wombat auth session", "wombat database lock"] {
        assert!(scene.found(query, &[]).contains(&both), "it surfaces for either: {query}");
    }
    let question = "why do wombat auth sessions hold a lock in the wombat database?";
    let found = scene.found(question, &[]);
    assert_eq!(found[0], both, "it matches both: {found:?}");
    assert!(found.contains(&one) && found.contains(&other), "partial matches follow: {found:?}");
}

#[test]
fn a_spike_has_one_of_four_outcomes() {
    conforms("S002-63");
    let scene = Scene::new();
    for outcome in ["confirmed", "rejected", "partial", "inconclusive"] {
        let code = scene.add(outcome, "Measured.", &["--type", "spike", "--outcome", outcome]);
        assert_eq!(scene.show(&code)["registers"]["outcome"], outcome);
    }
    let words = ["add", "--title", "t", "--content", "c", "--evidence", "run:1", "--type", "spike"];
    let told = scene.refused(&[&words[..], &["--outcome", "maybe"]].concat(), 2);
    assert!(
        told.contains("it must be one of confirmed, rejected, partial, inconclusive"),
        "{told}"
    );
}

#[test]
fn a_full_answer_has_the_best_entry_of_each_type() {
    conforms("S002-10");
    let scene = Scene::new();
    for number in 0..8 {
        let title = format!("Retry the zqtypes gateway with backoff, case {number}");
        scene.add(&title, "Retry the zqtypes gateway with backoff.", &[]);
    }
    let more = ["--type", "spike", "--outcome", "confirmed"];
    scene.add("A note on gateways", "One zqtypes gateway was tried with a retry.", &more);
    let answer = done(&scene.home(), &["search", "retry the zqtypes gateway with backoff"]);
    let hits = answer["hits"].as_array().unwrap();
    let kinds: Vec<String> = hits.iter().map(|hit| text(&hit["type"])).collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert!(kinds.contains(&"spike".to_owned()), "the spike is not crowded out: {kinds:?}");
}

#[test]
fn a_negative_condition_is_checked_in_the_checkout() {
    conforms("S002-45");
    let scene = Scene::new();
    let ground = Ground::new();
    ground.repository("shop", None, 1);
    let shop = ground.path("shop");
    let lesson = "---\nid: les-2026-01-02-zqmono\ntype: lesson\nproject: shop\ntags: [zqmono]\n\
                  status: active\ndepends_on:\n  - \"NOT monorepo\"\n---\n\n# Zqmono builds\n\nOne \
                  package is built at once.\n";
    let folder = shop.join(".planning/knowledge/lessons/build");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("les-2026-01-02-zqmono.md"), lesson).unwrap();
    let words = ["import", "--format", "gsd", ".planning/knowledge", "--yes"];
    let imported = scene.run_in(&shop, &words);
    assert!(imported.status.success(), "{}", told(&imported));
    let hit = || {
        let words = ["search", "zqmono builds", "--explain", "--deterministic", "--json"];
        let output = scene.run_in(&shop, &words);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hit = &answer["hits"][0];
        (hit["explain"]["signals"]["freshness"].clone(), hit["caveats"].clone())
    };
    let (freshness, caveats) = hit();
    near(&freshness, 1.0, 1e-9);
    assert_eq!(caveats, json!([]));
    std::fs::write(shop.join("pnpm-workspace.yaml"), "packages: []\n").unwrap();
    ground.git("shop", &["add", "pnpm-workspace.yaml"]);
    let (freshness, caveats) = hit();
    near(&freshness, 0.0, 1e-9);
    assert_eq!(caveats, json!(["broken: \"path:pnpm-workspace.yaml\" (holds)"]));
}
