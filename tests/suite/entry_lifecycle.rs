//! Lifecycle of entries: promoted, superseded, accepted, edited, archived with their thread, and
//! verified by the task that produced them.

use crate::support::conformance::conforms;
use crate::support::git_repos::{Ground, done, refused, type_in};
use crate::support::node_process::{printed, text};
use crate::support::peer_processes::Peer;
use crate::support::person_key::{header, write_key};
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, DeliveredRecord};
use klnode_query::{HitCaveat, resolve_entry};
use klnode_scoring::status::Status;
use klnode_server::{Limits, person_auth};
use klnode_tests::test_engine::Node;
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::{Stranger, Team, bring};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A node, and a working folder that is not a checkout.
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
        let words = ["add", "--title", title, "--content", "A short lesson.", "--evidence", "pr:7"];
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

/// Ids that an entry links to in a relation.
fn linked(shown: &Value, relation: &str) -> Vec<String> {
    let links = shown["links"].as_array().cloned().unwrap_or_default();
    let links = links.into_iter().filter(|link| link["relation"] == relation);
    links.map(|link| text(&link["id"])).collect()
}

#[test]
fn promoting_creates_a_new_entry_linked_to_the_old_one() {
    let place = Place::new();
    let more = ["--thread", "fix-login", "--tag", "auth", "--verify", "run the tests"];
    let anchors = ["--anchor", "path:src/auth.rs", "--polarity", "negative"];
    let old = place.add("Check the token twice", &[&more[..], &anchors].concat());
    place.done(&["feedback", &old, "--success"]);
    let promoted = place.done(&["add", "--from", &old]);
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
    assert_eq!(new["observations"], 0.0, "observations stay with the old entry");
    assert_eq!(place.show(&old)["registers"]["thread"], "fix-login");
    // A second promotion to the same workspace has no effect; one to another workspace has.
    let id = text(&promoted["id"]);
    place.refused(&["add", "--from", &id], 2, "is already in `main` and in no thread");
    let there = place.done(&["add", "--from", &id, "--workspace", "local"]);
    assert_eq!(place.show(&text(&there["id"]))["workspace"], "local");
    place.refused(
        &["add", "--from", &id, "--workspace", "nowhere"],
        1,
        "Workspace `nowhere` not found",
    );
}

#[test]
fn promoting_again_names_the_existing_copy() {
    let place = Place::new();
    let old = place.add("Check the token twice", &[]);
    let promote = || place.done(&["add", "--from", &old, "--workspace", "local"]);
    let (first, second) = (promote(), promote());
    assert_eq!(first["id"], second["id"]);
    assert_eq!((&first["known"], &second["known"]), (&Value::Null, &json!(true)));
    // A changed or an archived copy does not count as a copy.
    place.done(&["edit", &old, "--title", "Check the token once"]);
    let third = promote();
    assert_ne!(third["id"], first["id"]);
    place.done(&["archive", &text(&third["id"])]);
    assert_ne!(promote()["id"], third["id"]);
}

#[test]
fn promoting_again_with_evidence_adds_it_to_the_copy() {
    let place = Place::new();
    let old = place.add("Check the token twice", &[]);
    let copy = text(&place.done(&["add", "--from", &old, "--workspace", "local"])["id"]);
    let more = ["add", "--from", &old, "--workspace", "local", "--evidence", "commit:1a2b3c"];
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
    assert!(said.contains("  already copied from "), "{said}");
    assert!(said.ends_with(", and now cites commit:1a2b3c\n"), "{said}");
}

#[test]
fn retracted_and_muted_entries_are_listed_on_request() {
    let place = Place::new();
    let [gone, muted, plain] = ["Gone", "Muted", "Plain"].map(|title| place.add(title, &[]));
    place.done(&["forget", "--retract", &gone]);
    place.done(&["mark", "--mute", &muted]);
    let listed = |more: &[&str]| {
        let list = place.done(&[&["list"], more].concat());
        let entries = list["entries"].as_array().cloned().unwrap();
        entries.iter().map(|entry| text(&entry["id"])).collect::<BTreeSet<String>>()
    };
    assert_eq!(listed(&[]), BTreeSet::from([muted.clone(), plain.clone()]));
    assert_eq!(listed(&["--status", "retracted"]), BTreeSet::from([gone]));
    assert_eq!(listed(&["--hidden"]), BTreeSet::from([muted.clone()]));
    // If only retracted entries are left, the message says so.
    for entry in [&muted, &plain] {
        place.done(&["forget", "--retract", entry]);
    }
    assert_eq!(place.done(&["status"])["entries"], 3);
    let said = printed(&type_in(&place.node, &place.here(), &["list"]));
    let expected = "Only retracted entries. `klnode list --status retracted` lists them.\n";
    assert_eq!(said, expected);
}

#[test]
fn episodic_entries_leave_only_by_promotion_with_evidence() {
    let place = Place::new();
    let words = ["add", "--type", "friction", "--title", "CI is slow", "--content", "20 minutes."];
    let raw = text(&place.done(&words)["id"]);
    let as_lesson = ["add", "--title", "t", "--content", "c", "--evidence", "pr:1"];
    let as_raw = [&as_lesson[..], &["--memory", "episodic"]].concat();
    place.refused(&as_raw, 2, "memory is episodic, but lesson entries are semantic");
    place.refused(&["add", "--from", &raw], 2, "it cites no evidence");
    place.refused(
        &["add", "--from", &raw, "--memory", "episodic"],
        2,
        "use semantic or procedural",
    );
    let copy = ["add", "--from", &raw, "--evidence", "run:ci-12"];
    place.refused(&copy, 4, "needs an approval with a reason");
    let promoted = place.done(&[&copy[..], &["--approve", "it happens daily"]].concat());
    assert_eq!(promoted["memory"], "semantic");
    let new = place.show(&text(&promoted["id"]));
    assert_eq!((&new["type"], &new["memory"]), (&json!("lesson"), &json!("semantic")));
    assert_eq!(linked(&new, "derived_from"), [raw.as_str()]);
    assert_eq!(place.show(&raw)["memory"], "episodic");
}

#[test]
fn promotion_to_procedural_needs_the_persons_signature() {
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
    let headers = [("Content-Type", "application/json"), (person_auth::HEADER, signed.as_str())];
    // The signature is bound to its source and its target.
    let other = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let elsewhere = format!("/v1/entries/{other}/promote/procedural");
    assert_eq!(served.ask("POST", &elsewhere, &headers, body.as_bytes()).status, 403);
    let main = json!({"memory": "procedural", "to": "main"}).to_string();
    assert_eq!(served.ask("POST", &guarded, &headers, main.as_bytes()).status, 403);
    let promoted = served.ask("POST", &guarded, &headers, body.as_bytes());
    assert_eq!(promoted.status, 200, "{}", promoted.text());
    let promoted = promoted.json();
    // With a key a reason alone is no approval, whichever memory an episodic entry goes to.
    let friction = json!({"title": "CI is slow", "content": "20 minutes.", "type": "friction"});
    let raw = text(&served.json("POST", "/v1/entries", &friction).json()["id"]);
    let ask = json!({"evidence": ["run:ci-12"], "approve": "it happens daily"});
    let path = format!("/v1/entries/{raw}/promote");
    let refused = served.json("POST", &path, &ask);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("directional flow violation"), "{}", refused.text());
    let path = format!("{path}/approved");
    assert_eq!(served.json("POST", &path, &ask).status, 403, "unsigned");
    let body = ask.to_string();
    let signed = header("POST", &path, body.as_bytes());
    let headers = [("Content-Type", "application/json"), (person_auth::HEADER, signed.as_str())];
    let left = served.ask("POST", &path, &headers, body.as_bytes());
    assert_eq!(left.status, 200, "{}", left.text());
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
fn a_norm_is_not_promoted_next_to_a_contradicting_one() {
    conforms("S001-43");
    let place = Place::new();
    let norm = |title: &str, polarity: &str, workspace: &str| {
        let tags = ["--type", "norm", "--tag", "retry", "--tag", "billing"];
        let more = ["--polarity", polarity, "--workspace", workspace];
        place.add(title, &[&tags[..], &more].concat())
    };
    let theirs = norm("retry the billing gateway with backoff: never", "negative", "local");
    let ours = norm("retry the billing gateway with backoff: always", "positive", "main");
    let code = text(&place.show(&theirs)["code"]);
    let said = format!("{code} in `local` contradicts it");
    place.refused(&["add", "--from", &ours, "--workspace", "local"], 4, &said);
    // A new entry with the same contradiction is refused too.
    let words = ["add", "--title", "retry the billing gateway with backoff: always", "--content"];
    let rest = ["A short lesson.", "--evidence", "pr:7", "--type", "norm", "--tag", "retry"];
    let there = ["--tag", "billing", "--polarity", "positive", "--workspace", "local"];
    place.refused(&[&words[..], &rest, &there].concat(), 4, &said);
    place.done(&["archive", &theirs]);
    assert_eq!(place.done(&["add", "--from", &ours, "--workspace", "local"])["workspace"], "local");
}

#[test]
fn a_superseded_entry_is_labelled_and_ranks_below_its_successor() {
    conforms("S002-57");
    let place = Place::new();
    let (old, new) = (place.add("Flush the queue", &[]), place.add("Flush the queue", &[]));
    for _ in 0..5 {
        place.done(&["feedback", &old, "--success"]);
    }
    let hits = || {
        let words = ["search", "flush the queue", "--deterministic", "--all"];
        let answer = place.done(&words);
        let hits = answer["hits"].as_array().cloned().unwrap();
        hits.iter().map(|hit| (text(&hit["id"]), hit["caveats"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(hits()[0].0, old, "it has more evidence");
    place.done(&["edit", &old, "--superseded-by", &new]);
    let code = text(&place.show(&new)["code"]);
    let caveat = json!([format!("superseded by {code}")]);
    assert_eq!(hits(), [(new.clone(), json!([])), (old.clone(), caveat)]);
    assert_eq!(linked(&place.show(&old), "superseded_by"), [new.as_str()]);
    assert_eq!(linked(&place.show(&new), "supersedes"), [old.as_str()]);
    let third = place.add("Something else altogether", &[]);
    place.done(&["edit", &new, "--superseded-by", &third]);
    let [old_code, third_code] = [&old, &third].map(|id| text(&place.show(id)["code"]));
    let circle = format!("{old_code} is superseded by {third_code} already.");
    place.refused(&["edit", &third, "--superseded-by", &old], 2, &circle);
    let itself = format!("Entry {old_code} cannot supersede itself.");
    place.refused(&["edit", &old, "--superseded-by", &old], 2, &itself);
    let unsaid = format!("has not claimed that {old_code} supersedes {third_code}");
    place.refused(&["edit", &third, "--superseded-by", &old, "--undo"], 1, &unsaid);
    let nothing = format!("Entry {old_code} has no such proposal.");
    place.refused(&["inbox", "accept", &old], 1, &nothing);
    let kept = format!("Entry {old_code} was not forgotten");
    place.refused(&["forget", &old, "--status"], 2, &kept);
    place.done(&["edit", &old, "--superseded-by", &new, "--undo"]);
    assert_eq!(linked(&place.show(&old), "superseded_by"), Vec::<String>::new());
    // An archived entry supersedes nothing.
    place.done(&["archive", &third]);
    assert_eq!(linked(&place.show(&new), "superseded_by"), Vec::<String>::new());
}

#[test]
fn a_strangers_entry_supersedes_none_of_ours() {
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
        successors.map(|one| one.found.entry).collect::<Vec<_>>()
    };
    assert_eq!(successors(&node), []);
    node.claim(other, supersedes(ours));
    assert_eq!(successors(&node), [other]);
}

#[test]
fn a_member_replaces_texts_of_others_once_its_own_texts_have_helped_here() {
    let mut team = Team::gather();
    let shared = team.shared.id;
    let ours = team.node.create_in(shared, "ours");
    let [hers, new] = ["hers", "new"].map(|title| team.alice.create_in(shared, title));
    let others = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
        .map(|title| team.alice.create_in(shared, title));
    team.exchange();
    team.alice.claim(new, supersedes(ours));
    team.alice.claim(new, supersedes(hers));
    team.exchange();
    let is_believed = |node: &Node, of| {
        let snapshot = node.engine.store().snapshot().unwrap();
        let reader = node.reader();
        let reading = reader.at(&snapshot, node.now).unwrap();
        let found = reading.read(of).unwrap().unwrap();
        let successors = reading.successors(&found).unwrap();
        let [one] = successors.as_slice() else { panic!("{successors:?}") };
        assert_eq!(one.found.entry, new);
        let caveats = reading.caveats(&found, None).unwrap();
        let is_said = caveats.iter().any(|of| match of {
            HitCaveat::SupersededBy { .. } => one.is_believed,
            HitCaveat::ReplacementClaimed { .. } => !one.is_believed,
            _ => false,
        });
        assert!(is_said, "{caveats:?}");
        one.is_believed
    };
    assert!(!is_believed(&team.node, ours), "nothing of hers has helped yet");
    assert!(is_believed(&team.node, hers), "her own text is hers to replace");
    for tried in &others[..3] {
        team.node.succeed(*tried);
    }
    assert!(is_believed(&team.node, ours));
    assert!(!is_believed(&team.bob, ours), "each node judges by its own tasks");
    for misleading in &others[3..] {
        team.node.observe(*misleading, Observation::Failure);
    }
    assert!(!is_believed(&team.node, ours), "her texts have misled");
    assert!(is_believed(&team.node, hers));
}

fn supersedes(to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation: Relation::SUPERSEDES, to })
}

/// Entries that claim to supersede an entry, by any author.
fn hints(node: &Node, old: EntryId) -> Vec<EntryId> {
    node.engine.store().snapshot().unwrap().successors(old, usize::MAX).unwrap()
}

#[test]
fn successor_claims_are_bounded_per_author_and_in_total() {
    let mut team = Team::gather();
    let ours = team.node.create_in(team.shared.id, "ours");
    team.exchange();
    for number in 0..20 {
        let theirs = team.carol.create(&format!("theirs {number}"));
        team.carol.claim(theirs, supersedes(ours));
    }
    team.exchange();
    assert_eq!(hints(&team.node, ours).len(), 16, "one author is limited");
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
    assert_eq!(hints(&team.node, ours).len(), 256, "all authors together are limited");
    // An entitled author is accepted regardless of other authors' claims on her entries.
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
    let successors = reading.successors(&found).unwrap().into_iter().map(|one| one.found.entry);
    let mut expected = [hers, own];
    expected.sort();
    assert_eq!(successors.collect::<Vec<_>>(), expected);
}

#[test]
fn a_successor_claim_is_removed_with_its_last_record_or_entry() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let olds: Vec<EntryId> = (0..8).map(|number| node.create(&format!("old {number}"))).collect();
    let theirs = peer.create("theirs");
    for old in &olds {
        // One record that is replaced repeatedly: only the last version remains.
        peer.claim(theirs, supersedes(*old));
        peer.send_to(&mut node);
        assert_eq!(hints(&node, *old), [theirs]);
        peer.claim(theirs, ClaimEdit::Unlink(Link { relation: Relation::SUPERSEDES, to: *old }));
        peer.send_to(&mut node);
        assert_eq!(hints(&node, *old), []);
    }
    // Two authors claim it, and one of them retracts.
    let stranger = Stranger::new(1);
    peer.claim(theirs, supersedes(olds[0]));
    peer.send_to(&mut node);
    bring(&mut node, vec![stranger.claims(theirs, supersedes(olds[0]))], stranger.author());
    peer.run(Command::Retract { entry: theirs }).unwrap();
    peer.send_to(&mut node);
    assert_eq!(hints(&node, olds[0]), [theirs], "another author still claims it");
    // A forgotten entry neither supersedes nor is superseded.
    let (first, second) = (node.create("first"), node.create("second"));
    node.claim(first, supersedes(olds[1]));
    node.claim(second, supersedes(first));
    assert_eq!((hints(&node, olds[1]), hints(&node, first)), (vec![first], vec![second]));
    node.run(Command::Forget { entry: first }).unwrap();
    assert_eq!((hints(&node, olds[1]), hints(&node, first)), (vec![], vec![]));
}

#[test]
fn an_accepted_proposal_becomes_an_own_claim() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "Ours", "content": "Said here.", "evidence": ["doc:d"]});
    let entry = text(&served.json("POST", "/v1/entries", &new).json()["id"]);
    let id = EntryId::from_hex(&entry).unwrap();
    let [one, two] = [1, 2].map(Stranger::new);
    let bring = |stranger: &Stranger, claim: ClaimEdit| {
        let (record, from) = (stranger.claims(id, claim), stranger.author());
        served
            .engine
            .submit_blocking(Command::Ingest(vec![DeliveredRecord { record, from }]))
            .unwrap();
    };
    bring(&one, ClaimEdit::Set(Register::TITLE, "Theirs".into()));
    bring(&two, ClaimEdit::Add(TextSet::TAGS, "auth".into()));
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
    assert_eq!(accept(json!({})).status, 409, "there are two proposals");
    assert_eq!(accept(json!({"what": "content"})).status, 404);
    let key = two.author().to_string();
    let accepted = accept(json!({"author": key}));
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    assert_eq!((&shown()["title"], &shown()["tags"]), (&json!("Ours"), &json!(["auth"])));
    assert_eq!(accept(json!({"what": "title"})).status, 200);
    let shown = shown();
    assert_eq!((&shown["title"], &shown["foreign"]), (&json!("Theirs"), &json!(false)));
    assert_eq!(shown["author_name"], "you", "the accepting author is responsible");
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
    place.refused(&["edit", &entry, "--anchor", "path:/etc"], 2, "predicate is invalid at byte 5");
}

#[test]
fn a_thread_is_archived_and_restored_as_a_whole() {
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
    assert_eq!(place.done(&["archive", "--undo", "--thread", "fix"])["entries"], 2);
    assert_eq!(statuses(), ["candidate", "candidate", "candidate"]);
    place.refused(&["archive", "--thread", "nothing", "--workspace", "nowhere"], 1, "nowhere");
    place.refused(&["archive"], 2, "--thread");
}

#[test]
fn a_restored_entry_is_not_stale_at_once() {
    let mut node = Node::start(1, 1);
    let archive =
        |node: &mut Node, entry, presence| node.claim(entry, ClaimEdit::Archive(presence));
    let status = |node: &Node, entry| node.found(entry).assessment.standing.status;
    let unneeded = node.create("Flush the queue");
    archive(&mut node, unneeded, Presence::Present);
    node.wait_days(120);
    archive(&mut node, unneeded, Presence::Withdrawn);
    assert_eq!(status(&node, unneeded), Status::Candidate);
    node.wait_days(89);
    assert_eq!(status(&node, unneeded), Status::Candidate);
    node.wait_days(1);
    assert_eq!(status(&node, unneeded), Status::Stale, "its days count from the restoration");
}

#[test]
fn entries_of_a_successful_task_are_verified() {
    let place = Place::new();
    let (good, bad) = (place.begin(), place.begin());
    let made = place.add("Flush the queue", &["--task", &good]);
    let failed = place.add("Drop the queue", &["--task", &bad]);
    assert_eq!(place.show(&made)["status"], "candidate");
    let confirmed = place.done(&["feedback", "--confirm", &made, "--task", &good]);
    assert_eq!(confirmed["class"], "primed", "its writer's confirmation is primed");
    assert_eq!(confirmed["reason"], format!("it was written in task {good}"));
    place.done(&["task", "finish", &good, "--success"]);
    place.done(&["task", "finish", &bad, "--failure"]);
    let shown = place.show(&made);
    let said = (&json!("verified"), &json!("the task it was written in succeeded"));
    assert_eq!((&shown["status"], &shown["status_reason"]), said);
    assert_eq!(place.show(&failed)["status"], "candidate");
    // A caller that was served the entry is primed in its own task, too.
    let third = place.begin();
    assert_eq!(place.done(&["feedback", "--confirm", &made, "--task", &third])["class"], "primed");
    let unread = place.add("Bound the queue", &[]);
    assert_eq!(
        place.done(&["feedback", "--confirm", &unread, "--task", &third])["class"],
        "independent"
    );
}

#[test]
fn an_ambiguous_prefix_is_answered_with_the_matching_codes() {
    let mut node = Node::start(1, 1);
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    // Two digits give 1,024 prefixes.
    let shared = (0..=1_024).find_map(|number: u32| {
        let code = EntryType::Lesson.code(node.create(&number.to_string()));
        let beginning = code[..4].to_owned();
        let other = seen.insert(beginning.clone(), code.clone())?;
        Some((beginning, [other, code]))
    });
    let (beginning, codes) = shared.expect("there are more entries than beginnings");
    let snapshot = node.engine.store().snapshot().unwrap();
    let told = resolve_entry(&beginning, &snapshot).unwrap_err().to_string();
    assert!(codes.iter().all(|code| told.contains(code)), "{codes:?}: {told}");
}
