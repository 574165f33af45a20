//! Tests of the merge rules, one case each. The law that nodes converge for any order of arrival is
//! tested on generated histories elsewhere; these tests check each rule that the law depends on.

use super::*;
use crate::claims::Claims;
use crate::entry_origin::{Memory, Origin};
use crate::ids::{Boot, EntryId, Generation, Nonce, RetractionId, WorkspaceId};
use crate::payload::Payload;
use crate::record::{Position, RawRecord};
use crate::register::{MvRegister, Register, RegisterValue};
use crate::tally::Tally;
use crate::testing::{key, origin};
use crate::time::Hlc;
use crate::tombstone::{AdminGrant, Grounds, Tombstone};
use crate::version_vector::Slot;

const ONE_MARK: RetractionId = RetractionId::from_bytes([1; 16]);
const OTHER_MARK: RetractionId = RetractionId::from_bytes([2; 16]);

fn entry() -> EntryId {
    origin(1).id()
}

fn place(boot: u64) -> Slot {
    Slot { boot: Boot(boot), generation: Generation(boot as u32) }
}

fn sealed(boot: u64, counter: u64, absorbs: &[(Slot, u64)], payload: Payload) -> Record {
    let (place, absorbs) = (place(boot), absorbs.to_vec());
    let at = Position { entry: entry(), place, counter, stamp: Hlc::from_bits(1), absorbs };
    Record::seal(at, payload, &key(1)).expect("within the limits")
}

/// A claims payload with a title that names these retractions in `after`.
fn titled(text: &str, after: &[RetractionId]) -> Payload {
    let value = RegisterValue {
        text: text.into(),
        stamp: Hlc::from_bits(1),
        author: key(1).author(),
        replaces: [].into(),
        after: after.iter().copied().collect(),
    };
    let mut title = MvRegister::default();
    title.insert(entry(), Register::TITLE, value);
    let claims = Claims { registers: [(Register::TITLE, title)].into(), ..Claims::default() };
    Payload::Claims { origin: None, claims }
}

fn retraction(boot: u64, counter: u64, mark: RetractionId) -> Record {
    sealed(boot, counter, &[], Payload::Retraction { origin: None, mark })
}

/// The record without its payload, as a relay could forward it.
fn stripped(record: &Record) -> Record {
    Record::verify(&RawRecord { payload: None, ..record.to_raw() }).expect("a header alone")
}

fn holding(records: &[&Record]) -> LiveRecords {
    let mut holding = LiveRecords::default();
    for record in records {
        let outcome = holding.merge((*record).clone()).outcome;
        assert!(matches!(outcome, MergeOutcome::Merged(_)), "{outcome:?}");
    }
    holding
}

fn merged(covered: &[&Record], erased: &[&Record]) -> MergeOutcome {
    let digests = |records: &[&Record]| records.iter().map(|record| record.digest()).collect();
    MergeOutcome::Merged(MergeEffects { covered: digests(covered), erased: digests(erased) })
}

fn is_live(holding: &LiveRecords, record: &Record) -> bool {
    holding.records().any(|held| held.digest() == record.digest())
}

#[test]
fn a_later_record_of_a_slot_replaces_an_earlier_one_in_any_order() {
    let [first, second] = [1, 2].map(|counter| sealed(1, counter, &[], titled("text", &[])));
    let mut held = LiveRecords::default();
    assert_eq!(held.merge(first.clone()).outcome, merged(&[], &[]));
    assert_eq!(held.merge(second.clone()).outcome, merged(&[&first], &[]));
    assert_eq!(held.records().collect::<Vec<_>>(), [&second]);
    assert_eq!(held.merge(first).outcome, MergeOutcome::Known);
    assert_eq!(held.merge(second.clone()).outcome, MergeOutcome::Known);
    assert_eq!(held.records().collect::<Vec<_>>(), [&second]);
}

#[test]
fn facets_have_separate_live_records() {
    let claims = sealed(1, 1, &[], titled("text", &[]));
    let tally = sealed(2, 2, &[(place(1), 1)], Payload::Tally(Tally::default()));
    let held = holding(&[&claims, &tally, &retraction(3, 3, ONE_MARK)]);
    for facet in [Facet::Claims, Facet::Tally, Facet::Retraction] {
        let found: Vec<Facet> = held.facet(facet).map(|held| held.header().facet).collect();
        assert_eq!(found, [facet]);
    }
}

#[test]
fn two_records_of_one_version_prove_an_equivocation() {
    let [one, two] = ["one", "two"].map(|text| sealed(1, 1, &[], titled(text, &[])));
    let (less, more) = if one.digest() < two.digest() { (one, two) } else { (two, one) };
    let mut held = LiveRecords::default();
    assert_eq!(held.merge(more.clone()).proof, None);
    assert_eq!(held.merge(more).proof, None, "the same once more");
    let Merge { outcome, proof } = held.merge(less);
    assert_eq!(outcome, MergeOutcome::Known, "the greater digest stays");
    assert_eq!(proof.expect("a proof").author(), key(1).author());
    assert_eq!(held.merge(sealed(1, 2, &[], titled("three", &[]))).proof, None);
}

#[test]
fn a_stripped_record_is_merged_only_after_a_retraction_of_its_author() {
    let bare = stripped(&sealed(1, 1, &[], titled("text", &[])));
    let mut held = holding(&[&sealed(2, 1, &[], titled("other", &[]))]);
    assert_eq!(held.merge(bare.clone()).outcome, MergeOutcome::Unexplained);
    assert!(!is_live(&held, &bare));
    let mut held = holding(&[&retraction(1, 1, ONE_MARK)]);
    assert_eq!(held.merge(bare.clone()).outcome, merged(&[], &[]));
    assert!(is_live(&held, &bare));
}

#[test]
fn a_whole_record_replaces_its_stripped_copy_and_never_the_reverse() {
    let whole = sealed(1, 1, &[], titled("text", &[ONE_MARK]));
    let mut held = holding(&[&retraction(1, 1, ONE_MARK), &stripped(&whole)]);
    assert_eq!(held.merge(stripped(&whole)).outcome, MergeOutcome::Known);
    assert_eq!(held.merge(whole.clone()).outcome, merged(&[], &[]));
    assert_eq!(held.get(whole.digest()), Some(&whole));
    assert_eq!(held.merge(stripped(&whole)).outcome, MergeOutcome::Known);
    assert_eq!(held.get(whole.digest()), Some(&whole));
}

#[test]
fn a_retraction_erases_earlier_payloads_for_good() {
    let old = sealed(1, 1, &[], titled("taken back", &[]));
    let new = sealed(2, 1, &[], titled("said later", &[ONE_MARK]));
    let taken_back = retraction(1, 1, ONE_MARK);
    let mut held = holding(&[&old, &new]);
    assert_eq!(held.merge(taken_back.clone()).outcome, merged(&[], &[&old]));
    assert_eq!(held.get(old.digest()).and_then(Record::absence), Some(Absence::Erased));
    assert_eq!(held.merge(old.clone()).outcome, MergeOutcome::Known);
    assert_eq!(held.get(old.digest()).and_then(Record::payload), None);
    assert_eq!(held.get(new.digest()), Some(&new));
    // If the retraction arrives first, the record is erased on arrival.
    let mut held = holding(&[&taken_back]);
    assert_eq!(held.merge(old.clone()).outcome, merged(&[], &[&old]));
    assert_eq!(held.get(old.digest()).and_then(Record::payload), None);
}

#[test]
fn a_later_retraction_does_not_cover_an_earlier_one() {
    let one = retraction(1, 1, ONE_MARK);
    let later = retraction(1, 2, OTHER_MARK);
    let mut held = holding(&[&one]);
    assert_eq!(held.merge(later.clone()).outcome, merged(&[], &[]));
    assert_eq!(held.merge(one.clone()).outcome, MergeOutcome::Known);
    assert!(is_live(&held, &one) && is_live(&held, &later));
}

#[test]
fn a_stripped_record_covers_no_payload() {
    let old = sealed(1, 1, &[], titled("old", &[ONE_MARK]));
    let new = sealed(2, 1, &[(place(1), 1)], titled("new", &[ONE_MARK]));
    let mut held = holding(&[&retraction(1, 1, ONE_MARK), &old]);
    assert_eq!(held.merge(stripped(&new)).outcome, merged(&[], &[]));
    assert_eq!(held.get(old.digest()), Some(&old));
    assert_eq!(held.merge(new.clone()).outcome, merged(&[&old], &[]));
    assert!(!is_live(&held, &old) && is_live(&held, &new));
}

#[test]
fn a_covered_record_is_dropped_once_its_payload_is_erased() {
    let old = sealed(1, 1, &[], titled("old", &[ONE_MARK]));
    let apart = sealed(3, 1, &[], titled("apart", &[ONE_MARK]));
    let new = stripped(&sealed(2, 1, &[(place(1), 1)], titled("new", &[ONE_MARK])));
    let (first, second) = (retraction(1, 1, ONE_MARK), retraction(2, 1, OTHER_MARK));
    let mut held = holding(&[&first, &old, &apart, &new]);
    let MergeOutcome::Merged(changes) = held.merge(second.clone()).outcome else {
        panic!("merged")
    };
    assert_eq!(changes.covered, [old.digest()]);
    assert_eq!(changes.erased.len(), 2);
    assert!(!is_live(&held, &old));
    assert!(is_live(&held, &apart) && is_live(&held, &new), "nothing covers these");
    // If the retraction arrives first, the new record itself is dropped.
    let mut held = holding(&[&first, &second, &new]);
    assert_eq!(held.merge(old.clone()).outcome, merged(&[&old], &[&old]));
    assert!(!is_live(&held, &old) && is_live(&held, &new));
}

#[test]
fn the_live_records_of_an_author_are_limited_per_facet() {
    let claims = |boot, absorbs: &[_]| sealed(boot, 1, absorbs, titled("text", &[ONE_MARK]));
    let taken_back = retraction(1, 1, ONE_MARK);
    let one = claims(1, &[]);
    let mut held = holding(&[&taken_back, &stripped(&one)]);
    for boot in 2..=LIVE_SLOTS_MAX as u64 {
        assert_eq!(held.merge(claims(boot, &[])).outcome, merged(&[], &[]), "{boot}");
    }
    let beyond = claims(100, &[]);
    assert_eq!(held.merge(beyond.clone()).outcome, MergeOutcome::OverQuota);
    assert!(!is_live(&held, &beyond));
    assert_eq!(held.facet(Facet::Claims).count(), LIVE_SLOTS_MAX);
    // A record that replaces a held one needs no additional place. Each facet has a quota of its
    // own.
    assert_eq!(held.merge(one).outcome, merged(&[], &[]));
    let absorber = claims(101, &[(place(2), 1)]);
    assert_eq!(held.merge(absorber).outcome, merged(&[&claims(2, &[])], &[]));
    assert_eq!(held.facet(Facet::Claims).count(), LIVE_SLOTS_MAX);
    let tally = sealed(1, 1, &[], Payload::Tally(Tally::default()));
    assert_eq!(held.merge(tally).outcome, merged(&[], &[]));
}

#[test]
fn a_join_merges_retractions_before_stripped_records() {
    // At least one of these records sorts before the retraction by digest.
    for boot in 2..10 {
        let bare = stripped(&sealed(boot, 1, &[], titled("text", &[])));
        let theirs = holding(&[&retraction(1, 1, ONE_MARK), &bare]);
        let own = holding(&[&sealed(1, 1, &[], titled("own", &[ONE_MARK]))]);
        let both = own.joined(theirs);
        assert_eq!(both.records().len(), 3);
        assert!(is_live(&both, &bare));
    }
}

#[test]
fn live_records_are_restored_from_the_records_of_a_store() {
    let claims = sealed(1, 1, &[], titled("text", &[]));
    let held = holding(&[&claims, &sealed(1, 1, &[], Payload::Tally(Tally::default()))]);
    let again = LiveRecords::from_held(held.records().cloned());
    assert_eq!(again, held);
    assert_eq!(again.get(claims.digest()), Some(&claims));
    assert_eq!(again.to_entry(), Entry::assemble(held.records()));
    assert!(again.to_entry().claims.contains_key(&key(1).author()));
}

fn tombstone(stamp: u64) -> Record {
    tombstone_on(stamp, origin(1), Grounds::Origin)
}

fn tombstone_on(stamp: u64, origin: Origin, grounds: Grounds) -> Record {
    let (place, stamp, absorbs) = (place(1), Hlc::from_bits(stamp), Vec::new());
    let at = Position { entry: origin.id(), place, counter: 1, stamp, absorbs };
    let stone = Tombstone { origin, grounds };
    Record::seal(at, Payload::Tombstone(stone), &key(1)).expect("its author may forget it")
}

fn records(of: &[&Record]) -> EntryRecords {
    let mut records = EntryRecords::default();
    for record in of {
        records.merge((*record).clone());
    }
    records
}

#[test]
fn a_forgotten_entry_keeps_only_the_tombstone_with_the_least_digest() {
    let [one, two] = [1, 2].map(tombstone);
    let (least, other) = if one.digest() < two.digest() { (one, two) } else { (two, one) };
    let claims = sealed(1, 1, &[], titled("text", &[]));
    let forgotten = EntryRecords::Forgotten(Box::new(least.clone()));
    for order in [
        [&least, &other, &claims],
        [&other, &least, &claims],
        [&claims, &other, &least],
        [&other, &claims, &least],
        [&claims, &least, &other],
    ] {
        assert_eq!(records(&order), forgotten);
    }
    let sides = [records(&[&least]), records(&[&other]), records(&[&claims])];
    for side in &sides {
        assert_eq!(side.clone().joined(forgotten.clone()), forgotten);
        assert_eq!(forgotten.clone().joined(side.clone()), forgotten);
    }
    assert_eq!(forgotten.to_entry(), Entry::forgotten(least.tombstone_rank()));
}

#[test]
fn a_tombstone_by_a_grant_gives_way_to_any_other() {
    // An admin may forget its own entry on two grounds.
    let (owner, admin, nonce) = (key(2), key(1).author(), Nonce::default());
    let of = Origin::Created {
        creator: admin,
        stamp: Hlc::from_bits(1),
        nonce,
        workspace: WorkspaceId::of(owner.author(), nonce),
        memory: Memory::Semantic,
    };
    let grant = Grounds::Admin(AdminGrant::sign(&owner, nonce, admin));
    let lasting = tombstone_on(1, of.clone(), Grounds::Origin);
    let by_grant = |stamp| tombstone_on(stamp, of.clone(), grant.clone());
    let lower = (2..100).map(by_grant).find(|of| of.digest() < lasting.digest());
    let lower = lower.expect("half of the digests are lower");
    for order in [[&lasting, &lower], [&lower, &lasting]] {
        assert_eq!(records(&order), EntryRecords::Forgotten(Box::new(lasting.clone())));
    }
    let joined = lower.to_entry().joined(lasting.to_entry());
    assert_eq!(joined, records(&[&lower, &lasting]).to_entry());
}

#[test]
fn an_entry_has_the_claims_and_tallies_of_all_authors() {
    let own = sealed(1, 1, &[], titled("text", &[]));
    let at = Position {
        entry: entry(),
        place: place(1),
        counter: 1,
        stamp: Hlc::from_bits(1),
        absorbs: Vec::new(),
    };
    let theirs = Record::seal(at, Payload::Tally(Tally::default()), &key(2)).expect("sealed");
    let both = records(&[&own, &theirs]);
    assert_eq!(records(&[&own]).joined(records(&[&theirs])), both);
    let entry = both.to_entry();
    assert!(entry.claims.contains_key(&key(1).author()));
    assert!(entry.tallies.contains_key(&key(2).author()));
}
