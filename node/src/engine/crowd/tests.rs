//! How much an entry takes up, whoever fills it, and who still finds room there.

use super::{FULL_OF_KNOWN, FULL_OF_UNKNOWN, TOO_LONG, bytes};
use crate::engine::testing::{NOW, engine, key};
use crate::engine::{Arrival, Command, Engine, Ingested, Limits, PeerAct, Receipt, Rejection};
use crate::store::Durability;
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::limits::{CONTENT_BYTES_MAX, ELEMENT_BYTES_MAX};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::record::Record;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::writer::{Claim, Writer};

const PEER: u32 = 9;
const CREATOR: u32 = 20;
// Of a workspace.
const OWNER: u32 = 21;
const MEMBER: u32 = 22;
const ADMIN: u32 = 23;
const NONCE: Nonce = Nonce::from_bytes([6; 16]);

fn workspace() -> WorkspaceId {
    WorkspaceId::of(key(OWNER).author(), NONCE)
}

/// The origin of the entry that is filled. Only its creator carries it.
fn origin() -> Origin {
    Origin::Created {
        creator: key(CREATOR).author(),
        stamp: Hlc::new(NOW, 0),
        nonce: NONCE,
        workspace: workspace(),
        memory: Memory::Semantic,
    }
}

/// What somebody writes who holds this of its own.
fn written<T>(number: u32, boot: u64, own: &Holding, write: impl FnOnce(Writer<'_>) -> T) -> T {
    let key = key(number);
    write(Writer { key: &key, boot: Boot(boot), entry: origin().id(), own })
}

fn says(number: u32, boot: u64, own: &Holding, claims: &[Claim]) -> Record {
    let (held, counter) = (own.to_entry(), 1 + own.records().len() as u16);
    let stamp = Hlc::new(NOW, counter);
    written(number, boot, own, |writer| writer.claim(&held, None, claims, stamp).unwrap())
}

/// Nearly as many claims as there may be.
fn much() -> Vec<Claim> {
    let tag = |at: u32| format!("{at}{}", "a".repeat(ELEMENT_BYTES_MAX - 2));
    let mut claims = vec![Claim::Set(Register::CONTENT, "a".repeat(CONTENT_BYTES_MAX))];
    claims.extend((10..60).map(|at| Claim::Add(TextSet::TAGS, tag(at))));
    claims
}

/// Claims that are nearly as long as claims may be, in the slot of a boot.
fn long(number: u32, boot: u64) -> Record {
    says(number, boot, &Holding::default(), &much())
}

/// The same of any entry, with its origin or without.
fn long_on(entry: EntryId, number: u32, origin: Option<Origin>, more: Option<Claim>) -> Record {
    let (key, own) = (key(number), Holding::default());
    let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
    let claims: Vec<Claim> = much().into_iter().chain(more).collect();
    writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

/// What takes their place, a little longer.
fn next(number: u32, boot: u64) -> Record {
    let own = Holding::from_held([long(number, boot)].into_iter());
    says(number, boot, &own, &[Claim::Set(Register::CONTENT, "b".repeat(CONTENT_BYTES_MAX))])
}

/// Claims with so many bytes of content.
fn sized(number: u32, content: usize) -> Record {
    let claims = [Claim::Set(Register::CONTENT, "a".repeat(content))];
    says(number, 1, &Holding::default(), &claims)
}

fn short(number: u32) -> Record {
    counted(number, 900, 1)
}

/// What somebody counts, in the slot of a boot, at a moment.
fn counted(number: u32, boot: u64, at: u16) -> Record {
    let (of, stamp) = (Observation::Success, Hlc::new(NOW, at));
    written(number, boot, &Holding::default(), |writer| {
        writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap()
    })
}

fn retraction(number: u32) -> Record {
    let stamp = Hlc::new(NOW, 3);
    written(number, 901, &Holding::default(), |writer| writer.retract(None, stamp).unwrap())
}

fn arrivals(records: Vec<Record>, from: AuthorId) -> Command {
    Command::Ingest(records.into_iter().map(|record| Arrival { record, from }).collect())
}

fn told(answer: Result<Receipt, Rejection>) -> Vec<Ingested> {
    match answer {
        Ok(Receipt::Ingested(told)) => told,
        other => panic!("no answer about the records: {other:?}"),
    }
}

fn bring(engine: &mut Engine, records: Vec<Record>, from: u32) -> Vec<Ingested> {
    let command = arrivals(records, key(from).author());
    told(engine.step(&[command], NOW).remove(0))
}

fn note(engine: &mut Engine, act: PeerAct) {
    engine.step(&[Command::Peers(vec![act])], NOW).remove(0).expect("noted");
}

fn meet(engine: &mut Engine, number: u32, is_mine: bool) {
    let row = PeerRow { approval: Approval::Approved, is_mine, ..PeerRow::default() };
    note(engine, PeerAct::Put(key(number).author(), Box::new(row)));
}

/// A node with two peers; one of them has filled an entry with what nobody known says.
fn filled(entry: EntryId) -> Engine {
    let mut node = engine();
    meet(&mut node, PEER, false);
    meet(&mut node, 10, false);
    let junk = (1_000..1_040).map(|number| long_on(entry, number, None, None)).collect();
    let count = merged(&bring(&mut node, junk, PEER), FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    node
}

/// What the owner of the workspace says of it.
fn by_owner() -> Record {
    let (at, nonce) = (workspace(), Claim::Add(TextSet::OWNER_NONCES, NONCE.to_string()));
    let member = Claim::Add(TextSet::MEMBERS, key(MEMBER).author().to_string());
    let (key, own) = (key(OWNER), Holding::default());
    let writer = Writer { key: &key, boot: Boot(1), entry: charter::entry(at), own: &own };
    let claims: Vec<Claim> = much().into_iter().chain([nonce, member]).collect();
    let origin = Some(charter::origin(at));
    writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap()
}

/// Names the workspace, as whoever joins it does.
fn join(engine: &mut Engine) {
    let row = WorkspaceRow { name: "team".into(), since: NOW, is_current: false, owner: None };
    note(engine, PeerAct::NameWorkspace(workspace(), row));
}

/// How many of these were merged: the first ones, and all others were refused for this reason.
fn merged(told: &[Ingested], reason: &str) -> u64 {
    let is_merged = |one: &&Ingested| matches!(one, Ingested::Merged(_));
    let count = told.iter().take_while(is_merged).count();
    for one in &told[count..] {
        assert!(matches!(one, Ingested::Refused(why) if why == reason), "{one:?}");
    }
    count as u64
}

/// Whether so many long records are as many as there is room for.
fn fills(count: u64, room: u64) -> bool {
    let each = bytes([long(1_000, 1)].iter());
    count * each <= room && (count + 2) * each > room
}

#[test]
fn whoever_it_is_has_so_many_bytes_of_a_kind_on_an_entry_and_replaces_them_when_they_are_used_up() {
    let mut node = engine();
    meet(&mut node, PEER, false);
    let told = bring(&mut node, (1..=20).map(|boot| long(PEER, boot)).collect(), PEER);
    let count = merged(&told, TOO_LONG);
    assert!(fills(count, Limits::AUTHOR_BYTES_MAX), "{count}");
    let told = bring(&mut node, vec![next(PEER, 3), short(PEER), long(PEER, 30)], PEER);
    assert_eq!(merged(&told, TOO_LONG), 2, "what replaces, and what is of another kind: {told:?}");
    // Another machine of the same person is not kept from its own words.
    meet(&mut node, 8, true);
    let told = bring(&mut node, (1..=20).map(|boot| long(8, boot)).collect(), PEER);
    assert_eq!(merged(&told, TOO_LONG), 20);
}

#[test]
fn unknown_authors_who_say_much_fill_half_of_what_there_is_for_them_and_keep_nobody_else_out() {
    let mut node = engine();
    meet(&mut node, PEER, false);
    meet(&mut node, 10, false);
    let told = bring(&mut node, (1_000..1_040).map(|number| long(number, 1)).collect(), PEER);
    let count = merged(&told, FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    // Less and less, until there is no room for any who says more than little.
    let sizes = [60_000, 60_000, 60_000, 15_000, 15_000, 15_000, 15_000, 5_000, 5_000, 5_000];
    let rest = (1_100..).zip(sizes).map(|(number, content)| sized(number, content));
    bring(&mut node, rest.collect(), 10);
    // In another step: who says little, who replaces its own, and who is known.
    let mut others: Vec<Record> = (3_000..3_100).map(short).collect();
    others.extend([next(1_000, 1), long(10, 1)]);
    assert_eq!(merged(&bring(&mut node, others, PEER), FULL_OF_UNKNOWN), 102);
    let late = long(2_000, 1);
    let taken_back = [1_002, 1_003].map(retraction);
    let all = [sized(2_001, 5_000)].into_iter().chain(taken_back).chain([late]);
    let told = bring(&mut node, all.collect(), 10);
    let [full, one, two, late] = &told[..] else { panic!("{told:?}") };
    assert!(matches!(full, Ingested::Refused(why) if why == FULL_OF_UNKNOWN), "{full:?}");
    for merged in [one, two, late] {
        assert!(matches!(merged, Ingested::Merged(_)), "it has left room: {told:?}");
    }
}

#[test]
fn authors_who_are_known_have_room_of_their_own_and_that_ends_too() {
    let mut node = engine();
    let numbers = 100..160;
    for number in numbers.clone() {
        meet(&mut node, number, false);
    }
    let told = bring(&mut node, numbers.map(|number| long(number, 1)).collect(), 100);
    let count = merged(&told, FULL_OF_KNOWN);
    assert!(fills(count, Limits::KNOWN_BYTES_MAX / 2), "{count}");
    let told = bring(&mut node, vec![long(1_000, 1), short(1_001), short(100)], 100);
    assert_eq!(merged(&told, FULL_OF_KNOWN), 3, "{told:?}");
}

#[test]
fn a_crowd_is_counted_once_a_step_however_many_of_it_are_refused() {
    let mut node = engine();
    let crowd = (1_000_u32..).map(short).take(Limits::AUTHORS_BROUGHT_MAX).collect();
    bring(&mut node, crowd, PEER);
    let late = |number: u32| arrivals(vec![short(number)], key(PEER).author());
    let row = PeerRow { approval: Approval::Approved, ..PeerRow::default() };
    let known = PeerAct::Put(key(1_000).author(), Box::new(row));
    let step = [late(9_000), Command::Peers(vec![known]), late(9_001)];
    let mut answers = node.step(&step, NOW);
    let (second, first) = (told(answers.remove(2)), told(answers.remove(0)));
    assert!(matches!(first[..], [Ingested::Refused(_)]), "{first:?}");
    assert!(matches!(second[..], [Ingested::Refused(_)]), "it is not counted again: {second:?}");
    let next = bring(&mut node, vec![short(9_001)], PEER);
    assert!(matches!(next[..], [Ingested::Merged(_)]), "the next step counts anew: {next:?}");
}

#[test]
fn whoever_creates_an_entry_is_heard_however_full_others_have_made_it_before() {
    let mut node = filled(origin().id());
    let late = bring(&mut node, vec![long(MEMBER, 1)], 10);
    assert_eq!(merged(&late, FULL_OF_UNKNOWN), 0, "nobody knows where the entry belongs");
    let created = long_on(origin().id(), CREATOR, Some(origin()), None);
    assert_eq!(merged(&bring(&mut node, vec![created], 10), FULL_OF_UNKNOWN), 1);
    join(&mut node);
    assert_eq!(merged(&bring(&mut node, vec![by_owner(), long(MEMBER, 1)], 10), ""), 2);
    // The same where there are too many authors.
    let mut node = engine();
    let crowd = (1_000_u32..).map(short).take(Limits::AUTHORS_BROUGHT_MAX).collect();
    bring(&mut node, crowd, 10);
    let created = long_on(origin().id(), CREATOR, Some(origin()), None);
    let told = bring(&mut node, vec![short(9_000), created], 10);
    assert!(matches!(told[..], [Ingested::Refused(_), Ingested::Merged(_)]), "{told:?}");
}

#[test]
fn a_member_that_carries_the_origin_of_what_was_imported_is_known_by_it() {
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
fn the_owner_of_a_workspace_is_heard_on_its_charter_whatever_was_put_there_before() {
    let at = charter::entry(workspace());
    let mut node = filled(at);
    join(&mut node);
    let nonce = Claim::Add(TextSet::OWNER_NONCES, NONCE.to_string());
    let liar = long_on(at, 2_000, Some(charter::origin(workspace())), Some(nonce));
    let told = bring(&mut node, vec![liar, by_owner(), long_on(at, MEMBER, None, None)], 10);
    let [refused, owner, member] = &told[..] else { panic!("{told:?}") };
    assert!(matches!(refused, Ingested::Refused(_)), "the nonce is not its own: {told:?}");
    for heard in [owner, member] {
        assert!(matches!(heard, Ingested::Merged(_)), "{told:?}");
    }
}

#[test]
fn an_admin_is_heard_on_the_charter_whatever_members_have_put_there_before() {
    let (mut node, at, owner) = (engine(), charter::entry(workspace()), key(OWNER));
    meet(&mut node, PEER, false);
    let (name, author) = ("team".into(), Some(owner.author()));
    let row = WorkspaceRow { name, since: NOW, is_current: false, owner: author };
    note(&mut node, PeerAct::NameWorkspace(workspace(), row));
    let listed = |set, number: u32| Claim::Add(set, key(number).author().to_string());
    let members = (100..160).map(|number| listed(TextSet::MEMBERS, number));
    let nonce = Claim::Add(TextSet::OWNER_NONCES, NONCE.to_string());
    let claims: Vec<Claim> = members.chain([listed(TextSet::ADMINS, ADMIN), nonce]).collect();
    let (own, origin) = (Holding::default(), Some(charter::origin(workspace())));
    let writer = Writer { key: &owner, boot: Boot(1), entry: at, own: &own };
    let founded = writer.claim(&own.to_entry(), origin, &claims, Hlc::new(NOW, 1)).unwrap();
    assert_eq!(merged(&bring(&mut node, vec![founded], PEER), ""), 1);
    let full = (100..160).map(|number| long_on(at, number, None, None)).collect();
    let count = merged(&bring(&mut node, full, PEER), FULL_OF_KNOWN);
    assert!(fills(count, Limits::KNOWN_BYTES_MAX / 2), "{count}");
    let by_admin = long_on(at, ADMIN, None, Some(listed(TextSet::MEMBERS, MEMBER)));
    let told = bring(&mut node, vec![by_admin, long_on(at, 159, None, None)], PEER);
    assert_eq!(merged(&told, FULL_OF_KNOWN), 1, "the admin alone: {told:?}");
}

#[test]
fn neither_peers_who_are_no_members_nor_keys_that_only_knocked_take_the_room_of_the_known() {
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
    // Where nobody knows who belongs there, whoever may talk is known.
    let mut node = engine();
    let said = [Approval::Waiting, Approval::Refused].into_iter().cycle();
    for (number, approval) in (100..160).zip(said) {
        let row = PeerRow { approval, ..PeerRow::default() };
        note(&mut node, PeerAct::Put(key(number).author(), Box::new(row)));
    }
    let count = merged(&bring(&mut node, from_outside(), PEER), FULL_OF_UNKNOWN);
    assert!(fills(count, Limits::UNKNOWN_BYTES_MAX / 2), "{count}");
    meet(&mut node, MEMBER, false);
    assert_eq!(merged(&bring(&mut node, vec![long(MEMBER, 1)], PEER), ""), 1);
}

#[test]
fn whoever_is_unknown_says_little_by_all_that_it_says_of_an_entry() {
    let mut node = filled(origin().id());
    // What is left of the half.
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
fn known_authors_keep_no_creator_out_and_blocking_or_convicting_one_leaves_its_room() {
    let mut node = engine();
    for number in 100..160 {
        meet(&mut node, number, false);
    }
    let told = bring(&mut node, (100..160).map(|number| long(number, 1)).collect(), 100);
    let mut late = 100 + merged(&told, FULL_OF_KNOWN) as u32;
    let created = |boot: u64| {
        written(CREATOR, boot, &Holding::default(), |writer| {
            writer.claim(&<_>::default(), Some(origin()), &much(), Hlc::new(NOW, 1)).unwrap()
        })
    };
    let told = bring(&mut node, (1..=20).map(created).collect(), 100);
    assert!(fills(merged(&told, TOO_LONG), Limits::AUTHOR_BYTES_MAX), "{told:?}");
    let mut finds_room = |node: &mut Engine| {
        let count = merged(&bring(node, vec![long(late, 1)], 100), FULL_OF_KNOWN);
        late += count as u32;
        count == 1
    };
    assert!(!finds_room(&mut node), "the creator is not counted, but they are");
    let blocked = PeerRow { is_blocked: true, ..PeerRow::default() };
    note(&mut node, PeerAct::Put(key(101).author(), Box::new(blocked)));
    assert!(finds_room(&mut node) && !finds_room(&mut node));
    let [one, two] = [1, 2].map(|at| counted(102, 7, at));
    let proof = Proof::find(one.signed(), two.signed()).expect("they contradict each other");
    note(&mut node, PeerAct::Convict(key(100).author(), Box::new(proof)));
    assert!(finds_room(&mut node) && !finds_room(&mut node));
}

#[test]
fn a_whole_copy_of_what_is_damaged_finds_the_room_that_it_had() {
    let (mut node, few) = (engine(), [2_000, 2_001].map(|number| sized(number, 10)));
    bring(&mut node, few.to_vec(), PEER);
    let told = bring(&mut node, (1_000..1_040).map(|number| long(number, 1)).collect(), PEER);
    merged(&told, FULL_OF_UNKNOWN);
    // Beyond the half go those who say anew what they have said.
    let anew = (2_000..).zip(few).map(|(number, first)| {
        let own = Holding::from_held([first].into_iter());
        says(number, 1, &own, &much())
    });
    assert_eq!(merged(&bring(&mut node, anew.collect(), PEER), FULL_OF_UNKNOWN), 2);
    let batch = node.store().batch(Durability::Durable).unwrap();
    batch.spoil(long(1_000, 1).digest()).unwrap();
    batch.commit().unwrap();
    let told = bring(&mut node, vec![long(1_000, 1), long(3_000, 1)], PEER);
    assert_eq!(merged(&told, FULL_OF_UNKNOWN), 1, "{told:?}");
}
