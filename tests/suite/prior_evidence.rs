//! Prior evidence: observations stated on a plain import line count a little, on this node only,
//! and verify nothing.

use crate::support::conformance::conforms;
use crate::support::node_process::{done, printed, run, start, text};
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, NewEntry, SourceKey};
use klnode_server::Limits;
use klnode_store::imports::ImportRow;
use klnode_tests::test_engine::lesson;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
const TITLE: &str = "The zqcourier batches its zqparcels";

fn line(key: &str, observed: &Value) -> String {
    let line = json!({
        "title": TITLE, "content": "Batches of 50.", "key": key, "evidence": ["doc:notes"],
        "observed": observed,
    });
    format!("{line}\n")
}

fn import(node: &Served, lines: &str) -> Value {
    let answer = node.ask("POST", "/v1/import", &[], lines.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn only_entry(node: &Served) -> Value {
    let listed = node.json("GET", "/v1/entries", &Value::Null).json();
    let code = text(&listed["entries"][0]["code"]);
    node.json("GET", &format!("/v1/entries/{code}"), &Value::Null).json()
}

#[test]
fn observed_on_a_plain_line_counts_as_at_most_two_observations_and_verifies_nothing() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let observed = json!({"successes": 40_000, "failures": 0, "confirmations": 9_000});
    let imported = import(&node, &line("one", &observed));
    assert_eq!([&imported["taken"], &imported["prior"]], [&json!(1), &json!(1)], "{imported}");
    let entry = only_entry(&node);
    assert_eq!([&entry["alpha"], &entry["beta"]], [&json!(7.0), &json!(5.0)], "{entry}");
    assert_eq!(entry["prior"], json!({"alpha": 2.0, "beta": 0.0}));
    assert_eq!([&entry["status"], &entry["corroborated"]], [&json!("candidate"), &json!(false)]);
    assert_eq!(entry["confirmed_days_ago"], Value::Null);

    // One success here makes α 8 and the mean 0.615: without prior evidence that is not proven.
    let path = format!("/v1/entries/{}/observations", text(&entry["id"]));
    node.json("POST", &path, &json!({"outcome": "success"}));
    let entry = only_entry(&node);
    assert_eq!([&entry["alpha"], &entry["status"]], [&json!(8.0), &json!("active")], "{entry}");

    // The same file again changes nothing, and another one adds nothing.
    let again = import(&node, &line("one", &observed));
    assert_eq!([&again["known"], &again["prior"]], [&json!(1), &json!(0)], "{again}");
    import(&node, &line("one", &json!({"failures": 2_000})));
    assert_eq!(only_entry(&node)["prior"], json!({"alpha": 2.0, "beta": 0.0}));
}

#[test]
fn an_entry_that_was_imported_without_observations_takes_them_from_a_second_import() {
    let node = Served::start(Limits::default(), Doors::Socket);
    import(&node, &line("one", &Value::Null));
    assert_eq!(only_entry(&node)["prior"], Value::Null);
    let imported = import(&node, &line("one", &json!({"successes": 500, "failures": 1_000})));
    assert_eq!(imported["prior"], 1, "{imported}");
    assert_eq!(only_entry(&node)["prior"], json!({"alpha": 0.5, "beta": 1.0}));
}

#[test]
fn no_record_contains_prior_evidence_and_show_displays_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let file = home.join("notes.jsonl");
    fs::write(&file, line("one", &json!({"successes": 3_000, "failures": 1_000}))).unwrap();
    let said = printed(&run(home, &["import", file.to_str().unwrap()]));
    assert!(said.contains("1 with prior evidence: at most 2 observations each"), "{said}");
    let prior =
        "prior evidence from import: alpha +1.50, beta +0.50; does not count as verification";
    let code = text(&done(home, &["list"])["entries"][0]["code"]);
    let shown = printed(&run(home, &["show", &code]));
    assert!(shown.contains(prior), "{shown}");
    let explained = printed(&run(home, &["search", TITLE, "--explain"]));
    assert!(explained.contains(prior), "{explained}");
    let exported = home.join("out.jsonl");
    printed(&run(home, &["export", exported.to_str().unwrap()]));
    let exported = fs::read_to_string(exported).unwrap();
    assert!(exported.contains(TITLE) && !exported.contains("observed"), "{exported}");
}

/// The time some days ago, in milliseconds since 1970.
fn days_ago(days: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap() - days * DAY_MILLIS
}

/// A node that imported an entry some days ago from a file with this date.
fn imported_before(days: u64, dated: u64) -> (Served, EntryId) {
    let key = SourceKey { format: "flux-drive".into(), key: "batch".into() };
    let new = NewEntry { source: Some(key.clone()), ..lesson(TITLE) };
    let SourceKey { format, key } = key;
    let (workspace, memory) = (new.workspace, new.memory);
    let entry = Origin::Imported { workspace, memory, format, key }.id();
    let words = json!({"format": "flux-drive", "confirmed": dated.to_string()}).to_string();
    let row = ImportRow { id: None, words, place: None, base: None, links: Vec::new() };
    let dated = Some(WallTime::from_millis(dated));
    let note = Command::NoteSource { entry, row: Box::new(row), dated };
    let (node, _) = Served::start_after(days, &[Command::Create(Box::new(new)), note]);
    (node, entry)
}

/// The same part of the file, with another date.
fn dated_line(dated: u64) -> String {
    let source = json!({"format": "flux-drive", "confirmed": dated.to_string(), "newest": dated});
    let line = json!({
        "title": TITLE, "content": format!("What we learned about {TITLE}."), "key": "batch",
        "evidence": ["commit:1a2b3c4"], "source": source,
    });
    format!("{line}\n")
}

fn status(node: &Served, entry: EntryId) -> String {
    text(&node.json("GET", &format!("/v1/entries/{entry}"), &Value::Null).json()["status"])
}

#[test]
fn a_date_in_the_future_counts_as_the_day_of_the_import() {
    let (node, entry) = imported_before(120, days_ago(0) + 4_000 * DAY_MILLIS);
    assert_eq!(status(&node, entry), "stale", "the import was 120 days ago");
    let (node, entry) = imported_before(5, days_ago(0) + 4_000 * DAY_MILLIS);
    assert_ne!(status(&node, entry), "stale");
}

#[test]
fn a_date_that_was_edited_after_the_first_import_is_the_age_of_the_entry() {
    conforms("S000-35");
    let (node, entry) = imported_before(120, days_ago(130));
    assert_eq!(status(&node, entry), "stale");
    let before = node.json("GET", &format!("/v1/entries/{entry}"), &Value::Null).json();
    let answer = import(&node, &dated_line(days_ago(2)));
    assert_eq!([&answer["changed"], &answer["taken"]], [&json!(1), &json!(0)], "{answer}");
    assert_ne!(status(&node, entry), "stale", "the file says that it still holds");
    let after = node.json("GET", &format!("/v1/entries/{entry}"), &Value::Null).json();
    for field in ["alpha", "beta", "corroborated", "confirmed_days_ago"] {
        assert_eq!(after[field], before[field], "{field}: a date confirms nothing");
    }
    assert_ne!(after["status"], "verified");
    let answer = import(&node, &dated_line(days_ago(100)));
    assert_eq!(answer["changed"], 1, "{answer}");
    assert_eq!(status(&node, entry), "stale", "an older date makes it older");
}
