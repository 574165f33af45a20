//! Flags as they are typed: the effect of each is read back through another verb or observed. Most
//! are typed at a node within this process.

use crate::findings::SQL;
use crate::support::conformance::conforms;
use crate::support::git_repos::{self, Ground};
use crate::support::homes::settle;
use crate::support::node_process::{done, json as answered, run, start, text, told};
use crate::support::peer_processes::Peer;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, DeliveredRecord, NewEntry};
use klnode_server::Limits;
use klnode_store::peers::row_types::PeerRow;
use klnode_tests::disk::Disk;
use klnode_tests::test_engine::{Node, created, lesson};
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::{Stranger, paired};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A node in this process, with a home for the command line.
struct Desk(Served);

impl Desk {
    fn new() -> Self {
        Self(Served::start(Limits::default(), Doors::Socket))
    }

    fn home(&self) -> &Path {
        self.0.socket.parent().unwrap()
    }

    /// JSON output of a verb that must succeed.
    #[track_caller]
    fn done(&self, words: &[&str]) -> Value {
        done(self.home(), words)
    }

    /// Id of a new entry.
    #[track_caller]
    fn add(&self, title: &str, more: &[&str]) -> String {
        let words = ["add", "--title", title, "--content", "Rare.", "--evidence", "doc:notes"];
        text(&self.done(&[&words[..], more].concat())["id"])
    }

    fn begin(&self) -> String {
        let words = ["task", "begin", "--agent", "builder", "--goal", "mend the build"];
        text(&self.done(&words)["task"])
    }
}

#[test]
fn the_decay_class_flag_is_stored_and_shown() {
    let desk = Desk::new();
    for class in ["ephemeral", "stable", "permanent"] {
        let entry = desk.add(class, &["--decay", class]);
        let shown = desk.done(&["show", &entry]);
        assert_eq!(shown["registers"]["decay_class"], class, "{shown}");
    }
    // A file may use the flag's name as a field.
    let front = "---\ntitle: t\ndecay: stable\nevidence: [doc:d]\n---\nText.\n".to_owned();
    let object = json!({"title": "t", "content": "c", "decay": "stable", "evidence": ["doc:d"]});
    for (name, written) in [("entry.md", front), ("entry.json", object.to_string())] {
        let file = desk.home().join(name);
        std::fs::write(&file, written).unwrap();
        let added = desk.done(&["add", file.to_str().unwrap()]);
        let shown = desk.done(&["show", &text(&added["id"])]);
        assert_eq!(shown["registers"]["decay_class"], "stable", "{name}: {shown}");
    }
    let unnamed = desk.add("unnamed", &[]);
    assert_eq!(desk.done(&["show", &unnamed])["registers"].get("decay_class"), None);
    let words = ["add", "--title", "t", "--content", "c", "--evidence", "run:1"];
    let refused = run(desk.home(), &[&words[..], &["--decay", "weekly"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    let way_out = "decay_class is `weekly`; it must be one of ephemeral, stable, permanent";
    assert!(told(&refused).contains(way_out), "{}", told(&refused));
}

#[test]
fn stale_entries_are_found_on_request() {
    conforms("S002-56");
    let create = Command::Create(Box::new(lesson("Chart legends overlap zqdust")));
    let (node, receipts) = Served::start_after(100, &[create]);
    let (desk, entry) = (Desk(node), created(&receipts[0]).to_string());
    let found = |more: &[&str]| {
        answered(desk.home(), &[&["search", "zqdust", "--all"], more].concat())["hits"].clone()
    };
    assert_eq!(found(&[]), json!([]));
    let hits = found(&["--stale"]);
    assert_eq!([&hits[0]["id"], &hits[0]["status"]], [&json!(entry), &json!("stale")]);
}

#[test]
fn the_primed_flag_makes_a_confirmation_primed() {
    let desk = Desk::new();
    let task = desk.begin();
    // Neither entry was served, so only the flag makes the difference.
    for (more, class, primed, is_evidence) in
        [(&["--primed"][..], "primed", json!(1), false), (&[], "independent", json!(null), true)]
    {
        let entry = desk.add(&format!("About zq{class}"), &[]);
        let words = ["feedback", "--confirm", &entry, "--task", &task];
        let confirmed = desk.done(&[&words[..], more].concat());
        assert_eq!(confirmed["class"], class, "{confirmed}");
        let shown = desk.done(&["show", &entry]);
        assert_eq!(shown["primed_confirmations"], primed, "{shown}");
        assert_eq!(shown["observations"].as_f64().unwrap() > 0.0, is_evidence, "{shown}");
    }
}

#[test]
fn one_field_of_a_proposal_can_be_accepted() {
    let desk = Desk::new();
    let entry = desk.add("Ours", &[]);
    let id = EntryId::from_hex(&entry).unwrap();
    for (number, claim) in [
        (1, ClaimEdit::Set(Register::TITLE, "Theirs".into())),
        (2, ClaimEdit::Add(TextSet::TAGS, "auth".into())),
    ] {
        let stranger = Stranger::new(number);
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        desk.0
            .engine
            .submit_blocking(Command::Ingest(vec![DeliveredRecord { record, from }]))
            .unwrap();
    }
    for (what, title, tags) in [("tags", "Ours", &["auth"]), ("title", "Theirs", &["auth"])] {
        let accepted = desk.done(&["inbox", "accept", &entry, "--field", what])["accepted"].clone();
        assert_eq!(accepted.as_array().map(Vec::len), Some(1), "{accepted}");
        assert_eq!(accepted[0]["register"], what);
        let shown = desk.done(&["show", &entry]);
        assert_eq!((&shown["title"], &shown["tags"]), (&json!(title), &json!(tags)), "{what}");
    }
    let left = run(desk.home(), &["inbox", "accept", &entry, "--field", "content"]);
    assert_eq!(left.status.code(), Some(1), "{}", told(&left));
    assert!(told(&left).contains("has no such proposal"), "{}", told(&left));
}

#[test]
fn a_task_shows_its_cost_and_approach() {
    let desk = Desk::new();
    let (task, other) = (desk.begin(), desk.begin());
    let words = ["task", "finish", &task, "--success", "--cost", "2.5", "--rounds", "3"];
    desk.done(&[&words[..], &["--strategy", "bisect first"]].concat());
    desk.done(&["task", "finish", &other, "--failure"]);
    let of = |told: &Value| ["cost", "rounds", "strategy"].map(|name| told[name].clone());
    let listed = desk.done(&["task", "list"])["tasks"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2);
    let said = [json!(2.5), json!(3), json!("bisect first")];
    for (task, said) in [(&task, said), (&other, [json!(null), json!(null), json!(null)])] {
        assert_eq!(of(&desk.done(&["task", "show", task])), said);
        let row = listed.iter().find(|row| row["task"] == task.as_str()).expect("listed");
        assert_eq!(of(row), said);
    }
}

#[test]
fn a_spike_that_saved_an_experiment_is_reported_as_avoided() {
    let desk = Desk::new();
    let spike = desk.add("About zqspike", &["--type", "spike", "--outcome", "rejected"]);
    let task = desk.begin();
    let found = desk.done(&["search", "zqspike", "--all", "--task", &task]);
    assert_eq!(found["hits"][0]["id"], spike.as_str(), "{found}");
    let finished = desk.done(&["task", "finish", &task, "--success", "--avoided", &spike]);
    let credit = &finished["credits"][0];
    assert_eq!([&credit["id"], &credit["named"]], [&json!(spike), &json!(true)], "{finished}");
    assert_eq!(finished["avoided"], json!([spike]));
    let entry = desk.done(&["task", "show", &task])["entries"][0].clone();
    assert_eq!([&entry["id"], &entry["said"]], [&json!(spike), &json!("avoided")]);
}

#[test]
fn findings_read_for_another_task_are_recorded_there() {
    let desk = Desk::new();
    let (task, reader) = (desk.begin(), desk.begin());
    let words = ["task", "finding", &task, "--text", SQL[0], "--severity", "high"];
    let rest = ["--confidence", "0.8", "--anchor", "path:src/report.py", "--verify", "look at it"];
    desk.done(&[&words[..], &rest].concat());
    let handed = || {
        let snapshot = desk.0.engine.store().snapshot().unwrap();
        snapshot.task(TaskId::from_hex(&reader).unwrap()).unwrap().expect("it goes on").handed
    };
    let read = |more: &[&str]| {
        let read = desk.done(&[&["task", "findings", &task], more].concat());
        assert_eq!(read["findings"][0]["text"], SQL[0], "{read}");
    };
    read(&[]);
    assert!(handed().is_empty(), "no reading task was named");
    read(&["--reader", &reader]);
    assert_eq!(handed(), [TaskId::from_hex(&task).unwrap()]);
    desk.done(&["task", "finish", &reader, "--success"]);
    let over = run(desk.home(), &["task", "findings", &task, "--reader", &reader]);
    assert_eq!(over.status.code(), Some(2), "{}", told(&over));
    assert!(told(&over).contains("it is finished"), "{}", told(&over));
}

/// Titles that a preview lists for a peer.
fn sent(preview: &Value) -> BTreeSet<String> {
    // The preview lists entries by progress; both parts count here.
    let parts = ["released", "would_be"].map(|part| preview[part].as_array().cloned().unwrap());
    parts.iter().flatten().map(|one| text(&one["title"])).collect()
}

/// A home with another machine of the same person, an entry with a tag, one in a thread, and one
/// with neither.
fn known(home: &Path) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(u64::try_from(since.as_millis()).unwrap());
    let mut node = Node::start_on(Disk::new(), 1, 1, now).unwrap();
    let row = PeerRow { is_mine: true, ..paired("laptop") };
    node.meet(SecretKey::from_bytes(&[2; 32]).author(), row);
    let tag = ClaimEdit::Add(TextSet::TAGS, "go/errors".into());
    node.create_new(NewEntry { claims: vec![tag], ..lesson("tagged") });
    let thread = (Register::THREAD, "drafts".to_owned());
    node.create_new(NewEntry { registers: vec![thread], ..lesson("threaded") });
    node.create("plain");
    settle(home, node, 1);
}

#[test]
fn tag_and_thread_filters_are_shown_and_applied() {
    conforms("S004-124");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    known(&home);
    let (_node, _) = start(&home);
    let filter = |words: &[&str]| done(&home, &[&["peer", "filter", "laptop"], words].concat());
    let before = filter(&[]);
    let everything = BTreeSet::from(["plain", "tagged", "threaded"].map(str::to_owned));
    let all_sent = || sent(&done(&home, &["peer", "preview", "laptop"]));
    assert_eq!(all_sent(), everything);
    let (out, back): (&[&str], &[&str]) = (&[], &["--from-peer"]);
    for (flag, word, field, kept) in [
        ("--allow-tag", "go", "tags_allow", &["tagged"][..]),
        ("--exclude-thread", "drafts", "threads_exclude", &["plain", "tagged"]),
    ] {
        let kept: BTreeSet<String> = kept.iter().map(|title| (*title).to_owned()).collect();
        assert_eq!(sent(&filter(&[flag, word])), kept, "{flag}");
        assert_eq!(all_sent(), kept, "{flag}");
        for (way, from) in [("egress", out), ("ingress", back)] {
            let set = |word: &str| filter(&[from, &[flag, word]].concat());
            set(word);
            let mut after = before.clone();
            after[way][field] = json!([word]);
            assert_eq!(filter(&[]), after, "{flag} {way}");
            // An empty value clears the filter.
            set("");
            assert_eq!(filter(&[]), before, "{flag} {way}");
        }
        assert_eq!(all_sent(), everything, "{flag}");
    }
}

#[test]
fn a_checkout_is_mapped_and_unmapped_by_its_path() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", None, 1);
    ground.repository("other", None, 1);
    let type_in = |name: &str, words: &[&str]| git_repos::done(&node, &ground.path(name), words);
    let goes_to = |name: &str| {
        let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
        let added = type_in(name, &[&words[..], &["--evidence", "doc:notes"]].concat());
        text(&added["workspace"])
    };
    type_in(".", &["workspace", "new", "team"]);
    let shop = ground.path("shop");
    for (verb, expected, mapped) in [("map", "team", 1), ("unmap", "main", 0)] {
        type_in(".", &["workspace", verb, "team", "--checkout", shop.to_str().unwrap()]);
        let shown = type_in(".", &["workspace", "show", "team"]);
        assert_eq!(shown["checkouts"].as_array().map_or(0, Vec::len), mapped, "{verb}: {shown}");
        assert_eq!((goes_to("shop").as_str(), goes_to("other").as_str()), (expected, "main"));
    }
}
