//! Validation of entries from every source: `add`, a file, an import, a promotion, an agent, an
//! edit. Real processes.

use crate::attribution::team_of_today;
use crate::support::git_repos::{Ground, done, refused, type_in};
use crate::support::homes::settle;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{eventually, json as json_of, run, start, text, told};
use crate::support::peer_processes::Peer;
use crate::support::person_key::write_key;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{Command, DeliveredRecord};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::Stranger;
use serde_json::{Value, json};
use std::path::Path;

/// A node, and a working folder that is not a checkout.
struct Desk {
    node: Peer,
    ground: Ground,
}

impl Desk {
    fn new() -> Self {
        Self { node: Peer::start(), ground: Ground::new() }
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> Value {
        done(&self.node, &self.ground.path("."), words)
    }

    #[track_caller]
    fn refused(&self, words: &[&str], code: i32, part: &str) {
        refused(&self.node, &self.ground.path("."), words, code, part);
    }

    /// Arguments that add an entry of a type with evidence.
    fn words<'a>(kind: &'a str, content: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let words = ["add", "--type", kind, "--title", "Streams leak", "--content", content];
        [&words[..], &["--evidence", "doc:d"], more].concat()
    }

    #[track_caller]
    fn add(&self, kind: &str, content: &str, more: &[&str]) -> String {
        text(&self.done(&Self::words(kind, content, more))["id"])
    }

    #[track_caller]
    fn registers(&self, entry: &str) -> Value {
        self.done(&["show", entry])["registers"].clone()
    }

    /// Writes a file in the folder and returns its full path.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.ground.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Arguments that promote an entry to a finding.
fn to_finding(entry: &str) -> [&str; 7] {
    ["add", "--from", entry, "--workspace", "local", "--type", "finding"]
}

const ANCHOR: [&str; 2] = ["--anchor", "path:src/stream.rs"];
const STEP: [&str; 2] = ["--verify", "Run the leak test."];
const LONG: &str = "It leaks. It always did. It was unseen. Now we know.";

#[test]
fn a_finding_is_validated_by_every_way_of_writing() {
    let desk = Desk::new();
    let whole = [ANCHOR, STEP].concat();
    let words = |content, more| Desk::words("finding", content, more);
    desk.refused(&words("It leaks.", &STEP), 2, "anchors are missing");
    desk.refused(&words("It leaks.", &ANCHOR), 2, "verify steps are missing");
    desk.refused(&words(LONG, &whole), 2, "content has 4 sentences; 1 to 3 are allowed");
    let steps = ["--verify", "Two.", "--verify", "Three.", "--verify", "Four."];
    let more = [&whole[..], &steps].concat();
    desk.refused(&words("It leaks.", &more), 2, "verify steps are 4; 1 to 3 are allowed");
    let found = desk.add("finding", "It leaks. It always did.", &whole);
    // A false positive states its reason below the text.
    let why = format!("It leaks.\n\nDismissed: {LONG}");
    desk.refused(&words(&why, &whole), 2, "sentences");
    let warns = [&whole[..], &["--tag", "false-positive"]].concat();
    let warning = desk.add("finding", &why, &warns);
    for entry in [found, warning] {
        desk.done(&["add", "--from", &entry, "--workspace", "local"]);
    }
    let line = json!({"title": "t", "content": "It leaks.", "type": "finding"}).to_string();
    let file = desk.file("notes.jsonl", &line);
    desk.refused(&["import", &file], 1, "anchors are missing");
    desk.refused(&["import", &file, "--dry-run"], 1, "anchors are missing");
    let bare = desk.add("lesson", "It leaks.", &[]);
    desk.refused(&to_finding(&bare), 2, "anchors are missing");
    let able = desk.add("lesson", "It leaks.", &whole);
    desk.done(&to_finding(&able));
}

#[test]
fn remember_refuses_findings_and_accepts_spikes_with_outcome() {
    let desk = Desk::new();
    let mut agent = Agent::new(&desk.node.home, &[]);
    let remember = |kind: &str, more: Value| {
        let mut new = json!({"title": "t", "content": "c", "type": kind, "evidence": ["doc:d"]});
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    let told = agent.call("remember", &remember("finding", json!({})));
    assert_eq!(told["isError"], true, "{told}");
    let said = text(&told["content"][0]["text"]);
    assert!(said.starts_with("A finding needs anchors") && said.contains("task finding"), "{said}");
    let spike = remember("spike", json!({"outcome": "rejected"}));
    let code = text(&agent.done("remember", &spike)["code"]);
    assert_eq!(desk.registers(&code)["outcome"], "rejected");
    agent.close();
}

#[test]
fn only_spikes_have_an_outcome() {
    let desk = Desk::new();
    let spike = desk.add("spike", "Zero copy is faster.", &["--outcome", "confirmed"]);
    assert_eq!(desk.registers(&spike)["outcome"], "confirmed");
    let words = |kind, outcome| Desk::words(kind, "c", outcome);
    desk.refused(&words("spike", &["--outcome", "maybe"]), 2, "it must be one of confirmed");
    desk.refused(&words("lesson", &["--outcome", "partial"]), 2, "only a spike has one");
    let front = "---\ntitle: t\ntype: spike\noutcome: partial\nevidence: [doc:d]\n---\nText.\n";
    let object = json!({"title": "t", "content": "c", "type": "spike", "outcome": "partial",
        "evidence": ["doc:d"]});
    let object = object.to_string();
    for (name, content) in [("spike.md", front), ("spike.json", object.as_str())] {
        let added = desk.done(&["add", &desk.file(name, content)]);
        assert_eq!(desk.registers(&text(&added["id"]))["outcome"], "partial", "{name}");
    }
    // The outcome is copied if the entry is promoted as a spike, and only then.
    for (kind, outcome) in [("spike", json!("confirmed")), ("lesson", json!(null))] {
        let promoted =
            desk.done(&["add", "--from", &spike, "--workspace", "local", "--type", kind]);
        assert_eq!(desk.registers(&text(&promoted["id"]))["outcome"], outcome, "{kind}");
    }
}

#[test]
fn an_edit_is_validated_like_a_new_entry() {
    let desk = Desk::new();
    let line = json!({"title": "t", "content": "Rests on where it stands."}).to_string();
    desk.done(&["import", &desk.file("notes.jsonl", &line)]);
    let entry = text(&desk.done(&["list"])["entries"][0]["id"]);
    for (field, part) in [
        ("type=norm", "citations are missing"),
        ("type=signal", "memory is semantic, but signal entries are episodic"),
        ("type=finding", "anchors are missing"),
        ("sub_type=anything", "lesson entries have none"),
        ("outcome=partial", "only a spike has one"),
    ] {
        desk.refused(&["edit", &entry, "--field", field], 2, part);
    }
    desk.done(&["edit", &entry, "--field", "type=norm", "--evidence", "pr:7"]);
    let retyped = ["edit", &entry, "--field", "type=experience", "--field", "sub_type=bug"];
    desk.done(&retyped);
    let wrong = ["edit", &entry, "--field", "sub_type=risk"];
    desk.refused(&wrong, 2, "sub_type is `risk`; it must be one of decision");
    // Fields that the new type does not have can be removed in the same edit.
    let lesson = ["edit", &entry, "--field", "type=lesson"];
    desk.refused(&lesson, 2, "sub_type is `bug`; lesson entries have none");
    desk.done(&[&lesson[..], &["--field", "sub_type="]].concat());
    let found = desk.add("finding", "It leaks.", &[ANCHOR, STEP].concat());
    desk.refused(&["edit", &found, "--content", LONG], 2, "content has 4 sentences");
    desk.refused(&["edit", &found, "--remove-anchor", ANCHOR[1]], 2, "anchors are missing");
    desk.done(&["edit", &found, "--content", "It leaks. It always did."]);
}

#[test]
fn an_edit_cannot_make_a_norm_contradict_another() {
    let desk = Desk::new();
    let norm = |how: &str, more: &[&str]| {
        let title = format!("retry the billing gateway with backoff: {how}");
        let words = ["add", "--type", "norm", "--title", &title, "--content", "A short lesson."];
        let rest = ["--evidence", "pr:7", "--tag", "retry", "--tag", "billing"];
        desk.done(&[&words[..], &rest, more].concat())
    };
    let theirs = norm("never", &["--polarity", "negative"]);
    let ours = text(&norm("always", &[])["id"]);
    let said = format!("{} in `main` contradicts it", text(&theirs["code"]));
    let edit = ["edit", &ours, "--field", "polarity=positive"];
    desk.refused(&edit, 4, &said);
    desk.done(&["edit", &ours, "--field", "polarity=negative"]);
    desk.done(&["archive", &text(&theirs["id"])]);
    desk.done(&edit);
}

#[test]
fn a_procedural_entry_is_not_changed_by_accepting_a_proposal() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Sign releases", "content": "Always.", "memory": "procedural",
        "evidence": ["doc:d"]});
    let entry = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let id = EntryId::from_hex(&entry).unwrap();
    let title = ClaimEdit::Set(Register::TITLE, "Sign nothing".into());
    let tag = ClaimEdit::Add(TextSet::TAGS, "release".into());
    for (stranger, claim) in [(Stranger::new(1), title), (Stranger::new(2), tag)] {
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        served
            .engine
            .submit_blocking(Command::Ingest(vec![DeliveredRecord { record, from }]))
            .unwrap();
    }
    write_key(served.socket.parent().unwrap());
    let accept = |what: &str| {
        let path = format!("/v1/entries/{entry}/accept");
        served.json("POST", &path, &json!({"what": what}))
    };
    let refused = accept("title");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("`klnode edit --as-person`"), "{}", refused.text());
    let taken = accept("tags");
    assert_eq!(taken.status, 200, "{}", taken.text());
}

#[test]
fn a_previously_imported_line_is_known_even_if_now_invalid() {
    let desk = Desk::new();
    let line = |kind: &str| {
        json!({"key": "n1", "title": "t", "content": "It leaks.", "type": kind}).to_string()
    };
    desk.done(&["import", &desk.file("notes.jsonl", &line("lesson"))]);
    let file = desk.file("notes.jsonl", &line("finding"));
    let import = ["import", file.as_str()];
    let words: [&[&str]; 3] = [&[], &["--dry-run"], &["--strict"]];
    for more in words {
        let imported = desk.done(&[&import[..], more].concat());
        assert_eq!((&imported["taken"], &imported["known"]), (&json!(0), &json!(1)), "{more:?}");
    }
}

#[test]
fn a_field_refuses_unknown_values() {
    let desk = Desk::new();
    let entry = desk.add("lesson", "It leaks.", &[]);
    let edit = |field: &'static str| ["edit", entry.as_str(), "--field", field];
    desk.refused(
        &edit("failed_work=yes"),
        2,
        "failed_work is `yes`; it must be one of true, false",
    );
    desk.refused(&edit("thread=one\ntwo"), 2, "thread has more than one line");
    for field in ["failed_work=true", "failed_work=false", "failed_work=", "thread=fix-login"] {
        desk.done(&edit(field));
    }
}

#[test]
fn a_dependency_that_is_no_predicate_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_node, _) = start(folder.path());
    let add = |depends_on: &str| {
        let content = format!("It leaks without {depends_on}.");
        let words = Desk::words("lesson", &content, &["--depends-on", depends_on]);
        told(&run(folder.path(), &words))
    };
    let note = "Kept as words, not checked: pth:src/lib.rs. A predicate begins with path:, ";
    assert!(add("pth:src/lib.rs").starts_with(note), "{}", add("pth:src/lib.rs"));
    assert!(!add("path:src/lib.rs").contains("Kept as words"), "{}", add("path:src/lib.rs"));
    let code = text(&json_of(folder.path(), &Desk::words("lesson", "It leaks.", &[]))["code"]);
    let edited = run(folder.path(), &["edit", &code, "--depends-on", "pth:src/lib.rs"]);
    assert!(told(&edited).starts_with(note), "{}", told(&edited));
}

/// Reference to the entry with the same text.
fn named(entry: &Value) -> Value {
    json!({"id": entry["id"], "code": entry["code"]})
}

/// Waits until the index is complete.
fn wait_for_index(home: &Path) {
    eventually("the index has it all", || {
        let lag = json_of(home, &["search", "streams", "--all"])["index_lag"].as_u64();
        (lag == Some(0)).then_some(())
    });
}

#[test]
fn writing_a_duplicate_names_the_existing_entry() {
    let desk = Desk::new();
    let add = || desk.done(&Desk::words("lesson", LONG, &[]));
    let first = add();
    assert_eq!(first["same"], Value::Null);
    // At first the index does not have it yet; later only the index finds it.
    assert_eq!(add()["same"], named(&first));
    wait_for_index(&desk.node.home);
    let (title, spaced) = ("Streams leak", LONG.replace(' ', "\n  ") + "!");
    let (is_same, is_not) = (named(&first), Value::Null);
    for (title, content, more, expect) in [
        (title, LONG, &[][..], &is_same),
        ("Streams  leak", spaced.as_str(), &[], &is_same),
        ("Streams LEAK", LONG, &[], &is_not),
        ("Pipes leak", LONG, &[], &is_not),
        (title, &LONG[..LONG.len() - 2], &[], &is_not),
        (title, LONG, &["--workspace", "local"], &is_not),
        (title, LONG, &["--memory", "procedural"], &is_not),
    ] {
        let words = ["add", "--title", title, "--content", content, "--evidence", "doc:d"];
        let added = desk.done(&[&words[..], more].concat());
        assert_eq!(&added["same"], expect, "{title}: {content} {more:?}");
    }
    let words = Desk::words("lesson", LONG, &[]);
    let output = type_in(&desk.node, &desk.ground.path("."), &words);
    let code = text(&first["code"]);
    let said = format!("Entry {code} is a duplicate: next time run `klnode feedback`");
    assert!(told(&output).starts_with(&said), "{}", told(&output));
    assert!(output.status.success());
}

#[test]
fn archived_or_forgotten_entries_are_not_named_as_duplicates() {
    let desk = Desk::new();
    for away in [
        &["forget", "--yes"][..],
        &["forget", "--retract", "--yes"],
        &["archive"],
        &["mark", "--mute"],
        &["mark", "--wrong"],
    ] {
        let content = format!("It leaks after {}.", away.join(" "));
        let add = || desk.done(&Desk::words("lesson", &content, &[]));
        let code = text(&add()["code"]);
        desk.done(&[away, &[code.as_str()]].concat());
        let second = add();
        assert_eq!(second["same"], Value::Null, "{away:?}");
        assert_eq!(add()["same"], named(&second), "{away:?}");
    }
}

#[test]
fn an_agent_that_writes_a_duplicate_is_told_and_primed() {
    let desk = Desk::new();
    let first = desk.done(&Desk::words("lesson", LONG, &[]));
    let mut agent = Agent::new(&desk.node.home, &[]);
    agent.done("task_begin", &json!({"goal": "mend the streams"}));
    let lesson = json!({"title": "Streams leak", "content": LONG});
    let told = agent.call("remember", &lesson);
    let said = text(&told["content"][0]["text"]);
    let code = text(&first["code"]);
    assert!(said.contains(&format!("\n{code} already says the same")), "{said}");
    assert_eq!(told["structuredContent"]["same"], code.as_str(), "{told}");
    let echoed = agent.done("observe", &json!({"code": code, "verdict": "confirm"}));
    assert_eq!(echoed["class"], "primed", "{echoed}");
    let other = json!({"title": "Streams leak", "content": "Elsewhere, too."});
    assert_eq!(agent.done("remember", &other)["same"], Value::Null);
    agent.close();
}

#[test]
fn a_writer_that_was_told_of_a_duplicate_is_primed() {
    let desk = Desk::new();
    let begin = ["task", "begin", "--agent", "builder", "--goal", "mend the streams"];
    let task = text(&desk.done(&begin)["task"]);
    let add = || desk.done(&Desk::words("lesson", LONG, &[]));
    let (first, second) = (add(), add());
    assert_eq!(second["same"], named(&first));
    // The second entry was not named.
    for (entry, class) in [(first, "primed"), (second, "independent")] {
        let confirmed = desk.done(&["feedback", "--confirm", &text(&entry["id"]), "--task", &task]);
        assert_eq!(confirmed["class"], class, "{confirmed}");
    }
}

#[test]
fn entries_by_other_members_are_not_named_as_duplicates() {
    let mut team = team_of_today();
    team.alice.create_in(team.shared.id, "Streams leak");
    team.exchange();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    wait_for_index(&home);
    let content = klnode_tests::test_engine::lesson("Streams leak").content;
    let words = Desk::words("lesson", &content, &["--workspace", "team"]);
    let first = json_of(&home, &words);
    assert!(first["id"].is_string(), "{first}");
    assert_eq!(first["same"], Value::Null);
    assert_eq!(json_of(&home, &words)["same"], named(&first));
}
