//! An entry that misled here since it last helped: answers warn of it, and list it
//! after its correction.

use klnode_config::Layers;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation::{self, Failure, Success};
use klnode_engine::Command;
use klnode_query::{Cancel, HitCaveat, Reader, ScoringParams, SearchAnswer, SearchQuery};
use klnode_tests::test_engine::Node;
use klnode_tests::workspace_fixture::Indexed;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const QUESTION: &str = "retry the billing gateway";

/// Two entries that answer one question; the older one helped on six days.
fn node_with_a_proven_entry() -> (Node, EntryId, EntryId) {
    let mut node = Node::start(1, 1);
    let old = node.create("retry the billing gateway three times");
    for _ in 0..6 {
        observe(&mut node, old, Success);
    }
    let new = node.create("retry the billing gateway seven times");
    (node, old, new)
}

/// Counts an observation; the next one is counted a day later.
fn observe(node: &mut Node, entry: EntryId, of: Observation) {
    node.run(Command::Observe { entry, of, amount: Thousandths::ONE }).unwrap();
    node.now = node.now.plus(DAY);
}

/// The answer in the order of the means, with this deduction for each failure.
fn ask(index: &Indexed, node: &Node, penalty: &str) -> SearchAnswer {
    let setting = format!("tuning.retrieval.recent_failure_penalty={penalty}");
    let layers = Layers::new().flags([("--set", setting)]).resolve().unwrap();
    let reader = Reader::new(node.author(), ScoringParams::new(layers.config()));
    let question = SearchQuery::new(QUESTION, 5);
    index.follow(node);
    let snapshot = node.engine.store().snapshot().unwrap();
    reader.search(&index.index(), &snapshot, &question, node.now, &Cancel::default()).unwrap()
}

fn order(answer: &SearchAnswer) -> Vec<EntryId> {
    answer.hits.iter().map(|hit| hit.found.entry).collect()
}

fn warned(answer: &SearchAnswer) -> Vec<EntryId> {
    let warns = |caveat: &HitCaveat| matches!(caveat, HitCaveat::FailedLately);
    let hits = answer.hits.iter().filter(|hit| hit.caveats.iter().any(warns));
    hits.map(|hit| hit.found.entry).collect()
}

#[test]
fn an_entry_that_failed_since_it_last_helped_comes_after_its_correction() {
    let (mut node, old, new) = node_with_a_proven_entry();
    let index = Indexed::start(&node);
    let first = ask(&index, &node, "0.05");
    assert_eq!((order(&first), warned(&first)), (vec![old, new], vec![]));
    observe(&mut node, old, Failure);
    assert_eq!(warned(&ask(&index, &node, "0.05")), [old]);
    observe(&mut node, old, Failure);
    let failed = ask(&index, &node, "0.05");
    assert_eq!((order(&failed), warned(&failed)), (vec![new, old], vec![old]));
    let without = ask(&index, &node, "0");
    assert_eq!((order(&without), warned(&without)), (vec![old, new], vec![]));
    observe(&mut node, old, Success);
    let helped = ask(&index, &node, "0.05");
    assert_eq!((order(&helped), warned(&helped)), (vec![old, new], vec![]));
}

#[test]
fn an_entry_that_alone_answers_is_shown_with_the_warning() {
    let mut node = Node::start(1, 1);
    let only = node.create("retry the billing gateway three times");
    for _ in 0..4 {
        observe(&mut node, only, Failure);
    }
    let index = Indexed::start(&node);
    let answer = ask(&index, &node, "0.05");
    assert_eq!((order(&answer), warned(&answer)), (vec![only], vec![only]));
    assert_eq!(answer.hits[0].demotion, 0.05 * 3.0, "for at most three failures");
}

#[test]
fn the_failures_of_an_earlier_text_are_forgotten_with_it() {
    let mut node = Node::start(1, 1);
    let only = node.create("retry the billing gateway three times");
    for _ in 0..4 {
        observe(&mut node, only, Failure);
    }
    node.retitle(only, "retry the billing gateway seven times");
    let index = Indexed::start(&node);
    let answer = ask(&index, &node, "0.05");
    assert_eq!((order(&answer), warned(&answer)), (vec![only], vec![]));
    assert_eq!(answer.hits[0].demotion, 0.0);
}
