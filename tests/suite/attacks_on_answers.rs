//! Knowledge attacks on answers, with fixed corpora: poison, crowds and floods. Their success rates
//! are compared with a threshold and with `docs/internals/attacks.md`. Each test first shows that the attack
//! reaches the node. Attacks on evidence and on displayed text have their own files.

use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::tally::Observation::{Confirmation, Success};
use klnode_engine::NewEntry;
use klnode_query::{
    AbstentionReason, Audience, Cancel, HitCaveat, SearchAnswer, SearchHit, SearchQuery,
};
use klnode_tests::knowledge_attacks::{
    ATTACKS, CROWD, FLOOD, LOST, MEMBER, MEMBER_LOST, OUTSIDER, PAGE, Poison, Rates, UNLABELLED,
    victims,
};
use klnode_tests::test_engine::{Node, lesson};
use klnode_tests::workspace_fixture::{Indexed, Team};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Number of places of a gated answer that untried texts may take.
pub(super) const LAST_PLACES: usize = 2;
/// Tolerance for deleted texts whose index segments are not merged yet.
pub(super) const UNEVEN: f64 = 0.03;

/// Writes the victims' entries.
pub(super) fn learn(node: &mut Node, workspace: WorkspaceId) -> Vec<EntryId> {
    let known = victims().into_iter().map(|victim| NewEntry {
        workspace,
        content: victim.content.to_owned(),
        ..lesson(victim.title)
    });
    known.map(|new| node.create_new(new)).collect()
}

/// Writes texts against all entries of the victims, each linked to the one before and marked as
/// superseding the honest entry. Their author vouches for them.
fn plant(by: &mut Node, workspace: WorkspaceId, honest: &[EntryId]) -> BTreeSet<EntryId> {
    let mut planted = BTreeSet::new();
    for (victim, &honest) in victims().iter().zip(honest) {
        let mut before = honest;
        for Poison { title, content } in victim.poison() {
            let links = [(Relation::SUPERSEDES, honest), (Relation::RELATED, before)];
            let claims =
                links.map(|(relation, to)| ClaimEdit::Link(Link { relation, to })).to_vec();
            let entry = by.create_new(NewEntry { workspace, content, claims, ..lesson(&title) });
            by.observe(entry, Success);
            by.observe(entry, Confirmation);
            planted.insert(entry);
            before = entry;
        }
    }
    planted
}

/// All questions of all victims, with the entry that answers.
pub(super) fn questions(honest: &[EntryId]) -> Vec<(String, EntryId)> {
    let of = victims().into_iter().zip(honest.iter().copied());
    of.flat_map(|(victim, entry)| victim.questions().map(|question| (question, entry))).collect()
}

/// Starts an index and waits until it is complete.
pub(super) fn settled(node: &Node) -> Indexed {
    let index = Indexed::start(node);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let is_caught_up = index.ask(node, "anything", Audience::All).index_lag == 0;
        if is_caught_up && index.index().meaning().is_some() {
            return index;
        }
        assert!(Instant::now() < deadline, "the index does not catch up");
        std::thread::yield_now();
    }
}

/// An ungated answer with all hits, labelled.
pub(super) fn ask_for_all(index: &Indexed, node: &Node, text: &str) -> SearchAnswer {
    let snapshot = node.engine.store().snapshot().unwrap();
    let (reader, question) = (node.reader(), SearchQuery::new(text, 60));
    reader.search(&index.index(), &snapshot, &question, node.now, &Cancel::default()).unwrap()
}

pub(super) fn is_labelled(hit: &SearchHit, by: &str) -> bool {
    let foreign = HitCaveat::Foreign { by: by.to_owned() };
    let is_said =
        hit.caveats.contains(&foreign) && hit.caveats.contains(&HitCaveat::Uncorroborated);
    hit.found.is_foreign() && is_said
}

pub(super) fn place(hits: &[SearchHit], entry: EntryId) -> Option<usize> {
    hits.iter().position(|hit| hit.found.entry == entry)
}

#[test]
fn the_page_lists_every_attack_and_no_other() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.filter(|name| *name != "attack").collect();
    let names: Vec<&str> = ATTACKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(rows, names, "in docs/internals/attacks.md");
}

#[test]
fn poison_by_a_non_member_enters_no_gated_answer() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = plant(&mut team.carol, team.shared.id, &honest);
    team.exchange();
    let index = settled(&team.node);
    let is_planted = |hit: &SearchHit| planted.contains(&hit.found.entry);
    let (mut rates, mut reached) = (Rates::default(), 0);
    for (question, own) in questions(&honest) {
        let gated = index.ask(&team.node, &question, Audience::Gated);
        rates.count(OUTSIDER, gated.hits.iter().chain(&gated.nearest).any(is_planted));
        rates.count(LOST, place(&gated.hits, own).is_none());
        let all = ask_for_all(&index, &team.node, &question).hits;
        reached += usize::from(all.iter().any(is_planted));
        let is_bare = |hit: &SearchHit| is_planted(hit) && !is_labelled(hit, "carol");
        rates.count(UNLABELLED, all.iter().any(is_bare));
    }
    assert_eq!(reached, questions(&honest).len(), "an ungated answer finds the corpus");
    rates.hold();
}

#[test]
fn poison_by_a_member_takes_at_most_the_last_two_places_and_is_labelled() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = plant(&mut team.alice, team.shared.id, &honest);
    team.exchange();
    // An accomplice confirms each of them; neither of the two is trusted.
    team.exchange();
    for entry in &planted {
        team.bob.observe(*entry, Confirmation);
    }
    team.exchange();
    let index = settled(&team.node);
    let (mut rates, mut reached) = (Rates::default(), 0);
    for (question, own) in questions(&honest) {
        let hits = index.ask(&team.node, &question, Audience::Gated).hits;
        let is_planted = |hit: &&SearchHit| planted.contains(&hit.found.entry);
        let places = hits.iter().filter(is_planted).count();
        let are_last = hits[hits.len() - places..].iter().all(|hit| is_planted(&hit));
        let are_labelled = hits.iter().filter(is_planted).all(|hit| is_labelled(hit, "alice"));
        rates.count(MEMBER, places > LAST_PLACES || !are_last || !are_labelled);
        rates.count(MEMBER_LOST, place(&hits, own).is_none());
        reached += places;
    }
    assert!(reached > 0, "a member's texts are served");
    rates.hold();
}

/// Writes a thousand texts stuffed with the words of two questions, and delivers them to a node.
pub(super) fn flood(by: &mut Node, workspace: WorkspaceId, node: &mut Node) -> BTreeSet<EntryId> {
    let mut planted = BTreeSet::new();
    for victim in victims().into_iter().take(2) {
        for Poison { title, content } in victim.crowd(500) {
            let new = NewEntry { workspace, content, ..lesson(&title) };
            planted.insert(by.create_new(new));
        }
    }
    by.send_to(node);
    planted
}

/// Relevance of an entry in the gated answer to a question.
pub(super) fn relevance(index: &Indexed, node: &Node, question: &str, own: EntryId) -> Option<f64> {
    let gated = index.ask(node, question, Audience::Gated);
    let mut hits = gated.hits.iter();
    hits.find(|hit| hit.found.entry == own).map(|hit| hit.relevance.value)
}

/// All questions of all victims, with the entry that answers and its relevance.
pub(super) fn answered(
    index: &Indexed,
    node: &Node,
    honest: &[EntryId],
) -> Vec<(String, EntryId, f64)> {
    let of = |(question, own): (String, EntryId)| {
        let value = relevance(index, node, &question, own);
        let value = value.unwrap_or_else(|| panic!("`{question}` has an answer"));
        (question, own, value)
    };
    questions(honest).into_iter().map(of).collect()
}

/// The answer threshold, as reported for a question without an answer.
pub(super) fn asked_of_an_answer(index: &Indexed, node: &Node) -> f64 {
    match index.ask(node, "zqxj vvkp", Audience::Gated).abstained {
        Some(AbstentionReason::NothingRelevant { score_min, .. }) => score_min,
        other => panic!("the question has no answer: {other:?}"),
    }
}

#[test]
fn a_flood_by_a_non_member_changes_no_word_weights_and_a_members_texts_count() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let calm = settled(&team.node);
    let before = answered(&calm, &team.node, &honest);
    let asked = asked_of_an_answer(&calm, &team.node);
    drop(calm);
    let planted = flood(&mut team.carol, team.shared.id, &mut team.node);
    assert_eq!(planted.len(), 1_000);
    let index = settled(&team.node);
    let mut rates = Rates::default();
    for (question, own, before) in before {
        let after = relevance(&index, &team.node, &question, own);
        rates.count(FLOOD, after.is_none_or(|after| (after - before).abs() > UNEVEN));
    }
    rates.hold();
    let flooded = asked_of_an_answer(&index, &team.node);
    assert!((flooded - asked).abs() < UNEVEN, "{asked} {flooded}");
    // Once she is a member, her texts count like any member's.
    team.shared.admit(team.carol.author());
    team.shared.tell(&mut team.node);
    index.follow(&team.node);
    let deadline = Instant::now() + Duration::from_secs(60);
    while asked_of_an_answer(&index, &team.node) < asked + UNEVEN {
        assert!(Instant::now() < deadline, "a member's texts do not count");
        std::thread::yield_now();
    }
}

#[test]
fn stuffed_texts_beyond_the_candidate_limit_crowd_nothing_out_of_a_gated_answer() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = flood(&mut team.carol, team.shared.id, &mut team.node);
    let index = settled(&team.node);
    let mut rates = Rates::default();
    // The questions that the texts were made for.
    for (question, own) in victims().iter().map(|victim| victim.query).zip(honest).take(2) {
        let gated = index.ask(&team.node, question, Audience::Gated);
        let is_planted = |hit: &SearchHit| planted.contains(&hit.found.entry);
        assert!(!gated.hits.iter().any(is_planted), "{question}");
        rates.count(CROWD, place(&gated.hits, own).is_none());
        let all = ask_for_all(&index, &team.node, question).hits;
        let count = all.iter().filter(|hit| is_planted(hit)).count();
        assert!(count > 30, "{count} of {} are planted where all is shown", all.len());
    }
    rates.hold();
}
