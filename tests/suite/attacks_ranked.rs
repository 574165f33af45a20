//! Knowledge attacks on places: who writes a lot, confirms or cites their own, or lists keys of their
//! own, gains nothing by it. The figures are those of `docs/attacks.md`.

use crate::attacks::{LAST_PLACES, ask_for_all, is_labelled, learn, place, settled};
use crate::society::mean;
use klnode::engine::{Command, NewEntry};
use klnode::query::{Answer, Audience, Cancel, Caveat, Question};
use klnode::store::peers::rows::PeerRow;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation::{Confirmation, Failure, Success};
use klnode_crdt::time::Day;
use klnode_crdt::writer::Claim;
use klnode_scoring::budget::{Form, Tier};
use klnode_tests::attacks::{CHORUS, Poison, Rates, SYBIL_LISTED, Victim, victims};
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::society::{Indexed, Shared, Stranger, Team, bring, paired};
use std::collections::BTreeSet;

/// What is equal but for rounding.
const ROUNDING: f64 = 1e-6;
/// What is asked of entries about retries.
const RETRIES: &str = "retry billing gateway backoff";

fn ask(index: &Indexed, node: &Node, question: &Question) -> Answer {
    let snapshot = node.engine.store().snapshot().unwrap();
    let (reader, cancel) = (node.reader(), Cancel::default());
    reader.search(&index.index(), &snapshot, question, node.now, &cancel).unwrap()
}

#[test]
fn thirty_texts_of_one_member_leave_the_honest_entry_in_the_first_place() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    let known: Vec<(Victim, EntryId)> = victims().into_iter().zip(honest).take(8).collect();
    for (_, own) in &known {
        team.node.succeed(*own);
    }
    team.exchange();
    let calm = settled(&team.node);
    for (victim, own) in &known {
        let hits = calm.ask(&team.node, victim.query, Audience::Gated).hits;
        assert_eq!(place(&hits, *own), Some(0), "{}", victim.query);
    }
    drop(calm);
    let mut planted = BTreeSet::new();
    for (victim, _) in &known {
        for Poison { title, content } in victim.chorus(30) {
            let new = NewEntry { workspace: team.shared.id, content, ..lesson(&title) };
            planted.insert(team.alice.create_new(new));
        }
    }
    team.alice.send_to(&mut team.node);
    let index = settled(&team.node);
    let (mut rates, mut reached) = (Rates::default(), 0);
    for (victim, own) in &known {
        let hits = index.ask(&team.node, victim.query, Audience::Gated).hits;
        rates.count(CHORUS, place(&hits, *own) != Some(0));
        let theirs = hits.iter().filter(|hit| planted.contains(&hit.found.entry)).count();
        assert!(theirs <= LAST_PLACES, "{}: {theirs}", victim.query);
        reached += theirs;
    }
    assert!(reached > 0, "a colleague's texts get their chance");
    rates.hold();
}

#[test]
fn a_budget_is_spent_on_what_was_tried_and_not_on_what_fits_better() {
    let mut team = Team::gather();
    let (workspace, victim) = (team.shared.id, victims()[0]);
    let content = format!("{} {}", victim.content, "Ask before you change it. ".repeat(20));
    let own = team.node.create_new(NewEntry { workspace, content, ..lesson(victim.title) });
    team.node.succeed(own);
    for Poison { title, content } in victim.chorus(2) {
        let content = format!("{content} ").repeat(30);
        team.alice.create_new(NewEntry { workspace, content, ..lesson(&title) });
    }
    team.exchange();
    let index = settled(&team.node);
    let question = Question {
        audience: Audience::Gated,
        tier: Tier::Full,
        tokens_max: Some(400),
        ..Question::new(victim.query, 5)
    };
    let hits = ask(&index, &team.node, &question).hits;
    let forms: Vec<(bool, Form)> =
        hits.iter().map(|hit| (hit.found.entry == own, hit.form)).collect();
    assert_eq!(forms, [(true, Form::Full), (false, Form::Line), (false, Form::Line)]);
    let least = hits.iter().min_by(|a, b| a.relevance.value.total_cmp(&b.relevance.value));
    assert_eq!(least.map(|hit| hit.found.entry), Some(own), "the others fit better");
}

#[test]
fn what_merely_came_near_keeps_to_the_last_places_and_is_labelled() {
    let mut team = Team::gather();
    let own = team.node.create_in(team.shared.id, "rotate the signing keys");
    for number in 0..10 {
        let title = format!("retry the billing gateway with backoff {number}");
        team.alice.create_in(team.shared.id, &title);
    }
    team.exchange();
    let index = settled(&team.node);
    for (audience, theirs) in [(Audience::Gated, LAST_PLACES), (Audience::All, 9)] {
        let answer = index.ask(&team.node, "recipe for apple pie", audience);
        assert_eq!(answer.hits.len(), 0, "{audience:?}");
        let near = &answer.nearest;
        let others: Vec<_> = near.iter().filter(|hit| hit.found.entry != own).collect();
        assert!(others.len() >= theirs, "{audience:?}: {}", others.len());
        assert!(others.iter().all(|hit| is_labelled(hit, "alice")), "{audience:?}");
        if audience == Audience::Gated {
            assert_eq!((place(near, own), others.len()), (Some(0), LAST_PLACES));
        }
    }
}

#[test]
fn only_this_person_and_members_who_did_not_write_it_keep_a_text_fresh() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "retry the billing gateway with backoff");
    team.exchange();
    for node in [&mut team.node, &mut team.alice, &mut team.bob, &mut team.carol] {
        node.wait_days(60);
    }
    let today = team.node.now.day();
    let index = settled(&team.node);
    let confirmed = |node: &Node| -> Option<Day> {
        let hits = ask_for_all(&index, node, RETRIES).hits;
        let hit = hits.iter().find(|hit| hit.found.entry == entry).expect("it is found");
        let freshness = hit.placed.candidate.signals.freshness;
        assert_eq!(freshness > 0.9, hit.confirmed == Some(today), "{freshness}");
        hit.confirmed
    };
    // Its author, a peer outside, a stranger.
    team.alice.observe(entry, Confirmation);
    team.carol.observe(entry, Confirmation);
    team.exchange();
    let stranger = Stranger::new(1);
    bring(&mut team.node, vec![stranger.observes(entry, Confirmation, 1)], stranger.author());
    assert_eq!(confirmed(&team.node), None);
    team.bob.observe(entry, Confirmation);
    team.exchange();
    assert_eq!(confirmed(&team.node), Some(today), "a fellow member");
    let bob = team.bob.author();
    team.node.meet(bob, PeerRow { is_blocked: true, ..paired("bob") });
    assert_eq!(confirmed(&team.node), None, "nobody listens to him");
    team.node.observe(entry, Confirmation);
    assert_eq!(confirmed(&team.node), Some(today), "this person");
}

#[test]
fn citations_of_one_author_count_once_where_two_entries_say_the_opposite() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let sided = |polarity: &str, title: &str| NewEntry {
        workspace,
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| Claim::Add(TextSet::TAGS, tag.into())).to_vec(),
        ..lesson(title)
    };
    let invented = (0..5).map(|number| Citation {
        evidence_type: "doc".into(),
        evidence_ref: format!("made up, {number}"),
        cited_by: "mallory".into(),
        cited_at: START,
        is_context: false,
    });
    let no = sided("negative", "retry the billing gateway with backoff: never");
    let no = team.alice.create_new(NewEntry { citations: invented.collect(), ..no });
    team.node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    team.exchange();
    for node in [&mut team.node, &mut team.bob] {
        node.wait_days(60);
    }
    // More recent it is: that alone does not decide.
    team.bob.observe(no, Confirmation);
    team.exchange();
    let index = settled(&team.node);
    let hits = ask_for_all(&index, &team.node, RETRIES).hits;
    let hit = hits.iter().find(|hit| hit.found.entry == no).expect("it is found");
    assert_eq!(hit.found.view.citations.len(), 5);
    let why = hit.caveats.iter().find_map(|caveat| match caveat {
        Caveat::CompetesWith { why, .. } => Some(why.as_str()),
        _ => None,
    });
    let why = why.expect("they compete");
    assert!(why.starts_with("neither is clearly better"), "{why}");
}

/// How far an attacker who owns a workspace moves the means of six entries of another one: alone, or
/// through keys that are listed in its own.
fn moved_by(listed: u32) -> Vec<f64> {
    let mut team = Team::gather();
    let mut mallory = Node::start(8, 8);
    team.node.meet(mallory.author(), paired("mallory"));
    // The same key owns it.
    let mut side = Shared::new(8);
    side.admit(team.node.author());
    let crowd: Vec<Stranger> = (0..listed).map(Stranger::new).collect();
    for one in &crowd {
        side.admit(one.author());
    }
    side.tell(&mut team.node);
    let mut entries = Vec::new();
    for number in 0..6 {
        entries.push(team.node.create_in(team.shared.id, &format!("ours, {number}")));
    }
    let before: Vec<f64> = entries.iter().map(|entry| mean(&team.node, *entry)).collect();
    team.node.send_to(&mut mallory);
    for (of, entry) in [Failure, Success].into_iter().cycle().zip(entries.clone()) {
        if crowd.is_empty() {
            let amount = Thousandths(1_000_000_000);
            mallory.run(Command::Observe { entry, of, amount }).unwrap();
        } else {
            let records = crowd.iter().map(|one| one.observes(entry, of, 1_000)).collect();
            bring(&mut team.node, records, mallory.author());
        }
    }
    mallory.send_to(&mut team.node);
    let moved = entries.iter().zip(before).map(|(entry, was)| mean(&team.node, *entry) - was);
    moved.collect()
}

#[test]
fn keys_that_an_attacker_lists_in_its_own_workspace_weigh_no_more_elsewhere_than_it_does() {
    let (alone, together) = (moved_by(0), moved_by(60));
    assert!(alone.iter().all(|by| by.abs() > 0.01), "one peer is heard: {alone:?}");
    assert!(together.iter().all(|by| by.abs() > 0.01), "they are heard: {together:?}");
    let mut rates = Rates::default();
    for (together, alone) in together.into_iter().zip(alone) {
        rates.count(SYBIL_LISTED, together.abs() > alone.abs() + ROUNDING);
    }
    rates.hold();
}
