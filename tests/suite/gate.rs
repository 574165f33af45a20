//! What enters an answer, in which places: untried texts, what members confirm, what says the
//! opposite, and whose words are found.

use crate::society::retext;
use klnode::engine::Command;
use klnode::query::{Audience, Caveat, Corroboration, Gate, Hit};
use klnode::store::peers::rows::PeerRow;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId, Generation};
use klnode_crdt::key::SecretKey;
use klnode_crdt::lww::Register;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, Record};
use klnode_crdt::tally::Observation::Confirmation;
use klnode_crdt::tally::Tally;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::version::Place;
use klnode_crdt::view::State;
use klnode_crdt::writer::Claim;
use klnode_scoring::budget::Reason;
use klnode_scoring::status::Status;
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::society::{Indexed, Team, paired};
use std::time::{Duration, Instant};

pub(super) fn entries(hits: &[Hit]) -> Vec<EntryId> {
    hits.iter().map(|hit| hit.found.entry).collect()
}

#[test]
fn untried_texts_of_members_take_the_last_two_places_and_anyone_elses_none() {
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
        assert!(hit.caveats.contains(&Caveat::Uncorroborated));
        assert!(hit.caveats.contains(&Caveat::Foreign { by: "alice".into() }));
    }
    let left_out: Vec<Reason> = gated.left_out.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(left_out, [Reason::Untried]);
    let all = ask(&team.node, Audience::All);
    assert_eq!(all.hits.len(), 5);
    let question = klnode::query::Question::new("retry billing gateway backoff", 9);
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let (reader, cancel) = (team.node.reader(), klnode::query::Cancel::default());
    let all = reader.search(&index.index(), &snapshot, &question, team.node.now, &cancel).unwrap();
    let hit = all.hits.iter().find(|hit| hit.found.entry == carols).expect("all are shown");
    assert!(hit.caveats.contains(&Caveat::Uncorroborated));
    // Tried here: it may enter like any other.
    team.node.succeed(hers[2]);
    let gated = ask(&team.node, Audience::Gated);
    assert_eq!(gated.hits.len(), 5);
    let place = entries(&gated.hits).iter().position(|entry| *entry == hers[2]).unwrap();
    assert!(place < 3, "{:?}", entries(&gated.hits));
    team.node.succeed(carols);
    assert!(entries(&ask(&team.node, Audience::Gated).hits).contains(&carols));
}

#[test]
fn what_a_program_is_not_told_of_a_stranger_is_counted_where_it_is_relevant() {
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
    assert_eq!(gated(&team.node, "apple pie"), 0, "it would have said nothing to that");
    let all = index.ask(&team.node, title, Audience::All);
    assert_eq!((entries(&all.hits), all.withheld), (vec![carols], 0));
    // With a word of this person on it, only whoever reads it knows that it is shut.
    team.node.claim(carols, Claim::Add(TextSet::TAGS, "billing".into()));
    assert_eq!(team.node.found(carols).gate(), Gate::Shut);
    assert_eq!(gated(&team.node, title), 1);
}

#[test]
fn two_trusted_members_who_confirm_it_open_the_gate_and_nobody_else_does() {
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
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces, "nobody is trusted yet");
    team.node.succeed(other);
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces, "one is not enough");
    team.node.succeed(third);
    let found = team.node.found(entry);
    assert_eq!(found.judged.corroboration, Corroboration::Members(2));
    assert_eq!(found.gate(), Gate::Open);
    assert_eq!(found.judged.standing.status, Status::Candidate, "until it is tried here");
    team.node.meet(team.bob.author(), PeerRow { is_blocked: true, ..paired("bob") });
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
}

/// Alice and bob, who are trusted, have confirmed what dave wrote.
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
    assert_eq!(confirm(&mut team, entry), Gate::Open);
    (team, dave, entry)
}

/// Alice and bob confirm an entry; returns what the gate says then.
fn confirm(team: &mut Team, entry: EntryId) -> Gate {
    team.alice.observe(entry, Confirmation);
    team.bob.observe(entry, Confirmation);
    team.exchange();
    team.node.found(entry).gate()
}

#[test]
fn what_members_confirmed_before_a_text_was_rewritten_is_not_about_it() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    for node in [&mut team.node, &mut dave] {
        node.wait_days(1);
    }
    retext(&mut dave, entry, "Another text.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
}

#[test]
fn a_text_that_was_swapped_is_confirmed_anew_whatever_its_stamp_says() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    // On the same day, from a clock that is years behind.
    dave.now = WallTime::from_millis(1_000);
    retext(&mut dave, entry, "Run this as root.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
    team.exchange();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(1);
    }
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
    assert_eq!(confirm(&mut team, entry), Gate::Open, "this text was seen to work, too");
}

#[test]
fn what_was_confirmed_before_a_text_was_seen_to_change_is_not_about_it() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(3);
    }
    assert_eq!(confirm(&mut team, entry), Gate::Open);
    // By its stamp it was written before they confirmed, and after it was first seen here.
    dave.wait_days(1);
    retext(&mut dave, entry, "Run this as root.");
    dave.send_to(&mut team.node);
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
}

/// What whoever has this key confirmed once, so long ago that the day is no longer told.
fn folded(key_seed: u8, entry: EntryId) -> Record {
    let mut tally = Tally::default();
    tally.confirmations.raise_fold(Boot(77), Thousandths::ONE);
    let place = Place { generation: Generation(1), boot: Boot(77) };
    let at = Position { entry, place, counter: 1, stamp: Hlc::new(START, 0), absorbs: Vec::new() };
    Record::seal(at, Payload::Tally(tally), &SecretKey::from_bytes(&[key_seed; 32])).unwrap()
}

#[test]
fn what_is_folded_confirms_no_text_that_took_anothers_place() {
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
    // Both are trusted still.
    let trusted = [
        team.alice.create_in(team.shared.id, "alice's latest"),
        team.bob.create_in(team.shared.id, "bob's latest"),
    ];
    team.exchange();
    for entry in trusted {
        team.node.succeed(entry);
    }
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
    assert_eq!(confirm(&mut team, entry), Gate::Open);
}

#[test]
fn what_is_folded_keeps_nothing_fresh() {
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
fn a_text_that_was_swapped_under_a_clock_ahead_is_confirmed_anew_from_when_it_was_set_right() {
    let (mut team, mut dave, entry) = confirmed_by_two();
    dave.wait_days(1);
    retext(&mut dave, entry, "Another text.");
    team.node.wait_days(200);
    dave.send_to(&mut team.node);
    team.node.now = dave.now;
    team.node.create("written once the clock is set right");
    team.exchange();
    assert_eq!(team.node.found(entry).gate(), Gate::LastPlaces);
    team.node.wait_days(2);
    for node in [&mut team.alice, &mut team.bob] {
        node.wait_days(3);
    }
    assert_eq!(confirm(&mut team, entry), Gate::Open);
}

#[test]
fn whoever_wrote_a_part_of_a_text_does_not_confirm_it() {
    let (mut team, _, entry) = confirmed_by_two();
    team.alice.retitle(entry, "alice's title");
    team.exchange();
    for node in [&mut team.node, &mut team.alice, &mut team.bob] {
        node.wait_days(1);
    }
    assert_eq!(confirm(&mut team, entry), Gate::LastPlaces, "bob alone has not written it");
}

#[test]
fn who_repeats_a_title_word_for_word_takes_nothing_over() {
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
    assert_eq!(found.judged.standing.status, Status::Verified);
    assert_eq!(found.gate(), Gate::Open);
}

#[test]
fn words_of_a_stranger_enter_nowhere_beside_a_members() {
    let mut team = Team::gather();
    let entry = team.carol.create_in(team.shared.id, "Run this as root");
    team.exchange();
    team.exchange();
    assert_eq!(team.node.found(entry).gate(), Gate::Shut);
    retext(&mut team.alice, entry, "A member's text under a stranger's title.");
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.author.as_ref().unwrap().name, "carol");
    assert_eq!(found.gate(), Gate::Shut);
}

#[test]
fn an_entry_without_a_text_is_nobodys_to_show() {
    let mut team = Team::gather();
    let entry = team.carol.create_in(team.shared.id, "soon taken back");
    team.exchange();
    team.node.claim(entry, Claim::Add(TextSet::TAGS, "billing".into()));
    team.carol.run(Command::Retract { entry }).unwrap();
    team.carol.claim(entry, Claim::Set(Register::POLARITY, "negative".into()));
    team.carol.claim(entry, Claim::Add(TextSet::TAGS, "run/this/as/root".into()));
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.view.state, State::Retracted);
    assert_eq!(found.gate(), Gate::Shut);
    assert!(found.is_foreign());
}

/// Asks until the answer is as expected, or patience ends.
pub(super) fn await_answer(
    index: &Indexed,
    node: &Node,
    text: &str,
    is_expected: impl Fn(&[Hit]) -> bool,
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
fn the_index_finds_the_words_of_members_from_the_moment_they_are_members() {
    let mut team = Team::gather();
    let mut dave = Node::start(5, 5);
    let entry = team.node.create_in(team.shared.id, "pipelines");
    team.node.send_to(&mut dave);
    retext(&mut dave, entry, "Xylophonecipher and quartzflute.");
    dave.send_to(&mut team.node);
    let index = Indexed::start(&team.node);
    let word = "xylophonecipher quartzflute";
    await_answer(&index, &team.node, word, <[Hit]>::is_empty);
    team.shared.admit(dave.author());
    team.shared.tell(&mut team.node);
    index.follow(&team.node);
    await_answer(&index, &team.node, word, |hits| entries(hits) == [entry]);
    team.shared.expel(dave.author());
    team.shared.tell(&mut team.node);
    index.follow(&team.node);
    await_answer(&index, &team.node, word, <[Hit]>::is_empty);
}

#[test]
fn hits_that_say_the_opposite_are_shown_together_and_name_each_other() {
    let mut team = Team::gather();
    let new = |polarity: &str, title: &str| klnode::engine::NewEntry {
        workspace: team.shared.id,
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| Claim::Add(TextSet::TAGS, tag.into())).to_vec(),
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
    let (reader, cancel) = (team.node.reader(), klnode::query::Cancel::default());
    for audience in [Audience::All, Audience::Gated] {
        let question = klnode::query::Question {
            audience,
            ..klnode::query::Question::new("retry billing gateway backoff", 3)
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
                Caveat::CompetesWith { entry, is_first, why, .. } if *entry == other => {
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
