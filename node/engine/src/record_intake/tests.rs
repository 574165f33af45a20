//! Tests of the side effects of ingesting a record, where a fault would show only later and
//! elsewhere.

use super::*;
use crate::peer_command_handling::{PROOFS_MAX, PROOFS_OF_PEER_MAX};
use crate::testing::{NOW, OWN, engine, engine_with, key};
use crate::{Command, DeliveredRecord, Engine, Limits, PeerCommand, Receipt};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Generation, Nonce, WorkspaceId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::record::Position;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::version_vector::Slot;
use klnode_federation::proto::OutboxTarget;
use klnode_store::Durability;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, ReleaseState};
use std::collections::BTreeSet;

mod damaged_records;
mod equivocation;
mod private_entries;

const OTHER: u32 = 2;

/// The origin of an entry created by another author.
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

fn with_writer<T>(number: u32, write: impl FnOnce(RecordBuilder<'_>) -> T) -> T {
    let (key, own) = (key(number), LiveRecords::default());
    write(RecordBuilder { key: &key, boot: Boot(900), entry: entry(), own: &own })
}

fn observation(number: u32) -> Record {
    let stamp = Hlc::new(NOW, 1);
    with_writer(number, |writer| {
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn claim(number: u32) -> Record {
    let claims = [ClaimEdit::Add(TextSet::TAGS, "auth/jwt".into())];
    let stamp = Hlc::new(NOW, 1);
    with_writer(number, |writer| writer.claim(&<_>::default(), None, &claims, stamp).unwrap())
}

fn retraction(number: u32) -> Record {
    with_writer(number, |writer| writer.retract(None, Hlc::new(NOW, 1)).unwrap())
}

/// A tombstone by the entry's creator.
fn tombstone(at: u16) -> Record {
    let stone = Tombstone { origin: origin(), grounds: Grounds::Origin };
    with_writer(OTHER, |writer| writer.forget(stone, Hlc::new(NOW, at)).unwrap())
}

fn bring(engine: &mut Engine, records: Vec<Record>, from: AuthorId) -> Vec<IngestOutcome> {
    let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
    match engine.step(&[Command::Ingest(arrivals)], NOW).remove(0) {
        Ok(Receipt::Ingested(told)) => told,
        other => panic!("no answer about the records: {other:?}"),
    }
}

fn note(engine: &mut Engine, act: PeerCommand) {
    engine.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

#[test]
fn records_a_peer_delivered_are_queued_for_it_if_it_may_have_lost_them() {
    let (mut node, peer) = (engine(), key(9).author());
    let (first, second) = (observation(OTHER), observation(10));
    bring(&mut node, vec![first.clone(), second.clone()], peer);
    let outbox = |node: &Engine| -> Vec<_> {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.outbox(peer, 0).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(outbox(&node), [], "the peer has its own records");
    // A comparison found the record missing, and a record was refused.
    let found = vec![first.digest(), observation(11).digest()];
    note(&mut node, PeerCommand::Requeue(peer, found));
    assert_eq!(outbox(&node), [(1, OutboxTarget::Returned(first.digest()))]);
    note(&mut node, PeerCommand::Restart(peer));
    let rows = [first, second].map(|record| OutboxTarget::Returned(record.digest()));
    assert_eq!(outbox(&node), [(1, rows[0]), (2, rows[1])], "each is queued once");
}

#[test]
fn a_first_release_queues_withheld_records_again_and_offers_no_others_back() {
    let (mut node, peer) = (engine(), key(9).author());
    let (lost, kept) = (observation(OTHER), observation(10));
    bring(&mut node, vec![lost.clone()], peer);
    // The peer may have lost the first record; it delivers the second one afterwards.
    note(&mut node, PeerCommand::Reread(peer));
    bring(&mut node, vec![kept], peer);
    note(&mut node, PeerCommand::Release(peer, entry(), true));
    let snapshot = node.store().snapshot().unwrap();
    let outbox: Vec<_> = snapshot.outbox(peer, 1).unwrap().map(Result::unwrap).collect();
    let rows = [OutboxTarget::Opened(entry()), OutboxTarget::Returned(lost.digest())];
    assert_eq!(outbox, [(2, rows[0]), (3, rows[1])], "after the row that was withheld");
}

#[test]
fn only_retractions_and_tombstones_take_back() {
    assert!(is_retraction_or_tombstone(&retraction(OTHER)));
    assert!(is_retraction_or_tombstone(&tombstone(1)));
    assert!(!is_retraction_or_tombstone(&observation(OTHER)));
    assert!(!is_retraction_or_tombstone(&claim(OTHER)));
}

#[test]
fn a_peer_that_delivers_a_record_of_a_forgotten_entry_gets_the_tombstone() {
    let (mut node, teller, late) = (engine(), key(9).author(), key(10).author());
    bring(&mut node, vec![tombstone(1)], teller);
    for record in [observation(OTHER), claim(11), observation(12)] {
        assert!(matches!(bring(&mut node, vec![record], late)[..], [IngestOutcome::Forgotten]));
    }
    let snapshot = node.store().snapshot().unwrap();
    let outbox: Vec<_> = snapshot.outbox(late, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(outbox, [(1, OutboxTarget::Record(tombstone(1).digest()))], "once");
}

#[test]
fn only_an_unknown_own_record_makes_the_engine_draw_a_new_boot() {
    let (mut node, peer) = (engine(), key(9).author());
    let first = node.boot();
    bring(&mut node, vec![observation(OTHER), observation(9)], peer);
    assert_eq!(node.boot(), first, "other authors have their own slots");
    bring(&mut node, vec![observation(OWN)], peer);
    let second = node.boot();
    assert_ne!(second, first);
    assert!(matches!(bring(&mut node, vec![observation(OWN)], peer)[..], [IngestOutcome::Known]));
    assert_eq!(node.boot(), second, "the record is known now");
}

#[test]
fn a_delivered_record_implies_a_release_unless_it_returns_or_takes_back() {
    for (record, expect) in [
        (observation(OTHER), ReleaseState::Open),
        (observation(OWN), ReleaseState::Ended),
        (retraction(OTHER), ReleaseState::Ended),
        (retraction(OWN), ReleaseState::Ended),
    ] {
        let (mut node, peer) = (engine(), key(9).author());
        bring(&mut node, vec![record], peer);
        let snapshot = node.store().snapshot().unwrap();
        assert_eq!(snapshot.release(peer, entry()).unwrap().back, expect);
        let nobody = key(10).author();
        assert_eq!(snapshot.release(nobody, entry()).unwrap().back, ReleaseState::Never);
    }
}

#[test]
fn a_later_delivery_implies_a_release_if_the_peer_made_no_statement() {
    let (mut node, peer) = (engine(), key(9).author());
    let back = |node: &Engine| {
        let snapshot = node.store().snapshot().unwrap();
        snapshot.release(peer, entry()).unwrap().back
    };
    bring(&mut node, vec![retraction(OTHER)], peer);
    bring(&mut node, vec![observation(OWN)], peer);
    assert_eq!(back(&node), ReleaseState::Ended, "a retraction goes wherever the entry has been");
    bring(&mut node, vec![observation(9)], peer);
    assert_eq!(back(&node), ReleaseState::Open);
    note(&mut node, PeerCommand::Released(peer, entry(), false));
    bring(&mut node, vec![claim(9)], peer);
    assert_eq!(back(&node), ReleaseState::Ended, "the peer's statement holds");
}

#[test]
fn records_from_a_file_have_no_delivering_peer() {
    let (mut node, peer) = (engine(), key(9).author());
    let own = node.author();
    let records = vec![observation(OTHER), observation(OWN), claim(10), tombstone(1)];
    for (from, is_noted) in [(own, false), (peer, true)] {
        bring(&mut node, records.clone(), from);
        let snapshot = node.store().snapshot().unwrap();
        assert_eq!(snapshot.release(from, entry()).unwrap().has_passed(), is_noted);
        assert_eq!(snapshot.receipt(from, entry()).unwrap().is_some(), is_noted);
    }
    note(&mut node, PeerCommand::Restart(own));
    let snapshot = node.store().snapshot().unwrap();
    assert_eq!(snapshot.outbox_head(own).unwrap(), 0, "the node has no outbox for itself");
}

#[test]
fn files_share_the_unknown_author_limit_of_one_peer() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let mut node = engine();
    let own = node.author();
    let strangers = (1_000_u32..).map(observation).take(max).collect();
    let told = bring(&mut node, strangers, own);
    assert!(told.iter().all(|one| matches!(one, IngestOutcome::Merged(_))));
    let late = bring(&mut node, vec![observation(9_000)], own);
    assert!(matches!(late[..], [IngestOutcome::Refused(_)]), "in another file: {late:?}");
    let brought = bring(&mut node, vec![observation(9_001)], key(9).author());
    assert!(
        matches!(brought[..], [IngestOutcome::Merged(_)]),
        "a peer has its own limit: {brought:?}"
    );
}

#[test]
fn the_unknown_author_limit_holds_for_entries_without_a_known_author() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let (mut node, peer) = (engine(), key(9).author());
    let strangers = (1_000_u32..).map(observation).take(max + 1).collect();
    let told = bring(&mut node, strangers, peer);
    let (taken, beyond) = told.split_at(max);
    assert!(taken.iter().all(|one| matches!(one, IngestOutcome::Merged(_))));
    assert!(matches!(beyond, [IngestOutcome::Refused(_)]), "{beyond:?}");
    let late = bring(&mut node, vec![observation(9_000)], peer);
    assert!(matches!(late[..], [IngestOutcome::Refused(_)]), "{late:?}");
    note(&mut node, PeerCommand::Restart(peer));
    let late = bring(&mut node, vec![observation(9_001)], peer);
    assert!(
        matches!(late[..], [IngestOutcome::Refused(_)]),
        "a second read makes no room: {late:?}"
    );
    let own = bring(&mut node, vec![observation(9)], peer);
    assert!(matches!(own[..], [IngestOutcome::Merged(_)]), "the peer is the author: {own:?}");
}

/// Two observations signed under the same counter.
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

/// A peer proves that the author equivocated.
fn convict(from: AuthorId, number: u32) -> PeerCommand {
    let [one, two] = two_as_one(number).map(|record| {
        let raw = record.to_raw();
        SignedHeader::read_back(&raw.header, raw.signature).unwrap()
    });
    PeerCommand::Convict(from, Box::new(EquivocationProof::find(&one, &two).unwrap()))
}

#[test]
fn above_the_limit_only_proofs_about_known_authors_are_kept() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..=1_000 + PROOFS_MAX as u32;
    let acts = numbers.clone().map(|number| convict(peer, number)).collect();
    node.step(&[Command::Peers(acts)], NOW).remove(0).expect("noted");
    assert!(is_convicted(&node, *numbers.start()));
    assert!(!is_convicted(&node, *numbers.end()), "an unknown author above the limit");
    // A peer, and an author for whom a peer stated a distance.
    note(&mut node, PeerCommand::Put(key(20).author(), Box::default()));
    note(&mut node, PeerCommand::Distance(key(21).author(), key(20).author(), 1));
    for number in [20, 21] {
        note(&mut node, convict(key(8).author(), number));
        assert!(is_convicted(&node, number), "{number}");
    }
    bring(&mut node, two_as_one(22).into(), key(8).author());
    assert!(!is_convicted(&node, 22), "delivered records do not make an author known");
}

#[test]
fn one_peer_convicts_a_limited_number_of_unknown_authors() {
    let (mut node, peer) = (engine(), key(9).author());
    let numbers = 1_000..=1_000 + PROOFS_OF_PEER_MAX as u32;
    let acts = numbers.clone().flat_map(|number| {
        [PeerCommand::Distance(key(number).author(), peer, 0), convict(peer, number)]
    });
    node.step(&[Command::Peers(acts.collect())], NOW).remove(0).expect("noted");
    assert!(is_convicted(&node, *numbers.end() - 1));
    assert!(!is_convicted(&node, *numbers.end()), "above this peer's limit");
    // A proof by any peer convicts a known author, and other peers have their own limits.
    note(&mut node, PeerCommand::Put(key(20).author(), Box::default()));
    note(&mut node, convict(peer, 20));
    note(&mut node, convict(key(8).author(), *numbers.end()));
    assert!(is_convicted(&node, 20) && is_convicted(&node, *numbers.end()));
}

#[test]
fn an_equivocating_own_record_causes_one_new_boot_even_if_it_is_not_stored() {
    let (mut node, peer) = (engine(), key(9).author());
    bring(&mut node, vec![claim(OTHER)], peer);
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    node.step(&[Command::Observe { entry: entry(), of, amount }], NOW).remove(0).unwrap();
    let held = node.store().snapshot().unwrap().holding(entry(), node.author()).unwrap();
    let signed = held.records().next().unwrap().digest();
    let before = node.boot();
    let twin_at = |at| {
        with_writer(OWN, |writer| {
            let writer = RecordBuilder { boot: before, ..writer };
            writer.observe(of, amount, NOW.day(), Hlc::new(NOW, at)).unwrap()
        })
    };
    let twin = (100..).map(twin_at).find(|twin| twin.digest() < signed).unwrap();
    // The twin changes no stored record, but shows that another process uses the same slot.
    assert!(matches!(bring(&mut node, vec![twin.clone()], peer)[..], [IngestOutcome::Known]));
    let after = node.boot();
    assert_ne!(after, before);
    assert!(matches!(bring(&mut node, vec![twin], peer)[..], [IngestOutcome::Known]));
    assert_eq!(node.boot(), after, "the twin is no news");
}

#[test]
fn own_records_covered_only_by_age_are_signed_again() {
    let counted = with_writer(OWN, |writer| {
        let writer = RecordBuilder { boot: Boot(901), ..writer };
        let stamp = Hlc::new(NOW, 1);
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    });
    let payload = || counted.payload().expect("the record was just written").clone();
    let of_generation = |number: u32| {
        let place = Slot { generation: Generation(number), boot: Boot(901) };
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
fn the_judge_sees_visible_payloads_once_and_never_retractions() {
    let mut node = engine_with(|_| ScreenDecision::Quarantine("it waits".into()));
    let peer = key(9).author();
    let taken_back = vec![retraction(OTHER), claim(OTHER)];
    let told = bring(&mut node, taken_back, peer);
    assert!(matches!(told[..], [IngestOutcome::Merged(_), IngestOutcome::Merged(_)]), "{told:?}");
    let observed = observation(OTHER);
    let told = bring(&mut node, vec![observed.clone()], peer);
    assert!(matches!(told[..], [IngestOutcome::Quarantined(_)]), "{told:?}");
    let told = node.step(&[Command::Release(observed.digest())], NOW).remove(0);
    let Ok(Receipt::Ingested(told)) = told else { panic!("no answer: {told:?}") };
    assert!(matches!(told[..], [IngestOutcome::Merged(_)]), "the operator has decided: {told:?}");
}

#[test]
fn only_a_retraction_erases_its_authors_claims_and_quarantined_records() {
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
        Facet::Claims => ScreenDecision::Quarantine("it waits".into()),
        _ => ScreenDecision::Admit,
    });
    let (of_other, of_peer) = (claim(OTHER), claim(9));
    let both = BTreeSet::from([of_other.digest(), of_peer.digest()]);
    let has_erased = |node: &Engine| node.store().snapshot().unwrap().has_erased().unwrap();
    bring(&mut node, vec![of_other, of_peer.clone(), observation(OTHER)], peer);
    assert_eq!(waiting(&node).into_iter().collect::<BTreeSet<_>>(), both);
    bring(&mut node, vec![retraction(10)], peer);
    assert!(!has_erased(&node), "no record was quarantined");
    bring(&mut node, vec![retraction(OTHER)], peer);
    assert_eq!(waiting(&node), [of_peer.digest()]);
    assert!(has_erased(&node), "the quarantined bytes remain until the store is rewritten");
}

#[test]
fn of_two_tombstones_the_smaller_digest_wins_in_either_order() {
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
        assert!(matches!(told[1], IngestOutcome::Merged(_)), "{told:?}");
        assert_eq!(forgotten(&node), Some(first.digest()));
        let told = bring(&mut node, vec![second.clone(), least.clone(), other.clone()], peer);
        assert_eq!(forgotten(&node), Some(least.digest()));
        assert!(matches!(told[1..], [IngestOutcome::Known, IngestOutcome::Known]), "{told:?}");
        assert_eq!(matches!(told[0], IngestOutcome::Merged(_)), second.digest() == least.digest());
    }
}

#[test]
fn a_tombstone_of_an_unknown_entry_erases_nothing() {
    let has_erased = |node: &Engine| node.store().snapshot().unwrap().has_erased().unwrap();
    let peer = key(9).author();
    let mut both = [1, 2].map(tombstone);
    both.sort_by_key(|stone| std::cmp::Reverse(stone.digest()));
    let mut node = engine();
    for stone in &both {
        let told = bring(&mut node, vec![stone.clone()], peer);
        assert!(matches!(told[..], [IngestOutcome::Merged(_)]), "{told:?}");
        assert!(!has_erased(&node), "nor does a tombstone that replaces another");
    }
    for held in [claim(10), observation(10), retraction(10)] {
        let mut node = engine();
        bring(&mut node, vec![held], peer);
        assert!(!has_erased(&node));
        bring(&mut node, vec![tombstone(1)], peer);
        assert!(has_erased(&node), "the stored bytes remain until the store is rewritten");
    }
    let mut node = engine_with(|record| match record.header().facet {
        Facet::Claims => ScreenDecision::Quarantine("it waits".into()),
        _ => ScreenDecision::Admit,
    });
    bring(&mut node, vec![claim(10)], peer);
    bring(&mut node, vec![tombstone(1)], peer);
    assert!(has_erased(&node), "and so do quarantined bytes");
}

/// A tombstone of an entry imported into `main`.
fn forgotten_import(number: u32) -> Record {
    let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
    let (format, name) = ("jsonl".into(), "row 1".into());
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let entry = origin.id();
    let stone = Tombstone { origin, grounds: Grounds::Origin };
    with_writer(number, |writer| {
        RecordBuilder { entry, ..writer }.forget(stone, Hlc::new(NOW, 1)).unwrap()
    })
}

#[test]
fn only_the_persons_machines_may_forget_an_import() {
    const HUB: u32 = 9;
    let put = |is_mine, is_blocked| {
        let approval = PeerApproval::Approved;
        Box::new(PeerRow { approval, is_mine, is_blocked, ..PeerRow::default() })
    };
    // The author of the tombstone, the delivering peer, and whether the tombstone is honoured.
    let cases = [
        (HUB, HUB, true),
        (20, HUB, true),
        // A machine paired with both, which this node does not know as the person's own.
        (10, HUB, true),
        // Blocked, like a machine that was lost.
        (11, HUB, false),
        (20, 10, false),
        (10, 10, false),
        (HUB, 10, true),
        // From a file.
        (20, OWN, false),
    ];
    for (by, from, is_honoured) in cases {
        let mut node = engine();
        note(&mut node, PeerCommand::Put(key(HUB).author(), put(true, false)));
        note(&mut node, PeerCommand::Put(key(10).author(), put(false, false)));
        note(&mut node, PeerCommand::Put(key(11).author(), put(true, true)));
        let told = bring(&mut node, vec![forgotten_import(by)], key(from).author());
        let is_taken = matches!(told[..], [IngestOutcome::Merged(_)]);
        assert_eq!(is_taken, is_honoured, "{by} by way of {from}: {told:?}");
    }
}

#[test]
fn a_quarantined_record_keeps_its_first_time_and_notes_every_delivering_peer() {
    let mut node = engine_with(|_| ScreenDecision::Quarantine("it waits".into()));
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

/// A tally of an author in the slot of a boot.
fn tally_of(number: u32, boot: u64, at: u16) -> Record {
    with_writer(number, |writer| {
        let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
        let writer = RecordBuilder { boot: Boot(boot), ..writer };
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

#[test]
fn a_record_over_the_slot_limit_is_refused_by_headers_alone() {
    let (mut node, peer) = (engine(), key(9).author());
    let max = LIVE_SLOTS_MAX as u64;
    let batch = node.store().batch(Durability::Durable).unwrap();
    for boot in 0..max {
        // The payload is unreadable: reading it would drop the record and make room.
        batch.put_unreadable(tally_of(OTHER, boot, 1).header(), &key(OTHER)).unwrap();
    }
    batch.commit().unwrap();
    let late = (max..max + 3).map(|boot| tally_of(OTHER, boot, 1)).collect();
    let told = bring(&mut node, late, peer);
    assert!(told.iter().all(|one| matches!(one, IngestOutcome::Refused(_))), "{told:?}");
    let batch = node.store().batch(Durability::Durable).unwrap();
    let at = (entry(), key(OTHER).author(), &[Facet::Tally][..]);
    assert_eq!(batch.held_names(at).unwrap().len(), LIVE_SLOTS_MAX);
}

#[test]
fn an_author_at_the_slot_limit_may_still_replace_its_records() {
    let (mut node, peer) = (engine(), key(9).author());
    let max = LIVE_SLOTS_MAX as u64;
    let told = bring(&mut node, (0..max).map(|boot| tally_of(OTHER, boot, 1)).collect(), peer);
    assert!(told.iter().all(|one| matches!(one, IngestOutcome::Merged(_))), "{told:?}");
    let mut held = LiveRecords::from_held([tally_of(OTHER, 3, 1)].into_iter());
    let next = with_writer(OTHER, |writer| {
        let writer = RecordBuilder { boot: Boot(3), own: &held, ..writer };
        let stamp = Hlc::new(NOW, 2);
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    });
    assert!(matches!(held.merge(next.clone()).outcome, MergeOutcome::Merged(_)));
    // In one step, so that the cache of the first record serves the next.
    let (known, late) = (tally_of(OTHER, 3, 1), tally_of(OTHER, max, 1));
    let told = bring(&mut node, vec![late.clone(), next, known, late], peer);
    let [first, second, third, fourth] = &told[..] else { panic!("{told:?}") };
    assert!(
        matches!((first, fourth), (IngestOutcome::Refused(_), IngestOutcome::Refused(_))),
        "{told:?}"
    );
    assert!(
        matches!((second, third), (IngestOutcome::Merged(_), IngestOutcome::Known)),
        "{told:?}"
    );
    assert!(!is_convicted(&node, OTHER));
    bring(&mut node, vec![tally_of(OTHER, 5, 2)], peer);
    assert!(is_convicted(&node, OTHER), "the author equivocated");
}

#[test]
fn the_step_cache_is_not_used_after_another_write_to_the_same_records() {
    let (mut node, peer) = (engine(), key(9).author());
    let told = bring(&mut node, vec![claim(OTHER), tombstone(1), claim(OTHER)], peer);
    assert!(matches!(told[2], IngestOutcome::Forgotten), "{told:?}");
    let mut node = engine();
    let many = vec![claim(OTHER), claim(10), retraction(OTHER), claim(OTHER), claim(10)];
    let told = bring(&mut node, many, peer);
    assert!(matches!(told[3..], [IngestOutcome::Known, IngestOutcome::Known]), "{told:?}");
    let held = node.store().snapshot().unwrap().holding(entry(), key(OTHER).author()).unwrap();
    assert!(held.facet(Facet::Claims).all(|claims| claims.payload().is_none()));
}
