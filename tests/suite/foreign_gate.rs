//! The gate for foreign entries: untried texts, confirmations by members, contradictions, and
//! indexed words of other authors.

use crate::author_standing::retext;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::State;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId, Generation};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation::{Confirmation, Failure};
use klnode_crdt::tally::Tally;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::version_vector::Slot;
use klnode_engine::Command;
use klnode_query::{Audience, Corroboration, GateDecision, HitCaveat, SearchHit};
use klnode_scoring::status::Status;
use klnode_scoring::token_budget::OmissionReason;
use klnode_store::peers::row_types::PeerRow;
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::workspace_fixture::{Indexed, Team, paired};
use std::time::{Duration, Instant};

pub(super) fn entries(hits: &[SearchHit]) -> Vec<EntryId> {
    hits.iter().map(|hit| hit.found.entry).collect()
}

#[test]
fn untried_texts_by_members_take_the_last_two_places_and_others_none() {
    let mut team = Team::gather();
    let title = |number: u32| format!("retry the billing gateway with backoff {number}");
    let own: Vec<EntryId> =
        (0..2).map(|number| team.node.create_in(team.shared.id, &title(number))).collect();
    let hers: Vec<EntryId> =
        (2..5).map(|number| team.alice.create_in(team.shared.id, &title(number))).collect();
    let carols = team.carol.create(&title(5));
    team.exchange();
    let index = Indexed::start(&team.node);
    let ask = |node: &Node, audience| index.ask(node, "retry billing gateway backoff", audience);
    let gated = ask(&team.node, Audience::Gated);
    assert_eq!(gated.hits.len(), 4);
    let (first, last) = gated.hits.split_at(2);
    assert!(first.iter().all(|hit| own.contains(&hit.found.entry)));
    for hit in last {
        assert!(hers.contains(&hit.found.entry));
        assert!(hit.caveats.contains(&HitCaveat::Uncorroborated));
        assert!(hit.caveats.contains(&HitCaveat::Foreign { by: "alice".into() }));
    }
    let left_out: Vec<OmissionReason> = gated.left_out.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(left_out, [OmissionReason::Untried]);
    let all = ask(&team.node, Audience::All);
    assert_eq!(all.hits.len(), 5);
    let question = klnode_query::SearchQuery::new("retry billing gateway backoff", 9);
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let (reader, cancel) = (team.node.reader(), klnode_query::Cancel::default());
    let all = reader.search(&index.index(), &snapshot, &question, team.node.now, &cancel).unwrap();
    let hit = all.hits.iter().find(|hit| hit.found.entry == carols).expect("all are shown");
    assert!(hit.caveats.contains(&HitCaveat::Uncorroborated));
    // A text that was tried here may enter like any other.
    team.node.succeed(hers[2]);
    let gated = ask(&team.node, Audience::Gated);
    assert_eq!(gated.hits.len(), 5);
    let place = entries(&gated.hits).iter().position(|entry| *entry == hers[2]).unwrap();
    assert!(place < 3, "{:?}", entries(&gated.hits));
    team.node.succeed(carols);
    assert!(entries(&ask(&team.node, Audience::Gated).hits).contains(&carols));
}

#[test]
fn a_member_whose_texts_helped_is_served_like_a_confirmed_author() {
    let mut team = Team::gather();
    let title = |number: u32| format!("retry the billing gateway with backoff {number}");
    let hers: Vec<EntryId> =
        (0..8).map(|number| team.alice.create_in(team.shared.id, &title(number))).collect();
    let bobs: Vec<EntryId> =
        (8..12).map(|number| team.bob.create_in(team.shared.id, &title(number))).collect();
    team.exchange();
    let gate = |team: &Team, entry| team.node.found(entry).gate();
    team.node.succeed(hers[0]);
    team.node.succeed(hers[1]);
    assert_eq!(gate(&team, hers[7]), GateDecision::LastPlaces, "two successes are not enough");
    team.node.succeed(hers[2]);
    assert_eq!(gate(&team, hers[7]), GateDecision::Open);
    assert!(!team.node.found(hers[7]).is_corroborated(), "its label stays");
    assert_eq!(gate(&team, bobs[0]), GateDecision::LastPlaces);
    team.alice.retitle(hers[6], "Run this as root");
    team.exchange();
    assert_eq!(gate(&team, hers[6]), GateDecision::LastPlaces, "the text replaced another one");
    for misleading in &hers[3..6] {
        team.node.observe(*misleading, Failure);
    }
    assert_eq!(gate(&team, hers[7]), GateDecision::LastPlaces, "bad advice costs the trust");
    assert_eq!(gate(&team, hers[0]), GateDecision::Open, "it helped itself");
}

#[test]
fn relevant_texts_by_strangers_are_counted_and_not_shown_to_programs() {
    let mut team = Team::gather();
    let title = "retry the billing gateway with backoff";
    let carols = team.carol.create(title);
    team.exchange();
    let index = Indexed::start(&team.node);
    let gated = |node: &Node, query: &str| {
        let answer = index.ask(node, query, Audience::Gated);
        assert!(answer.hits.is_empty() && answer.nearest.is_empty());
        assert!(answer.abstained.is_some());
        answer.withheld
    };
    assert_eq!(gated(&team.node, title), 1);
    assert_eq!(gated(&team.node, "apple pie"), 0, "it is irrelevant to that");
    let all = index.ask(&team.node, title, Audience::All);
    assert_eq!((entries(&all.hits), all.withheld), (vec![carols], 0));
    // With a claim by this person on it, only reading the entry shows that the gate is shut.
    team.node.claim(carols, ClaimEdit::Add(TextSet::TAGS, "billing".into()));
    assert_eq!(team.node.found(carols).gate(), GateDecision::Shut);
    assert_eq!(gated(&team.node, title), 1);
}

#[test]
fn confirmations_by_two_trusted_members_open_the_gate() {
    let mut team = Team::gather();
    let mut dave = Node::start(5, 5);
    team.shared.admit(dave.author());
    team.shared.tell(&mut team.node);
    let entry = dave.create_in(team.shared.id, "confirmed elsewhere");
    dave.send_to(&mut team.node);
    let other = team.alice.create_in(team.shared.id, "alice's");
    let third = team.bob.create_in(team.shared.id, "bob's");
    team.exchange();
    for peer in [&mut team.alice, &mut team.bob, &mut team.carol, &mut dave] {
        team.node.send_to(peer);
        peer.observe(entry, Confirmation);
        peer.send_to(&mut team.node);
    }
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces, "no author is trusted yet");
    team.node.succeed(other);
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces, "one is not enough");
    team.node.succeed(third);
    let found = team.node.found(entry);
    assert_eq!(found.assessment.corroboration, Corroboration::Members(2));
    assert_eq!(found.gate(), GateDecision::Open);
    assert_eq!(found.assessment.standing.status, Status::Candidate, "until it is tried here");
    team.node.meet(team.bob.author(), PeerRow { is_blocked: true, ..paired("bob") });
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
}

/// The trusted members alice and bob have confirmed a text by dave.
fn confirmed_by_two() -> (Team, Node, EntryId) {
    let mut team = Team::gather();
    let trusted = [
        team.alice.create_in(team.shared.id, "alice's"),
        team.bob.create_in(team.shared.id, "bob's"),
    ];
    let mut dave = Node::start(5, 5);
    team.shared.admit(dave.author());
    team.shared.tell(&mut team.node);
    let entry = dave.create_in(team.shared.id, "first text");
    dave.send_to(&mut team.node);
    team.exchange();
    for entry in trusted {
        team.node.succeed(entry);
    }
    assert_eq!(confirm(&mut team, entry), GateDecision::Open);
    (team, dave, entry)
}

/// Alice and bob confirm an entry; returns the resulting gate.
fn confirm(team: &mut Team, entry: EntryId) -> GateDecision {
    team.alice.observe(entry, Confirmation);
    team.bob.observe(entry, Confirmation);
    team.exchange();
    team.node.found(entry).gate()
}

#[test]
fn confirmations_of_an_earlier_text_do_not_open_the_gate() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    for node in [&mut team.node, &mut dave] {
        node.wait_days(1);
    }
    retext(&mut dave, entry, "Another text.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
}

#[test]
fn a_replaced_text_needs_new_confirmations_at_any_stamp() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    // On the same day, from a clock that is years behind.
    dave.now = WallTime::from_millis(1_000);
    retext(&mut dave, entry, "Run this as root.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
    team.exchange();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(1);
    }
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
    assert_eq!(confirm(&mut team, entry), GateDecision::Open, "this text is confirmed, too");
}

#[test]
fn confirmations_before_a_text_change_was_seen_do_not_count() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(3);
    }
    assert_eq!(confirm(&mut team, entry), GateDecision::Open);
    // By its stamp it was written before they confirmed, and after it was first seen here.
    dave.wait_days(1);
    retext(&mut dave, entry, "Run this as root.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
}

/// An old confirmation by this key whose day was folded away.
fn folded(key_seed: u8, entry: EntryId) -> Record {
    let mut tally = Tally::default();
    tally.confirmations.raise_fold(Boot(77), Thousandths::ONE);
    let place = Slot { generation: Generation(1), boot: Boot(77) };
    let at = Position { entry, place, counter: 1, stamp: Hlc::new(START, 0), absorbs: Vec::new() };
    Record::seal(at, Payload::Tally(tally), &SecretKey::from_bytes(&[key_seed; 32])).unwrap()
}

#[test]
fn folded_confirmations_do_not_count_for_a_replaced_text() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    for node in [&mut team.node, &mut dave] {
        node.wait_days(1);
    }
    retext(&mut dave, entry, "Another text.");
    dave.send_to(&mut team.node);
    for member in [2, 3] {
        team.node.ingest(folded(member, entry), dave.author());
    }
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(300);
    }
    // Both are still trusted.
    let trusted = [
        team.alice.create_in(team.shared.id, "alice's latest"),
        team.bob.create_in(team.shared.id, "bob's latest"),
    ];
    team.exchange();
    for entry in trusted {
        team.node.succeed(entry);
    }
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
    assert_eq!(confirm(&mut team, entry), GateDecision::Open);
}

#[test]
fn folded_confirmations_do_not_affect_freshness() {
    let mut team = Team::gather();
    let entry = team.node.create_in(team.shared.id, "retry the billing gateway with backoff");
    team.exchange();
    team.node.ingest(folded(2, entry), team.alice.author());
    let index = Indexed::start(&team.node);
    let confirmed = |node: &Node| {
        let answer = index.ask(node, "retry billing gateway backoff", Audience::All);
        answer.hits[0].confirmed
    };
    assert_eq!(confirmed(&team.node), None);
    team.bob.observe(entry, Confirmation);
    team.exchange();
    assert_eq!(confirmed(&team.node), Some(START.day()));
}

#[test]
fn a_text_replaced_under_a_fast_clock_can_be_confirmed_again() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    dave.wait_days(1);
    retext(&mut dave, entry, "Another text.");
    team.node.wait_days(200);
    dave.send_to(&mut team.node);
    team.node.now = dave.now;
    team.node.create("written once the clock is set right");
    team.exchange();
    assert_eq!(team.node.found(entry).gate(), GateDecision::LastPlaces);
    team.node.wait_days(2);
    for node in [&mut team.alice, &mut team.bob] {
        node.wait_days(3);
    }
    assert_eq!(confirm(&mut team, entry), GateDecision::Open);
}

#[test]
fn a_co_author_of_a_text_does_not_confirm_it() {
    let (mut team, _, entry) = confirmed_by_two();
    team.alice.retitle(entry, "alice's title");
    team.exchange();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(1);
    }
    assert_eq!(confirm(&mut team, entry), GateDecision::LastPlaces, "bob alone has not written it");
}

#[test]
fn repeating_a_title_verbatim_does_not_take_the_entry_over() {
    let mut team = Team::gather();
    let entry = team.node.create_in(team.shared.id, "ours");
    for _ in 0..4 {
        team.node.succeed(entry);
    }
    team.exchange();
    team.alice.retitle(entry, "ours");
    team.exchange();
    let found = team.node.found(entry);
    assert!(!found.is_foreign());
    assert_eq!(found.assessment.standing.status, Status::Verified);
    assert_eq!(found.gate(), GateDecision::Open);
}

#[test]
fn words_of_a_stranger_are_not_indexed_with_a_members_entry() {
    let mut team = Team::gather();
    let entry = team.carol.create_in(team.shared.id, "Run this as root");
    team.exchange();
    team.exchange();
    assert_eq!(team.node.found(entry).gate(), GateDecision::Shut);
    retext(&mut team.alice, entry, "A member's text under a stranger's title.");
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.author.as_ref().unwrap().name, "carol");
    assert_eq!(found.gate(), GateDecision::Shut);
}

#[test]
fn an_entry_without_a_text_is_not_shown() {
    let mut team = Team::gather();
    let entry = team.carol.create_in(team.shared.id, "soon taken back");
    team.exchange();
    team.node.claim(entry, ClaimEdit::Add(TextSet::TAGS, "billing".into()));
    team.carol.run(Command::Retract { entry }).unwrap();
    team.carol.claim(entry, ClaimEdit::Set(Register::POLARITY, "negative".into()));
    team.carol.claim(entry, ClaimEdit::Add(TextSet::TAGS, "run/this/as/root".into()));
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.view.state, State::Retracted);
    assert_eq!(found.gate(), GateDecision::Shut);
    assert!(found.is_foreign());
}

/// Repeats the query until the answer is as expected or the time limit passes.
pub(super) fn await_answer(
    index: &Indexed,
    node: &Node,
    text: &str,
    is_expected: impl Fn(&[SearchHit]) -> bool,
) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = index.ask(node, text, Audience::All);
        let is_caught_up = answer.index_lag == 0 && index.index().meaning().is_some();
        if is_caught_up && is_expected(&answer.hits) {
            return;
        }
        assert!(Instant::now() < deadline, "{text}: {:?}", entries(&answer.hits));
        std::thread::yield_now();
    }
}

#[test]
fn the_index_finds_the_words_of_new_members_at_once() {
    let mut team = Team::gather();
    let mut dave = Node::start(5, 5);
    let entry = team.node.create_in(team.shared.id, "pipelines");
    team.node.send_to(&mut dave);
    retext(&mut dave, entry, "Xylophonecipher and quartzflute.");
    dave.send_to(&mut team.node);
    let index = Indexed::start(&team.node);
    let word = "xylophonecipher quartzflute";
    await_answer(&index, &team.node, word, <[SearchHit]>::is_empty);
    team.shared.admit(dave.author());
    team.shared.tell(&mut team.node);
    index.follow(&team.node);
    await_answer(&index, &team.node, word, |hits| entries(hits) == [entry]);
    team.shared.expel(dave.author());
    team.shared.tell(&mut team.node);
    index.follow(&team.node);
    await_answer(&index, &team.node, word, <[SearchHit]>::is_empty);
}

#[test]
fn contradicting_hits_are_shown_together_and_name_each_other() {
    let mut team = Team::gather();
    let new = |polarity: &str, title: &str| klnode_engine::NewEntry {
        workspace: team.shared.id,
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| ClaimEdit::Add(TextSet::TAGS, tag.into())).to_vec(),
        ..lesson(title)
    };
    let against = new("negative", "retry the billing gateway with backoff: never");
    let dos: Vec<_> = (0..3)
        .map(|number| new("neutral", &format!("retry the billing gateway with backoff {number}")))
        .collect();
    let yes = new("positive", "retry the billing gateway with backoff: always");
    for new in dos {
        let entry = team.node.create_new(new);
        for _ in 0..6 {
            team.node.succeed(entry);
        }
    }
    let yes = team.node.create_new(yes);
    for _ in 0..30 {
        team.node.succeed(yes);
    }
    let against = team.alice.create_new(against);
    team.exchange();
    let index = Indexed::start(&team.node);
    await_answer(&index, &team.node, "retry billing gateway", |hits| !hits.is_empty());
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let (reader, cancel) = (team.node.reader(), klnode_query::Cancel::default());
    for audience in [Audience::All, Audience::Gated] {
        let question = klnode_query::SearchQuery {
            audience,
            ..klnode_query::SearchQuery::new("retry billing gateway backoff", 3)
        };
        let now = team.node.now;
        let answer = reader.search(&index.index(), &snapshot, &question, now, &cancel).unwrap();
        let order = entries(&answer.hits);
        assert_eq!(order.len(), 3, "{audience:?}");
        let place = |entry| order.iter().position(|one| *one == entry).expect("shown");
        assert!(place(yes) < place(against), "{audience:?}");
        let named = |entry: EntryId, other: EntryId| {
            let caveats = &answer.hits[place(entry)].caveats;
            let of = caveats.iter().find_map(|caveat| match caveat {
                HitCaveat::CompetesWith { entry, is_first, why, .. } if *entry == other => {
                    Some((*is_first, why.clone()))
                }
                _ => None,
            });
            of.expect("named")
        };
        let (is_first, why) = named(yes, against);
        assert!(is_first && why.starts_with("listed first: "), "{why}");
        let (is_first, why) = named(against, yes);
        assert!(!is_first && why.starts_with("listed after it: "), "{why}");
    }
}
