//! The built-in transformer in a real node: questions in other words and in other languages, grades,
//! the cost of weak answers, a kill in the middle of the background work, and the choice of `static`.

use crate::support::mcp_client::{Agent, text as answer_text};
use crate::support::node_process::{
    PROGRAM, Running, done, eventually, json, klnode, printed, run, started, text,
};
use klnode_tests::benchmark_node::Place;
use serde_json::{Value, json};
use std::io::Write;
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

/// A question near the topic of the notes that none of them answers.
const UNANSWERED: &str = "how often do nightly jobs fail?";
/// The most tokens of a weak answer with three titles.
const WEAK_TOKENS_MAX: usize = 80;

/// Adds the notes, and returns their codes.
fn add_notes(home: &Path) -> Vec<String> {
    let add = |(title, content)| {
        let words = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
        text(&done(home, &words)["code"])
    };
    NOTES.map(add).to_vec()
}

/// Standard output of the hook for a prompt.
fn prompted(home: &Path, prompt: &str) -> String {
    let mut command = klnode(home);
    command.args(["hook", "prompt"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut hook = Running(command.spawn().unwrap());
    let input = json!({
        "session_id": "b3f1", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": prompt,
    });
    hook.0.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    String::from_utf8(hook.finish().stdout).unwrap()
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
    let weak = json(home, &["search", UNANSWERED]);
    assert_eq!(weak["grade"], "weak", "{weak}");
    let hits = weak["hits"].as_array().unwrap();
    assert!((1..=3).contains(&hits.len()), "{weak}");
    for field in ["content", "one_liner"] {
        assert!(hits.iter().all(|hit| hit[field] == ""), "{field}: {weak}");
    }
    assert!(hits.iter().all(|hit| hit["citations"] == json!([])), "{weak}");
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
fn a_program_gets_text_in_proportion_to_the_probability_of_a_hit() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let node = start_node(home, "transformer");
    add_notes(home);
    let steps = (1..=12).map(|step| format!(" Step {step}: tell the owner of the shift."));
    let steps: String = steps.collect();
    for (title, first) in [
        (
            "Database failover in Dublin",
            "To fail over the database in Dublin, promote the replica.",
        ),
        ("Database failover in Oslo", "To fail over the database in Oslo, promote the replica."),
        ("Printer on the third floor", "To reset the printer, hold the green button."),
    ] {
        let content = format!("{first}{steps}");
        done(home, &["add", "--title", title, "--content", &content, "--evidence", "doc:notes"]);
    }
    wait_for_vectors(home);
    let hits = |words: &[&str]| json(home, words)["hits"].as_array().unwrap().clone();
    let probability = |hit: &Value| hit["probability"].as_f64().unwrap();

    // One of two similar notes answers, so each is shown with its best passage only.
    let shared = hits(&["search", "how do we fail over the database?"]);
    assert!(shared.iter().all(|hit| probability(hit) < 0.5), "{shared:?}");
    assert!(shared.len() >= 2, "{shared:?}");
    for hit in &shared[..2] {
        let content = text(&hit["content"]);
        assert!(content.contains("fail over") && !content.contains("Step 12"), "{shared:?}");
    }

    let sure = hits(&["search", "how do I reset the printer?"]);
    assert!(probability(&sure[0]) >= 0.5, "{sure:?}");
    assert!(text(&sure[0]["content"]).contains("Step 12"), "the whole text: {sure:?}");

    // Titles that hardly answer are left out, unless the program asks for more hits than usual.
    let keys = ["search", "when do the signing keys rotate?"];
    let few = hits(&keys);
    assert_eq!(few.len(), 1, "{few:?}");
    let more = hits(&[keys[0], keys[1], "-n", "8"]);
    assert!(more.len() > 1 && more[0]["id"] == few[0]["id"], "{more:?}");
    let said = printed(&run(home, &keys));
    assert!(said.contains(" more found; -n N shows more."), "{said}");
    node.stop();
}

#[test]
fn a_weak_answer_is_a_few_titles_and_hooks_and_prompts_get_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    std::fs::write(home.join("klnode.toml"), "[hooks]\ntimeout = \"1 min\"\n").unwrap();
    let node = start_node(home, "transformer");
    let codes = add_notes(home);
    wait_for_vectors(home);
    // A hook shows no title, so no entry counts as read.
    assert_eq!(prompted(home, UNANSWERED), "");
    let mut agent = Agent::new(home, &[]);
    agent.done("task_begin", &json!({"goal": "look after the jobs"}));
    for code in &codes {
        let confirmed = agent.done("observe", &json!({"code": code, "verdict": "confirm"}));
        assert_eq!(confirmed["class"], "independent", "{confirmed}");
    }
    let found = agent.call("search", &json!({"query": UNANSWERED}));
    let (told, structured) = (answer_text(&found), &found["structuredContent"]);
    assert_eq!((&structured["grade"], &structured["hits"]), (&json!("weak"), &json!([])));
    let near = structured["near"].as_array().unwrap();
    assert!((1..=3).contains(&near.len()), "{found}");
    assert_eq!(told.lines().count(), 1 + near.len(), "a notice and the titles: {told}");
    let tokens = bpe_openai::o200k_base().count(told);
    assert!(tokens <= WEAK_TOKENS_MAX, "{tokens} tokens: {told}");
    let first = done(home, &["show", &text(&near[0]["code"])]);
    assert_eq!(first["prediction_errors"], 1, "the first title counts: {first}");

    let printed = printed(&run(home, &["search", UNANSWERED]));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "No sure answer. Near the topic (`klnode show CODE` prints one):");
    // The prediction error of the first title does not move it in an answer that shows only titles.
    let told_again = near.iter().map(|hit| {
        let code = text(&hit["code"]);
        let (_, (title, _)) = codes.iter().zip(&NOTES).find(|(of, _)| **of == code).unwrap();
        format!("{code}  {title}")
    });
    assert_eq!(lines[1..], told_again.collect::<Vec<_>>(), "{printed}");
    let context = run(home, &["search", UNANSWERED, "--context"]);
    assert_eq!(context.status.code(), Some(1));
    let context = String::from_utf8(context.stdout).unwrap();
    assert!(context.contains("No sure answer"), "{context}");
    assert!(NOTES.iter().all(|(title, _)| !context.contains(title)), "{context}");
    let place = Place::new(PROGRAM, home);
    let query = UNANSWERED.trim_end_matches('?').replace(' ', "+");
    let items = place.get(&format!("/api/v1/knowledge/search?q={query}")).json();
    assert_eq!(items, json!({"results": [], "total": 0}));
    let metrics = place.get("/metrics").text();
    assert!(metrics.contains("klnode_searches_total{outcome=\"weak\"} 2\n"), "{metrics}");
    node.stop();
}

#[test]
fn a_question_in_another_language_is_answered_by_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let node = start_node(home, "transformer");
    add_notes(home);
    let notes = [
        ("Passwort zurücksetzen", "Ein vergessenes Passwort setzt man im Portal zurück."),
        ("Zertifikate erneuern", "Die Zertifikate werden am Montag im Betrieb erneuert."),
        ("Сброс пароля", "Пароль сбрасывает администратор через портал."),
        ("重置密码", "忘记密码时, 请在门户网站重置密码。"),
    ];
    for (title, content) in notes {
        done(home, &["add", "--title", title, "--content", content, "--evidence", "doc:notes"]);
    }
    wait_for_vectors(home);
    for (question, title) in [
        ("Wie setze ich mein Passwort zurück?", "Passwort zurücksetzen"),
        ("Passwort zurücksetzen", "Passwort zurücksetzen"),
        ("Wann werden die Zertifikate erneuert?", "Zertifikate erneuern"),
        ("кто сбрасывает пароль", "Сброс пароля"),
        ("如何重置密码", "重置密码"),
    ] {
        let answer = json(home, &["search", question, "--explain", "--deterministic"]);
        assert_eq!((first_title(&answer), &answer["grade"]), (title, &json!("strong")), "{answer}");
        let explained = &answer["hits"][0]["explain"];
        assert_eq!(explained["transformer"], Value::Null, "{question}: {explained}");
    }
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
