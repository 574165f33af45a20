//! Judgement of statement pairs by maintenance, without a stated polarity: merged, proposed as
//! duplicates, or reported as possible contradictions.

use crate::maintenance_rules::{act, group, is_due, journal, pass};
use crate::support::node_process::{json, printed, run, start, text};
use klnode_crdt::ids::EntryId;
use klnode_engine::{MaintenanceCommand, MaintenanceNote};
use klnode_query::maintenance::RULE;
use klnode_store::maintenance_journal::{Matter, Service, ServiceRow, Stage};
use klnode_tests::test_engine::Node;
use klnode_tests::workspace_fixture::Indexed;
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAIRS: &str = include_str!("../fixtures/statement_pairs.tsv");

/// One labelled pair.
struct Pair {
    half: &'static str,
    label: &'static str,
    statements: [&'static str; 2],
}

fn labelled() -> Vec<Pair> {
    let lines = PAIRS.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [half, label, one, two] => Pair { half, label, statements: [one, two] },
        _ => panic!("{line}"),
    };
    lines.map(pair).collect()
}

/// Pairs of titles in one list of `maintain list`, each in alphabetical order.
fn listed(home: &Path, part: &str) -> BTreeMap<[String; 2], String> {
    let list = json(home, &["maintain", "list", part, "-n", "1000"]);
    let rows = list[part].as_array().cloned().unwrap_or_default();
    let of = |row: &Value| {
        let mut titles = [0, 1].map(|at| text(&row["titles"][at]));
        titles.sort();
        (titles, text(&row["why"]))
    };
    rows.iter().map(of).collect()
}

fn key(statements: [&str; 2]) -> [String; 2] {
    let mut key = statements.map(str::to_owned);
    key.sort();
    key
}

fn percent(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of as f64
}

/// Checks one part of the pairs against the limits; returns the results.
fn check_pairs(
    pairs: &[Pair],
    part: &str,
    proposed: &BTreeMap<[String; 2], String>,
    reported: &BTreeMap<[String; 2], String>,
) -> String {
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| pair.half == part).collect();
    let share = |labels: &[&str], list: &BTreeMap<[String; 2], String>| {
        let of = pairs.iter().filter(|pair| labels.contains(&pair.label));
        let found = of.clone().filter(|pair| list.contains_key(&key(pair.statements))).count();
        percent(found, of.count())
    };
    let opposites = share(&["opposite"], reported);
    let others = share(&["same", "near"], reported);
    let reworded = share(&["same"], proposed);
    let mut told = format!(
        "{part}: {opposites:.0} % of the opposites and {others:.1} % of the others reported, \
         {reworded:.0} % of the rewordings proposed\n"
    );
    for pair in &pairs {
        let at = key(pair.statements);
        let found = match (reported.get(&at), proposed.contains_key(&at)) {
            (Some(why), _) => format!("reported ({why})"),
            (None, true) => "proposed".to_owned(),
            (None, false) => "neither".to_owned(),
        };
        let is_right = match pair.label {
            "opposite" => found.starts_with("reported"),
            "same" => found == "proposed",
            _ => !found.starts_with("reported"),
        };
        if !is_right {
            told += &format!("  {} {found}: {at:?}\n", pair.label);
        }
    }
    let is_none = share(&["opposite"], proposed) == 0.0;
    assert!(is_none, "an opposite was proposed as a duplicate:\n{told}");
    assert!(opposites >= 80.0 && others <= 5.0 && reworded >= 60.0, "{told}");
    told
}

/// All statements are in one workspace, so each is compared with its neighbours from other pairs
/// too.
#[test]
fn labelled_pairs_are_merged_proposed_and_reported_within_the_limits() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    let pairs = labelled();
    assert!(pairs.len() >= 150, "{}", pairs.len());
    let statements: BTreeSet<&str> = pairs.iter().flat_map(|pair| pair.statements).collect();
    let lines = statements.iter().map(|of| object!({"title": of, "content": of}).to_string());
    let file = folder.path().join("statements.jsonl");
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    printed(&run(&home, &["import", file.to_str().unwrap()]));
    printed(&run(&home, &["maintain"]));
    let changes = listed(&home, "changes");
    assert!(changes.is_empty(), "no two statements are equal: {changes:?}");
    let (proposed, reported) = (listed(&home, "proposals"), listed(&home, "contradictions"));

    let told: String =
        ["dev", "held"].map(|part| check_pairs(&pairs, part, &proposed, &reported)).concat();
    // Statements of different pairs are unrelated.
    let known: BTreeSet<[String; 2]> = pairs.iter().map(|pair| key(pair.statements)).collect();
    let strange: Vec<_> = reported.iter().filter(|(at, _)| !known.contains(*at)).collect();
    println!("{told}between pairs: {strange:#?}");
    assert!(50 * strange.len() <= 2 * statements.len(), "{strange:#?}");
}

fn add(home: &Path, statement: &str) -> Value {
    let words = ["add", "--title", statement, "--content", statement, "--evidence", "doc:notes"];
    json(home, &words)
}

#[test]
fn opposite_statements_are_reported_and_neither_merged_nor_proposed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let pairs = [
        [
            "Migrate the database before you deploy the service",
            "Deploy the service before you migrate the database",
        ],
        [
            "The read timeout is 5 s and the connect timeout is 30 s",
            "The read timeout is 30 s and the connect timeout is 5 s",
        ],
        [
            "After a crash do not enable the cache, clear the cache",
            "After a crash enable the cache, do not clear the cache",
        ],
        ["Merge main into release", "Merge release into main"],
        ["Always squash commits when you merge", "Never squash commits when you merge"],
        ["Unpack the archive with tar -x", "Unpack the archive with tar -X"],
    ];
    let mut ids = Vec::new();
    for statement in pairs.iter().flatten() {
        let added = add(home, statement);
        assert_eq!(added["same"], Value::Null, "{statement}");
        ids.push(text(&added["id"]));
    }
    printed(&run(home, &["maintain"]));
    assert_eq!(listed(home, "changes"), BTreeMap::new());
    let (proposed, reported) = (listed(home, "proposals"), listed(home, "contradictions"));
    for (at, pair) in pairs.into_iter().enumerate() {
        assert!(!proposed.contains_key(&key(pair)), "{pair:?}");
        let why = reported.get(&key(pair)).unwrap_or_else(|| panic!("{pair:?}: {reported:?}"));
        assert!(why.starts_with("possible contradiction: "), "{why}");
        let shown = json(home, &["show", &ids[2 * at]]);
        let caveats = shown["caveats"].to_string();
        assert!(caveats.contains("contradicted by "), "{pair:?}: {shown}");
        assert!(shown["merged_into"].is_null(), "{shown}");
    }
    let order = &reported[&key(pairs[0])];
    assert!(order.contains("opposite order"), "{order}");
    assert!(reported[&key(pairs[4])].contains("negation"), "{reported:?}");
}

#[test]
fn only_texts_equal_up_to_spaces_and_final_punctuation_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    add(home, "Pin the base image by its digest.");
    add(home, "Pin  the base image by its digest");
    add(home, "Café menus are cached for a day");
    add(home, "Cafe\u{301} menus are cached for a day!");
    add(home, "pin the base image by its Digest");
    printed(&run(home, &["maintain", "duplicates"]));
    let changes = listed(home, "changes");
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes.values().all(|why| why == "the texts are equal"), "{changes:?}");
    let proposed = listed(home, "proposals");
    assert!(!proposed.is_empty(), "a difference in case needs a person's decision");
}

/// Adds a link as versions before the rule did: by similarity alone.
fn merge_by_old_rule(node: &mut Node, pairs: &[[EntryId; 2]]) {
    let snapshot = node.engine.store().snapshot().unwrap();
    let note = |pair: &[EntryId; 2]| MaintenanceNote {
        matter: Matter::Sameness,
        stage: Stage::Made,
        entries: pair.map(|entry| (entry, snapshot.text_seq(entry).unwrap())).to_vec(),
        why: "nearness 1.000, and nothing differs".into(),
        is_foreign: false,
    };
    let notes: Vec<MaintenanceNote> = pairs.iter().map(note).collect();
    drop(snapshot);
    for service in [Service::Duplicates, Service::Contradictions] {
        let is_first = service == Service::Duplicates;
        let notes = if is_first { notes.clone() } else { Vec::new() };
        let (position, through) = (node.engine.head(), node.now);
        let row = ServiceRow { position, through, ..ServiceRow::default() };
        let (over, faded, edges) = (Vec::new(), Vec::new(), Vec::new());
        act(node, MaintenanceCommand::Pass { service, row, notes, over, faded, edges });
    }
}

/// Proposes a pair and makes a person accept it, under the old version too.
fn accept_by_old_rule(node: &mut Node, pair: [EntryId; 2]) {
    let snapshot = node.engine.store().snapshot().unwrap();
    let note = MaintenanceNote {
        matter: Matter::Sameness,
        stage: Stage::Proposed,
        entries: pair.map(|entry| (entry, snapshot.text_seq(entry).unwrap())).to_vec(),
        why: "nearness 0.900: near, and not near enough to merge unasked".into(),
        is_foreign: false,
    };
    drop(snapshot);
    let row = ServiceRow { position: node.engine.head(), ..ServiceRow::default() };
    let (over, faded, edges) = (Vec::new(), Vec::new(), Vec::new());
    let (service, notes) = (Service::Duplicates, vec![note]);
    let numbers = act(node, MaintenanceCommand::Pass { service, row, notes, over, faded, edges });
    act(node, MaintenanceCommand::Accept(numbers[0]));
}

#[test]
fn merges_of_an_older_rule_are_withdrawn_once_and_listed_for_a_person() {
    let mut node = Node::start(1, 1);
    let [opposite, reworded, equal, accepted] = [
        [
            "Migrate the database before you deploy the service",
            "Deploy the service before you migrate the database",
        ],
        ["Rotate the signing keys every 90 days", "Signing keys are rotated every 90 days"],
        ["Bound the retry queue", "Bound the retry queue"],
        [
            "Squash commits before merging a branch",
            "Commits are squashed before a branch is merged",
        ],
    ]
    .map(|titles| titles.map(|title| node.create(title)));
    merge_by_old_rule(&mut node, &[opposite, reworded, equal]);
    accept_by_old_rule(&mut node, accepted);
    for pair in [opposite, reworded, equal, accepted] {
        assert_eq!(group(&node, pair[0]).len(), 2);
    }

    let mut node = node.restart(2);
    let index = Indexed::start(&node);
    for service in [Service::Duplicates, Service::Contradictions] {
        assert!(is_due(&node, service), "{service:?}: the rule has changed");
        let found = pass(&node, &index, service);
        act(&mut node, found.act);
    }
    for (pair, size) in [(opposite, 1), (reworded, 1), (equal, 2), (accepted, 2)] {
        assert_eq!(group(&node, pair[0]).len(), size);
    }
    let noted = |node: &Node, pair: [EntryId; 2]| {
        let is_about = |of: &[EntryId]| pair.iter().all(|entry| of.contains(entry));
        let rows = journal(node).into_iter().filter(|row| is_about(&row.entries));
        rows.map(|row| (row.matter, row.stage)).collect::<Vec<_>>()
    };
    let over = (Matter::Sameness, Stage::Over);
    assert_eq!(noted(&node, opposite), [(Matter::Contradiction, Stage::Open), over]);
    assert_eq!(noted(&node, reworded), [(Matter::Sameness, Stage::Proposed), over]);

    // Only once: the next pass does not overrule a person who accepts the proposal.
    let snapshot = node.engine.store().snapshot().unwrap();
    let (_, number) = snapshot.noted(Matter::Sameness, &reworded).unwrap().unwrap();
    assert_eq!(snapshot.service(Service::Duplicates).unwrap().rule, RULE);
    drop(snapshot);
    act(&mut node, MaintenanceCommand::Accept(number));
    drop(index);
    let mut node = node.restart(3);
    let index = Indexed::start(&node);
    let before = journal(&node);
    for service in [Service::Duplicates, Service::Contradictions] {
        let found = pass(&node, &index, service);
        act(&mut node, found.act);
    }
    assert_eq!(journal(&node), before);
    assert_eq!(group(&node, reworded[0]).len(), 2);
}
