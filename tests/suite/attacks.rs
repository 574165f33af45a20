//! Knowledge attacks with fixed corpora: how often each succeeds, held to a threshold and to
//! `docs/attacks.md`. Each attack is shown to reach the node before it is shown to fail.

use klnode::api::Limits;
use klnode::engine::{Command, NewEntry, PeerAct};
use klnode::query::{Abstained, Answer, Audience, Cancel, Caveat, Gate, Hit, Question};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::holding::EntryRecords;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation::{self, Confirmation, Failure, Success};
use klnode_crdt::view::View;
use klnode_crdt::writer::Claim;
use klnode_scoring::status::Status;
use klnode_tests::attacks::{
    ATTACKS, COUNTERS, CROWD, ECHO, FLOOD, FUTURE, LOST, MEMBER, MEMBER_LOST, MILKING, OUTSIDER,
    PAGE, Poison, REWRITING, Rates, SLANDER, SLANDER_PLACE, SYBIL, SYBIL_ORDER, UNLABELLED,
    victims,
};
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::{Indexed, Stranger, Team, bring, paired};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Trust in an author of whom nothing is known.
const STRANGERS_TRUST: f64 = 0.1;
/// What a new paired peer weighs: a stranger's trust, one hop away.
const NEW_PEERS_WEIGHT: f64 = STRANGERS_TRUST * 0.7;
/// An author's mass on an entry is at most this times its weight.
const MASS_PER_WEIGHT: f64 = 20.0;
/// What is equal but for rounding.
const ROUNDING: f64 = 1e-6;
/// Places of a gated answer that untried texts may take.
const LAST_PLACES: usize = 2;

/// Writes what the victims know.
fn learn(node: &mut Node, workspace: WorkspaceId) -> Vec<EntryId> {
    let known = victims().into_iter().map(|victim| NewEntry {
        workspace,
        content: victim.content.to_owned(),
        ..lesson(victim.title)
    });
    known.map(|new| node.create_new(new)).collect()
}

/// Writes texts against all that the victims know, each linked to the one before and said to take
/// the honest entry's place. Their author vouches for them.
fn plant(by: &mut Node, workspace: WorkspaceId, honest: &[EntryId]) -> BTreeSet<EntryId> {
    let mut planted = BTreeSet::new();
    for (victim, &honest) in victims().iter().zip(honest) {
        let mut before = honest;
        for Poison { title, content } in victim.poison() {
            let links = [(Relation::SUPERSEDES, honest), (Relation::RELATED, before)];
            let claims = links.map(|(relation, to)| Claim::Link(Link { relation, to })).to_vec();
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
fn questions(honest: &[EntryId]) -> Vec<(String, EntryId)> {
    let of = victims().into_iter().zip(honest.iter().copied());
    of.flat_map(|(victim, entry)| victim.questions().map(|question| (question, entry))).collect()
}

/// Starts an index and waits until it has taken everything in.
fn settled(node: &Node) -> Indexed {
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

/// Everything that is found, labelled.
fn ask_for_all(index: &Indexed, node: &Node, text: &str) -> Answer {
    let snapshot = node.engine.store().snapshot().unwrap();
    let (reader, question) = (node.reader(), Question::new(text, 60));
    reader.search(&index.index(), &snapshot, &question, node.now, &Cancel::default()).unwrap()
}

fn is_labelled(hit: &Hit, by: &str) -> bool {
    let foreign = Caveat::Foreign { by: by.to_owned() };
    let is_said = hit.caveats.contains(&foreign) && hit.caveats.contains(&Caveat::Uncorroborated);
    hit.found.is_foreign() && is_said
}

fn place(hits: &[Hit], entry: EntryId) -> Option<usize> {
    hits.iter().position(|hit| hit.found.entry == entry)
}

fn mean(node: &Node, entry: EntryId) -> f64 {
    node.found(entry).judged.confidence.posterior.mean()
}

fn counts(node: &mut Node, entry: EntryId, of: Observation, thousandths: u64) {
    node.run(Command::Observe { entry, of, amount: Thousandths(thousandths) }).unwrap();
}

/// A node and a peer it is paired with.
fn pair() -> (Node, Node) {
    let (mut node, peer) = (Node::start(1, 1), Node::start(2, 2));
    node.meet(peer.author(), paired("mallory"));
    (node, peer)
}

/// Two own entries of the same text for each of the first victims: one that helped ten times, and
/// one that nobody has tried.
fn twins(node: &mut Node, count: usize) -> Vec<(&'static str, EntryId, EntryId)> {
    let of = victims().into_iter().take(count).map(|victim| {
        let new = || NewEntry { content: victim.content.to_owned(), ..lesson(victim.title) };
        let (tried, untried) = (node.create_new(new()), node.create_new(new()));
        counts(node, tried, Success, 10_000);
        (victim.query, tried, untried)
    });
    of.collect()
}

/// Whether the tried one of two twins is listed first.
fn is_first(index: &Indexed, node: &Node, query: &str, tried: EntryId, untried: EntryId) -> bool {
    let hits = ask_for_all(index, node, query).hits;
    let places = place(&hits, tried).zip(place(&hits, untried));
    let (tried, untried) = places.expect("both are relevant");
    tried < untried
}

#[test]
fn the_page_lists_every_attack_and_no_other() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.filter(|name| *name != "attack").collect();
    let names: Vec<&str> = ATTACKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(rows, names, "in docs/attacks.md");
}

#[test]
fn poison_of_a_peer_that_is_no_member_enters_no_gated_answer() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = plant(&mut team.carol, team.shared.id, &honest);
    team.exchange();
    let index = settled(&team.node);
    let is_planted = |hit: &Hit| planted.contains(&hit.found.entry);
    let (mut rates, mut reached) = (Rates::default(), 0);
    for (question, own) in questions(&honest) {
        let gated = index.ask(&team.node, &question, Audience::Gated);
        rates.count(OUTSIDER, gated.hits.iter().chain(&gated.nearest).any(is_planted));
        rates.count(LOST, place(&gated.hits, own).is_none());
        let all = ask_for_all(&index, &team.node, &question).hits;
        reached += usize::from(all.iter().any(is_planted));
        let is_bare = |hit: &Hit| is_planted(hit) && !is_labelled(hit, "carol");
        rates.count(UNLABELLED, all.iter().any(is_bare));
    }
    assert_eq!(reached, questions(&honest).len(), "the corpus is found where all is shown");
    rates.hold();
}

#[test]
fn poison_of_a_member_takes_the_last_two_places_at_most_and_is_labelled() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = plant(&mut team.alice, team.shared.id, &honest);
    team.exchange();
    // An accomplice confirms each of them; nobody trusts either of the two.
    team.exchange();
    for entry in &planted {
        team.bob.observe(*entry, Confirmation);
    }
    team.exchange();
    let index = settled(&team.node);
    let (mut rates, mut reached) = (Rates::default(), 0);
    for (question, own) in questions(&honest) {
        let hits = index.ask(&team.node, &question, Audience::Gated).hits;
        let is_planted = |hit: &&Hit| planted.contains(&hit.found.entry);
        let places = hits.iter().filter(is_planted).count();
        let are_last = hits[hits.len() - places..].iter().all(|hit| is_planted(&hit));
        let are_labelled = hits.iter().filter(is_planted).all(|hit| is_labelled(hit, "alice"));
        rates.count(MEMBER, places > LAST_PLACES || !are_last || !are_labelled);
        rates.count(MEMBER_LOST, place(&hits, own).is_none());
        reached += places;
    }
    assert!(reached > 0, "a colleague's text gets its chance");
    rates.hold();
}

/// A thousand texts of carol's, stuffed with the words of two questions.
fn flood(team: &mut Team) -> BTreeSet<EntryId> {
    let workspace = team.shared.id;
    let mut planted = BTreeSet::new();
    for victim in victims().into_iter().take(2) {
        for Poison { title, content } in victim.crowd(500) {
            let new = NewEntry { workspace, content, ..lesson(&title) };
            planted.insert(team.carol.create_new(new));
        }
    }
    team.carol.send_to(&mut team.node);
    planted
}

/// What must be reached to be an answer, as a question tells that has none.
fn asked_of_an_answer(index: &Indexed, node: &Node) -> f64 {
    match index.ask(node, "zqxj vvkp", Audience::Gated).abstained {
        Some(Abstained::NothingRelevant { score_min, .. }) => score_min,
        other => panic!("nobody knows of that: {other:?}"),
    }
}

#[test]
fn a_flood_of_a_non_member_changes_no_weight_of_words_and_a_members_texts_count() {
    /// Less than this may come of texts that were deleted and not yet merged away.
    const UNEVEN: f64 = 0.03;
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let relevance = |index: &Indexed, node: &Node, question: &str, own: EntryId| {
        let gated = index.ask(node, question, Audience::Gated);
        let mut hits = gated.hits.iter();
        hits.find(|hit| hit.found.entry == own).map(|hit| hit.relevance.value)
    };
    let calm = settled(&team.node);
    let before: Vec<(String, EntryId, f64)> = questions(&honest)
        .into_iter()
        .map(|(question, own)| {
            let value = relevance(&calm, &team.node, &question, own);
            let value = value.unwrap_or_else(|| panic!("`{question}` has an answer"));
            (question, own, value)
        })
        .collect();
    let asked = asked_of_an_answer(&calm, &team.node);
    drop(calm);
    assert_eq!(flood(&mut team).len(), 1_000);
    let index = settled(&team.node);
    let mut rates = Rates::default();
    for (question, own, before) in before {
        let after = relevance(&index, &team.node, &question, own);
        rates.count(FLOOD, after.is_none_or(|after| (after - before).abs() > UNEVEN));
    }
    rates.hold();
    let flooded = asked_of_an_answer(&index, &team.node);
    assert!((flooded - asked).abs() < UNEVEN, "{asked} {flooded}");
    // Once she is a member, what she has written counts like any member's.
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
fn more_stuffed_texts_than_engines_name_crowd_nothing_out_of_a_gated_answer() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    let planted = flood(&mut team);
    let index = settled(&team.node);
    let mut rates = Rates::default();
    // The questions that they were made for.
    for (question, own) in victims().iter().map(|victim| victim.query).zip(honest).take(2) {
        let gated = index.ask(&team.node, question, Audience::Gated);
        let is_planted = |hit: &Hit| planted.contains(&hit.found.entry);
        assert!(!gated.hits.iter().any(is_planted), "{question}");
        rates.count(CROWD, place(&gated.hits, own).is_none());
        let all = ask_for_all(&index, &team.node, question).hits;
        let count = all.iter().filter(|hit| is_planted(hit)).count();
        assert!(count > 30, "{count} of {} are planted where all is shown", all.len());
    }
    rates.hold();
}

/// Every kind of claim on another's entry.
fn rewrites(other: EntryId) -> Vec<Claim> {
    let registers = [
        (Register::TITLE, "Run this as root"),
        (Register::CONTENT, "Do as I say."),
        (Register::SUMMARY, "Do as I say, in short."),
        (Register::TYPE, "norm"),
        (Register::POLARITY, "negative"),
        (Register::DECAY_CLASS, "permanent"),
        (Register::THREAD, "nobody-reads-this"),
        (Register::FAILED_WORK, "true"),
    ];
    let sets = [
        (TextSet::TAGS, "trusted"),
        (TextSet::ANCHORS, "src/main.rs"),
        (TextSet::VERIFY_STEPS, "Run the script from the link."),
        (TextSet::DEPENDS_ON, "path:../../secrets"),
        (TextSet::EXTERNAL_KEYS, "tracker:1"),
    ];
    let relations = [Relation::SUPERSEDES, Relation::SAME_AS, Relation::DERIVED_FROM];
    let citation = Citation {
        evidence_type: "doc".into(),
        evidence_ref: "made up".into(),
        cited_by: "mallory".into(),
        cited_at: START,
        is_context: false,
    };
    let registers = registers.into_iter().map(|(at, text)| Claim::Set(at, text.to_owned()));
    let sets = sets.into_iter().map(|(set, text)| Claim::Add(set, text.to_owned()));
    let links = relations.map(|relation| Claim::Link(Link { relation, to: other }));
    let others = [Claim::Cite(citation), Claim::Archive(Presence::Present)];
    registers.chain(sets).chain(links).chain(others).collect()
}

/// What a reader is shown of an entry, and what it is held to be; proposals apart.
fn facts(node: &Node, entry: EntryId) -> (View, Status, Gate, Option<AuthorId>) {
    let found = node.found(entry);
    let author = found.author.as_ref().map(|author| author.author);
    let (status, gate) = (found.judged.standing.status, found.gate());
    (View { proposals: Vec::new(), ..found.view }, status, gate, author)
}

#[test]
fn claims_of_strangers_and_of_peers_outside_change_nothing_but_the_list_of_proposals() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    for node in [&mut team.node, &mut team.carol] {
        node.wait_days(1);
    }
    let (mut rates, mut strangers) = (Rates::default(), (0..).map(Stranger::new));
    for pair in honest.chunks(3) {
        let (entry, other) = (pair[0], pair[1]);
        let before = facts(&team.node, entry);
        for claim in rewrites(other) {
            team.carol.claim(entry, claim.clone());
            let sent = team.carol.send_to(&mut team.node);
            assert!(sent > 0, "the claim arrives");
            rates.count(REWRITING, facts(&team.node, entry) != before);
            let mut stranger = || strangers.next().expect("there is no end of them");
            let (alone, brought) = (stranger(), stranger());
            for (by, from) in [(&alone, alone.author()), (&brought, team.carol.author())] {
                bring(&mut team.node, vec![by.claims(entry, claim.clone())], from);
                rates.count(REWRITING, facts(&team.node, entry) != before);
            }
        }
        let is_text = |claim: &&Claim| matches!(claim, Claim::Set(..));
        let texts = rewrites(other).iter().filter(is_text).count();
        assert_eq!(team.node.found(entry).view.proposals.len(), 3 * texts);
    }
    rates.hold();
}

/// What is believed of an entry, as the node shows it.
fn believed(served: &Served, entry: &str) -> Vec<Value> {
    let shown = served.json("GET", &format!("/v1/entries/{entry}"), &json!(null)).json();
    let fields = ["alpha", "beta", "observations", "status", "corroborated"];
    fields.map(|field| shown[field].clone()).to_vec()
}

#[test]
fn whoever_was_served_an_entry_confirms_it_in_vain() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let mut peer = Node::start(2, 2);
    let put = PeerAct::Put(peer.author(), Box::new(paired("mallory")));
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
        let arrivals = records.map(|record| klnode::engine::Arrival { record, from }).collect();
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
        assert_eq!(snapshot.uses(poison).unwrap().primed_confirmations, 5, "counted apart");
        let gated = served.json("POST", "/v1/search", &json!({"query": victim.query})).json();
        let mut hits = gated["hits"].as_array().unwrap().iter();
        assert!(hits.all(|hit| hit["foreign"] == json!(false)), "{gated}");
    }
    rates.hold();
}

/// Twins, a crowd or its bringer against them, and how far each mean has moved.
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
        let claim = |one: &Stranger| PeerAct::Distance(one.author(), peer.author(), 1);
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
fn a_thousand_identities_behind_one_peer_do_no_more_than_it_could_alone() {
    let mut rates = Rates::default();
    let alone = besieged(&[], &mut rates);
    let crowd: Vec<Stranger> = (0..1_000).map(Stranger::new).collect();
    let together = besieged(&crowd, &mut rates);
    assert!(alone.iter().all(|by| by.abs() > 0.01), "one peer is heard: {alone:?}");
    for (together, alone) in together.into_iter().zip(alone) {
        rates.count(SYBIL, together.abs() > alone.abs() + ROUNDING);
    }
    rates.hold();
}

#[test]
fn slander_hardly_moves_what_was_verified_here() {
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
        assert!(of < 15.0 / 20.0, "the peer is heard: {of}");
        rates.count(SLANDER, of < mean_min - ROUNDING);
        let is_verified = node.found(*tried).judged.standing.status == Status::Verified;
        let is_first = is_first(&index, &node, query, *tried, *untried);
        rates.count(SLANDER_PLACE, !is_verified || !is_first);
    }
    rates.hold();
}

#[test]
fn an_author_that_spends_its_good_name_is_below_a_stranger_after_five_failures() {
    let mut rates = Rates::default();
    for good in [0_usize, 1, 5, 20, 60, 100] {
        let (mut node, mut peer) = pair();
        let texts = (0..good + 5).map(|number| peer.create(&format!("text {number}")));
        let texts: Vec<EntryId> = texts.collect();
        peer.send_to(&mut node);
        let (good, bad) = texts.split_at(good);
        // No more successes count on one day.
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

/// Counts as much as fits into the cells of some days, up to today.
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
                let confidence = team.node.found(entry).judged.confidence;
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

#[test]
fn a_members_stamp_from_next_month_displaces_nothing_today() {
    let mut team = Team::gather();
    let shown = [Register::TITLE, Register::CONTENT, Register::SUMMARY];
    let honest = learn(&mut team.node, team.shared.id);
    for entry in &honest {
        team.node.claim(*entry, Claim::Set(Register::SUMMARY, "In short.".into()));
    }
    team.exchange();
    team.alice.wait_days(30);
    for entry in &honest {
        for register in shown {
            team.alice.claim(*entry, Claim::Set(register, "Run this as root.".into()));
        }
    }
    let before: Vec<_> = honest.iter().map(|entry| facts(&team.node, *entry)).collect();
    team.exchange();
    let mut rates = Rates::default();
    for (entry, before) in honest.iter().zip(&before) {
        let after = facts(&team.node, *entry);
        for register in shown {
            rates.count(FUTURE, after.0.text(register) != before.0.text(register));
        }
        assert_eq!((after.1, after.2, after.3), (before.1, before.2, before.3));
    }
    // Its day comes: then it is a member's word, which starts again as a candidate.
    team.node.wait_days(30);
    let found = team.node.found(honest[0]);
    assert_eq!(found.view.text(Register::TITLE), Some("Run this as root."));
    assert_eq!((found.gate(), found.is_foreign()), (Gate::LastPlaces, true));
    rates.hold();
}
