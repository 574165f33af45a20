//! What a record does on its way in beside being merged: where a mistake would show much later, and
//! somewhere else.

use super::*;
use crate::engine::peers::{PROOFS_MAX, PROOFS_OF_PEER_MAX};
use crate::engine::testing::{NOW, OWN, engine, engine_with, key};
use crate::engine::{Arrival, Command, Engine, Limits, PeerAct, Receipt};
use crate::store::Durability;
use crate::store::peers::rows::{Approval, PeerRow, Way};
use klnode_crdt::claims::TextSet;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Generation, Nonce, WorkspaceId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::record::Position;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::version::Place;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::Outgoing;
use std::collections::BTreeSet;

mod apart;
mod dropped;
mod proofs;

const OTHER: u32 = 2;

/// The origin of an entry that somebody else has created.
fn origin() -> Origin {
    Origin::Created {
        creator: key(OTHER).author(),
        stamp: Hlc::new(NOW, 0),
        nonce: Nonce::default(),
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
    }
}

fn entry() -> EntryId {
    origin().id()
}

fn with_writer<T>(number: u32, write: impl FnOnce(Writer<'_>) -> T) -> T {
    let (key, own) = (key(number), Holding::default());
    write(Writer { key: &key, boot: Boot(900), entry: entry(), own: &own })
}

fn observation(number: u32) -> Record {
    let stamp = Hlc::new(NOW, 1);
    with_writer(number, |writer| {
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn claim(number: u32) -> Record {
    let claims = [Claim::Add(TextSet::TAGS, "auth/jwt".into())];
    let stamp = Hlc::new(NOW, 1);
    with_writer(number, |writer| writer.claim(&<_>::default(), None, &claims, stamp).unwrap())
}

fn retraction(number: u32) -> Record {
    with_writer(number, |writer| writer.retract(None, Hlc::new(NOW, 1)).unwrap())
}

/// The creator forgets the entry.
fn tombstone(at: u16) -> Record {
    let stone = Tombstone { origin: origin(), grounds: Grounds::Origin };
    with_writer(OTHER, |writer| writer.forget(stone, Hlc::new(NOW, at)).unwrap())
}

fn bring(engine: &mut Engine, records: Vec<Record>, from: AuthorId) -> Vec<Ingested> {
    let arrivals = records.into_iter().map(|record| Arrival { record, from }).collect();
    match engine.step(&[Command::Ingest(arrivals)], NOW).remove(0) {
        Ok(Receipt::Ingested(told)) => told,
        other => panic!("no answer about the records: {other:?}"),
    }
}

fn note(engine: &mut Engine, act: PeerAct) {
    engine.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

#[test]
fn what_a_peer_brought_is_named_to_it_where_it_may_have_lost_it() {
    let (mut node, peer) = (engine(), key(9).author());
    let (first, second) = (observation(OTHER), observation(10));
    bring(&mut node, vec![first.clone(), second.clone()], peer);
    let outbox = |node: &Engine| -> Vec<_> {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.outbox(peer, 0).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(outbox(&node), [], "it has what it brought");
    // A comparison found it, and a record that was refused.
    let found = vec![first.digest(), observation(11).digest()];
    note(&mut node, PeerAct::Requeue(peer, found));
    assert_eq!(outbox(&node), [(1, Outgoing::Returned(first.digest()))]);
    note(&mut node, PeerAct::Restart(peer));
    let rows = [first, second].map(|record| Outgoing::Returned(record.digest()));
    assert_eq!(outbox(&node), [(1, rows[0]), (2, rows[1])], "each is named once");
}

#[test]
fn retractions_and_tombstones_take_back_and_nothing_else_does() {
    assert!(takes_back(&retraction(OTHER)));
    assert!(takes_back(&tombstone(1)));
    assert!(!takes_back(&observation(OTHER)));
    assert!(!takes_back(&claim(OTHER)));
}

#[test]
fn whoever_brings_something_of_a_forgotten_entry_without_having_been_told_is_told() {
    let (mut node, teller, late) = (engine(), key(9).author(), key(10).author());
    bring(&mut node, vec![tombstone(1)], teller);
    for record in [observation(OTHER), claim(11), observation(12)] {
        assert!(matches!(bring(&mut node, vec![record], late)[..], [Ingested::Forgotten]));
    }
    let snapshot = node.store().snapshot().unwrap();
    let outbox: Vec<_> = snapshot.outbox(late, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(outbox, [(1, Outgoing::Record(tombstone(1).digest()))], "once");
}

#[test]
fn only_an_own_record_that_this_life_did_not_write_makes_it_draw_a_new_boot() {
    let (mut node, peer) = (engine(), key(9).author());
    let first = node.boot();
    bring(&mut node, vec![observation(OTHER), observation(9)], peer);
    assert_eq!(node.boot(), first, "others write into slots of their own");
    bring(&mut node, vec![observation(OWN)], peer);
    let second = node.boot();
    assert_ne!(second, first);
    assert!(matches!(bring(&mut node, vec![observation(OWN)], peer)[..], [Ingested::Known]));
    assert_eq!(node.boot(), second, "it is known by now");
}

#[test]
fn a_peer_releases_what_it_brings_unless_that_only_comes_back_or_takes_back() {
    for (record, expect) in [
        (observation(OTHER), Way::Open),
        (observation(OWN), Way::Ended),
        (retraction(OTHER), Way::Ended),
        (retraction(OWN), Way::Ended),
    ] {
        let (mut node, peer) = (engine(), key(9).author());
        bring(&mut node, vec![record], peer);
        let snapshot = node.store().snapshot().unwrap();
        assert_eq!(snapshot.release(peer, entry()).unwrap().back, expect);
        let nobody = key(10).author();
        assert_eq!(snapshot.release(nobody, entry()).unwrap().back, Way::Never);
    }
}

#[test]
fn where_the_peer_has_said_nothing_what_it_brings_later_shows_that_it_releases_the_entry() {
    let (mut node, peer) = (engine(), key(9).author());
    let back = |node: &Engine| {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.release(peer, entry()).unwrap().back
    };
    bring(&mut node, vec![retraction(OTHER)], peer);
    bring(&mut node, vec![observation(OWN)], peer);
    assert_eq!(back(&node), Way::Ended, "that goes wherever the entry has been");
    bring(&mut node, vec![observation(9)], peer);
    assert_eq!(back(&node), Way::Open);
    note(&mut node, PeerAct::Released(peer, entry(), false));
    bring(&mut node, vec![claim(9)], peer);
    assert_eq!(back(&node), Way::Ended, "what it has said holds");
}

#[test]
fn what_stands_in_a_file_was_brought_by_nobody() {
    let (mut node, peer) = (engine(), key(9).author());
    let own = node.author();
    let records = vec![observation(OTHER), observation(OWN), claim(10), tombstone(1)];
    for (from, is_noted) in [(own, false), (peer, true)] {
        bring(&mut node, records.clone(), from);
        let snapshot = node.store().snapshot().unwrap();
        assert_eq!(snapshot.release(from, entry()).unwrap().has_passed(), is_noted);
        assert_eq!(snapshot.receipt(from, entry()).unwrap().is_some(), is_noted);
    }
    note(&mut node, PeerAct::Restart(own));
    let snapshot = node.store().snapshot().unwrap();
    assert_eq!(snapshot.outbox_head(own).unwrap(), 0, "it has no outbox for itself");
}

#[test]
fn files_bring_as_many_unknown_authors_of_an_entry_as_a_peer_does() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let mut node = engine();
    let own = node.author();
    let strangers = (1_000_u32..).map(observation).take(max).collect();
    let told = bring(&mut node, strangers, own);
    assert!(told.iter().all(|one| matches!(one, Ingested::Merged(_))));
    let late = bring(&mut node, vec![observation(9_000)], own);
    assert!(matches!(late[..], [Ingested::Refused(_)]), "in another file: {late:?}");
    let brought = bring(&mut node, vec![observation(9_001)], key(9).author());
    assert!(matches!(brought[..], [Ingested::Merged(_)]), "a peer has its own share: {brought:?}");
}

#[test]
fn of_an_entry_without_a_known_author_a_peer_brings_as_many_unknown_ones_as_of_any_other() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let (mut node, peer) = (engine(), key(9).author());
    let strangers = (1_000_u32..).map(observation).take(max + 1).collect();
    let told = bring(&mut node, strangers, peer);
    let (taken, beyond) = told.split_at(max);
    assert!(taken.iter().all(|one| matches!(one, Ingested::Merged(_))));
    assert!(matches!(beyond, [Ingested::Refused(_)]), "{beyond:?}");
    let late = bring(&mut node, vec![observation(9_000)], peer);
    assert!(matches!(late[..], [Ingested::Refused(_)]), "{late:?}");
    note(&mut node, PeerAct::Restart(peer));
    let late = bring(&mut node, vec![observation(9_001)], peer);
    assert!(matches!(late[..], [Ingested::Refused(_)]), "reading anew makes no room: {late:?}");
    let own = bring(&mut node, vec![observation(9)], peer);
    assert!(matches!(own[..], [Ingested::Merged(_)]), "it speaks for itself: {own:?}");
}

/// Two observations that somebody signed as one.
fn two_as_one(number: u32) -> [Record; 2] {
    [1, 2].map(|at| {
        let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
        with_writer(number, |writer| {
            writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
        })
    })
}

fn is_convicted(node: &Engine, number: u32) -> bool {
    let snapshot = node.store().snapshot().unwrap();
    snapshot.equivocation(key(number).author()).unwrap().is_some()
}

/// A peer proves that somebody did.
fn convict(from: AuthorId, number: u32) -> PeerAct {
    let [one, two] = two_as_one(number).map(|record| {
        let raw = record.to_raw();
        SignedHeader::read_back(&raw.header, raw.signature).unwrap()
    });
    PeerAct::Convict(from, Box::new(Proof::find(&one, &two).unwrap()))
}

#[test]
fn beyond_a_number_of_proofs_only_those_about_somebody_known_are_kept() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..=1_000 + PROOFS_MAX as u32;
    let acts = numbers.clone().map(|number| convict(peer, number)).collect();
    node.step(&[Command::Peers(acts)], NOW).remove(0).expect("noted");
    assert!(is_convicted(&node, *numbers.start()));
    assert!(!is_convicted(&node, *numbers.end()), "nobody knows it, and there are enough");
    // A peer, and whoever a peer has told of.
    note(&mut node, PeerAct::Put(key(20).author(), Box::default()));
    note(&mut node, PeerAct::Distance(key(21).author(), key(20).author(), 1));
    for number in [20, 21] {
        note(&mut node, convict(key(8).author(), number));
        assert!(is_convicted(&node, number), "{number}");
    }
    bring(&mut node, two_as_one(22).into(), key(8).author());
    assert!(!is_convicted(&node, 22), "that its records are brought tells nothing of it");
}

#[test]
fn one_peer_convicts_so_many_unknown_authors_however_near_it_says_they_are() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..=1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.clone().flat_map(|number| {
        [PeerAct::Distance(key(number).author(), peer, 0), convict(peer, number)]
    });
    node.step(&[Command::Peers(acts.collect())], NOW).remove(0).expect("noted");
    assert!(is_convicted(&node, *numbers.end() - 1));
    assert!(!is_convicted(&node, *numbers.end()), "one too many of this peer");
    // Whoever is known here is convicted by anyone's proof, and others have room of their own.
    note(&mut node, PeerAct::Put(key(20).author(), Box::default()));
    note(&mut node, convict(peer, 20));
    note(&mut node, convict(key(8).author(), *numbers.end()));
    assert!(is_convicted(&node, 20) && is_convicted(&node, *numbers.end()));
}

#[test]
fn a_twin_makes_a_life_draw_a_new_boot_once_even_if_it_gives_way_to_what_is_held() {
    let (mut node, peer) = (engine(), key(9).author());
    bring(&mut node, vec![claim(OTHER)], peer);
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    node.step(&[Command::Observe { entry: entry(), of, amount }], NOW).remove(0).unwrap();
    let held = node.store().snapshot().unwrap().holding(entry(), node.author()).unwrap();
    let signed = held.records().next().unwrap().digest();
    let before = node.boot();
    let twin_at = |at| {
        with_writer(OWN, |writer| {
            let writer = Writer { boot: before, ..writer };
            writer.observe(of, amount, NOW.day(), Hlc::new(NOW, at)).unwrap()
        })
    };
    let twin = (100..).map(twin_at).find(|twin| twin.digest() < signed).unwrap();
    // It changes nothing that is held: that it exists tells of a life in the same slot.
    assert!(matches!(bring(&mut node, vec![twin.clone()], peer)[..], [Ingested::Known]));
    let after = node.boot();
    assert_ne!(after, before);
    assert!(matches!(bring(&mut node, vec![twin], peer)[..], [Ingested::Known]));
    assert_eq!(node.boot(), after, "it tells nothing new");
}

#[test]
fn what_an_own_record_covers_for_its_age_alone_is_signed_again() {
    let counted = with_writer(OWN, |writer| {
        let writer = Writer { boot: Boot(901), ..writer };
        let stamp = Hlc::new(NOW, 1);
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    });
    let payload = || counted.payload().expect("it was just written").clone();
    let of_generation = |number: u32| {
        let place = Place { generation: Generation(number), boot: Boot(901) };
        let stamp = Hlc::new(NOW, 1);
        let at = Position { entry: entry(), place, counter: 1, stamp, absorbs: Vec::new() };
        Record::seal(at, payload(), &key(OWN)).unwrap()
    };
    for (generation, live) in [(1, 2), (5_000, 1)] {
        let (mut node, peer) = (engine(), key(9).author());
        bring(&mut node, vec![observation(OWN)], peer);
        bring(&mut node, vec![of_generation(generation)], peer);
        let snapshot = node.store().snapshot().unwrap();
        let own = snapshot.holding(entry(), node.author()).unwrap();
        let tally = &own.to_entry().tallies[&node.author()];
        let successes = tally.successes.total(NOW.day(), &tally.reset);
        assert_eq!((successes, own.records().len()), (Thousandths(2_000), live), "{generation}");
    }
}

#[test]
fn the_judge_is_asked_once_about_what_would_be_shown_and_never_about_what_takes_back() {
    let mut node = engine_with(|_| Verdict::Quarantine("it waits".into()));
    let peer = key(9).author();
    let taken_back = vec![retraction(OTHER), claim(OTHER)];
    let told = bring(&mut node, taken_back, peer);
    assert!(matches!(told[..], [Ingested::Merged(_), Ingested::Merged(_)]), "{told:?}");
    let observed = observation(OTHER);
    let told = bring(&mut node, vec![observed.clone()], peer);
    assert!(matches!(told[..], [Ingested::Quarantined(_)]), "{told:?}");
    let told = node.step(&[Command::Release(observed.digest())], NOW).remove(0);
    let Ok(Receipt::Ingested(told)) = told else { panic!("no answer: {told:?}") };
    assert!(matches!(told[..], [Ingested::Merged(_)]), "the operator has decided: {told:?}");
}

#[test]
fn a_retraction_and_nothing_else_takes_what_its_author_claimed_away_and_what_waits_of_it() {
    let is_claimed = |record: &Record| record.header().facet == Facet::Claims;
    let waiting = |node: &Engine| -> Vec<Digest> {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.quarantine().unwrap().map(|row| row.unwrap().0).collect()
    };
    let held = |node: &Engine| {
        let snapshot = node.store().snapshot().unwrap();
        let own = snapshot.holding(entry(), key(OTHER).author()).unwrap();
        own.records().any(|record| is_claimed(record) && record.payload().is_some())
    };
    let peer = key(9).author();
    let mut node = engine();
    bring(&mut node, vec![claim(OTHER), observation(OTHER)], peer);
    assert!(held(&node));
    bring(&mut node, vec![retraction(OTHER)], peer);
    assert!(!held(&node));

    let mut node = engine_with(|record| match record.header().facet {
        Facet::Claims => Verdict::Quarantine("it waits".into()),
        _ => Verdict::Admit,
    });
    let (of_other, of_peer) = (claim(OTHER), claim(9));
    let both = BTreeSet::from([of_other.digest(), of_peer.digest()]);
    let has_erased = |node: &Engine| node.store().snapshot().unwrap().has_erased().unwrap();
    bring(&mut node, vec![of_other, of_peer.clone(), observation(OTHER)], peer);
    assert_eq!(waiting(&node).into_iter().collect::<BTreeSet<_>>(), both);
    bring(&mut node, vec![retraction(10)], peer);
    assert!(!has_erased(&node), "nothing of it waited");
    bring(&mut node, vec![retraction(OTHER)], peer);
    assert_eq!(waiting(&node), [of_peer.digest()]);
    assert!(has_erased(&node), "what waited lingers until the store is written anew");
}

#[test]
fn of_two_tombstones_the_one_with_the_least_digest_stays_whichever_comes_first() {
    let mut both = [1, 2].map(tombstone);
    both.sort_by_key(Record::digest);
    let [least, other] = both;
    let (peer, forgotten) = (key(9).author(), |node: &Engine| {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.tombstone(entry()).unwrap().map(|stone| stone.digest())
    });
    for (first, second) in [(&least, &other), (&other, &least)] {
        let mut node = engine();
        let told = bring(&mut node, vec![observation(OTHER), first.clone()], peer);
        assert!(matches!(told[1], Ingested::Merged(_)), "{told:?}");
        assert_eq!(forgotten(&node), Some(first.digest()));
        let told = bring(&mut node, vec![second.clone(), least.clone(), other.clone()], peer);
        assert_eq!(forgotten(&node), Some(least.digest()));
        assert!(matches!(told[1..], [Ingested::Known, Ingested::Known]), "{told:?}");
        assert_eq!(matches!(told[0], Ingested::Merged(_)), second.digest() == least.digest());
    }
}

#[test]
fn a_tombstone_of_what_was_never_held_has_erased_nothing() {
    let has_erased = |node: &Engine| node.store().snapshot().unwrap().has_erased().unwrap();
    let peer = key(9).author();
    let mut both = [1, 2].map(tombstone);
    both.sort_by_key(|stone| std::cmp::Reverse(stone.digest()));
    let mut node = engine();
    for stone in &both {
        let told = bring(&mut node, vec![stone.clone()], peer);
        assert!(matches!(told[..], [Ingested::Merged(_)]), "{told:?}");
        assert!(!has_erased(&node), "nor has one that takes another's place");
    }
    for held in [claim(10), observation(10), retraction(10)] {
        let mut node = engine();
        bring(&mut node, vec![held], peer);
        assert!(!has_erased(&node));
        bring(&mut node, vec![tombstone(1)], peer);
        assert!(has_erased(&node), "what was held lingers until the store is written anew");
    }
    let mut node = engine_with(|record| match record.header().facet {
        Facet::Claims => Verdict::Quarantine("it waits".into()),
        _ => Verdict::Admit,
    });
    bring(&mut node, vec![claim(10)], peer);
    bring(&mut node, vec![tombstone(1)], peer);
    assert!(has_erased(&node), "and so does what waited");
}

/// Somebody forgets what was imported into `main`.
fn forgotten_import(number: u32) -> Record {
    let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
    let (format, name) = ("jsonl".into(), "row 1".into());
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let entry = origin.id();
    let stone = Tombstone { origin, grounds: Grounds::Origin };
    with_writer(number, |writer| {
        Writer { entry, ..writer }.forget(stone, Hlc::new(NOW, 1)).unwrap()
    })
}

#[test]
fn an_import_is_forgotten_by_the_persons_machines_and_by_who_is_one_to_another_of_them() {
    const HUB: u32 = 9;
    let put = |is_mine, is_blocked| {
        let approval = Approval::Approved;
        Box::new(PeerRow { approval, is_mine, is_blocked, ..PeerRow::default() })
    };
    // By whom, brought by whom, and whether it is honoured.
    let cases = [
        (HUB, HUB, true),
        (20, HUB, true),
        // One that is paired with both, and somebody else's as far as this node knows.
        (10, HUB, true),
        // Blocked, as a machine that was lost.
        (11, HUB, false),
        (20, 10, false),
        (10, 10, false),
        (HUB, 10, true),
        // Out of a file.
        (20, OWN, false),
    ];
    for (by, from, is_honoured) in cases {
        let mut node = engine();
        note(&mut node, PeerAct::Put(key(HUB).author(), put(true, false)));
        note(&mut node, PeerAct::Put(key(10).author(), put(false, false)));
        note(&mut node, PeerAct::Put(key(11).author(), put(true, true)));
        let told = bring(&mut node, vec![forgotten_import(by)], key(from).author());
        let is_taken = matches!(told[..], [Ingested::Merged(_)]);
        assert_eq!(is_taken, is_honoured, "{by} by way of {from}: {told:?}");
    }
}

#[test]
fn whoever_brings_what_waits_is_noted_and_it_waits_since_the_first_did() {
    let mut node = engine_with(|_| Verdict::Quarantine("it waits".into()));
    let (one, two, observed) = (key(9).author(), key(10).author(), observation(OTHER));
    bring(&mut node, vec![observed.clone()], one);
    let brought = |node: &Engine| {
        let snapshot = node.store().snapshot().unwrap();
        [one, two].map(|peer| snapshot.has_brought(peer, observed.digest()).unwrap())
    };
    assert_eq!(brought(&node), [true, false]);
    bring(&mut node, vec![observed.clone()], two);
    assert_eq!(brought(&node), [true, true]);
    let snapshot = node.store().snapshot().unwrap();
    let waiting: Vec<_> = snapshot.quarantine().unwrap().map(|row| row.unwrap().1.from).collect();
    assert_eq!(waiting, [one]);
}

/// A tally of somebody in the slot of a boot.
fn tally_of(number: u32, boot: u64, at: u16) -> Record {
    with_writer(number, |writer| {
        let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
        let writer = Writer { boot: Boot(boot), ..writer };
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

#[test]
fn one_record_too_many_is_told_without_a_look_at_what_the_others_say() {
    let (mut node, peer) = (engine(), key(9).author());
    let max = LIVE_SLOTS_MAX as u64;
    let batch = node.store().batch(Durability::Durable).unwrap();
    for boot in 0..max {
        // Nobody could read it: whoever tried would drop it, and find room.
        batch.put_unreadable(tally_of(OTHER, boot, 1).header(), &key(OTHER)).unwrap();
    }
    batch.commit().unwrap();
    let late = (max..max + 3).map(|boot| tally_of(OTHER, boot, 1)).collect();
    let told = bring(&mut node, late, peer);
    assert!(told.iter().all(|one| matches!(one, Ingested::Refused(_))), "{told:?}");
    let batch = node.store().batch(Durability::Durable).unwrap();
    let at = (entry(), key(OTHER).author(), &[Facet::Tally][..]);
    assert_eq!(batch.held_names(at).unwrap().len(), LIVE_SLOTS_MAX);
}

#[test]
fn an_author_with_as_many_records_as_there_may_be_still_replaces_and_contradicts_them() {
    let (mut node, peer) = (engine(), key(9).author());
    let max = LIVE_SLOTS_MAX as u64;
    let told = bring(&mut node, (0..max).map(|boot| tally_of(OTHER, boot, 1)).collect(), peer);
    assert!(told.iter().all(|one| matches!(one, Ingested::Merged(_))), "{told:?}");
    let mut held = Holding::from_held([tally_of(OTHER, 3, 1)].into_iter());
    let next = with_writer(OTHER, |writer| {
        let writer = Writer { boot: Boot(3), own: &held, ..writer };
        let stamp = Hlc::new(NOW, 2);
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    });
    assert!(matches!(held.merge(next.clone()).outcome, Outcome::Merged(_)));
    // In one step, so that what is read for one is there for the next.
    let (known, late) = (tally_of(OTHER, 3, 1), tally_of(OTHER, max, 1));
    let told = bring(&mut node, vec![late.clone(), next, known, late], peer);
    let [first, second, third, fourth] = &told[..] else { panic!("{told:?}") };
    assert!(matches!((first, fourth), (Ingested::Refused(_), Ingested::Refused(_))), "{told:?}");
    assert!(matches!((second, third), (Ingested::Merged(_), Ingested::Known)), "{told:?}");
    assert!(!is_convicted(&node, OTHER));
    bring(&mut node, vec![tally_of(OTHER, 5, 2)], peer);
    assert!(is_convicted(&node, OTHER), "two things as one");
}

#[test]
fn what_a_step_has_read_is_not_taken_for_what_is_held_after_something_else_was_written_there() {
    let (mut node, peer) = (engine(), key(9).author());
    let told = bring(&mut node, vec![claim(OTHER), tombstone(1), claim(OTHER)], peer);
    assert!(matches!(told[2], Ingested::Forgotten), "{told:?}");
    let mut node = engine();
    let many = vec![claim(OTHER), claim(10), retraction(OTHER), claim(OTHER), claim(10)];
    let told = bring(&mut node, many, peer);
    assert!(matches!(told[3..], [Ingested::Known, Ingested::Known]), "{told:?}");
    let held = node.store().snapshot().unwrap().holding(entry(), key(OTHER).author()).unwrap();
    assert!(held.facet(Facet::Claims).all(|claims| claims.payload().is_none()));
}
