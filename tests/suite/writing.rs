//! What an entry must hold, whatever it is written by: `add`, a file, an import, a promotion, an agent,
//! an edit. Real processes.

use crate::agent::Agent;
use crate::ground::{Ground, done, refused, type_in};
use crate::homes::settle;
use crate::peer::Peer;
use crate::person_key::write_key;
use crate::program::{eventually, json as json_of, run, start, text, told};
use crate::spoken::team_of_today;
use klnode::api::Limits;
use klnode::engine::{Arrival, Command};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::lww::Register;
use klnode_crdt::writer::Claim;
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::Stranger;
use serde_json::{Value, json};
use std::path::Path;

/// A node, and a folder to type in that is no checkout.
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

    /// The words that add an entry of a type with evidence.
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

    /// A file in the folder, by its whole name.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.ground.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The words that make a finding of an entry.
fn to_finding(entry: &str) -> [&str; 6] {
    ["promote", entry, "--to", "local", "--type", "finding"]
}

const ANCHOR: [&str; 2] = ["--anchor", "path:src/stream.rs"];
const STEP: [&str; 2] = ["--verify", "Run the leak test."];
const LONG: &str = "It leaks. It always did. Nobody saw. Now we know.";

#[test]
fn a_finding_is_held_to_its_rule_by_whatever_door_it_comes() {
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
    // What warns of a false positive says why below.
    let why = format!("It leaks.\n\nDismissed: {LONG}");
    desk.refused(&words(&why, &whole), 2, "sentences");
    let warns = [&whole[..], &["--tag", "false-positive"]].concat();
    let warning = desk.add("finding", &why, &warns);
    for entry in [found, warning] {
        desk.done(&["promote", &entry, "--to", "local"]);
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
fn an_agent_that_remembers_a_finding_is_sent_to_its_task_and_a_spike_has_its_outcome() {
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
    assert!(
        said.starts_with("cannot remember a finding") && said.contains("task finding"),
        "{said}"
    );
    let spike = remember("spike", json!({"outcome": "rejected"}));
    let code = text(&agent.done("remember", &spike)["code"]);
    assert_eq!(desk.registers(&code)["outcome"], "rejected");
    agent.close();
}

#[test]
fn a_spike_is_written_with_its_outcome_and_nothing_else_has_one() {
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
    // It goes along where it is promoted as a spike, and only there.
    for (kind, outcome) in [("spike", json!("confirmed")), ("lesson", json!(null))] {
        let promoted = desk.done(&["promote", &spike, "--to", "local", "--type", kind]);
        assert_eq!(desk.registers(&text(&promoted["id"]))["outcome"], outcome, "{kind}");
    }
}

#[test]
fn an_edit_makes_nothing_that_could_not_be_written_anew() {
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
    // What the new type does not have is taken away along with it.
    let lesson = ["edit", &entry, "--field", "type=lesson"];
    desk.refused(&lesson, 2, "sub_type is `bug`; lesson entries have none");
    desk.done(&[&lesson[..], &["--field", "sub_type="]].concat());
    let found = desk.add("finding", "It leaks.", &[ANCHOR, STEP].concat());
    desk.refused(&["edit", &found, "--content", LONG], 2, "content has 4 sentences");
    desk.refused(&["edit", &found, "--remove-anchor", ANCHOR[1]], 2, "anchors are missing");
    desk.done(&["edit", &found, "--content", "It leaks. It always did."]);
}

#[test]
fn an_edit_sets_no_norm_against_another() {
    let desk = Desk::new();
    let norm = |how: &str, more: &[&str]| {
        let title = format!("retry the billing gateway with backoff: {how}");
        let words = ["add", "--type", "norm", "--title", &title, "--content", "What was learned."];
        let rest = ["--evidence", "pr:7", "--tag", "retry", "--tag", "billing"];
        desk.done(&[&words[..], &rest, more].concat())
    };
    let theirs = norm("never", &["--polarity", "negative"]);
    let ours = text(&norm("always", &[])["id"]);
    let said = format!("{} there says the opposite", text(&theirs["code"]));
    let edit = ["edit", &ours, "--field", "polarity=positive"];
    desk.refused(&edit, 4, &said);
    desk.done(&["edit", &ours, "--field", "polarity=negative"]);
    desk.done(&["archive", &text(&theirs["id"])]);
    desk.done(&edit);
}

#[test]
fn what_a_procedural_entry_says_is_not_changed_by_accepting_a_proposal() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Sign releases", "content": "Always.", "memory": "procedural",
        "evidence": ["doc:d"]});
    let entry = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let id = EntryId::from_hex(&entry).unwrap();
    let title = Claim::Set(Register::TITLE, "Sign nothing".into());
    let tag = Claim::Add(TextSet::TAGS, "release".into());
    for (stranger, claim) in [(Stranger::new(1), title), (Stranger::new(2), tag)] {
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        served.engine.submit_blocking(Command::Ingest(vec![Arrival { record, from }])).unwrap();
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
fn a_line_that_was_taken_before_is_known_although_it_would_be_refused_by_now() {
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
fn a_field_takes_no_word_that_would_mean_nothing() {
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
fn a_condition_that_nobody_can_check_is_told_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (_node, _) = start(folder.path());
    let add = |depends_on: &str| {
        let content = format!("It leaks without {depends_on}.");
        let words = Desk::words("lesson", &content, &["--depends-on", depends_on]);
        told(&run(folder.path(), &words))
    };
    let note = "Kept as words, not checked: pth:src/lib.rs; what is checked begins with path:, ";
    assert!(add("pth:src/lib.rs").starts_with(note), "{}", add("pth:src/lib.rs"));
    assert!(!add("path:src/lib.rs").contains("Kept as words"), "{}", add("path:src/lib.rs"));
    let code = text(&json_of(folder.path(), &Desk::words("lesson", "It leaks.", &[]))["code"]);
    let edited = run(folder.path(), &["edit", &code, "--depends-on", "pth:src/lib.rs"]);
    assert!(told(&edited).starts_with(note), "{}", told(&edited));
}

/// What is said of an entry in which the same is written.
fn named(entry: &Value) -> Value {
    json!({"id": entry["id"], "code": entry["code"]})
}

/// Waits until the index has all that is written.
fn wait_for_index(home: &Path) {
    eventually("the index has it all", || {
        let lag = json_of(home, &["search", "streams", "--all"])["index_lag"].as_u64();
        (lag == Some(0)).then_some(())
    });
}

#[test]
fn whoever_writes_the_same_again_is_told_where_it_is_written() {
    let desk = Desk::new();
    let add = || desk.done(&Desk::words("lesson", LONG, &[]));
    let first = add();
    assert_eq!(first["same"], Value::Null);
    // The index does not have it yet; later on nothing else knows it.
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
    let said = format!("The same is written in {code} already: next time `klnode observe`");
    assert!(told(&output).starts_with(&said), "{}", told(&output));
    assert!(output.status.success());
}

#[test]
fn what_was_put_away_or_is_gone_is_named_to_nobody_who_writes_it_again() {
    let desk = Desk::new();
    for away in
        [&["forget", "--yes"][..], &["retract", "--yes"], &["archive"], &["mute"], &["invalidate"]]
    {
        let content = format!("It leaks after {}.", away[0]);
        let add = || desk.done(&Desk::words("lesson", &content, &[]));
        let code = text(&add()["code"]);
        desk.done(&[away, &[code.as_str()]].concat());
        let second = add();
        assert_eq!(second["same"], Value::Null, "{away:?}");
        assert_eq!(add()["same"], named(&second), "{away:?}");
    }
}

#[test]
fn an_agent_that_remembers_the_same_is_told_and_has_not_found_it_out() {
    let desk = Desk::new();
    let first = desk.done(&Desk::words("lesson", LONG, &[]));
    let mut agent = Agent::new(&desk.node.home, &[]);
    agent.done("task_begin", &json!({"goal": "mend the streams"}));
    let lesson = json!({"title": "Streams leak", "content": LONG});
    let told = agent.call("remember", &lesson);
    let said = text(&told["content"][0]["text"]);
    let code = text(&first["code"]);
    assert!(said.contains(&format!("\nThe same is written in {code} already")), "{said}");
    assert_eq!(told["structuredContent"]["same"], code.as_str(), "{told}");
    let echoed = agent.done("observe", &json!({"code": code, "verdict": "confirm"}));
    assert_eq!(echoed["class"], "primed", "{echoed}");
    let other = json!({"title": "Streams leak", "content": "Elsewhere, too."});
    assert_eq!(agent.done("remember", &other)["same"], Value::Null);
    agent.close();
}

#[test]
fn whoever_is_told_while_writing_has_not_found_it_out() {
    let desk = Desk::new();
    let begin = ["task", "begin", "--agent", "builder", "--goal", "mend the streams"];
    let task = text(&desk.done(&begin)["task"]);
    let add = || desk.done(&Desk::words("lesson", LONG, &[]));
    let (first, second) = (add(), add());
    assert_eq!(second["same"], named(&first));
    // Of the second nobody was told.
    for (entry, class) in [(first, "primed"), (second, "independent")] {
        let confirmed = desk.done(&["confirm", &text(&entry["id"]), "--task", &task]);
        assert_eq!(confirmed["class"], class, "{confirmed}");
    }
}

#[test]
fn what_a_fellow_member_wrote_is_not_named_to_whoever_writes_the_same() {
    let mut team = team_of_today();
    team.alice.create_in(team.shared.id, "Streams leak");
    team.exchange();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    wait_for_index(&home);
    let content = "What we learned about Streams leak.";
    let words = Desk::words("lesson", content, &["--workspace", "team"]);
    let first = json_of(&home, &words);
    assert!(first["id"].is_string(), "{first}");
    assert_eq!(first["same"], Value::Null);
    assert_eq!(json_of(&home, &words)["same"], named(&first));
}
