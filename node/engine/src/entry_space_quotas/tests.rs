//! Tests of the byte and author quotas: how far an entry can be filled, and which authors are still
//! accepted then.

use super::{FULL_OF_KNOWN, FULL_OF_UNKNOWN, TOO_LONG, bytes};
use crate::testing::{NOW, engine, key};
use crate::{
    Command, DeliveredRecord, Engine, IngestOutcome, Limits, PeerCommand, Receipt, Rejection,
};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::limits::{CONTENT_BYTES_MAX, ELEMENT_BYTES_MAX};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::workspace_charter;
use klnode_store::Durability;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};

const PEER: u32 = 9;
const CREATOR: u32 = 20;
const OWNER: u32 = 21;
const MEMBER: u32 = 22;
const ADMIN: u32 = 23;
const NONCE: Nonce = Nonce::from_bytes([6; 16]);

fn workspace() -> WorkspaceId {
    WorkspaceId::of(key(OWNER).author(), NONCE)
}

/// The origin of the entry under test. Only its creator's records carry it.
fn origin() -> Origin {
    Origin::Created {
        creator: key(CREATOR).author(),
        stamp: Hlc::new(NOW, 0),
        nonce: NONCE,
        workspace: workspace(),
        memory: Memory::Semantic,
    }
}

/// Runs `write` as an author that holds `own` on the entry under test.
fn written<T>(
    number: u32,
    boot: u64,
    own: &LiveRecords,
    write: impl FnOnce(RecordBuilder<'_>) -> T,
) -> T {
    let key = key(number);
    write(RecordBuilder { key: &key, boot: Boot(boot), entry: origin().id(), own })
}

fn says(number: u32, boot: u64, own: &LiveRecords, claims: &[ClaimEdit]) -> Record {
    let (held, counter) = (own.to_entry(), 1 + own.records().len() as u16);
    let stamp = Hlc::new(NOW, counter);
    written(number, boot, own, |writer| writer.claim(&held, None, claims, stamp).unwrap())
}

/// Claims of nearly the maximum total length.
fn much() -> Vec<ClaimEdit> {
    let tag = |at: u32| format!("{at}{}", "a".repeat(ELEMENT_BYTES_MAX - 2));
    let mut claims = vec![ClaimEdit::Set(Register::CONTENT, "a".repeat(CONTENT_BYTES_MAX))];
    claims.extend((10..60).map(|at| ClaimEdit::Add(TextSet::TAGS, tag(at))));
    claims
}

/// A record of nearly the maximum length, in the slot of a boot.
fn long(number: u32, boot: u64) -> Record {
    says(number, boot, &LiveRecords::default(), &much())
}

/// Such a record about any entry, with or without its origin.
fn long_on(entry: EntryId, number: u32, origin: Option<Origin>, more: Option<ClaimEdit>) -> Record {
    let (key, own) = (key(number), LiveRecords::default());
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    let claims: Vec<ClaimEdit> = much().into_iter().chain(more).collect();
    writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

/// A slightly longer record that replaces `long(number, boot)`.
fn next(number: u32, boot: u64) -> Record {
    let own = LiveRecords::from_held([long(number, boot)].into_iter());
    says(number, boot, &own, &[ClaimEdit::Set(Register::CONTENT, "b".repeat(CONTENT_BYTES_MAX))])
}

/// A record with the given number of content bytes.
fn sized(number: u32, content: usize) -> Record {
    let claims = [ClaimEdit::Set(Register::CONTENT, "a".repeat(content))];
    says(number, 1, &LiveRecords::default(), &claims)
}

fn short(number: u32) -> Record {
    counted(number, 900, 1)
}

/// An observation record in the slot of a boot, stamped `at`.
fn counted(number: u32, boot: u64, at: u16) -> Record {
    let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
    written(number, boot, &LiveRecords::default(), |writer| {
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn retraction(number: u32) -> Record {
    let stamp = Hlc::new(NOW, 3);
    written(number, 901, &LiveRecords::default(), |writer| writer.retract(None, stamp).unwrap())
}

fn arrivals(records: Vec<Record>, from: AuthorId) -> Command {
    Command::Ingest(records.into_iter().map(|record| DeliveredRecord { record, from }).collect())
}

fn outcomes(answer: Result<Receipt, Rejection>) -> Vec<IngestOutcome> {
    match answer {
        Ok(Receipt::Ingested(outcomes)) => outcomes,
        other => panic!("no answer about the records: {other:?}"),
    }
}

fn bring(engine: &mut Engine, records: Vec<Record>, from: u32) -> Vec<IngestOutcome> {
    let command = arrivals(records, key(from).author());
    outcomes(engine.step(&[command], NOW).remove(0))
}

fn note(engine: &mut Engine, act: PeerCommand) {
    engine.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

fn meet(engine: &mut Engine, number: u32, is_mine: bool) {
    let row = PeerRow { approval: PeerApproval::Approved, is_mine, ..PeerRow::default() };
    note(engine, PeerCommand::Put(key(number).author(), Box::new(row)));
}

/// A node with two peers, one of which has filled the entry with records of unknown authors.
fn filled(entry: EntryId) -> Engine {
    let mut node = engine();
    meet(&mut node, PEER, false);
    meet(&mut node, 10, false);
    let junk = (1_000..1_040).map(|number| long_on(entry, number, None, None)).collect();
    let count = merged(&bring(&mut node, junk, PEER), FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    node
}

/// The workspace owner's record on its charter.
fn by_owner() -> Record {
    let (at, nonce) = (workspace(), ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string()));
    let member = ClaimEdit::Add(TextSet::MEMBERS, key(MEMBER).author().to_string());
    let (key, own) = (key(OWNER), LiveRecords::default());
    let writer =
        RecordBuilder { key: &key, boot: Boot(1), entry: workspace_charter::entry(at), own: &own };
    let claims: Vec<ClaimEdit> = much().into_iter().chain([nonce, member]).collect();
    let origin = Some(workspace_charter::origin(at));
    writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

/// Names the workspace, as a node that joins it does.
fn join(engine: &mut Engine) {
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(engine, PeerCommand::NameWorkspace(workspace(), row));
}

/// Counts the merged records. They must be the first ones; all others must be refused for this
/// reason.
fn merged(outcomes: &[IngestOutcome], reason: &str) -> u64 {
    let is_merged = |one: &&IngestOutcome| matches!(one, IngestOutcome::Merged(_));
    let count = outcomes.iter().take_while(is_merged).count();
    for one in &outcomes[count..] {
        assert!(matches!(one, IngestOutcome::Refused(why) if why == reason), "{one:?}");
    }
    count as u64
}

/// Whether `count` long records fill the room, give or take one record.
fn fills(count: u64, room: u64) -> bool {
    let each = bytes([long(1_000, 1)].iter());
    count * each <= room && (count + 2) * each > room
}

#[test]
fn an_author_over_its_byte_quota_may_still_replace_its_records() {
    let mut node = engine();
    meet(&mut node, PEER, false);
    let outcomes = bring(&mut node, (1..=20).map(|boot| long(PEER, boot)).collect(), PEER);
    let count = merged(&outcomes, TOO_LONG);
    assert!(fills(count, Limits::AUTHOR_BYTES_MAX), "{count}");
    let outcomes = bring(&mut node, vec![next(PEER, 3), short(PEER), long(PEER, 30)], PEER);
    assert_eq!(
        merged(&outcomes, TOO_LONG),
        2,
        "a replacement, and a record of another facet: {outcomes:?}"
    );
    // The quota does not apply to another machine of the same person.
    meet(&mut node, 8, true);
    let outcomes = bring(&mut node, (1..=20).map(|boot| long(8, boot)).collect(), PEER);
    assert_eq!(merged(&outcomes, TOO_LONG), 20);
}

#[test]
fn long_records_of_unknown_authors_fill_half_their_quota_and_leave_the_rest() {
    let mut node = engine();
    meet(&mut node, PEER, false);
    meet(&mut node, 10, false);
    let outcomes = bring(&mut node, (1_000..1_040).map(|number| long(number, 1)).collect(), PEER);
    let count = merged(&outcomes, FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    // Fill the remaining bytes of the half until only short records fit.
    let sizes = [60_000, 60_000, 60_000, 15_000, 15_000, 15_000, 15_000, 5_000, 5_000, 5_000];
    let rest = (1_100..).zip(sizes).map(|(number, content)| sized(number, content));
    bring(&mut node, rest.collect(), 10);
    // In another step: short records, a replacement, and a record of a known author.
    let mut others: Vec<Record> = (3_000..3_100).map(short).collect();
    others.extend([next(1_000, 1), long(10, 1)]);
    assert_eq!(merged(&bring(&mut node, others, PEER), FULL_OF_UNKNOWN), 102);
    let late = long(2_000, 1);
    let taken_back = [1_002, 1_003].map(retraction);
    let all = [sized(2_001, 5_000)].into_iter().chain(taken_back).chain([late]);
    let outcomes = bring(&mut node, all.collect(), 10);
    let [full, one, two, late] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(matches!(full, IngestOutcome::Refused(why) if why == FULL_OF_UNKNOWN), "{full:?}");
    for merged in [one, two, late] {
        assert!(
            matches!(merged, IngestOutcome::Merged(_)),
            "the retractions freed room: {outcomes:?}"
        );
    }
}

#[test]
fn known_authors_have_a_separate_quota_which_is_bounded_too() {
    let mut node = engine();
    let numbers = 100..160;
    for number in numbers.clone() {
        meet(&mut node, number, false);
    }
    let outcomes = bring(&mut node, numbers.map(|number| long(number, 1)).collect(), 100);
    let count = merged(&outcomes, FULL_OF_KNOWN);
    assert!(fills(count, Limits::KNOWN_BYTES_MAX / 2), "{count}");
    let outcomes = bring(&mut node, vec![long(1_000, 1), short(1_001), short(100)], 100);
    assert_eq!(merged(&outcomes, FULL_OF_KNOWN), 3, "{outcomes:?}");
}

#[test]
fn unknown_authors_are_counted_once_per_step() {
    let mut node = engine();
    let crowd = (1_000_u32..).map(short).take(Limits::AUTHORS_BROUGHT_MAX).collect();
    bring(&mut node, crowd, PEER);
    let late = |number: u32| arrivals(vec![short(number)], key(PEER).author());
    let row = PeerRow { approval: PeerApproval::Approved, ..PeerRow::default() };
    let known = PeerCommand::Put(key(1_000).author(), Box::new(row));
    let step = [late(9_000), Command::Peers(vec![known]), late(9_001)];
    let mut answers = node.step(&step, NOW);
    let (second, first) = (outcomes(answers.remove(2)), outcomes(answers.remove(0)));
    assert!(matches!(first[..], [IngestOutcome::Refused(_)]), "{first:?}");
    assert!(
        matches!(second[..], [IngestOutcome::Refused(_)]),
        "the cached count is used: {second:?}"
    );
    let next = bring(&mut node, vec![short(9_001)], PEER);
    assert!(matches!(next[..], [IngestOutcome::Merged(_)]), "the next step counts again: {next:?}");
}

#[test]
fn the_creator_is_accepted_on_an_entry_that_others_have_filled() {
    let mut node = filled(origin().id());
    let late = bring(&mut node, vec![long(MEMBER, 1)], 10);
    assert_eq!(merged(&late, FULL_OF_UNKNOWN), 0, "the entry's workspace is unknown");
    let created = long_on(origin().id(), CREATOR, Some(origin()), None);
    assert_eq!(merged(&bring(&mut node, vec![created], 10), FULL_OF_UNKNOWN), 1);
    join(&mut node);
    assert_eq!(merged(&bring(&mut node, vec![by_owner(), long(MEMBER, 1)], 10), ""), 2);
    // The same holds at the limit of unknown authors.
    let mut node = engine();
    let crowd = (1_000_u32..).map(short).take(Limits::AUTHORS_BROUGHT_MAX).collect();
    bring(&mut node, crowd, 10);
    let created = long_on(origin().id(), CREATOR, Some(origin()), None);
    let outcomes = bring(&mut node, vec![short(9_000), created], 10);
    assert!(
        matches!(outcomes[..], [IngestOutcome::Refused(_), IngestOutcome::Merged(_)]),
        "{outcomes:?}"
    );
}

#[test]
fn a_member_is_known_by_the_import_origin_its_record_carries() {
    let imported = Origin::Imported {
        workspace: workspace(),
        memory: Memory::Semantic,
        format: "jsonl".into(),
        key: "a".into(),
    };
    let mut node = filled(imported.id());
    join(&mut node);
    bring(&mut node, vec![by_owner()], 10);
    let by = |number| long_on(imported.id(), number, Some(imported.clone()), None);
    assert_eq!(merged(&bring(&mut node, vec![by(2_000)], 10), FULL_OF_UNKNOWN), 0);
    assert_eq!(merged(&bring(&mut node, vec![by(MEMBER)], 10), FULL_OF_UNKNOWN), 1);
}

#[test]
fn the_workspace_owner_is_accepted_on_a_charter_that_others_have_filled() {
    let at = workspace_charter::entry(workspace());
    let mut node = filled(at);
    join(&mut node);
    let nonce = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
    let liar = long_on(at, 2_000, Some(workspace_charter::origin(workspace())), Some(nonce));
    let outcomes = bring(&mut node, vec![liar, by_owner(), long_on(at, MEMBER, None, None)], 10);
    let [refused, owner, member] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(
        matches!(refused, IngestOutcome::Refused(_)),
        "the nonce belongs to another author: {outcomes:?}"
    );
    for accepted in [owner, member] {
        assert!(matches!(accepted, IngestOutcome::Merged(_)), "{outcomes:?}");
    }
}

#[test]
fn an_admin_is_accepted_on_a_charter_that_members_have_filled() {
    let (mut node, at, owner) = (engine(), workspace_charter::entry(workspace()), key(OWNER));
    meet(&mut node, PEER, false);
    let (name, author) = ("team".into(), Some(owner.author()));
    let row = WorkspaceRow { name, since: NOW, is_current: false, owner: author };
    note(&mut node, PeerCommand::NameWorkspace(workspace(), row));
    let listed = |set, number: u32| ClaimEdit::Add(set, key(number).author().to_string());
    let members = (100..160).map(|number| listed(TextSet::MEMBERS, number));
    let nonce = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
    let claims: Vec<ClaimEdit> = members.chain([listed(TextSet::ADMINS, ADMIN), nonce]).collect();
    let (own, origin) = (LiveRecords::default(), Some(workspace_charter::origin(workspace())));
    let writer = RecordBuilder { key: &owner, boot: Boot(1), entry: at, own: &own };
    let founded = writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap();
    assert_eq!(merged(&bring(&mut node, vec![founded], PEER), ""), 1);
    let full = (100..160).map(|number| long_on(at, number, None, None)).collect();
    let count = merged(&bring(&mut node, full, PEER), FULL_OF_KNOWN);
    assert!(fills(count, Limits::KNOWN_BYTES_MAX / 2), "{count}");
    let by_admin = long_on(at, ADMIN, None, Some(listed(TextSet::MEMBERS, MEMBER)));
    let outcomes = bring(&mut node, vec![by_admin, long_on(at, 159, None, None)], PEER);
    assert_eq!(merged(&outcomes, FULL_OF_KNOWN), 1, "only the admin is accepted: {outcomes:?}");
}

#[test]
fn peers_that_are_no_members_or_not_approved_count_as_unknown() {
    let mut node = engine();
    join(&mut node);
    let created = long_on(origin().id(), CREATOR, Some(origin()), None);
    assert_eq!(merged(&bring(&mut node, vec![by_owner(), created], PEER), ""), 2);
    for number in 100..160 {
        meet(&mut node, number, false);
    }
    let from_outside = || -> Vec<Record> { (100..160).map(|number| long(number, 1)).collect() };
    let count = merged(&bring(&mut node, from_outside(), PEER), FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    assert_eq!(merged(&bring(&mut node, vec![long(MEMBER, 1)], PEER), ""), 1);
    // Where the members are unknown, approved peers count as known.
    let mut node = engine();
    let said = [PeerApproval::Waiting, PeerApproval::Refused].into_iter().cycle();
    for (number, approval) in (100..160).zip(said) {
        let row = PeerRow { approval, ..PeerRow::default() };
        note(&mut node, PeerCommand::Put(key(number).author(), Box::new(row)));
    }
    let count = merged(&bring(&mut node, from_outside(), PEER), FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    meet(&mut node, MEMBER, false);
    assert_eq!(merged(&bring(&mut node, vec![long(MEMBER, 1)], PEER), ""), 1);
}

#[test]
fn an_unknown_author_is_short_only_if_all_its_facets_together_are_short() {
    let mut node = filled(origin().id());
    // Fill the remaining bytes of the half.
    let sizes = [60_000, 60_000, 60_000, 15_000, 15_000, 15_000, 15_000, 5_000, 5_000, 5_000];
    let rest = (1_100..).zip(sizes).map(|(number, content)| sized(number, content));
    bring(&mut node, rest.collect(), 10);
    bring(&mut node, (2_000..2_040).map(short).collect(), 10);
    let mut piecemeal = vec![sized(3_000, 1_000)];
    piecemeal.extend((1..=12).map(|boot| counted(3_000, boot, 1)));
    let count = merged(&bring(&mut node, piecemeal, PEER), FULL_OF_UNKNOWN);
    assert!((2..12).contains(&count), "no facet alone is long: {count} of 13");
    assert_eq!(merged(&bring(&mut node, vec![short(3_001)], PEER), FULL_OF_UNKNOWN), 1);
}

#[test]
fn blocking_or_convicting_a_known_author_frees_its_quota() {
    let mut node = engine();
    for number in 100..160 {
        meet(&mut node, number, false);
    }
    let outcomes = bring(&mut node, (100..160).map(|number| long(number, 1)).collect(), 100);
    let mut late = 100 + merged(&outcomes, FULL_OF_KNOWN) as u32;
    let created = |boot: u64| {
        written(CREATOR, boot, &LiveRecords::default(), |writer| {
            writer.claim(&<_>::default(), Some(origin()), &much(), Hlc::new(NOW, 1)).unwrap()
        })
    };
    let outcomes = bring(&mut node, (1..=20).map(created).collect(), 100);
    assert!(fills(merged(&outcomes, TOO_LONG), Limits::AUTHOR_BYTES_MAX), "{outcomes:?}");
    let mut finds_room = |node: &mut Engine| {
        let count = merged(&bring(node, vec![long(late, 1)], 100), FULL_OF_KNOWN);
        late += count as u32;
        count == 1
    };
    assert!(!finds_room(&mut node), "only the creator is exempt");
    let blocked = PeerRow { is_blocked: true, ..PeerRow::default() };
    note(&mut node, PeerCommand::Put(key(101).author(), Box::new(blocked)));
    assert!(finds_room(&mut node) && !finds_room(&mut node));
    let [one, two] = [1, 2].map(|at| counted(102, 7, at));
    let proof = EquivocationProof::find(one.signed_header(), two.signed_header())
        .expect("the two records prove equivocation");
    note(&mut node, PeerCommand::Convict(key(100).author(), Box::new(proof)));
    assert!(finds_room(&mut node) && !finds_room(&mut node));
}

#[test]
fn an_intact_copy_of_a_damaged_record_is_accepted_despite_the_quota() {
    let (mut node, few) = (engine(), [2_000, 2_001].map(|number| sized(number, 10)));
    bring(&mut node, few.to_vec(), PEER);
    let outcomes = bring(&mut node, (1_000..1_040).map(|number| long(number, 1)).collect(), PEER);
    merged(&outcomes, FULL_OF_UNKNOWN);
    // Replacements may go beyond the half.
    let anew = (2_000..).zip(few).map(|(number, first)| {
        let own = LiveRecords::from_held([first].into_iter());
        says(number, 1, &own, &much())
    });
    assert_eq!(merged(&bring(&mut node, anew.collect(), PEER), FULL_OF_UNKNOWN), 2);
    let batch = node.store().batch(Durability::Durable).unwrap();
    batch.corrupt_record(long(1_000, 1).digest()).unwrap();
    batch.commit().unwrap();
    let outcomes = bring(&mut node, vec![long(1_000, 1), long(3_000, 1)], PEER);
    assert_eq!(merged(&outcomes, FULL_OF_UNKNOWN), 1, "{outcomes:?}");
}
