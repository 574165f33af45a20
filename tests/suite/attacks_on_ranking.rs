//! Knowledge attacks on ranks: an author gains nothing by writing many texts, by confirming or
//! citing its own, or by listing its own keys. The figures are those of `docs/internals/attacks.md`.

use crate::attacks_on_answers::{LAST_PLACES, ask_for_all, is_labelled, learn, place, settled};
use crate::author_standing::mean;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation::{Confirmation, Failure, Success};
use klnode_crdt::time::Day;
use klnode_engine::{Command, NewEntry};
use klnode_query::{Audience, Cancel, HitCaveat, SearchAnswer, SearchQuery};
use klnode_scoring::token_budget::{EntryForm, Tier};
use klnode_store::peers::row_types::PeerRow;
use klnode_tests::knowledge_attacks::{CHORUS, Poison, Rates, SYBIL_LISTED, Victim, victims};
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::workspace_fixture::{Indexed, Shared, Stranger, Team, bring, paired};
use std::collections::BTreeSet;

/// Tolerance for floating-point rounding.
const ROUNDING: f64 = 1e-6;
/// Question about retries.
const RETRIES: &str = "retry billing gateway backoff";

fn ask(index: &Indexed, node: &Node, question: &SearchQuery) -> SearchAnswer {
    let snapshot = node.engine.store().snapshot().unwrap();
    let (reader, cancel) = (node.reader(), Cancel::default());
    reader.search(&index.index(), &snapshot, question, node.now, &cancel).unwrap()
}

#[test]
fn thirty_texts_by_one_member_do_not_displace_the_first_hit() {
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
    assert!(reached > 0, "a member's texts are served");
    rates.hold();
}

#[test]
fn the_budget_prefers_tried_entries_over_better_matches() {
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
    let question = SearchQuery {
        audience: Audience::Gated,
        tier: Tier::Full,
        tokens_max: Some(400),
        ..SearchQuery::new(victim.query, 5)
    };
    let hits = ask(&index, &team.node, &question).hits;
    let forms: Vec<(bool, EntryForm)> =
        hits.iter().map(|hit| (hit.found.entry == own, hit.form)).collect();
    assert_eq!(
        forms,
        [(true, EntryForm::Full), (false, EntryForm::Line), (false, EntryForm::Line)]
    );
    let least = hits.iter().min_by(|a, b| a.relevance.value.total_cmp(&b.relevance.value));
    assert_eq!(least.map(|hit| hit.found.entry), Some(own), "the others are more relevant");
}

#[test]
fn near_misses_stay_in_the_last_places_and_are_labelled() {
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
fn only_own_and_other_members_confirmations_keep_a_text_fresh() {
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
    // Confirmations by its author, a non-member peer and a stranger.
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
    assert_eq!(confirmed(&team.node), None, "he is blocked");
    team.node.observe(entry, Confirmation);
    assert_eq!(confirmed(&team.node), Some(today), "this person");
}

#[test]
fn citations_by_one_author_count_once_between_contradicting_entries() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let sided = |polarity: &str, title: &str| NewEntry {
        workspace,
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| ClaimEdit::Add(TextSet::TAGS, tag.into())).to_vec(),
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
    // The entry is more recent, which alone does not decide.
    team.bob.observe(no, Confirmation);
    team.exchange();
    let index = settled(&team.node);
    let hits = ask_for_all(&index, &team.node, RETRIES).hits;
    let hit = hits.iter().find(|hit| hit.found.entry == no).expect("it is found");
    assert_eq!(hit.found.view.citations.len(), 5);
    let why = hit.caveats.iter().find_map(|caveat| match caveat {
        HitCaveat::CompetesWith { why, .. } => Some(why.as_str()),
        _ => None,
    });
    let why = why.expect("they compete");
    assert!(why.starts_with("neither is clearly better"), "{why}");
}

/// How far an attacker that owns a workspace moves the means of six entries of another one: alone,
/// or through keys listed in its own workspace.
fn moved_by(listed: u32) -> Vec<f64> {
    let mut team = Team::gather();
    let mut mallory = Node::start(8, 8);
    team.node.meet(mallory.author(), paired("mallory"));
    // The same key owns this workspace.
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
fn keys_listed_in_the_attackers_workspace_weigh_no_more_than_the_attacker() {
    let (alone, together) = (moved_by(0), moved_by(60));
    assert!(alone.iter().all(|by| by.abs() > 0.01), "one peer has an effect: {alone:?}");
    assert!(together.iter().all(|by| by.abs() > 0.01), "they have an effect: {together:?}");
    let mut rates = Rates::default();
    for (together, alone) in together.into_iter().zip(alone) {
        rates.count(SYBIL_LISTED, together.abs() > alone.abs() + ROUNDING);
    }
    rates.hold();
}
