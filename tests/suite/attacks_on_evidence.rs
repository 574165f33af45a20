//! Knowledge attacks on evidence, with fixed corpora: echoes, crowds of identities, slander,
//! milking and overflowing counters. The figures are those of `docs/internals/attacks.md`.

use crate::attacks_on_answers::{ask_for_all, place, settled};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::tally::Observation::{self, Failure, Success};
use klnode_engine::{Command, NewEntry, PeerCommand};
use klnode_scoring::status::Status;
use klnode_server::Limits;
use klnode_tests::knowledge_attacks::{
    COUNTERS, ECHO, MILKING, Poison, Rates, SLANDER, SLANDER_PLACE, SYBIL, SYBIL_ORDER, victims,
};
use klnode_tests::test_engine::{Node, lesson};
use klnode_tests::test_server::{Doors, Served, TOKEN, ask};
use klnode_tests::workspace_fixture::{Indexed, Stranger, Team, bring, paired};
use serde_json::{Value, json};
use std::time::Duration;

/// Trust in an author without evidence.
const STRANGERS_TRUST: f64 = 0.1;
/// Weight of a new paired peer: a stranger's trust, one hop away.
const NEW_PEERS_WEIGHT: f64 = STRANGERS_TRUST * 0.7;
/// An author's mass on an entry is at most this value times its weight.
const MASS_PER_WEIGHT: f64 = 20.0;
/// Tolerance for floating-point rounding.
const ROUNDING: f64 = 1e-6;

fn mean(node: &Node, entry: EntryId) -> f64 {
    node.found(entry).assessment.confidence.posterior.mean()
}

fn counts(node: &mut Node, entry: EntryId, of: Observation, thousandths: u64) {
    node.run(Command::Observe { entry, of, amount: Thousandths(thousandths) }).unwrap();
}

/// A node and a paired peer.
fn pair() -> (Node, Node) {
    let (mut node, peer) = (Node::start(1, 1), Node::start(2, 2));
    node.meet(peer.author(), paired("mallory"));
    (node, peer)
}

/// Two own entries of the same text for each of the first victims: one with ten successes, and one
/// untried.
fn twins(node: &mut Node, count: usize) -> Vec<(&'static str, EntryId, EntryId)> {
    let of = victims().into_iter().take(count).map(|victim| {
        let new = || NewEntry { content: victim.content.to_owned(), ..lesson(victim.title) };
        let (tried, untried) = (node.create_new(new()), node.create_new(new()));
        counts(node, tried, Success, 10_000);
        (victim.query, tried, untried)
    });
    of.collect()
}

/// Whether the tried one of two twins is ranked first.
fn is_first(index: &Indexed, node: &Node, query: &str, tried: EntryId, untried: EntryId) -> bool {
    let hits = ask_for_all(index, node, query).hits;
    let places = place(&hits, tried).zip(place(&hits, untried));
    let (tried, untried) = places.expect("both are relevant");
    tried < untried
}

/// Confidence figures of an entry, as the node shows them.
fn believed(served: &Served, entry: &str) -> Vec<Value> {
    let shown = served.json("GET", &format!("/v1/entries/{entry}"), &json!(null)).json();
    let fields = ["alpha", "beta", "observations", "status", "corroborated"];
    fields.map(|field| shown[field].clone()).to_vec()
}

#[test]
fn a_confirmation_by_a_served_caller_is_no_evidence() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let mut peer = Node::start(2, 2);
    let put = PeerCommand::Put(peer.author(), Box::new(paired("mallory")));
    served.engine.submit_blocking(Command::Peers(vec![put])).unwrap();
    let mut rates = Rates::default();
    for victim in victims().into_iter().take(10) {
        let honest = json!({
            "title": victim.title, "content": victim.content, "evidence": ["doc:notes"],
        });
        let honest = served.json("POST", "/v1/entries", &honest).json()["id"].clone();
        let Poison { title, content } = victim.poison().remove(0);
        let poison = peer.create_new(NewEntry { content, ..lesson(&title) });
        let EntryRecords::Live(authors) = peer.records(poison) else { panic!("forgotten") };
        let records = authors.values().flat_map(|held| held.records().cloned());
        let from = peer.author();
        let arrivals =
            records.map(|record| klnode_engine::DeliveredRecord { record, from }).collect();
        served.engine.submit_blocking(Command::Ingest(arrivals)).unwrap();
        let all = json!({"query": victim.query, "all": true, "limit": 50});
        let all = served.json("POST", "/v1/search", &all).json();
        let ids: Vec<&Value> =
            all["hits"].as_array().unwrap().iter().map(|hit| &hit["id"]).collect();
        for entry in [honest, json!(poison.to_string())] {
            assert!(ids.contains(&&entry), "it was served: {all}");
            let entry = entry.as_str().unwrap();
            let before = believed(&served, entry);
            for _ in 0..5 {
                let path = format!("/v1/entries/{entry}/confirm");
                let confirmed = served.json("POST", &path, &json!(null)).json();
                let is_counted =
                    confirmed["class"] != "primed" || believed(&served, entry) != before;
                rates.count(ECHO, is_counted);
            }
        }
        let snapshot = served.engine.store().snapshot().unwrap();
        assert_eq!(snapshot.uses(poison).unwrap().primed_confirmations, 5, "counted separately");
        let gated = served.json("POST", "/v1/search", &json!({"query": victim.query})).json();
        let mut hits = gated["hits"].as_array().unwrap().iter();
        assert!(hits.all(|hit| hit["foreign"] == json!(false)), "{gated}");
    }
    rates.hold();
}

#[test]
fn callers_over_tcp_count_once_like_one_user() {
    let served = Served::start(Limits::default(), Doors::Both);
    let new = json!({"title": "Said again", "content": "And again.", "evidence": ["doc:notes"]});
    let entry = served.json("POST", "/v1/entries", &new).json()["id"].clone();
    let path = format!("/v1/entries/{}/observations", entry.as_str().unwrap());
    let token = format!("Bearer {TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
    let body = json!({"outcome": "success"}).to_string();
    let counted = (0..5).filter(|_| {
        let answer = ask(served.connect_tcp(), "POST", &path, &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["counted"] == true
    });
    // The day may change during the test.
    let counted = counted.count();
    assert!((1..=2).contains(&counted), "{counted}");
}

/// Twins attacked by a crowd or by its peer, and the shift of each mean.
fn besieged(crowd: &[Stranger], rates: &mut Rates) -> Vec<f64> {
    let (mut node, mut peer) = pair();
    let twins = twins(&mut node, 3);
    let both = |(_, tried, untried): &(&str, EntryId, EntryId)| [*tried, *untried];
    let entries: Vec<EntryId> = twins.iter().flat_map(both).collect();
    let before: Vec<f64> = entries.iter().map(|entry| mean(&node, *entry)).collect();
    let lies = || [Failure, Success].into_iter().cycle().zip(entries.clone());
    if crowd.is_empty() {
        node.send_to(&mut peer);
        for (of, entry) in lies() {
            counts(&mut peer, entry, of, 1_000_000_000);
        }
        peer.send_to(&mut node);
    } else {
        let claim = |one: &Stranger| PeerCommand::Distance(one.author(), peer.author(), 1);
        node.note(crowd.iter().map(claim).collect());
        for (of, entry) in lies() {
            let records = crowd.iter().map(|one| one.observes(entry, of, 1_000)).collect();
            bring(&mut node, records, peer.author());
        }
    }
    let index = settled(&node);
    for (query, tried, untried) in twins.iter().filter(|_| !crowd.is_empty()) {
        rates.count(SYBIL_ORDER, !is_first(&index, &node, query, *tried, *untried));
    }
    let moved = entries.iter().zip(before).map(|(entry, before)| mean(&node, *entry) - before);
    moved.collect()
}

#[test]
fn a_thousand_identities_behind_one_peer_weigh_no_more_than_it() {
    let mut rates = Rates::default();
    let alone = besieged(&[], &mut rates);
    let crowd: Vec<Stranger> = (0..1_000).map(Stranger::new).collect();
    let together = besieged(&crowd, &mut rates);
    assert!(alone.iter().all(|by| by.abs() > 0.01), "one peer has an effect: {alone:?}");
    for (together, alone) in together.into_iter().zip(alone) {
        rates.count(SYBIL, together.abs() > alone.abs() + ROUNDING);
    }
    rates.hold();
}

#[test]
fn slander_hardly_moves_locally_verified_entries() {
    let (mut node, mut peer) = pair();
    let twins = twins(&mut node, 30);
    let index = settled(&node);
    for (query, tried, untried) in &twins {
        assert!(is_first(&index, &node, query, *tried, *untried), "{query}");
    }
    node.send_to(&mut peer);
    for (_, tried, _) in &twins {
        counts(&mut peer, *tried, Failure, 10_000_000);
    }
    peer.send_to(&mut node);
    // Ten own successes on a prior of five and five; the peer adds no more than its bound.
    let mean_min = 15.0 / (20.0 + MASS_PER_WEIGHT * NEW_PEERS_WEIGHT);
    let mut rates = Rates::default();
    for (query, tried, untried) in &twins {
        let of = mean(&node, *tried);
        assert!(of < 15.0 / 20.0, "the peer has an effect: {of}");
        rates.count(SLANDER, of < mean_min - ROUNDING);
        let is_verified = node.found(*tried).assessment.standing.status == Status::Verified;
        let is_first = is_first(&index, &node, query, *tried, *untried);
        rates.count(SLANDER_PLACE, !is_verified || !is_first);
    }
    rates.hold();
}

#[test]
fn a_trusted_author_is_below_a_stranger_after_five_failures() {
    let mut rates = Rates::default();
    for good in [0_usize, 1, 5, 20, 60, 100] {
        let (mut node, mut peer) = pair();
        let texts = (0..good + 5).map(|number| peer.create(&format!("text {number}")));
        let texts: Vec<EntryId> = texts.collect();
        peer.send_to(&mut node);
        let (good, bad) = texts.split_at(good);
        // More successes do not count on one day.
        for today in good.chunks(5) {
            for entry in today {
                node.succeed(*entry);
            }
            node.wait_days(1);
        }
        let earned = node.standing(peer.author()).trust;
        assert!(good.is_empty() || earned > 3.0 * STRANGERS_TRUST, "{earned}");
        for entry in bad {
            node.observe(*entry, Failure);
        }
        rates.count(MILKING, node.standing(peer.author()).trust >= STRANGERS_TRUST - ROUNDING);
    }
    rates.hold();
}

/// Adds as much as fits into the cells of some days, up to today.
fn overflow(by: &mut Node, entry: EntryId, of: Observation, thousandths: u64, days: u64) {
    let now = by.now;
    for ago in (0..days).rev() {
        by.now = now.minus(Duration::from_secs(ago * 86_400));
        counts(by, entry, of, thousandths);
    }
    by.now = now;
}

#[test]
fn counters_that_overflow_weigh_no_more_than_their_author() {
    let mut team = Team::gather();
    let mut rates = Rates::default();
    for thousandths in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
        for (of, days) in [(Success, 1), (Success, 30), (Failure, 1), (Failure, 30)] {
            for number in 0..2 {
                let entry = team.node.create_in(team.shared.id, "counted");
                let by = if number == 0 { &mut team.alice } else { &mut team.carol };
                team.node.send_to(by);
                overflow(by, entry, of, thousandths, days);
                by.send_to(&mut team.node);
                let author = by.author();
                let confidence = team.node.found(entry).assessment.confidence;
                let mut said = confidence.contributions.iter();
                let mass = said.find(|one| one.author == author).expect("heard").mass();
                let mass_max = MASS_PER_WEIGHT * team.node.standing(author).weight.value;
                assert!(mass > 0.9 * mass_max, "the bound is reached: {mass}");
                let mean = confidence.posterior.mean();
                let moved_max = (5.0 + mass_max) / (10.0 + mass_max) - 0.5;
                let is_beyond = (mean - 0.5).abs() > moved_max + ROUNDING;
                rates.count(COUNTERS, mass > mass_max + ROUNDING || is_beyond);
            }
        }
    }
    rates.hold();
}
