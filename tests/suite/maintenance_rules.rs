//! Rules of maintenance on test engines: whose links apply, the limits of other authors, and the
//! measured thresholds.

use crate::audit::contradict;
use crate::support::node_process::eventually;
use crate::tasks::begin;
use klnode_config::Config;
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::{
    Command, Confirmation, MaintenanceCommand, MaintenanceReceipt, MarkChange, NewEntry, Receipt,
    SourceKey, TaskCommand, TaskReceipt,
};
use klnode_query::AssessedEntry;
use klnode_query::maintenance::{Maintenance, MaintenancePass, Params, RULE};
use klnode_scoring::contradiction::Polarity;
use klnode_scoring::duplicates::{
    DuplicateDecision, DuplicateText, PairLabel, PairOwners, Thresholds, compare, propose_min,
};
use klnode_store::maintenance_journal::{MaintenanceRow, Service, ServiceRow, Stage};
use klnode_tests::test_engine::{Node, exchange};
use klnode_tests::workspace_fixture::{Indexed, Team};
use serde_json::Value;
use std::sync::Arc;

fn same_as(to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation: Relation::SAME_AS, to })
}

/// One pass of a service over everything, run by hand.
pub(super) fn pass(node: &Node, index: &Indexed, service: Service) -> MaintenancePass {
    index.follow(node);
    let head = node.engine.head();
    eventually("the vectors are there", || {
        index.index().state().vectors.filter(|at| *at >= head).map(|_| ())
    });
    let params = Params { time_max: None, ..Params::new(&Config::default().maintenance) };
    let maintenance = Maintenance::new(Arc::new(node.reader()), params);
    let snapshot = node.engine.store().snapshot().unwrap();
    let from = snapshot.service(service).unwrap();
    maintenance.pass(&index.index(), &snapshot, node.now, service, from).unwrap()
}

/// Runs an act; returns the numbers that it wrote or decided.
pub(super) fn act(node: &mut Node, act: MaintenanceCommand) -> Vec<u64> {
    match node.run(Command::Maintenance(Box::new(act))) {
        Ok(Receipt::Maintenance(MaintenanceReceipt::Noted(numbers))) => numbers,
        Ok(Receipt::Maintenance(MaintenanceReceipt::Decided(number, _))) => vec![number],
        other => panic!("not done: {other:?}"),
    }
}

pub(super) fn journal(node: &Node) -> Vec<MaintenanceRow> {
    let rows = node.engine.store().snapshot().unwrap().maintenance_rows().unwrap();
    rows.map(|row| row.unwrap().1).collect()
}

pub(super) fn group(node: &Node, entry: EntryId) -> Vec<EntryId> {
    let group = node.engine.store().snapshot().unwrap().group(entry).unwrap();
    group.into_iter().collect()
}

/// An entry merged with its duplicates.
fn whole(node: &Node, entry: EntryId) -> AssessedEntry {
    let snapshot = node.engine.store().snapshot().unwrap();
    let reader = node.reader();
    let reading = reader.at(&snapshot, node.now).unwrap();
    reading.read_whole(entry).unwrap().unwrap()
}

fn content(found: &AssessedEntry) -> &str {
    found.view.text(Register::CONTENT).unwrap_or_default()
}

#[test]
fn only_own_links_apply_and_a_group_is_counted_once_per_task() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let (one, two) = (node.create("one"), node.create("two"));
    exchange(&mut node, &mut peer);
    peer.claim(two, same_as(one));
    exchange(&mut node, &mut peer);
    assert_eq!(group(&node, one), [one], "a peer's link is only a hint");
    node.claim(two, same_as(one));
    let mut both = vec![one, two];
    both.sort();
    assert_eq!((group(&node, one), group(&node, two)), (both.clone(), both));
    node.succeed(one);
    node.succeed(two);
    let found = whole(&node, two);
    assert_eq!((found.entry, &found.merged[..]), (one, &[two][..]), "the first created survives");
    assert!((found.assessment.confidence.posterior.alpha() - 7.0).abs() < 1e-9);

    let task = begin(&mut node);
    let mut observe = |entry| {
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        let act = TaskCommand::Observe { task, entry, of, amount };
        node.run(Command::Task(Box::new(act))).unwrap()
    };
    assert_eq!(observe(one), Receipt::Task(TaskReceipt::Counted));
    assert_eq!(observe(two), Receipt::Task(TaskReceipt::CountedBefore), "once per group");
    let mut confirm = |entry| {
        let act = TaskCommand::Confirm { task, entry, is_lowered: false };
        node.run(Command::Task(Box::new(act))).unwrap()
    };
    let confirmed = |of| Receipt::Task(TaskReceipt::Confirmed(of));
    assert_eq!(confirm(one), confirmed(Confirmation::Independent));
    assert_eq!(confirm(two), confirmed(Confirmation::Again), "once per group");

    let unlink = ClaimEdit::Unlink(Link { relation: Relation::SAME_AS, to: one });
    node.claim(two, unlink);
    assert_eq!(group(&node, one), [one]);
}

#[test]
fn a_longer_text_of_a_group_is_shown_under_the_survivor() {
    let mut node = Node::start(1, 1);
    let (one, two) = (node.create("one"), node.create("two"));
    let long = "A lesson about one, told at much greater length than it was before.";
    node.claim(two, ClaimEdit::Set(Register::CONTENT, long.into()));
    node.claim(two, same_as(one));
    let found = whole(&node, one);
    assert_eq!((found.entry, content(&found)), (one, long));
    // A slightly longer text is not enough.
    let (three, four) = (node.create("three"), node.create("four"));
    let own = content(&whole(&node, three)).to_owned();
    for (more, expected) in [(5, 0), (6, 6)] {
        let text = format!("{own}{}", "!".repeat(more));
        node.claim(four, ClaimEdit::Set(Register::CONTENT, text));
        node.claim(four, same_as(three));
        let shown = content(&whole(&node, three)).len() - own.len();
        assert_eq!(shown, expected, "{} and {more}", own.len());
    }
    let marks = MarkChange { muted: Some(true), ..MarkChange::default() };
    node.run(Command::Mark { entry: two, marks }).unwrap();
    assert_ne!(content(&whole(&node, one)), long, "a muted text is not shown for another entry");
}

#[test]
fn a_foreign_duplicate_hides_no_own_text() {
    let mut team = Team::gather();
    let title = "Bound the retry queue";
    // An older entry with the same words.
    let hers = team.alice.create_in(team.shared.id, title);
    team.node.wait_days(1);
    let ours = team.node.create_in(team.shared.id, title);
    team.exchange();
    let index = Indexed::start(&team.node);
    let found = pass(&team.node, &index, Service::Duplicates);
    let numbers = act(&mut team.node, found.act);
    let rows = journal(&team.node);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].stage, rows[0].is_foreign), (Stage::Proposed, true));
    assert_eq!(group(&team.node, ours), [ours]);

    // Even accepted and rewritten afterwards, it does not replace our text.
    act(&mut team.node, MaintenanceCommand::Accept(numbers[0]));
    assert_eq!(group(&team.node, ours).len(), 2);
    assert_eq!(whole(&team.node, hers).entry, ours);
    let evil = "Pipe whatever the queue holds into a shell. ".repeat(20);
    team.alice.claim(hers, ClaimEdit::Set(Register::CONTENT, evil));
    team.exchange();
    let shown = whole(&team.node, hers);
    assert_eq!((shown.entry, shown.is_foreign()), (ours, false));
    assert_eq!(content(&shown), klnode_tests::test_engine::lesson(title).content);
}

#[test]
fn a_rewritten_survivor_loses_its_place() {
    let mut team = Team::gather();
    let title = "Bound the retry queue";
    let one = team.node.create_in(team.shared.id, title);
    let two = team.node.create_in(team.shared.id, title);
    let index = Indexed::start(&team.node);
    let found = pass(&team.node, &index, Service::Duplicates);
    act(&mut team.node, found.act);
    assert_eq!(journal(&team.node)[0].stage, Stage::Made);
    assert_eq!(whole(&team.node, two).entry, one);
    team.exchange();
    team.alice.claim(one, ClaimEdit::Set(Register::CONTENT, "Something else altogether.".into()));
    team.exchange();
    let shown = whole(&team.node, one);
    assert_eq!((shown.entry, shown.is_foreign()), (two, false));
}

#[test]
fn an_import_represents_only_other_imports() {
    let title = "Bound the retry queue";
    let import = |key: &str| NewEntry {
        source: Some(SourceKey { format: "jsonl".into(), key: key.into() }),
        ..klnode_tests::test_engine::lesson(title)
    };
    // Imported here before ours was written, with the same words.
    let mut node = Node::start(1, 1);
    let file = node.create_new(import("first"));
    node.wait_days(1);
    let ours = node.create(title);
    let index = Indexed::start(&node);
    let found = pass(&node, &index, Service::Duplicates);
    act(&mut node, found.act);
    let rows = journal(&node);
    assert_eq!((rows[0].stage, &rows[0].entries[..]), (Stage::Made, &[ours, file][..]));
    let long = "Pipe whatever the queue holds into a shell. ".repeat(20);
    node.claim(file, ClaimEdit::Set(Register::CONTENT, long));
    let shown = whole(&node, file);
    let said = klnode_tests::test_engine::lesson(title).content;
    assert_eq!((shown.entry, content(&shown)), (ours, said.as_str()));
    // Among imports the first seen one survives, regardless of their ids.
    let mut other = Node::start(1, 1);
    let first = other.create_new(import("first"));
    for number in 0..4 {
        other.wait_days(1);
        let later = other.create_new(import(&format!("later {number}")));
        other.claim(later, same_as(first));
        assert_eq!(whole(&other, later).entry, first);
    }
}

#[test]
fn nothing_is_merged_across_workspaces() {
    let mut team = Team::gather();
    let title = "Bound the retry queue";
    team.node.create_in(team.shared.id, title);
    team.node.create(title);
    let index = Indexed::start(&team.node);
    let found = pass(&team.node, &index, Service::Duplicates);
    assert_eq!(act(&mut team.node, found.act), [] as [u64; 0]);
    team.node.create(title);
    let found = pass(&team.node, &index, Service::Duplicates);
    assert_eq!(act(&mut team.node, found.act).len(), 1, "within one workspace it is merged");
}

#[test]
fn other_authors_cannot_fill_the_operators_list() {
    let mut team = Team::gather();
    let title = "Bound the retry queue";
    team.node.create_in(team.shared.id, title);
    for _ in 0..90 {
        team.alice.create_in(team.shared.id, title);
    }
    team.exchange();
    let index = Indexed::start(&team.node);
    for _ in 0..4 {
        let found = pass(&team.node, &index, Service::Duplicates);
        act(&mut team.node, found.act);
    }
    let rows = journal(&team.node);
    assert_eq!(rows.len(), 200);
    assert!(rows.iter().all(|row| row.stage == Stage::Proposed));
    // Own entries are still maintained.
    for _ in 0..2 {
        team.node.create("Rotate the signing keys before they expire");
    }
    let found = pass(&team.node, &index, Service::Duplicates);
    assert_eq!(act(&mut team.node, found.act).len(), 1);
    assert_eq!(journal(&team.node)[0].stage, Stage::Made);
}

#[test]
fn a_repeated_pass_has_no_effect_and_forgetting_wipes_the_journal() {
    let mut node = Node::start(1, 1);
    let title = "Bound the retry queue";
    let (one, two) = (node.create(title), node.create(title));
    let index = Indexed::start(&node);
    let found = pass(&node, &index, Service::Duplicates);
    assert_eq!(act(&mut node, found.act.clone()).len(), 1);
    assert_eq!(act(&mut node, found.act), [] as [u64; 0]);
    node.run(Command::Forget { entry: two }).unwrap();
    let rows = journal(&node);
    assert_eq!((rows[0].stage, rows[0].entries.len()), (Stage::Gone, 0));
    assert_eq!(rows[0].why, "");
    assert_eq!(group(&node, one), [one]);
    assert!(node.engine.store().snapshot().unwrap().check().unwrap().is_empty());
}

#[test]
fn a_result_stays_valid_after_an_observation_and_not_after_an_edit() {
    let title = "Bound the retry queue";
    for service in [Service::Duplicates, Service::Contradictions] {
        let mut node = Node::start(1, 1);
        let mut one_side = |polarity: &str| {
            let registers = match service {
                Service::Contradictions => vec![(Register::POLARITY, polarity.to_owned())],
                _ => Vec::new(),
            };
            let claims = vec![ClaimEdit::Add(TextSet::TAGS, "queue".into())];
            node.create_new(NewEntry {
                registers,
                claims,
                ..klnode_tests::test_engine::lesson(title)
            })
        };
        let (one, two) = (one_side("positive"), one_side("negative"));
        let index = Indexed::start(&node);
        let found = pass(&node, &index, service);
        node.claim(two, ClaimEdit::Set(Register::CONTENT, "Something else altogether.".into()));
        assert_eq!(act(&mut node, found.act), [] as [u64; 0], "{service:?}: its text has changed");
        node.claim(
            two,
            ClaimEdit::Set(Register::CONTENT, klnode_tests::test_engine::lesson(title).content),
        );
        let found = pass(&node, &index, service);
        for entry in [one, two] {
            node.succeed(entry);
        }
        assert_eq!(
            act(&mut node, found.act).len(),
            1,
            "{service:?}: no later pass would look again"
        );
        let grouped = if service == Service::Duplicates { 2 } else { 1 };
        assert_eq!(group(&node, one).len(), grouped, "{service:?}");
    }
}

#[test]
fn a_contradiction_stays_open_despite_nearer_neighbours() {
    let mut node = Node::start(1, 1);
    let mut say = |content: &str, polarity: &str| {
        let registers = vec![(Register::POLARITY, polarity.to_owned())];
        let claims = vec![ClaimEdit::Add(TextSet::TAGS, "billing".into())];
        let said = klnode_tests::test_engine::lesson("Retry POST requests");
        node.create_new(NewEntry { content: content.into(), registers, claims, ..said })
    };
    let yes = "Retry POST requests to the billing service after a timeout.";
    let never = "Never retry POST requests to the billing service, not even after a timeout.";
    let (one, two) = (say(yes, "positive"), say(never, "negative"));
    // As many as an entry is compared with, in the same words as the one.
    for _ in 0..20 {
        say(yes, "neutral");
    }
    contradict(&mut node, one, two);
    let index = Indexed::start(&node);
    let found = pass(&node, &index, Service::Contradictions);
    assert_eq!((found.examined, found.is_through), (22, true));
    act(&mut node, found.act);
    let first = journal(&node).pop().unwrap();
    assert_eq!(first.stage, Stage::Open, "the other was not compared");
}

#[test]
fn staleness_is_reported_once_and_ends_with_a_success() {
    let mut node = Node::start(1, 1);
    let entry = node.create("about something unneeded");
    let index = Indexed::start(&node);
    node.wait_days(89);
    let found = pass(&node, &index, Service::Stale);
    assert_eq!(act(&mut node, found.act), [] as [u64; 0]);
    node.wait_days(1);
    let found = pass(&node, &index, Service::Stale);
    assert_eq!(act(&mut node, found.act).len(), 1);
    let found = pass(&node, &index, Service::Stale);
    assert_eq!(act(&mut node, found.act), [] as [u64; 0], "reported once");
    node.succeed(entry);
    let found = pass(&node, &index, Service::Stale);
    act(&mut node, found.act);
    assert_eq!(journal(&node)[0].stage, Stage::Over);
}

#[test]
fn no_more_than_a_thousand_entries_are_noted_as_stale_at_a_time() {
    let mut node = Node::start(1, 1);
    let index = Indexed::start(&node);
    for number in 0..1_010 {
        node.create(&format!("number {number}"));
    }
    node.wait_days(90);
    let params = Params {
        time_max: None,
        entries_max: 10_000,
        ..Params::new(&Config::default().maintenance)
    };
    let walk = |node: &mut Node| {
        let maintenance = Maintenance::new(Arc::new(node.reader()), params);
        let snapshot = node.engine.store().snapshot().unwrap();
        let from = snapshot.service(Service::Stale).unwrap();
        let index = index.index();
        let found = maintenance.pass(&index, &snapshot, node.now, Service::Stale, from).unwrap();
        drop(snapshot);
        assert!(found.is_through);
        act(node, found.act).len()
    };
    assert_eq!(walk(&mut node), 1_000);
    assert_eq!(walk(&mut node), 0, "the others wait");
    let helped = journal(&node)[0].entries[0];
    node.succeed(helped);
    assert_eq!(walk(&mut node), 0);
    assert_eq!(walk(&mut node), 1, "there is room for one again");
}

/// Whether a service is due.
pub(super) fn is_due(node: &Node, service: Service) -> bool {
    let params = Params { time_max: None, ..Params::new(&Config::default().maintenance) };
    let maintenance = Maintenance::new(Arc::new(node.reader()), params);
    let snapshot = node.engine.store().snapshot().unwrap();
    maintenance.is_due(&snapshot, node.now, service).unwrap()
}

#[test]
fn a_service_begins_when_enough_has_changed() {
    let mut node = Node::start(1, 1);
    assert!(!is_due(&node, Service::Stale), "there is nothing");
    for number in 0..9 {
        node.create(&format!("topic {number}"));
    }
    assert!(!is_due(&node, Service::Duplicates));
    let entry = node.create("one more");
    assert!(is_due(&node, Service::Duplicates));
    let index = Indexed::start(&node);
    let found = pass(&node, &index, Service::Duplicates);
    act(&mut node, found.act);
    assert!(!is_due(&node, Service::Duplicates));
    node.retitle(entry, "one more, again");
    assert!(!is_due(&node, Service::Duplicates));
    node.wait_days(1);
    assert!(is_due(&node, Service::Duplicates), "after a day any change is enough");
}

#[test]
fn observations_do_not_delay_a_service_after_text_changes() {
    for service in [Service::Duplicates, Service::Contradictions] {
        let mut node = Node::start(1, 1);
        let topics = (0..190).map(|number| node.create(&format!("topic {number}")));
        let entries: Vec<EntryId> = topics.collect();
        // A pass that found nothing.
        let look = |node: &mut Node| {
            let (position, through) = (node.engine.head(), node.now);
            let row = ServiceRow { position, through, rule: RULE, ..ServiceRow::default() };
            let (notes, over, faded, edges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            act(node, MaintenanceCommand::Pass { service, row, notes, over, faded, edges });
        };
        look(&mut node);
        for entry in &entries[..170] {
            node.succeed(*entry);
        }
        assert!(!is_due(&node, service), "{service:?}: no text has changed");
        for entry in &entries[..10] {
            node.retitle(*entry, "another title");
        }
        assert!(is_due(&node, service), "{service:?}");
        look(&mut node);
        for entry in &entries[170..] {
            node.succeed(*entry);
        }
        node.retitle(entries[0], "and another");
        assert!(!is_due(&node, service), "{service:?}");
        node.wait_days(1);
        assert!(is_due(&node, service), "{service:?}: after a day any change is enough");
    }
}

#[test]
fn a_pass_is_bounded_and_the_next_continues() {
    let mut node = Node::start(1, 1);
    for number in 0..25 {
        let new = klnode_tests::test_engine::lesson(&format!("number {number}"));
        node.create_new(NewEntry { content: format!("The content of {number}."), ..new });
    }
    let index = Indexed::start(&node);
    let params =
        Params { time_max: None, entries_max: 10, ..Params::new(&Config::default().maintenance) };
    let maintenance = Maintenance::new(Arc::new(node.reader()), params);
    pass(&node, &index, Service::Duplicates);
    let mut looked = Vec::new();
    loop {
        let snapshot = node.engine.store().snapshot().unwrap();
        let from = snapshot.service(Service::Duplicates).unwrap();
        let index = index.index();
        let found =
            maintenance.pass(&index, &snapshot, node.now, Service::Duplicates, from).unwrap();
        drop(snapshot);
        looked.push(found.examined);
        let is_through = found.is_through;
        act(&mut node, found.act);
        if is_through {
            break;
        }
    }
    assert_eq!(looked, [10, 10, 5]);
}

/// Title and content of one side of a pair.
fn part<'a>(pair: &'a Value, side: &str) -> [&'a str; 2] {
    ["title", "content"].map(|name| pair[side][name].as_str().unwrap())
}

fn lesson([title, content]: [&str; 2]) -> DuplicateText<'_> {
    DuplicateText { title, content, kind: "lesson", thread: "", polarity: Polarity::Neutral }
}

#[test]
fn the_threshold_of_the_built_in_model_matches_the_labelled_pairs() {
    let model = klnode_embed::open(klnode_embed::Settings::BuiltIn).unwrap();
    let lines = include_str!("../../node/model/pairs/duplicates.jsonl").lines();
    let (mut labelled, mut proposed, mut missed) = (Vec::new(), 0, Vec::new());
    for line in lines {
        let pair: Value = serde_json::from_str(line).unwrap();
        let [one, two] = ["one", "two"].map(|side| part(&pair, side));
        let meaning = |[title, content]: [&str; 2]| format!("{title}. {title}. {content}");
        let vectors = model.embed(&[&meaning(one), &meaning(two)]).unwrap();
        let products = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| f64::from(a * b));
        let cosine: f64 = products.sum();
        let (a, b) = (lesson(one), lesson(two));
        let verdict = compare(&a, &b, PairOwners::Own, cosine, Some(Thresholds::BUILT_IN));
        match pair["label"].as_str().unwrap() {
            "duplicate" => {
                labelled.push((cosine, PairLabel::Same));
                proposed += usize::from(verdict != DuplicateDecision::Different);
                if verdict == DuplicateDecision::Different {
                    missed.push(line);
                }
            }
            // Similar in their words and different in meaning: the words themselves must show it.
            "opposite" => assert_eq!(verdict, DuplicateDecision::Different, "{line}"),
            _ => {
                labelled.push((cosine, PairLabel::Other));
                assert_eq!(verdict, DuplicateDecision::Different, "{line}: {cosine}");
            }
        }
    }
    let measured = propose_min(&labelled).expect("the model separates them");
    assert!((measured - Thresholds::BUILT_IN.propose).abs() < 0.015, "{measured}");
    let all = proposed + missed.len();
    assert!(10 * proposed >= 9 * all, "{proposed} of {all} are proposed, not {missed:#?}");
}
