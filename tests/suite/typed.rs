//! Flags, as they are typed: what each is for is read back through another verb, or seen in what
//! follows from it. Most are typed at a node within this process.

use crate::findings::SQL;
use crate::ground::{self, Ground};
use crate::homes::settle;
use crate::peer::Peer;
use crate::program::{done, json as answered, run, start, text, told};
use klnode::api::Limits;
use klnode::engine::{Arrival, Command, NewEntry};
use klnode::store::peers::rows::PeerRow;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::lww::Register;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_tests::disk::Disk;
use klnode_tests::node::{Node, created, lesson};
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::{Stranger, paired};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A node in this process, and its home to type at.
struct Desk(Served);

impl Desk {
    fn new() -> Self {
        Self(Served::start(Limits::default(), Doors::Socket))
    }

    fn home(&self) -> &Path {
        self.0.socket.parent().unwrap()
    }

    /// What a verb answers that must succeed.
    #[track_caller]
    fn done(&self, words: &[&str]) -> Value {
        done(self.home(), words)
    }

    /// The id of a new entry.
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
fn the_class_by_which_an_entry_fades_is_typed_and_shown() {
    let desk = Desk::new();
    for class in ["ephemeral", "stable", "permanent"] {
        let entry = desk.add(class, &["--decay", class]);
        let shown = desk.done(&["show", &entry]);
        assert_eq!(shown["registers"]["decay_class"], class, "{shown}");
    }
    // A file may name it as the flag does.
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
fn what_is_stale_is_found_where_it_is_asked_for() {
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
fn whoever_has_it_from_elsewhere_confirms_it_as_primed() {
    let desk = Desk::new();
    let task = desk.begin();
    // Nobody has read either: what the flag says is all that makes the difference.
    for (more, class, primed, is_evidence) in
        [(&["--primed"][..], "primed", json!(1), false), (&[], "independent", json!(null), true)]
    {
        let entry = desk.add(&format!("About zq{class}"), &[]);
        let words = ["confirm", &entry, "--task", &task];
        let confirmed = desk.done(&[&words[..], more].concat());
        assert_eq!(confirmed["class"], class, "{confirmed}");
        let shown = desk.done(&["show", &entry]);
        assert_eq!(shown["primed_confirmations"], primed, "{shown}");
        assert_eq!(shown["observations"].as_f64().unwrap() > 0.0, is_evidence, "{shown}");
    }
}

#[test]
fn one_field_of_what_is_proposed_is_accepted_alone() {
    let desk = Desk::new();
    let entry = desk.add("Ours", &[]);
    let id = EntryId::from_hex(&entry).unwrap();
    for (number, claim) in [
        (1, Claim::Set(Register::TITLE, "Theirs".into())),
        (2, Claim::Add(TextSet::TAGS, "auth".into())),
    ] {
        let stranger = Stranger::new(number);
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        desk.0.engine.submit_blocking(Command::Ingest(vec![Arrival { record, from }])).unwrap();
    }
    for (what, title, tags) in [("tags", "Ours", &["auth"]), ("title", "Theirs", &["auth"])] {
        let accepted = desk.done(&["accept", &entry, "--what", what])["accepted"].clone();
        assert_eq!(accepted.as_array().map(Vec::len), Some(1), "{accepted}");
        assert_eq!(accepted[0]["register"], what);
        let shown = desk.done(&["show", &entry]);
        assert_eq!((&shown["title"], &shown["tags"]), (&json!(title), &json!(tags)), "{what}");
    }
    let left = run(desk.home(), &["accept", &entry, "--what", "content"]);
    assert_eq!(left.status.code(), Some(1), "{}", told(&left));
    assert!(told(&left).contains("nothing like that is proposed"), "{}", told(&left));
}

#[test]
fn what_a_task_cost_and_how_it_was_gone_about_is_told_with_it() {
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
fn a_spike_that_made_an_experiment_needless_is_said_to_have_been_avoided() {
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
fn findings_that_are_read_for_another_task_are_noted_there() {
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
    assert!(handed().is_empty(), "nobody said who reads");
    read(&["--reader", &reader]);
    assert_eq!(handed(), [TaskId::from_hex(&task).unwrap()]);
    desk.done(&["task", "finish", &reader, "--success"]);
    let over = run(desk.home(), &["task", "findings", &task, "--reader", &reader]);
    assert_eq!(over.status.code(), Some(2), "{}", told(&over));
    assert!(told(&over).contains("it is finished"), "{}", told(&over));
}

/// What goes to a peer by a preview, by its title.
fn sent(preview: &Value) -> BTreeSet<String> {
    // How far the node is with it is its own affair.
    let parts = ["released", "would_be"].map(|part| preview[part].as_array().cloned().unwrap());
    parts.iter().flatten().map(|one| text(&one["title"])).collect()
}

/// A home that knows another machine of its person, with an entry under a tag, one in a thread, and one
/// that is in neither.
fn known(home: &Path) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(u64::try_from(since.as_millis()).unwrap());
    let mut node = Node::start_on(Disk::new(), 1, 1, now).unwrap();
    let row = PeerRow { is_mine: true, ..paired("laptop") };
    node.meet(SecretKey::from_bytes(&[2; 32]).author(), row);
    let tag = Claim::Add(TextSet::TAGS, "go/errors".into());
    node.create_new(NewEntry { claims: vec![tag], ..lesson("tagged") });
    let thread = (Register::THREAD, "drafts".to_owned());
    node.create_new(NewEntry { registers: vec![thread], ..lesson("threaded") });
    node.create("plain");
    settle(home, node, 1);
}

#[test]
fn filters_by_tag_and_by_thread_are_shown_as_they_were_set_and_hold() {
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
            // An empty word clears it.
            set("");
            assert_eq!(filter(&[]), before, "{flag} {way}");
        }
        assert_eq!(all_sent(), everything, "{flag}");
    }
}

#[test]
fn a_checkout_is_mapped_and_unmapped_from_anywhere_by_its_path() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", None, 1);
    ground.repository("other", None, 1);
    let type_in = |name: &str, words: &[&str]| ground::done(&node, &ground.path(name), words);
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
