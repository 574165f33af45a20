//! What becomes of entries: promoted, superseded, accepted, edited, put away with their thread, and
//! verified by the task that made them.

use crate::ground::{Ground, done, refused, type_in};
use crate::peer::Peer;
use crate::person_key::{header, write_key};
use crate::program::{printed, text};
use klnode::api::{Limits, person};
use klnode::engine::{Arrival, Command};
use klnode::query::Reference;
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::EntryId;
use klnode_crdt::key::SecretKey;
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::writer::Claim;
use klnode_scoring::status::Status;
use klnode_tests::node::Node;
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::{Stranger, Team, bring};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A node, and a folder to type in that is no checkout.
struct Place {
    node: Peer,
    ground: Ground,
}

impl Place {
    fn new() -> Self {
        Self { node: Peer::start(), ground: Ground::new() }
    }

    fn here(&self) -> PathBuf {
        self.ground.path(".")
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> Value {
        done(&self.node, &self.here(), words)
    }

    #[track_caller]
    fn refused(&self, words: &[&str], code: i32, part: &str) {
        refused(&self.node, &self.here(), words, code, part);
    }

    #[track_caller]
    fn add(&self, title: &str, more: &[&str]) -> String {
        let words =
            ["add", "--title", title, "--content", "What was learned.", "--evidence", "pr:7"];
        text(&self.done(&[&words[..], more].concat())["id"])
    }

    #[track_caller]
    fn show(&self, entry: &str) -> Value {
        self.done(&["show", entry])
    }

    fn begin(&self) -> String {
        text(&self.done(&["task", "begin", "--agent", "a", "--goal", "g"])["task"])
    }
}

/// The ids that an entry leads to in a relation.
fn linked(shown: &Value, relation: &str) -> Vec<String> {
    let links = shown["links"].as_array().cloned().unwrap_or_default();
    let links = links.into_iter().filter(|link| link["relation"] == relation);
    links.map(|link| text(&link["id"])).collect()
}

#[test]
fn promoting_makes_a_new_entry_out_of_the_thread_that_leads_to_the_old_one() {
    let place = Place::new();
    let more = ["--thread", "fix-login", "--tag", "auth", "--verify", "run the tests"];
    let anchors = ["--anchor", "path:src/auth.rs", "--polarity", "negative"];
    let old = place.add("Check the token twice", &[&more[..], &anchors].concat());
    place.done(&["observe", &old, "--success"]);
    let promoted = place.done(&["promote", &old]);
    assert_eq!((&promoted["source"], &promoted["workspace"]), (&json!(old), &json!("main")));
    let new = place.show(&text(&promoted["id"]));
    assert_eq!(new["title"], "Check the token twice");
    assert_eq!(new["registers"], json!({"polarity": "negative"}), "out of the thread");
    assert_eq!(new["tags"], json!(["auth"]));
    let sets = json!({"anchors": ["path:src/auth.rs"], "verify_steps": ["run the tests"]});
    assert_eq!(new["sets"], sets);
    assert_eq!(new["citations"][0]["evidence_ref"], "7");
    assert_eq!(linked(&new, "derived_from"), [old.as_str()]);
    assert_eq!(new["promotion"]["source"], old);
    assert_eq!(new["observations"], 0.0, "what was observed stays with the old one");
    assert_eq!(place.show(&old)["registers"]["thread"], "fix-login");
    // Again there is nothing to do; to another workspace there is.
    let id = text(&promoted["id"]);
    place.refused(&["promote", &id], 2, "it is in `main` already, and in no thread");
    let there = place.done(&["promote", &id, "--to", "local"]);
    assert_eq!(place.show(&text(&there["id"]))["workspace"], "local");
    place.refused(&["promote", &id, "--to", "nowhere"], 1, "find workspace `nowhere`");
}

#[test]
fn promoting_the_same_again_names_the_copy_that_is_there() {
    let place = Place::new();
    let old = place.add("Check the token twice", &[]);
    let promote = || place.done(&["promote", &old, "--to", "local"]);
    let (first, second) = (promote(), promote());
    assert_eq!(first["id"], second["id"]);
    assert_eq!((&first["known"], &second["known"]), (&Value::Null, &json!(true)));
    // What says something else is not the same, nor is what was put away still there.
    place.done(&["edit", &old, "--title", "Check the token once"]);
    let third = promote();
    assert_ne!(third["id"], first["id"]);
    place.done(&["archive", &text(&third["id"])]);
    assert_ne!(promote()["id"], third["id"]);
}

#[test]
fn promoting_the_same_with_more_evidence_adds_that_to_the_copy() {
    let place = Place::new();
    let old = place.add("Check the token twice", &[]);
    let copy = text(&place.done(&["promote", &old, "--to", "local"])["id"]);
    let more = ["promote", &old, "--to", "local", "--evidence", "commit:1a2b3c"];
    for _ in 0..2 {
        let again = place.done(&more);
        assert_eq!((&again["id"], &again["known"]), (&json!(copy), &json!(true)));
        let citations = place.show(&copy)["citations"].as_array().cloned().unwrap();
        let mut cited: Vec<String> =
            citations.iter().map(|citation| text(&citation["evidence_ref"])).collect();
        cited.sort();
        assert_eq!(cited, ["1a2b3c", "7"], "each once");
    }
    let said = printed(&type_in(&place.node, &place.here(), &more));
    assert!(said.contains("  is there already, made of "), "{said}");
    assert!(said.ends_with(", and cites commit:1a2b3c\n"), "{said}");
}

#[test]
fn what_was_taken_back_is_listed_to_who_asks_for_it_and_what_is_hidden_alone() {
    let place = Place::new();
    let [gone, muted, plain] = ["Gone", "Muted", "Plain"].map(|title| place.add(title, &[]));
    place.done(&["retract", &gone]);
    place.done(&["mute", &muted]);
    let listed = |more: &[&str]| {
        let list = place.done(&[&["list"], more].concat());
        let entries = list["entries"].as_array().cloned().unwrap();
        entries.iter().map(|entry| text(&entry["id"])).collect::<BTreeSet<String>>()
    };
    assert_eq!(listed(&[]), BTreeSet::from([muted.clone(), plain.clone()]));
    assert_eq!(listed(&["--status", "retracted"]), BTreeSet::from([gone]));
    assert_eq!(listed(&["--hidden"]), BTreeSet::from([muted.clone()]));
    // Where nothing else is left, that is said, and not that nothing was ever written.
    for entry in [&muted, &plain] {
        place.done(&["retract", entry]);
    }
    assert_eq!(place.done(&["status"])["entries"], 3);
    let said = printed(&type_in(&place.node, &place.here(), &["list"]));
    let expected = "Nothing but what was taken back: `klnode list --status retracted` lists it.\n";
    assert_eq!(said, expected);
}

#[test]
fn nothing_flows_back_from_episodic_but_by_promoting_with_evidence() {
    let place = Place::new();
    let words = ["add", "--type", "friction", "--title", "CI is slow", "--content", "20 minutes."];
    let raw = text(&place.done(&words)["id"]);
    let as_lesson = ["add", "--title", "t", "--content", "c", "--evidence", "pr:1"];
    let as_raw = [&as_lesson[..], &["--memory", "episodic"]].concat();
    place.refused(&as_raw, 2, "memory is episodic, but lesson entries are semantic");
    place.refused(&["promote", &raw], 2, "citations are missing; it needs evidence");
    place.refused(&["promote", &raw, "--memory", "episodic"], 2, "one of semantic, procedural");
    let promoted = place.done(&["promote", &raw, "--evidence", "run:ci-12"]);
    assert_eq!(promoted["memory"], "semantic");
    let new = place.show(&text(&promoted["id"]));
    assert_eq!((&new["type"], &new["memory"]), (&json!("lesson"), &json!("semantic")));
    assert_eq!(linked(&new, "derived_from"), [raw.as_str()]);
    assert_eq!(place.show(&raw)["memory"], "episodic");
}

#[test]
fn to_procedural_the_person_signs_for_this_entry_and_this_place() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Sign releases", "content": "Always.", "evidence": ["doc:policy"]});
    let entry = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let open = format!("/v1/entries/{entry}/promote");
    let ask = json!({"memory": "procedural", "to": "local"});
    let without = served.json("POST", &open, &ask);
    assert_eq!(without.status, 200, "there is no key yet: {}", without.text());
    write_key(served.socket.parent().unwrap());
    let refused = served.json("POST", &open, &ask);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(served.json("POST", &open, &json!({"to": "local"})).status, 200, "semantic");
    let guarded = format!("{open}/procedural");
    let body = ask.to_string();
    let signed = header("POST", &guarded, body.as_bytes());
    let headers = [("Content-Type", "application/json"), (person::HEADER, signed.as_str())];
    // Bound to its source and its target: the signature holds for neither another.
    let other = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let elsewhere = format!("/v1/entries/{other}/promote/procedural");
    assert_eq!(served.ask("POST", &elsewhere, &headers, body.as_bytes()).status, 403);
    let main = json!({"memory": "procedural", "to": "main"}).to_string();
    assert_eq!(served.ask("POST", &guarded, &headers, main.as_bytes()).status, 403);
    let promoted = served.ask("POST", &guarded, &headers, body.as_bytes());
    assert_eq!(promoted.status, 200, "{}", promoted.text());
    let promoted = promoted.json();
    let by = SecretKey::from_bytes(&[7; 32]).author().to_string();
    assert_eq!(promoted["approved_by"], by);
    let path = format!("/v1/entries/{}", text(&promoted["id"]));
    let shown = served.json("GET", &path, &json!(null)).json();
    assert_eq!(
        shown["promotion"],
        json!({
            "source": entry, "at": shown["promotion"]["at"], "approved_by": by,
        })
    );
}

#[test]
fn a_norm_is_not_promoted_beside_one_that_says_the_opposite() {
    let place = Place::new();
    let norm = |title: &str, polarity: &str, workspace: &str| {
        let tags = ["--type", "norm", "--tag", "retry", "--tag", "billing"];
        let more = ["--polarity", polarity, "--workspace", workspace];
        place.add(title, &[&tags[..], &more].concat())
    };
    let theirs = norm("retry the billing gateway with backoff: never", "negative", "local");
    let ours = norm("retry the billing gateway with backoff: always", "positive", "main");
    let code = text(&place.show(&theirs)["code"]);
    let said = format!("{code} there says the opposite");
    place.refused(&["promote", &ours, "--to", "local"], 4, &said);
    // Nor is it written there anew.
    let words = ["add", "--title", "retry the billing gateway with backoff: always", "--content"];
    let rest = ["What was learned.", "--evidence", "pr:7", "--type", "norm", "--tag", "retry"];
    let there = ["--tag", "billing", "--polarity", "positive", "--workspace", "local"];
    place.refused(&[&words[..], &rest, &there].concat(), 4, &said);
    place.done(&["archive", &theirs]);
    assert_eq!(place.done(&["promote", &ours, "--to", "local"])["workspace"], "local");
}

#[test]
fn what_is_superseded_says_so_and_comes_after_its_successor() {
    let place = Place::new();
    let (old, new) = (place.add("Flush the queue", &[]), place.add("Flush the queue", &[]));
    for _ in 0..5 {
        place.done(&["observe", &old, "--success"]);
    }
    let hits = || {
        let words = ["search", "flush the queue", "--deterministic", "--all"];
        let answer = place.done(&words);
        let hits = answer["hits"].as_array().cloned().unwrap();
        hits.iter().map(|hit| (text(&hit["id"]), hit["caveats"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(hits()[0].0, old, "more speaks for it");
    place.done(&["supersede", &old, "--by", &new]);
    let code = text(&place.show(&new)["code"]);
    let caveat = json!([format!("superseded by {code}")]);
    assert_eq!(hits(), [(new.clone(), json!([])), (old.clone(), caveat)]);
    assert_eq!(linked(&place.show(&old), "superseded_by"), [new.as_str()]);
    assert_eq!(linked(&place.show(&new), "supersedes"), [old.as_str()]);
    let third = place.add("Something else altogether", &[]);
    place.done(&["supersede", &new, "--by", &third]);
    let [old_code, third_code] = [&old, &third].map(|id| text(&place.show(id)["code"]));
    let circle = format!("{old_code} is superseded by {third_code} already");
    place.refused(&["supersede", &third, "--by", &old], 2, &circle);
    let itself = format!("supersede entry {old_code} by itself");
    place.refused(&["supersede", &old, "--by", &old], 2, &itself);
    let unsaid = format!("has not said that {old_code} takes the place of {third_code}");
    place.refused(&["supersede", &third, "--by", &old, "--undo"], 1, &unsaid);
    let nothing = format!("accept anything for entry {old_code}: nothing");
    place.refused(&["accept", &old], 1, &nothing);
    let kept = format!("tell how far entry {old_code} is erased: it was not forgotten");
    place.refused(&["forget", &old, "--status"], 2, &kept);
    place.done(&["supersede", &old, "--by", &new, "--undo"]);
    assert_eq!(linked(&place.show(&old), "superseded_by"), Vec::<String>::new());
    // What is put away takes nobody's place.
    place.done(&["archive", &third]);
    assert_eq!(linked(&place.show(&new), "superseded_by"), Vec::<String>::new());
}

#[test]
fn a_strangers_entry_takes_no_place_of_ours() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let (ours, other) = (node.create("ours"), node.create("another"));
    let theirs = peer.create("theirs");
    peer.claim(theirs, supersedes(ours));
    peer.send_to(&mut node);
    let stranger = Stranger::new(1);
    bring(&mut node, vec![stranger.claims(other, supersedes(ours))], stranger.author());
    let successors = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        let reader = node.reader();
        let reading = reader.at(&snapshot, node.now).unwrap();
        let found = reading.read(ours).unwrap().unwrap();
        let successors = reading.successors(&found).unwrap().into_iter();
        successors.map(|found| found.entry).collect::<Vec<_>>()
    };
    assert_eq!(successors(&node), []);
    node.claim(other, supersedes(ours));
    assert_eq!(successors(&node), [other]);
}

fn supersedes(to: EntryId) -> Claim {
    Claim::Link(Link { relation: Relation::SUPERSEDES, to })
}

/// What is noted to take an entry's place, whoever says so.
fn hints(node: &Node, old: EntryId) -> Vec<EntryId> {
    node.engine.store().snapshot().unwrap().successors(old, usize::MAX).unwrap()
}

#[test]
fn hints_of_successors_are_bounded_for_each_author_and_for_all_who_may_not_say_so() {
    let mut team = Team::gather();
    let ours = team.node.create_in(team.shared.id, "ours");
    team.exchange();
    for number in 0..20 {
        let theirs = team.carol.create(&format!("theirs {number}"));
        team.carol.claim(theirs, supersedes(ours));
    }
    team.exchange();
    assert_eq!(hints(&team.node, ours).len(), 16, "one author leaves no more");
    let of_nobody = |number: u32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        EntryId::from_bytes(bytes)
    };
    let records = (0..300).map(|number| {
        let stranger = Stranger::new(number);
        stranger.claims(of_nobody(number), supersedes(ours))
    });
    bring(&mut team.node, records.collect(), team.carol.author());
    assert_eq!(hints(&team.node, ours).len(), 256, "a crowd leaves no more");
    // Whoever may say so is heard all the same, however many of her entries others speak for.
    let taken: Vec<EntryId> = (0..16)
        .map(|number| team.alice.create_in(team.shared.id, &format!("taken {number}")))
        .collect();
    team.exchange();
    let records = (0..)
        .zip(&taken)
        .map(|(number, entry)| Stranger::new(1_000 + number).claims(*entry, supersedes(ours)));
    bring(&mut team.node, records.collect(), team.carol.author());
    let hers = team.alice.create_in(team.shared.id, "hers");
    team.alice.claim(hers, supersedes(ours));
    team.exchange();
    let own = team.node.create_in(team.shared.id, "another");
    team.node.claim(own, supersedes(ours));
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let reader = team.node.reader();
    let reading = reader.at(&snapshot, team.node.now).unwrap();
    let found = reading.read(ours).unwrap().unwrap();
    let successors = reading.successors(&found).unwrap().into_iter().map(|found| found.entry);
    let mut expected = [hers, own];
    expected.sort();
    assert_eq!(successors.collect::<Vec<_>>(), expected);
}

#[test]
fn a_hint_goes_with_the_last_record_that_gives_it_and_with_what_is_forgotten() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let olds: Vec<EntryId> = (0..8).map(|number| node.create(&format!("old {number}"))).collect();
    let theirs = peer.create("theirs");
    for old in &olds {
        // One record, written again and again: nothing but its last word is left.
        peer.claim(theirs, supersedes(*old));
        peer.send_to(&mut node);
        assert_eq!(hints(&node, *old), [theirs]);
        peer.claim(theirs, Claim::Unlink(Link { relation: Relation::SUPERSEDES, to: *old }));
        peer.send_to(&mut node);
        assert_eq!(hints(&node, *old), []);
    }
    // Two say so: one of them takes it back.
    let stranger = Stranger::new(1);
    peer.claim(theirs, supersedes(olds[0]));
    peer.send_to(&mut node);
    bring(&mut node, vec![stranger.claims(theirs, supersedes(olds[0]))], stranger.author());
    peer.run(Command::Retract { entry: theirs }).unwrap();
    peer.send_to(&mut node);
    assert_eq!(hints(&node, olds[0]), [theirs], "somebody else still says so");
    // What is forgotten takes nobody's place, and nothing takes its own.
    let (first, second) = (node.create("first"), node.create("second"));
    node.claim(first, supersedes(olds[1]));
    node.claim(second, supersedes(first));
    assert_eq!((hints(&node, olds[1]), hints(&node, first)), (vec![first], vec![second]));
    node.run(Command::Forget { entry: first }).unwrap();
    assert_eq!((hints(&node, olds[1]), hints(&node, first)), (vec![], vec![]));
}

#[test]
fn a_proposal_is_accepted_as_this_nodes_own_word() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Ours", "content": "Said here.", "evidence": ["doc:d"]});
    let entry = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let id = EntryId::from_hex(&entry).unwrap();
    let [one, two] = [1, 2].map(Stranger::new);
    let bring = |stranger: &Stranger, claim: Claim| {
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        served.engine.submit_blocking(Command::Ingest(vec![Arrival { record, from }])).unwrap();
    };
    bring(&one, Claim::Set(Register::TITLE, "Theirs".into()));
    bring(&two, Claim::Add(TextSet::TAGS, "auth".into()));
    let path = format!("/v1/entries/{entry}");
    let shown = || served.json("GET", &path, &json!(null)).json();
    let proposed: Vec<_> = shown()["proposed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["register"]), text(&one["text"])))
        .collect();
    let expected = [("title", "Theirs"), ("tags", "auth")];
    assert_eq!(proposed, expected.map(|(field, text)| (field.to_owned(), text.to_owned())));
    assert_eq!((&shown()["title"], &shown()["tags"]), (&json!("Ours"), &json!([])));
    let accept = |ask: Value| served.json("POST", &format!("{path}/accept"), &ask);
    assert_eq!(accept(json!({})).status, 409, "two propose something");
    assert_eq!(accept(json!({"what": "content"})).status, 404);
    let key = two.author().to_string();
    let accepted = accept(json!({"author": key}));
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    assert_eq!((&shown()["title"], &shown()["tags"]), (&json!("Ours"), &json!(["auth"])));
    assert_eq!(accept(json!({"what": "title"})).status, 200);
    let shown = shown();
    assert_eq!((&shown["title"], &shown["foreign"]), (&json!("Theirs"), &json!(false)));
    assert_eq!(shown["author_name"], "you", "whoever accepts answers for it");
    assert_eq!(accept(json!({})).status, 404, "nothing is left");
}

#[test]
fn edits_add_and_withdraw_anchors_steps_and_predicates() {
    let place = Place::new();
    let entry = place.add("Flush the queue", &["--anchor", "path:a.rs"]);
    let added = ["--anchor", "path:b.rs", "--verify", "run it", "--depends-on", "path:c.rs"];
    place.done(&[&["edit", &entry], &added[..], &["--evidence", "doc:more"]].concat());
    let shown = place.show(&entry);
    assert_eq!(shown["sets"]["anchors"], json!(["path:a.rs", "path:b.rs"]));
    assert_eq!(shown["sets"]["verify_steps"], json!(["run it"]));
    assert_eq!(shown["sets"]["depends_on"], json!(["path:c.rs"]));
    assert_eq!(shown["citations"].as_array().unwrap().len(), 2);
    let removed = ["--remove-anchor", "path:a.rs", "--remove-verify", "run it"];
    let more = ["--remove-depends-on", "path:c.rs"];
    place.done(&[&["edit", &entry], &removed[..], &more].concat());
    assert_eq!(place.show(&entry)["sets"], json!({"anchors": ["path:b.rs"]}));
    place.refused(&["edit", &entry, "--anchor", "path:/etc"], 2, "read the predicate at byte 5");
}

#[test]
fn a_thread_is_archived_whole_and_comes_back_whole() {
    let place = Place::new();
    let in_thread = |workspace: &str| {
        place.add("Flush the queue", &["--thread", "fix", "--workspace", workspace])
    };
    let (one, two) = (in_thread("main"), in_thread("local"));
    let other = place.add("Flush the queue", &["--thread", "else"]);
    let archive = ["archive", "--thread", "fix"];
    let local = [&archive[..], &["--workspace", "local"]].concat();
    assert_eq!(place.done(&local)["entries"], 1);
    let statuses = || [&one, &two, &other].map(|entry| text(&place.show(entry)["status"]));
    assert_eq!(statuses(), ["candidate", "archived", "candidate"]);
    assert_eq!(place.done(&archive)["entries"], 1, "the other is archived already");
    assert_eq!(statuses(), ["archived", "archived", "candidate"]);
    assert_eq!(place.done(&["unarchive", "--thread", "fix"])["entries"], 2);
    assert_eq!(statuses(), ["candidate", "candidate", "candidate"]);
    place.refused(&["archive", "--thread", "nothing", "--workspace", "nowhere"], 1, "nowhere");
    place.refused(&["archive"], 2, "--thread");
}

#[test]
fn what_is_taken_out_of_the_archive_is_not_stale_at_once() {
    let mut node = Node::start(1, 1);
    let archive = |node: &mut Node, entry, presence| node.claim(entry, Claim::Archive(presence));
    let status = |node: &Node, entry| node.found(entry).judged.standing.status;
    let unneeded = node.create("Flush the queue");
    archive(&mut node, unneeded, Presence::Present);
    node.wait_days(120);
    archive(&mut node, unneeded, Presence::Withdrawn);
    assert_eq!(status(&node, unneeded), Status::Candidate);
    node.wait_days(89);
    assert_eq!(status(&node, unneeded), Status::Candidate);
    node.wait_days(1);
    assert_eq!(status(&node, unneeded), Status::Stale, "its days began when it came back");
}

#[test]
fn what_a_task_produced_is_verified_when_the_task_succeeds() {
    let place = Place::new();
    let (good, bad) = (place.begin(), place.begin());
    let made = place.add("Flush the queue", &["--task", &good]);
    let failed = place.add("Drop the queue", &["--task", &bad]);
    assert_eq!(place.show(&made)["status"], "candidate");
    let confirmed = place.done(&["confirm", &made, "--task", &good]);
    assert_eq!(confirmed["class"], "primed", "whoever wrote it confirms nothing");
    assert_eq!(confirmed["reason"], format!("it was written in task {good}"));
    place.done(&["task", "finish", &good, "--success"]);
    place.done(&["task", "finish", &bad, "--failure"]);
    let shown = place.show(&made);
    let said = (&json!("verified"), &json!("the task it comes from succeeded"));
    assert_eq!((&shown["status"], &shown["status_reason"]), said);
    assert_eq!(place.show(&failed)["status"], "candidate");
    // Whoever was shown it confirms nothing in a task of their own, either.
    let third = place.begin();
    assert_eq!(place.done(&["confirm", &made, "--task", &third])["class"], "primed");
    let unread = place.add("Bound the queue", &[]);
    assert_eq!(place.done(&["confirm", &unread, "--task", &third])["class"], "independent");
}

#[test]
fn a_beginning_that_several_entries_share_is_answered_with_their_codes() {
    let mut node = Node::start(1, 1);
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    // Two digits make 1,024 beginnings.
    let shared = (0..=1_024).find_map(|number: u32| {
        let code = Kind::Lesson.code(node.create(&number.to_string()));
        let beginning = code[..4].to_owned();
        let other = seen.insert(beginning.clone(), code.clone())?;
        Some((beginning, [other, code]))
    });
    let (beginning, codes) = shared.expect("there are more entries than beginnings");
    let snapshot = node.engine.store().snapshot().unwrap();
    let reference: Reference = beginning.parse().unwrap();
    let told = reference.resolve(&snapshot).unwrap_err().to_string();
    assert!(codes.iter().all(|code| told.contains(code)), "{codes:?}: {told}");
}
