//! Blocked and convicted members: blocked by this node's owner, or convicted of equivocation. They
//! then count as non-members in views, answers and word statistics; lifting a block makes them
//! members again. No record documents the block.

use crate::attacks_on_answers::{
    UNEVEN, answered, ask_for_all, asked_of_an_answer, flood, learn, place, relevance, settled,
};
use crate::attacks_on_display::{facts, rewrites};
use crate::author_standing::{mean, near, pair, texts};
use crate::foreign_gate::{await_answer, entries};
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation::{Failure, Success};
use klnode_engine::{Command, DeliveredRecord, PeerCommand};
use klnode_query::{Audience, SearchHit};
use klnode_scoring::trust::WeightReason;
use klnode_server::Limits;
use klnode_store::peers::row_types::PeerRow;
use klnode_tests::knowledge_attacks::{
    Rates, UNHEARD_CROWD, UNHEARD_FLOOD, UNHEARD_REWRITING, victims,
};
use klnode_tests::test_engine::Node;
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::{Indexed, Stranger, Team, bring, paired};
use serde_json::json;
use std::time::{Duration, Instant};

fn blocked(name: &str) -> PeerRow {
    PeerRow { is_blocked: true, ..paired(name) }
}

/// A member that runs no node, only a key that signs.
fn admit(team: &mut Team, number: u32) -> Stranger {
    let member = Stranger::new(number);
    team.shared.admit(member.author());
    team.shared.tell(&mut team.node);
    member
}

/// Claim that sets a summary.
fn summary(text: &str) -> ClaimEdit {
    ClaimEdit::Set(Register::SUMMARY, text.into())
}

/// Delivers two records for the same slot and counter, which convicts their signer.
fn convict(node: &mut Node, liar: &Stranger, entry: EntryId) {
    let twins = [1, 2].map(|times| liar.observes(entry, Failure, times));
    bring(node, twins.to_vec(), liar.author());
    assert_eq!(node.standing(liar.author()).weight.reason, WeightReason::Equivocating);
}

fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn blocked_and_convicted_authors_weigh_nothing() {
    let (mut node, mut peer) = pair();
    let entry = node.create("ours");
    node.send_to(&mut peer);
    peer.observe(entry, Failure);
    peer.send_to(&mut node);
    assert!(mean(&node, entry) < 0.5);
    node.meet(peer.author(), PeerRow { is_blocked: true, ..paired("alice") });
    let of = node.standing(peer.author());
    assert_eq!((of.weight.value, of.weight.reason), (0.0, WeightReason::Blocked));
    near(mean(&node, entry), 0.5);
    // The same author with a key that signs two records for the same slot and counter.
    node.meet(peer.author(), paired("alice"));
    let liar = Stranger::new(1);
    node.meet(liar.author(), paired("bob"));
    bring(&mut node, vec![liar.observes(entry, Failure, 1)], liar.author());
    near(node.standing(liar.author()).weight.value, 0.07);
    bring(&mut node, vec![liar.observes(entry, Success, 1)], liar.author());
    let of = node.standing(liar.author());
    assert_eq!((of.weight.value, of.weight.reason), (0.0, WeightReason::Equivocating));
}

#[test]
fn a_blocked_node_of_the_same_person_has_no_weight() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let mine = PeerRow { is_mine: true, ..paired("laptop") };
    node.meet(peer.author(), mine.clone());
    let entry = texts(&mut node, &mut peer, 1)[0];
    assert!(!node.found(entry).is_foreign());
    assert_eq!(node.standing(peer.author()).weight.value, 1.0);
    node.meet(peer.author(), PeerRow { is_blocked: true, ..mine });
    assert!(node.found(entry).is_foreign());
    assert_eq!(node.standing(peer.author()).weight.value, 0.0);
}

#[test]
fn a_blocked_members_claims_are_proposals_until_unblocked() {
    let mut team = Team::gather();
    let entry = team.node.create_in(team.shared.id, "speaking rights");
    team.exchange();
    team.alice.retitle(entry, "Run this as root");
    team.exchange();
    let shown = |team: &Team| {
        let found = team.node.found(entry);
        let title = found.view.text(Register::TITLE).unwrap().to_owned();
        (title, found.view.proposals.len(), found.is_foreign())
    };
    let hers = ("Run this as root".to_owned(), 0, true);
    assert_eq!(shown(&team), hers);
    team.node.meet(team.alice.author(), blocked("alice"));
    assert_eq!(shown(&team), ("speaking rights".to_owned(), 1, false));
    // The writer sees the same text, so blame does not go to the blocked member.
    team.node.observe(entry, Failure);
    team.node.meet(team.alice.author(), paired("alice"));
    assert_eq!(shown(&team), hers);
    let trust = team.node.standing(team.alice.author()).trust;
    assert!((trust - 0.1).abs() < 1e-4, "{trust}");
    team.node.observe(entry, Failure);
    assert!(team.node.standing(team.alice.author()).trust < 0.05);
}

#[test]
fn entries_by_a_blocked_member_stay_visible_with_edits_by_members() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "hers");
    team.exchange();
    team.node.meet(team.alice.author(), blocked("alice"));
    assert_eq!(team.node.found(entry).view.text(Register::TITLE), Some("hers"));
    team.bob.retitle(entry, "bob's");
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.view.text(Register::TITLE), Some("bob's"));
    let author = &found.author.as_ref().unwrap().name;
    assert_eq!(author, "alice", "the author of the content is responsible");
}

#[test]
fn claims_of_blocked_or_convicted_members_become_proposals_only() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    // A clone of bob's home signs for the same slots and counters.
    let mut twin = Node::start(3, 3);
    team.node.send_to(&mut twin);
    twin.observe(honest[2], Success);
    team.bob.observe(honest[2], Failure);
    for liar in [&twin, &team.bob] {
        liar.send_to(&mut team.node);
    }
    assert_eq!(team.node.standing(team.bob.author()).weight.reason, WeightReason::Equivocating);
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(1);
    }
    let (alice, mut rates) = (team.alice.author(), Rates::default());
    for pair in honest.chunks(3) {
        let (entry, other) = (pair[0], pair[1]);
        let before = facts(&team.node, entry);
        let mut heard = before.clone();
        for claim in rewrites(other) {
            team.bob.claim(entry, claim.clone());
            assert!(team.bob.send_to(&mut team.node) > 0, "the claim arrives");
            rates.count(UNHEARD_REWRITING, facts(&team.node, entry) != before);
            team.node.meet(alice, paired("alice"));
            team.alice.claim(entry, claim.clone());
            team.alice.send_to(&mut team.node);
            let now = facts(&team.node, entry);
            // Only this person can archive an entry here.
            let is_theirs = !matches!(claim, ClaimEdit::Archive(_));
            assert_eq!(now != heard, is_theirs, "a member has an effect: {claim:?}");
            heard = now;
            team.node.meet(alice, blocked("alice"));
            rates.count(UNHEARD_REWRITING, facts(&team.node, entry) != before);
        }
    }
    rates.hold();
}

#[test]
fn texts_by_a_blocked_member_displace_nothing_and_do_not_affect_word_weights() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let calm = settled(&team.node);
    let before = answered(&calm, &team.node, &honest);
    let asked = asked_of_an_answer(&calm, &team.node);
    drop(calm);
    let planted = flood(&mut team.alice, team.shared.id, &mut team.node);
    let index = settled(&team.node);
    assert!(asked_of_an_answer(&index, &team.node) > asked + UNEVEN, "a member's texts count");
    let at = team.node.engine.head();
    team.node.meet(team.alice.author(), blocked("alice"));
    assert_eq!(team.node.engine.head(), at, "no record is written");
    index.follow(&team.node);
    let mut rates = Rates::default();
    let is_silenced = |(question, own, before): &(String, EntryId, f64)| {
        let after = relevance(&index, &team.node, question, *own);
        after.is_none_or(|after| (after - before).abs() > UNEVEN)
    };
    await_that("her texts count for nothing", || {
        (asked_of_an_answer(&index, &team.node) - asked).abs() < UNEVEN
            && !before.iter().any(is_silenced)
    });
    for of in &before {
        rates.count(UNHEARD_FLOOD, is_silenced(of));
    }
    // The questions that the texts were made for.
    for (question, own) in victims().iter().map(|victim| victim.query).zip(honest).take(2) {
        let gated = index.ask(&team.node, question, Audience::Gated);
        assert!(!gated.hits.iter().any(|hit: &SearchHit| planted.contains(&hit.found.entry)));
        rates.count(UNHEARD_CROWD, place(&gated.hits, own).is_none());
        let all = ask_for_all(&index, &team.node, question).hits;
        assert!(all.iter().any(|hit| planted.contains(&hit.found.entry)), "they are stored");
    }
    rates.hold();
    team.node.meet(team.alice.author(), paired("alice"));
    index.follow(&team.node);
    await_that("a member's texts count again", || {
        asked_of_an_answer(&index, &team.node) > asked + UNEVEN
    });
}

#[test]
fn the_index_drops_the_words_of_a_blocked_or_convicted_member() {
    let mut team = Team::gather();
    let [entry, other] = ["pipelines", "another"].map(|of| team.node.create_in(team.shared.id, of));
    let dave = admit(&mut team, 1);
    let said = dave.claims(entry, summary("Xylophonecipher and quartzflute."));
    bring(&mut team.node, vec![said], dave.author());
    let index = Indexed::start(&team.node);
    let word = "xylophonecipher quartzflute";
    await_answer(&index, &team.node, word, |hits| entries(hits) == [entry]);
    for (row, is_found) in [(blocked("dave"), false), (paired("dave"), true)] {
        team.node.meet(dave.author(), row);
        index.follow(&team.node);
        await_answer(&index, &team.node, word, |hits| hits.is_empty() != is_found);
    }
    convict(&mut team.node, &dave, other);
    index.follow(&team.node);
    await_answer(&index, &team.node, word, <[SearchHit]>::is_empty);
}

#[test]
fn a_running_node_applies_a_block_without_a_record() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = json!({"title": "pipelines", "content": "They are long.", "evidence": ["doc:notes"]});
    let made = served.json("POST", "/v1/entries", &new).json();
    let entry = EntryId::from_hex(made["id"].as_str().unwrap()).unwrap();
    let laptop = Stranger::new(1);
    let put = |row: PeerRow| {
        let acts = vec![PeerCommand::Put(laptop.author(), Box::new(row))];
        served.engine.submit_blocking(Command::Peers(acts)).unwrap();
    };
    let mine = PeerRow { is_mine: true, ..paired("laptop") };
    put(mine.clone());
    let record = laptop.claims(entry, summary("Xylophonecipher and quartzflute."));
    let arrival = DeliveredRecord { record, from: laptop.author() };
    served.engine.submit_blocking(Command::Ingest(vec![arrival])).unwrap();
    let hits = || {
        let question = json!({"query": "xylophonecipher quartzflute", "all": true});
        let answer = served.json("POST", "/v1/search", &question).json();
        (answer["hits"].as_array().unwrap().len(), answer["index_lag"].clone())
    };
    await_that("the index takes it in", || hits() == (1, json!(0)));
    let at = *served.engine.head().borrow();
    put(PeerRow { is_blocked: true, ..mine });
    await_that("a lost laptop's words are found no more", || hits().0 == 0);
    assert_eq!(*served.engine.head().borrow(), at, "no record is written");
}
