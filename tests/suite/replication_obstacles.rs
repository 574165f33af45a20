//! Whole nodes under difficult conditions: newer formats, blocked authors, narrow filters,
//! interruptions, equivocating clones.

use klnode_crdt::claims::TextSet;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{Digest, EntryId, WorkspaceId};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::{Purpose, SecretKey};
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, NewEntry};
use klnode_federation::proto::SyncState;
use klnode_federation::proto::entry_filter::Reach;
use klnode_federation::proto::message::{SyncRequest, SyncResponse};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::{Cluster, REST_MS, Sent};
use klnode_tests::disk::Fault;
use klnode_tests::test_engine::{Node, exchange, in_workspace, lesson, success};
use std::collections::BTreeSet;

fn claim(entry: EntryId, claim: ClaimEdit) -> Command {
    Command::Claim { entry, claims: vec![claim] }
}

fn title(entry: EntryId, text: &str) -> Command {
    claim(entry, ClaimEdit::Set(Register::TITLE, text.into()))
}

/// Two paired members of a team.
fn team(seed: u64, count: usize) -> (Cluster, WorkspaceId) {
    let mut nodes = Cluster::new(seed, count, Knobs::calm());
    let all: Vec<usize> = (0..count).collect();
    let team = nodes.found(&all);
    for at in 1..count {
        nodes.pair(at - 1, at, false);
    }
    (nodes, team)
}

/// Whether only comparisons were sent after the first `since` frames.
fn only_compares(nodes: &Cluster, since: usize) -> bool {
    nodes.sent[since..].iter().all(|sent| {
        matches!(SyncRequest::decode(&sent.frame), Ok(SyncRequest::Compare(..)))
            || matches!(SyncResponse::decode(&sent.frame), Ok(SyncResponse::Compare(_)))
    })
}

#[test]
fn a_record_of_a_newer_format_is_refused_by_name_without_blocking_others() {
    let mut nodes = Cluster::new(1, 2, Knobs::calm());
    // Records of the other node, and one of them in an unknown format.
    let mut other = Node::start(2, 99);
    let entries = [other.create("one"), other.create("two")];
    let snapshot = other.engine.store().snapshot().expect("readable");
    let mut records: Vec<Record> = Vec::new();
    for entry in entries {
        records.extend(snapshot.entry_records(entry).expect("readable"));
    }
    let mut header = records[0].to_raw().header;
    assert_eq!(header[..2], [0x9b, 1], "an array of eleven with the format first");
    header[1] = 2;
    let signature = SecretKey::from_bytes(&[2; 32]).sign(Purpose::Record, &header);
    let newer = RawRecord { header, signature, payload: Some(b"of tomorrow".to_vec()) };
    let stamp = |record: &Record| record.header().stamp.bits();
    let mut offered = vec![(stamp(&records[0]), newer)];
    offered.extend(records.iter().map(|record| (stamp(record), record.to_raw())));
    nodes.possess(1, &entries, offered);
    nodes.pair(0, 1, true);
    nodes.pass(REST_MS);
    for entry in entries {
        assert!(!nodes.digests(0, entry).is_empty(), "later records have arrived");
    }
    let refusals = nodes.refusals(0, 1);
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].1.starts_with("format 2"), "{}", refusals[0].1);
    let state = nodes.state(0, 1);
    assert!(matches!(state, SyncState::Differs(1, _)), "{state:?}");
    let before = nodes.sent.len();
    nodes.pass(300_000);
    let state = nodes.state(0, 1);
    assert!(matches!(state, SyncState::Differs(1, _)), "{state:?}");
    assert!(only_compares(&nodes, before), "it is not requested repeatedly");
    // One comparison a minute from here; four from there, until it backs off.
    assert!(nodes.sent.len() - before <= 5 * (2 + 4 * 2), "{} frames", nodes.sent.len() - before);
}

#[test]
fn a_blocked_authors_records_are_refused_also_by_relay_until_unblocked() {
    let (mut nodes, team) = team(2, 3);
    let author = nodes.author(0);
    let known = nodes.create(0, in_workspace(team, "before the block"));
    let doomed = nodes.create(0, in_workspace(team, "to be forgotten"));
    let withdrawn = nodes.create(0, in_workspace(team, "to be retracted"));
    nodes.pass(REST_MS);
    nodes.block(2, author, true);
    let before = nodes.digests(2, known);
    assert!(!before.is_empty());
    nodes.run(0, title(known, "after the block")).expect("set");
    let fresh = nodes.create(0, in_workspace(team, "written while blocked"));
    nodes.run(0, Command::Forget { entry: doomed }).expect("forgotten");
    nodes.run(0, Command::Retract { entry: withdrawn }).expect("retracted");
    nodes.pass(REST_MS);
    assert_eq!(nodes.digests(2, known), before, "its later text is refused");
    assert!(nodes.digests(2, fresh).is_empty());
    assert!(nodes.snapshot(2).tombstone(doomed).expect("readable").is_some());
    assert_eq!(nodes.digests(2, withdrawn), nodes.digests(1, withdrawn));
    let refusals = nodes.refusals(2, 1);
    assert!(refusals.iter().all(|(_, reason)| reason == "its author is blocked"));
    assert_eq!(refusals.len(), 2);
    assert!(nodes.is_equal(2, 1), "refused records count as compared: {:?}", nodes.state(2, 1));
    assert!(nodes.is_equal(1, 2));
    let quiet = nodes.sent.len();
    nodes.pass(300_000);
    assert!(only_compares(&nodes, quiet));
    nodes.block(2, author, false);
    nodes.pass(REST_MS);
    for entry in [known, fresh] {
        assert_eq!(nodes.digests(2, entry), nodes.digests(0, entry));
    }
    assert_eq!(nodes.refusals(2, 1), []);
    assert!(nodes.is_equal(2, 1));
}

#[test]
fn a_members_tag_holds_an_entry_back_only_while_the_member_is_unblocked() {
    let (mut nodes, team) = team(4, 3);
    let author = nodes.author(0);
    nodes.set_egress(1, 2, |filter| {
        filter.tags_deny.insert("loud".into());
    });
    let entry = nodes.create(1, in_workspace(team, "whose tags count"));
    nodes.pass(REST_MS);
    assert!(nodes.is_released(1, 2, entry));
    nodes.run(0, claim(entry, ClaimEdit::Add(TextSet::TAGS, "loud".into()))).expect("tagged");
    nodes.pass(REST_MS);
    assert!(!nodes.is_released(1, 2, entry), "a member's tag counts");
    // This happens long before the periodic re-examination.
    for (is_blocked, is_released) in [(true, true), (false, false)] {
        nodes.block(1, author, is_blocked);
        nodes.pass(REST_MS);
        assert_eq!(nodes.is_released(1, 2, entry), is_released, "blocked: {is_blocked}");
        let preview = nodes.preview(1, 2);
        assert!(preview.would_be.is_empty() && preview.would_end.is_empty());
    }
}

#[test]
fn records_refused_by_a_narrow_ingress_arrive_when_it_is_widened() {
    let (mut nodes, team) = team(3, 2);
    let known = nodes.create(0, in_workspace(team, "before"));
    nodes.pass(REST_MS);
    nodes.set_ingress(1, 0, |filter| {
        filter.tags_deny.insert("noise".into());
    });
    let before = nodes.digests(1, known);
    nodes.run(0, claim(known, ClaimEdit::Add(TextSet::TAGS, "noise".into()))).expect("tagged");
    let mut new = in_workspace(team, "noise from the start");
    new.claims.push(ClaimEdit::Add(TextSet::TAGS, "noise/much".into()));
    let noise = nodes.create(0, new);
    nodes.run(0, success(noise)).expect("observed");
    let doomed = nodes.create(0, in_workspace(team, "quiet"));
    nodes.pass(REST_MS);
    assert_eq!(nodes.digests(1, known), before);
    assert!(nodes.digests(1, noise).is_empty());
    assert!(!nodes.digests(1, doomed).is_empty());
    assert_eq!(nodes.refusals(1, 0).len(), 3);
    assert!(nodes.is_equal(1, 0), "{:?}", nodes.state(1, 0));
    let quiet = nodes.sent.len();
    nodes.pass(300_000);
    assert!(only_compares(&nodes, quiet));
    nodes.set_ingress(1, 0, |filter| filter.tags_deny.clear());
    nodes.pass(REST_MS);
    for entry in [known, noise] {
        assert_eq!(nodes.digests(1, entry), nodes.digests(0, entry));
    }
    assert_eq!(nodes.refusals(1, 0), []);
}

#[test]
fn an_ingress_for_own_records_refuses_relayed_ones() {
    let (mut nodes, team) = team(24, 3);
    nodes.pass(REST_MS);
    nodes.set_ingress(2, 1, |filter| {
        filter.reach = Reach::CreatedHere;
        filter.confidence_min = 1.5;
        filter.statuses.clear();
    });
    let relayed = nodes.create(0, in_workspace(team, "of the first"));
    let own = nodes.create(1, in_workspace(team, "of the one between"));
    nodes.pass(REST_MS);
    nodes.run(0, title(relayed, "of the first, again")).expect("set");
    nodes.pass(REST_MS);
    assert!(!nodes.digests(2, own).is_empty());
    assert!(nodes.digests(2, relayed).is_empty());
    let refusals = nodes.refusals(2, 1);
    assert!(refusals.iter().all(|(_, why)| why == "it was created elsewhere"), "{refusals:?}");
    assert_eq!(refusals.len(), 1, "{refusals:?}");
}

/// A node's own claims record about an entry, and its stamp.
fn own_words(node: &Node, entry: EntryId) -> (u64, RawRecord) {
    let snapshot = node.engine.store().snapshot().expect("readable");
    let records = snapshot.entry_records(entry).expect("readable");
    let is_own = |record: &&Record| record.author() == node.author() && record.payload().is_some();
    let own = records.iter().find(is_own).expect("one");
    (own.header().stamp.bits(), own.to_raw())
}

/// Records about an entry are accepted before its subject is known, and wait. A retraction reveals
/// the subject, and passes filters.
#[test]
fn a_retraction_does_not_bypass_an_ingress_filter() {
    for is_narrow in [false, true] {
        let mut nodes = Cluster::new(23, 3, Knobs::calm());
        let (mut creator, mut accomplice) = (Node::start(3, 99), Node::start(2, 98));
        let entry = creator.create("kept out");
        exchange(&mut creator, &mut accomplice);
        let tag = ClaimEdit::Add(TextSet::TAGS, "noise/much".into());
        accomplice.run(claim(entry, tag)).expect("tagged");
        creator.run(Command::Retract { entry }).expect("retracted");
        nodes.possess(1, &[entry], vec![own_words(&accomplice, entry)]);
        nodes.possess(2, &[entry], vec![own_words(&creator, entry)]);
        nodes.pair(0, 1, true);
        nodes.pass(REST_MS);
        assert_eq!(nodes.digests(0, entry).len(), 1, "it waits for its subject");
        nodes.pair(0, 2, true);
        if is_narrow {
            nodes.set_ingress(0, 2, |filter| {
                filter.tags_deny.insert("noise".into());
            });
        }
        nodes.pass(REST_MS);
        assert_eq!(nodes.refusals(0, 2).len(), usize::from(is_narrow));
        let held = nodes.snapshot(0).entry(entry).expect("readable").to_entry();
        assert_eq!(held.origin.is_none(), is_narrow);
    }
}

#[test]
fn an_early_retraction_is_requested_again_once_its_entry_is_known() {
    let mut nodes = Cluster::new(25, 3, Knobs::calm());
    let mut creator = Node::start(3, 99);
    let entry = creator.create("taken back");
    nodes.possess(1, &[entry], vec![own_words(&creator, entry)]);
    creator.run(Command::Retract { entry }).expect("retracted");
    let retraction = own_words(&creator, entry);
    let digest = SignedHeader::digest_of(&retraction.1.header);
    nodes.possess(2, &[entry], vec![retraction]);
    nodes.pair(0, 2, true);
    // The type of a retracted entry is unknown.
    nodes.set_ingress(0, 2, |filter| filter.types = ["lesson".to_owned()].into());
    nodes.pass(REST_MS);
    assert_eq!(nodes.refusals(0, 2).len(), 1);
    nodes.pair(0, 1, true);
    nodes.pass(4 * REST_MS);
    assert!(nodes.digests(0, entry).contains(&digest), "{:?}", nodes.refusals(0, 2));
    assert_eq!(nodes.refusals(0, 2), []);
}

#[test]
fn an_entry_released_one_way_compares_equal_and_local_tallies_stay_local() {
    let (mut nodes, team) = team(4, 2);
    nodes.set_egress(1, 0, |filter| {
        filter.tags_allow.insert("never".into());
    });
    let entry = nodes.create(0, in_workspace(team, "one way"));
    nodes.pass(REST_MS);
    nodes.run(1, success(entry)).expect("observed");
    nodes.run(0, title(entry, "one way, again")).expect("set");
    nodes.pass(REST_MS);
    let (here, there) = (nodes.digests(0, entry), nodes.digests(1, entry));
    assert_eq!((here.len(), there.len()), (1, 2));
    assert!(there.is_superset(&here));
    let tally = *there.difference(&here).next().expect("one");
    assert!(!nodes.sent.iter().any(|sent| sent.from == 1 && sent.holds(tally.as_bytes())));
    assert!(nodes.is_equal(0, 1) && nodes.is_equal(1, 0));
}

/// Runs one history, with or without private entries; returns all sent frames.
fn probed(with_secrets: bool) -> (Vec<Vec<u8>>, Vec<EntryId>, BTreeSet<Digest>) {
    let (mut nodes, team) = team(5, 2);
    nodes.set_egress(0, 1, |filter| {
        filter.tags_deny.insert("private".into());
    });
    let (mut entries, mut digests) = (Vec::new(), BTreeSet::new());
    for number in 0..4 {
        nodes.create(0, in_workspace(team, &format!("open {number}")));
        if with_secrets {
            let mut new = in_workspace(team, &format!("secret {number}"));
            new.claims.push(ClaimEdit::Add(TextSet::TAGS, "private".into()));
            let entry = nodes.create(0, new);
            nodes.run(0, success(entry)).expect("observed");
            digests.extend(nodes.digests(0, entry));
            entries.push(entry);
        }
        nodes.pass(2_000);
    }
    if let [taken_back, forgotten, ..] = entries[..] {
        nodes.run(0, Command::Retract { entry: taken_back }).expect("retracted");
        nodes.run(0, Command::Forget { entry: forgotten }).expect("forgotten");
        for entry in [taken_back, forgotten] {
            digests.extend(nodes.digests(0, entry));
        }
    }
    nodes.pass(REST_MS);
    let heads = nodes.sent.iter().filter(|sent| sent.from == 0).map(|sent| sent.frame.clone());
    (heads.collect(), entries, digests)
}

/// Row counts and positions that a node's frames mention.
fn positions(frames: &[Vec<u8>]) -> Vec<u64> {
    let ends = frames.iter().filter_map(|frame| match SyncResponse::decode(frame) {
        Ok(SyncResponse::Page(_, end, _)) => Some(end.position),
        _ => match SyncRequest::decode(frame) {
            Ok(SyncRequest::Notify(head)) => Some(head),
            _ => None,
        },
    });
    ends.collect()
}

#[test]
fn a_peer_learns_neither_ids_nor_counts_of_unreleased_entries() {
    let (frames, entries, digests) = probed(true);
    // A retraction is one record more, and is revealed as little.
    assert_eq!((entries.len(), digests.len()), (4, 8 + 2));
    for frame in &frames {
        let has = |name: &[u8]| frame.windows(name.len()).any(|part| part == name);
        assert!(!entries.iter().any(|entry| has(entry.as_bytes())));
        assert!(!digests.iter().any(|digest| has(digest.as_bytes())));
    }
    let without = probed(false).0;
    assert_eq!(positions(&frames), positions(&without), "its outbox has its own numbering");
    assert_eq!(frames.len(), without.len());
}

#[test]
fn an_entry_of_a_thread_is_sent_only_to_own_machines() {
    let mut nodes = Cluster::new(6, 3, Knobs::calm());
    let team = nodes.found(&[0, 1]);
    nodes.pair(0, 1, false);
    nodes.pair(0, 2, true);
    let mut new = in_workspace(team, "of one thread");
    new.registers.push((Register::THREAD, "task-7".into()));
    let entry = nodes.create(0, new);
    nodes.pass(REST_MS);
    assert!(nodes.digests(1, entry).is_empty());
    assert_eq!(nodes.digests(2, entry), nodes.digests(0, entry));
    let leaked = |sent: &Sent| sent.to == 1 && sent.holds(entry.as_bytes());
    assert!(!nodes.sent.iter().any(leaked));
}

/// A small history on both sides, and the entries that both should hold in the end.
fn small(seed: u64) -> (Cluster, Vec<EntryId>) {
    let mut nodes = Cluster::new(seed, 2, Knobs::calm());
    let mut entries = vec![nodes.create(0, lesson("one")), nodes.create(1, lesson("two"))];
    let long = NewEntry { content: "long ".repeat(400), ..lesson("three") };
    entries.push(nodes.create(0, long));
    nodes.run(0, success(entries[0])).expect("observed");
    nodes.pair(0, 1, true);
    (nodes, entries)
}

fn assert_whole(nodes: &mut Cluster, entries: &[EntryId], what: &str) {
    nodes.calm();
    nodes.pass(2 * REST_MS);
    for entry in entries {
        let here = nodes.digests(0, *entry);
        assert!(!here.is_empty(), "{what}");
        assert_eq!(nodes.digests(1, *entry), here, "{what}");
    }
    for (at, peer) in [(0, 1), (1, 0)] {
        let state = nodes.state(at, peer);
        assert!(matches!(state, SyncState::Equal(_)), "{what}: {at} to {peer}: {state:?}");
    }
}

#[test]
fn a_cut_or_a_kill_at_any_step_of_a_small_sync_ends_equal() {
    let (mut calm, entries) = small(7);
    let begin = calm.delivered();
    calm.pass(REST_MS);
    let steps = calm.delivered() - begin;
    assert!(steps > 8, "{steps} deliveries");
    assert_whole(&mut calm, &entries, "undisturbed");
    for step in 0..=steps {
        for victim in [0, 1] {
            let (mut nodes, entries) = small(7);
            nodes.pass_messages(step);
            nodes.crash(victim);
            nodes.pass(500);
            assert_whole(&mut nodes, &entries, &format!("{victim} killed after {step}"));
        }
        let (mut nodes, entries) = small(7);
        nodes.pass_messages(step);
        nodes.part(0);
        nodes.pass(500);
        nodes.run(0, success(entries[0])).expect("observed");
        assert_whole(&mut nodes, &entries, &format!("cut after {step}"));
    }
}

#[test]
fn a_proof_of_equivocation_reaches_third_parties_and_later_peers() {
    let mut nodes = Cluster::new(8, 5, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3, 4]);
    for (one, two) in [(0, 1), (0, 2), (1, 2), (2, 3)] {
        nodes.pair(one, two, false);
    }
    let entry = nodes.create(0, in_workspace(team, "said once"));
    nodes.pass(REST_MS);
    let author = nodes.author(0);
    assert!(nodes.weight(3, author) > 0.0);
    // A machine is resumed twice from one image: both lives write the same slots.
    nodes.crash(0);
    nodes.restart(0);
    nodes.pass(REST_MS);
    let image = nodes.disk(0);
    nodes.part(2);
    nodes.run(0, title(entry, "one thing")).expect("set");
    nodes.pass(REST_MS);
    nodes.crash(0);
    nodes.resume_on(0, image);
    nodes.part(0);
    nodes.run(0, title(entry, "another thing")).expect("set");
    nodes.calm();
    nodes.pass(REST_MS);
    for at in [1, 2, 3] {
        let proof = nodes.snapshot(at).equivocation(author).expect("readable");
        assert!(proof.is_some(), "node {at} knows");
        assert!(nodes.weight(at, author) == 0.0, "node {at}");
    }
    nodes.pair(3, 4, false);
    nodes.pass(REST_MS);
    assert!(nodes.weight(4, author) == 0.0, "a peer that is paired later gets it too");
}

/// Whether the second node is a member of a workspace: a failed write leaves that undetermined.
fn belongs(nodes: &mut Cluster, team: WorkspaceId) -> bool {
    let member = nodes.author(1);
    nodes.membership(0).is_member(member, team)
}

#[test]
fn a_failed_release_write_is_retried() {
    for calls in 0..24 {
        let (mut nodes, team) = team(80 + calls, 2);
        let entry = nodes.create(0, in_workspace(team, "for members"));
        nodes.pass(REST_MS);
        assert!(nodes.is_released(0, 1, entry));
        nodes.fail_once(0, calls, Fault::NoSpace);
        let withdrawn = ClaimEdit::Withdraw(TextSet::MEMBERS, nodes.author(1).to_string());
        let _ = nodes.run(0, claim(workspace_charter::entry(team), withdrawn));
        nodes.pass(REST_MS);
        let belongs = belongs(&mut nodes, team);
        assert_eq!(nodes.is_released(0, 1, entry), belongs, "after {calls} calls");
    }
}

#[test]
fn a_failed_write_of_any_sweep_batch_is_retried() {
    const ENTRIES: usize = 600;
    let (mut nodes, team) = team(120, 2);
    let entries: Vec<EntryId> =
        (0..ENTRIES).map(|n| nodes.create(0, in_workspace(team, &format!("entry {n}")))).collect();
    nodes.pass(REST_MS);
    let released = |nodes: &mut Cluster| {
        entries.iter().filter(|entry| nodes.is_released(0, 1, **entry)).count()
    };
    assert_eq!(released(&mut nodes), ENTRIES);
    // After this many calls one write of the sweep fails: of its first batch, or a later one.
    for calls in (6..60).step_by(6) {
        let member = nodes.author(1).to_string();
        let withdrawn =
            claim(workspace_charter::entry(team), ClaimEdit::Withdraw(TextSet::MEMBERS, member));
        nodes.fail_once(0, calls, Fault::NoSpace);
        let _ = nodes.run(0, withdrawn);
        nodes.pass(REST_MS);
        let expected = if belongs(&mut nodes, team) { ENTRIES } else { 0 };
        assert_eq!(released(&mut nodes), expected, "after {calls} calls");
        nodes.mend(0);
        let member = nodes.author(1).to_string();
        nodes
            .run(0, claim(workspace_charter::entry(team), ClaimEdit::Add(TextSet::MEMBERS, member)))
            .unwrap();
        nodes.pass(REST_MS);
        assert_eq!(released(&mut nodes), ENTRIES, "after {calls} calls");
    }
}

#[test]
fn two_nodes_recover_after_a_store_was_unreadable() {
    let mut closed = 0;
    for messages in 0..16 {
        let mut nodes = Cluster::new(140 + messages, 2, Knobs::calm());
        nodes.pair(0, 1, true);
        let before = nodes.create(0, lesson("before"));
        nodes.pass(REST_MS);
        let after = nodes.create(1, lesson("after"));
        nodes.pass_messages(messages as usize);
        // There is no room, not even to reopen it.
        nodes.fail(0, 1, Fault::NoSpace);
        for _ in 0..2 {
            nodes.run(0, success(before)).unwrap_err();
        }
        closed += u32::from(!nodes.is_readable(0));
        nodes.pass(100);
        nodes.mend(0);
        nodes.pass(REST_MS);
        for entry in [before, after] {
            let here = nodes.digests(0, entry);
            assert_eq!(nodes.digests(1, entry), here, "after {messages} messages");
            assert!(!here.is_empty(), "after {messages} messages");
        }
        for (one, two) in [(0, 1), (1, 0)] {
            let state = nodes.state(one, two);
            assert!(matches!(state, SyncState::Equal(_)), "after {messages}: {one}, {state:?}");
        }
    }
    assert_eq!(closed, 16, "the store was not closed");
}

#[test]
fn a_peer_cannot_release_local_entries_or_learn_their_fate() {
    let cases =
        [(WorkspaceId::LOCAL, true), (WorkspaceId::LOCAL, false), (WorkspaceId::MAIN, false)];
    for (workspace, is_mine) in cases {
        let mut nodes = Cluster::new(130, 2, Knobs::calm());
        let entry = nodes.create(0, in_workspace(workspace, "kept at home"));
        // The peer guesses its id and claims to have it, too.
        nodes.possess(1, &[entry], Vec::new());
        nodes.pair(0, 1, is_mine);
        nodes.pass(REST_MS);
        nodes.run(0, Command::Forget { entry }).unwrap();
        nodes.pass(2 * REST_MS);
        let tells = |sent: &Sent| sent.from == 0 && sent.holds(entry.as_bytes());
        assert!(!nodes.sent.iter().any(tells), "{workspace}, {is_mine}");
    }
}

#[test]
fn two_idle_clones_of_one_home_change_nothing_after_two_rounds() {
    let mut nodes = Cluster::new(9, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let entry = nodes.create(0, lesson("before the clone"));
    nodes.pass(REST_MS);
    let mut asleep = nodes.disk(0);
    nodes.run(0, success(entry)).expect("observed");
    nodes.run(1, title(entry, "while one slept")).expect("set");
    nodes.pass(REST_MS);
    let mut rounds = Vec::new();
    for _ in 0..8 {
        let before = nodes.sent.len();
        nodes.crash(0);
        let awake = nodes.disk(0);
        nodes.restart_on(0, std::mem::replace(&mut asleep, awake));
        nodes.pass(REST_MS);
        assert!(nodes.is_equal(0, 1));
        let is_fetch =
            |sent: &&Sent| matches!(SyncRequest::decode(&sent.frame), Ok(SyncRequest::Fetch(_)));
        let fetches = nodes.sent[before..].iter().filter(is_fetch).count();
        let peers = [nodes.author(1), nodes.author(0)];
        let head = |nodes: &mut Cluster, at: usize| nodes.snapshot(at).outbox_head(peers[at]);
        rounds.push((fetches, head(&mut nodes, 0).unwrap(), head(&mut nodes, 1).unwrap()));
    }
    // Each is read from the start by the node that last synced with the other: the rows are known,
    // and no more come.
    assert_eq!((rounds[4], rounds[5]), (rounds[6], rounds[7]), "{rounds:?}");
    assert_eq!(rounds[7].0, 0, "{rounds:?}");
    assert_eq!(nodes.digests(0, entry), nodes.digests(1, entry));
}
