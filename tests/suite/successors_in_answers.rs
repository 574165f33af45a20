//! An entry that replaces another one answers the questions of the old entry, in its place and with
//! its text.

use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::Command;
use klnode_query::{Audience, HitCaveat, SearchAnswer};
use klnode_scoring::token_budget::EntryForm;
use klnode_tests::test_engine::Node;
use klnode_tests::workspace_fixture::{Indexed, Team};

const OLD: &str = "helm rollback restores the former release in production";
const NEW: &str = "deploys go through argo since spring";
const QUESTION: &str = "helm rollback in production";

/// The old entry, a successor that has no word of the question, and a neighbour.
fn node_with_a_successor() -> (Node, [EntryId; 3]) {
    let mut node = Node::start(1, 1);
    let old = node.create(OLD);
    let neighbour = node.create("helm charts for production live in the deploy repository");
    let new = node.create(NEW);
    node.claim(new, supersedes(old));
    (node, [old, new, neighbour])
}

fn supersedes(to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation: Relation::SUPERSEDES, to })
}

fn order(answer: &SearchAnswer) -> Vec<EntryId> {
    answer.hits.iter().map(|hit| hit.found.entry).collect()
}

fn form(answer: &SearchAnswer, entry: EntryId) -> EntryForm {
    answer.hits.iter().find(|hit| hit.found.entry == entry).expect("a hit").form
}

#[test]
fn the_successor_takes_the_place_and_the_old_entry_is_a_title() {
    let (node, [old, new, neighbour]) = node_with_a_successor();
    let index = Indexed::start(&node);
    for audience in [Audience::Gated, Audience::All] {
        let answer = index.ask(&node, QUESTION, audience);
        assert_eq!(order(&answer), [new, neighbour, old], "{audience:?}");
        let caveats = &answer.hits[2].caveats;
        let is_told = caveats.iter().any(|of| matches!(of, HitCaveat::SupersededBy { .. }));
        assert!(is_told, "{caveats:?}");
    }
    let answer = index.ask(&node, QUESTION, Audience::Gated);
    assert_eq!(form(&answer, old), EntryForm::Line, "a program does not pay for the old text");
    assert!(form(&answer, new) > EntryForm::Line);
}

#[test]
fn a_successor_that_was_taken_back_takes_no_place() {
    let (mut node, [old, new, neighbour]) = node_with_a_successor();
    let index = Indexed::start(&node);
    node.run(Command::Retract { entry: new }).unwrap();
    index.follow(&node);
    let answer = index.ask(&node, QUESTION, Audience::Gated);
    assert_eq!(order(&answer), [old, neighbour]);
    assert!(form(&answer, old) > EntryForm::Line);
}

#[test]
fn an_untried_entry_of_a_member_does_not_take_over_the_questions_of_another() {
    let mut team = Team::gather();
    let old = team.node.create_in(team.shared.id, OLD);
    team.exchange();
    let new = team.bob.create_in(team.shared.id, NEW);
    team.bob.claim(new, supersedes(old));
    team.exchange();
    let answer = Indexed::start(&team.node).ask(&team.node, QUESTION, Audience::Gated);
    assert_eq!(order(&answer), [old]);
    assert!(form(&answer, old) > EntryForm::Line);
}

#[test]
fn a_member_that_has_earned_no_trust_puts_no_entry_below_its_own() {
    let mut team = Team::gather();
    let old = team.node.create_in(team.shared.id, OLD);
    team.exchange();
    let false_one = team.bob.create_in(team.shared.id, "helm rollback in production is forbidden");
    team.bob.claim(false_one, supersedes(old));
    team.exchange();
    let answer = Indexed::start(&team.node).ask(&team.node, QUESTION, Audience::All);
    let first = answer.hits.iter().find(|hit| hit.found.entry == old).expect("a hit");
    assert!(
        first.caveats.iter().any(
            |of| matches!(of, HitCaveat::ReplacementClaimed { entry, .. } if *entry == false_one)
        ),
        "{:?}",
        first.caveats
    );
    assert_eq!(order(&answer)[0], old);
}
