//! The index with a feed controlled by the test: forgetting during a rebuild of vectors, damaged
//! records, and a slow embedder.

use crate::attacks_on_answers::settled;
use crate::support::homes::settle;
use crate::support::node_process::{json, start};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_embed::{EmbedError, Embedder};
use klnode_engine::{Command, NewEntry};
use klnode_index::{self, Setup, State, Wakes, vectors};
use klnode_query::{Audience, Cancel, HitCaveat, SearchAnswer, SearchQuery, TAIL_RECORDS_MAX};
use klnode_store::row_types::Seq;
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::test_server::PATIENCE;
use klnode_tests::workspace_fixture::{Indexed, Team};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;
use tempfile::TempDir;
use tokio::sync::watch;

/// An embedder that blocks before texts with certain words.
#[derive(Debug, Default)]
struct Gated {
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    closed: BTreeSet<&'static str>,
    /// Words at which a thread is blocked.
    reached: BTreeSet<&'static str>,
}

impl Gated {
    fn close(&self, word: &'static str) {
        self.gate.lock().unwrap().closed.insert(word);
    }

    fn open(&self, word: &'static str) {
        self.gate.lock().unwrap().closed.remove(word);
        self.changed.notify_all();
    }

    /// Waits until a thread is blocked at a word.
    fn wait_for(&self, word: &'static str) {
        let gate = self.gate.lock().unwrap();
        let is_missing = |gate: &mut Gate| !gate.reached.contains(word);
        let (_gate, waited) = self.changed.wait_timeout_while(gate, PATIENCE, is_missing).unwrap();
        assert!(!waited.timed_out(), "no thread embeds {word}");
    }
}

impl Embedder for Gated {
    fn identity(&self) -> &'static str {
        "gated"
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(8)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut gate = self.gate.lock().unwrap();
        let before = |gate: &Gate| {
            let is_asked = |word: &&&'static str| texts.iter().any(|text| text.contains(**word));
            gate.closed.iter().find(is_asked).copied()
        };
        while let Some(word) = before(&gate) {
            gate.reached.insert(word);
            self.changed.notify_all();
            let (held, waited) = self.changed.wait_timeout(gate, PATIENCE).unwrap();
            assert!(!waited.timed_out(), "{word} is held for ever");
            gate = held;
        }
        Ok(texts.iter().map(|_| vec![1.0; 8]).collect())
    }
}

/// An index of a node's store, with a model controlled by the test.
struct Held {
    running: klnode_index::Running,
    head: watch::Sender<Seq>,
    _membership: watch::Sender<u64>,
    folder: TempDir,
}

impl Held {
    fn start(node: &Node, model: &Arc<Gated>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            folder: folder.path().to_owned(),
            model: Arc::clone(model) as Arc<dyn Embedder>,
            passages: None,
            limits: vectors::Limits { hnsw_entries_min: 1_000, hnsw_dead_fraction_max: 0.1 },
            own: node.author(),
            now: || START,
        };
        let (head, followed) = watch::channel(node.engine.head());
        let (membership, seen) = watch::channel(0);
        let wakes = Wakes { head: followed, membership: seen };
        let running = klnode_index::start(setup, node.engine.store().clone(), wakes).unwrap();
        Self { running, head, _membership: membership, folder }
    }

    /// Notifies it of the node's newest commit.
    fn follow(&self, node: &Node) {
        self.head.send_replace(node.engine.head());
    }

    fn ask(&self, node: &Node, text: &str) -> SearchAnswer {
        let snapshot = node.engine.store().snapshot().unwrap();
        let (index, question) = (self.running.index(), SearchQuery::new(text, 5));
        node.reader().search(&index, &snapshot, &question, node.now, &Cancel::default()).unwrap()
    }
}

/// Entries that an answer names, as hits or near misses.
fn named(answer: &SearchAnswer) -> Vec<EntryId> {
    answer.hits.iter().chain(&answer.nearest).map(|hit| hit.found.entry).collect()
}

/// Waits until the index state satisfies a condition.
fn wait(index: &klnode_index::Index, what: &str, is_so: impl Fn(&State) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(&index.state()) {
        assert!(Instant::now() < deadline, "{what}: {:?}", index.state());
        std::thread::yield_now();
    }
}

fn holds(file: &Path, entry: EntryId) -> bool {
    let bytes = std::fs::read(file).unwrap();
    bytes.windows(EntryId::LEN).any(|part| part == entry.as_bytes())
}

#[test]
fn an_entry_forgotten_during_a_vector_rebuild_stays_out_of_the_index() {
    let mut node = Node::start(1, 1);
    let kept = node.create("alpha");
    let secret = node.create("secret");
    let model = Arc::new(Gated::default());
    model.close("alpha");
    let held = Held::start(&node, &model);
    let index = held.running.index();
    model.wait_for("alpha");
    node.run(Command::Forget { entry: secret }).unwrap();
    node.create("later");
    model.close("later");
    held.follow(&node);
    let upto = node.engine.head();
    wait(&index, "the keyword index processes the forget", |state| state.wiped >= upto);
    model.open("alpha");
    // The new vectors are in place, and the following batch is about to be embedded.
    model.wait_for("later");
    let file = held.folder.path().join("vectors.bin");
    assert!(holds(&file, kept), "the other vectors exist");
    assert!(!holds(&file, secret), "a wiped vector is in the file again");
    model.open("later");
    wait(&index, "the vectors catch up", |state| state.vectors >= Some(upto));
    assert_eq!(index.meaning().unwrap().vectors.len(), 2);
    held.running.stop();
}

#[test]
fn the_keyword_index_does_not_wait_for_a_slow_embedder() {
    let mut node = Node::start(1, 1);
    let model = Arc::new(Gated::default());
    let held = Held::start(&node, &model);
    let index = held.running.index();
    model.close("amber");
    model.close("birch");
    node.create("amber");
    // More entries than one batch of vectors.
    for number in 0..300 {
        node.create(&format!("filler {number}"));
    }
    node.create("birch");
    held.follow(&node);
    model.wait_for("amber");
    let state = index.state();
    assert_eq!((state.keyword, state.vectors), (node.engine.head(), Some(Seq(0))));
    assert_eq!(held.ask(&node, "filler").index_lag, 0, "no record is read past the keyword index");
    node.create("cedar");
    held.follow(&node);
    model.open("amber");
    model.wait_for("birch");
    assert_eq!(index.state().keyword, node.engine.head(), "the keyword index has priority");
    model.open("birch");
    let upto = node.engine.head();
    wait(&index, "the vectors catch up", |state| state.vectors == Some(upto));
    held.running.stop();
}

#[test]
fn a_query_does_not_wait_for_the_embedding_of_new_entries() {
    let mut node = Node::start(1, 1);
    let model = Arc::new(Gated::default());
    let held = Held::start(&node, &model);
    model.close("amber");
    let amber = node.create("amber lantern");
    let answer = held.ask(&node, "lantern");
    assert_eq!((named(&answer), answer.index_lag), (vec![amber], 1));
    assert_eq!(answer.fallback, None, "the question has its vector");
    held.running.stop();
}

#[test]
fn a_query_before_the_first_vectors_reports_their_progress() {
    let mut node = Node::start(1, 1);
    node.create("amber lantern");
    let model = Arc::new(Gated::default());
    model.close("amber");
    let held = Held::start(&node, &model);
    model.wait_for("amber");
    wait(&held.running.index(), "the job is told of", |state| state.rebuild.is_some());
    let reason = held.ask(&node, "lantern").fallback.map(|fallback| fallback.reason);
    assert_eq!(reason.as_deref(), Some("The vectors are being built: 0 of 1."));
    model.open("amber");
    held.running.stop();
}

#[test]
fn contradictions_are_found_without_waiting_for_an_embedder() {
    let mut node = Node::start(1, 1);
    let model = Arc::new(Gated::default());
    let held = Held::start(&node, &model);
    let index = held.running.index();
    let sided = |kind: EntryType, polarity: &str, title: &str| NewEntry {
        kind,
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: vec![ClaimEdit::Add(TextSet::TAGS, "retry".into())],
        ..lesson(title)
    };
    let always = node.create_new(sided(EntryType::Lesson, "positive", "retry always"));
    let never = node.create_new(sided(EntryType::Norm, "negative", "amber retry never"));
    held.follow(&node);
    let upto = node.engine.head();
    wait(&index, "the vectors are made", |state| state.vectors == Some(upto));
    model.close("amber");
    let answer = held.ask(&node, "retry");
    let hit = answer.hits.iter().find(|hit| hit.found.entry == never).unwrap();
    let rivals = hit.caveats.iter().filter_map(|caveat| match caveat {
        HitCaveat::CompetesWith { entry, .. } => Some(*entry),
        _ => None,
    });
    assert_eq!(rivals.collect::<Vec<_>>(), [always]);
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    let of = node.view(always);
    let opposing = reading.opposing_norms(&index, &of, WorkspaceId::MAIN).unwrap();
    assert_eq!(opposing.iter().map(|norm| norm.entry).collect::<Vec<_>>(), [never]);
    held.running.stop();
}

/// Identity of the model that a fresh index of a node's store arrives at, including its learned
/// words.
fn learnt(node: &Node) -> String {
    let indexed = Indexed::start(node);
    let (index, head) = (indexed.index(), node.engine.head());
    wait(&index, "the vectors are made", |state| {
        state.keyword == head && state.vectors.is_some() && state.rebuild.is_none()
    });
    index.meaning().unwrap().embedder.identity().to_owned()
}

#[test]
fn the_embedder_learns_nothing_from_non_members() {
    let mut team = Team::gather();
    let untaught = learnt(&team.node);
    for number in 0..120 {
        team.node.create_in(team.shared.id, &format!("retries and timeouts, part {number}"));
    }
    let before = learnt(&team.node);
    assert_ne!(before, untaught, "this many texts are enough to learn");
    for number in 0..300 {
        team.carol.create_in(team.shared.id, &format!("retries of zebras, part {number}"));
    }
    team.carol.send_to(&mut team.node);
    assert_eq!(learnt(&team.node), before);
    team.shared.admit(team.carol.author());
    team.shared.tell(&mut team.node);
    assert_ne!(learnt(&team.node), before, "a member's texts count");
}

#[test]
fn the_index_skips_a_damaged_record() {
    use redb::{Database, TableDefinition};
    const RECORDS: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("records");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let mut node = Node::start(1, 1);
    let names = ["quartzflute", "vexedgnome", "xylophone"];
    for name in names {
        node.create(name);
    }
    let head = node.engine.head();
    assert_eq!(head, Seq(3));
    settle(&home, node, 1);
    let database = Database::open(home.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let damaged = 2_u64.to_be_bytes();
    transaction.open_table(RECORDS).unwrap().insert(&damaged, &[1, 0x80][..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let (_node, _) = start(&home);
    let find = |name: &str| {
        let answer = json(&home, &["search", name, "--deterministic", "-n", "1"]);
        let title = answer["hits"][0]["title"].as_str().map(str::to_owned);
        title.filter(|title| title == name)
    };
    let check = |when: &str| {
        for (name, is_found) in names.into_iter().zip([true, false, true]) {
            assert_eq!(find(name).is_some(), is_found, "{name}, {when}");
        }
    };
    check("from the store");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let index: Value = json(&home, &["status"])["index"].clone();
        if index["lag"] == 0 && index["rebuild"].is_null() && index["vectors"] == 2 {
            assert_eq!((&index["documents"], &index["fault"]), (&2.into(), &Value::Null));
            break;
        }
        assert!(Instant::now() < deadline, "the index does not continue: {index}");
        std::thread::yield_now();
    }
    check("from the index");
}

#[test]
fn a_query_reads_a_bounded_number_of_unindexed_records() {
    let mut node = Node::start(1, 1);
    let index = Indexed::start(&node);
    let oldest = node.create("zqoldest of all");
    for number in 1..TAIL_RECORDS_MAX {
        node.create(&format!("filler {number}"));
    }
    let newest = node.create("zqnewest of all");
    let ask = |text: &str| {
        let answer = index.ask(&node, text, Audience::All);
        let found: Vec<EntryId> = answer.hits.iter().map(|hit| hit.found.entry).collect();
        (found, answer.index_lag)
    };
    // The lag is the number of records; all texts except the oldest are read.
    let behind = TAIL_RECORDS_MAX + 1;
    assert_eq!(ask("zqnewest"), (vec![newest], behind));
    assert_eq!(ask("zqoldest"), (vec![], behind));
    index.follow(&node);
    let deadline = Instant::now() + PATIENCE;
    while ask("zqoldest") != (vec![oldest], 0) {
        assert!(Instant::now() < deadline, "the index does not take it in");
        std::thread::yield_now();
    }
}

/// An entry with the same beginning as all of this template.
fn of_a_template(workspace: WorkspaceId, ending: &str) -> NewEntry {
    let begins = "The nightly job of the billing service stopped half way while it wrote its report \
                  into that bucket, so somebody must start this again by hand and tell finance:";
    NewEntry { workspace, content: format!("{begins} {ending}"), ..lesson("Nightly job") }
}

/// The entry that is named as a duplicate of this one.
fn named_beside(node: &Node, index: &Indexed, entry: EntryId) -> Option<EntryId> {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    let same = reading.written_before(&index.index(), entry).unwrap();
    same.map(|(other, _)| other)
}

#[test]
fn of_many_similar_entries_the_duplicate_is_named() {
    let mut node = Node::start(1, 1);
    let case = |number: usize| of_a_template(WorkspaceId::MAIN, &format!("case {number}."));
    let first: Vec<EntryId> = (0..25).map(|number| node.create_new(case(number))).collect();
    let index = settled(&node);
    for (number, expect) in first.into_iter().enumerate() {
        let again = node.create_new(case(number));
        assert_eq!(named_beside(&node, &index, again), Some(expect), "{number}");
    }
    let other = node.create_new(case(25));
    assert_eq!(named_beside(&node, &index, other), None);
}

#[test]
fn an_own_duplicate_is_named_despite_many_copies_by_a_member() {
    let mut team = Team::gather();
    let shared = team.shared.id;
    for number in 0..20 {
        team.alice.create_new(of_a_template(shared, &format!("case {number}.")));
    }
    let leaks = || of_a_template(shared, "It leaks.");
    // Verbatim copies, and more of them than are read.
    for _ in 0..130 {
        team.alice.create_new(leaks());
    }
    team.exchange();
    let first = team.node.create_new(leaks());
    let index = settled(&team.node);
    let again = team.node.create_new(leaks());
    assert_eq!(named_beside(&team.node, &index, again), Some(first));
}
