//! Whole nodes on a simulated network: what a store is to its peers after it was migrated, after a year
//! and written anew, and when another one takes its place.

use klnode::engine::{Command, NewEntry, SourceKey};
use klnode::store::peers::rows::Cursor;
use klnode::store::rows::Seq;
use klnode_crdt::ids::{Boot, EntryId, StoreId};
use klnode_crdt::view::Entitlement;
use klnode_federation::proto::message::{Answer, Ask};
use klnode_federation::sim::{Fault, Knobs};
use klnode_tests::cluster::{Cluster, REST_MS, Sent};
use klnode_tests::disk::Fault as DiskFault;
use klnode_tests::node::{downgrade, in_workspace, lesson, success};
use std::collections::BTreeSet;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Whether somebody reads from the beginning, or is told to.
fn begins_anew(sent: &Sent) -> bool {
    matches!(Ask::decode(&sent.frame), Ok(Ask::Changes(None, _)))
        || matches!(Answer::decode(&sent.frame), Ok(Answer::UnknownCursor))
}

#[track_caller]
fn assert_all_equal(nodes: &mut Cluster) {
    for (one, two) in nodes.links() {
        for (at, peer) in [(one, two), (two, one)] {
            assert!(nodes.is_equal(at, peer), "{at} of {peer}: {:?}", nodes.state(at, peer));
        }
    }
}

/// Where a node's feed ends, which starts wrote it, and for each peer where its outbox ends and how far
/// the peer's was read.
type Places = (Seq, Vec<(Seq, Boot)>, Vec<(u64, Option<Cursor>)>);

fn places(nodes: &mut Cluster, at: usize) -> Places {
    let snapshot = nodes.snapshot(at);
    let epochs = snapshot.epochs().expect("readable").map(|epoch| epoch.expect("readable"));
    let peers = snapshot.peers().expect("readable").into_iter().map(|(peer, _)| {
        let head = snapshot.outbox_head(peer).expect("readable");
        (head, snapshot.cursor(peer).expect("readable"))
    });
    (snapshot.head(), epochs.collect(), peers.collect())
}

#[test]
fn a_store_of_an_older_schema_sends_nothing_again_and_nobody_reads_it_anew() {
    for schema in 3..=5 {
        let mut nodes = Cluster::new(90, 2, Knobs::calm());
        let team = nodes.found(&[0, 1]);
        nodes.pair(0, 1, false);
        let [kept, doomed] =
            ["kept", "doomed"].map(|title| nodes.create(0, in_workspace(team, title)));
        nodes.pass(REST_MS);
        nodes.run(1, success(kept)).expect("observed");
        nodes.run(0, Command::Forget { entry: doomed }).expect("forgotten");
        nodes.pass(2 * REST_MS);
        assert_all_equal(&mut nodes);
        let held = nodes.holdings(1);
        let [(head, _, read), (_, _, read_of_it)] = [1, 0].map(|at| places(&mut nodes, at));
        nodes.crash(1);
        let disk = nodes.disk(1);
        downgrade(&disk, schema);
        let (since, records) = (nodes.sent.len(), nodes.records_sent());
        nodes.restart_on(1, disk.fork());
        nodes.pass(300_000);
        assert_eq!(nodes.holdings(1), held, "schema {schema}");
        assert_eq!(nodes.records_sent(), records, "schema {schema}");
        assert!(!nodes.sent[since..].iter().any(begins_anew), "schema {schema}");
        let [after, after_of_it] = [1, 0].map(|at| places(&mut nodes, at));
        assert_eq!((after.0, after.2), (head, read), "schema {schema}");
        assert_eq!(after_of_it.2, read_of_it, "schema {schema}");
        assert_all_equal(&mut nodes);
    }
}

#[test]
fn a_tombstone_waits_for_who_is_away_for_a_year_however_often_stores_are_written_anew() {
    let mut nodes = Cluster::new(91, 3, Knobs::calm());
    let team = nodes.found(&[0, 1, 2]);
    nodes.pair(0, 1, false);
    nodes.pair(1, 2, false);
    let entry = nodes.create(0, in_workspace(team, "to be forgotten"));
    nodes.pass(REST_MS);
    assert!(!nodes.digests(2, entry).is_empty());
    nodes.part(2);
    nodes.run(0, Command::Forget { entry }).expect("forgotten");
    nodes.pass(REST_MS);
    let since = nodes.sent.len();
    for node in 0..3 {
        nodes.disturb_clock(&Fault::Jumped { node, by_ms: 400 * DAY_MS });
    }
    for at in [0, 1] {
        // Whoever slept for so long begins an epoch with the next thing it writes, whatever that is.
        nodes.run(at, Command::Peers(Vec::new())).expect("noted");
        nodes.pass(REST_MS);
        let before = places(&mut nodes, at);
        nodes.run(at, Command::Rewrite).expect("written anew");
        assert_eq!(places(&mut nodes, at), before, "node {at}");
        nodes.crash(at);
        nodes.restart(at);
    }
    nodes.pass(REST_MS);
    assert!(nodes.snapshot(2).tombstone(entry).expect("readable").is_none());
    nodes.heal();
    nodes.pass(2 * REST_MS);
    for at in 0..3 {
        assert!(nodes.snapshot(at).tombstone(entry).expect("readable").is_some(), "node {at}");
        assert_eq!(nodes.digests(at, entry).len(), 1, "node {at}");
    }
    assert_all_equal(&mut nodes);
    assert!(!nodes.sent[since..].iter().any(begins_anew));
}

/// What one author has counted for an entry, as a node sees it, in whole observations.
fn counted(nodes: &mut Cluster, at: usize, by: usize, entry: EntryId) -> u64 {
    let (author, now) = (nodes.author(by), nodes.now(at));
    let entry = nodes.snapshot(at).entry(entry).expect("readable").to_entry();
    let view = entry.view(now, &Entitlement::default());
    view.counts[&author].successes.iter().map(|cell| cell.amount.0).sum::<u64>() / 1_000
}

#[test]
fn a_store_that_another_takes_the_place_of_is_read_anew_and_both_lives_count() {
    let mut nodes = Cluster::new(92, 3, Knobs::calm());
    let blocked = nodes.author(2);
    nodes.block(1, blocked, true);
    nodes.pair(0, 1, true);
    nodes.pair(0, 2, true);
    let imported = || {
        let source = Some(SourceKey { format: "jsonl".into(), key: "row 1".into() });
        NewEntry { source, ..lesson("imported in both lives") }
    };
    let entry = nodes.create(0, imported());
    let lost = nodes.create(0, lesson("of the first life"));
    let theirs = nodes.create(2, lesson("by one who is blocked"));
    for _ in 0..3 {
        nodes.run(0, success(entry)).expect("observed");
    }
    nodes.pass(2 * REST_MS);
    assert_eq!(nodes.refused(1, 0), BTreeSet::from([theirs]));
    nodes.part(0);
    nodes.crash(0);
    nodes.crash(2);
    nodes.restart_anew(0, StoreId::from_bytes([0xA5; 16]));
    assert_eq!(nodes.create(0, imported()), entry);
    for _ in 0..2 {
        nodes.run(0, success(entry)).expect("observed");
    }
    nodes.pair(0, 1, true);
    nodes.heal();
    nodes.pass(3 * REST_MS);
    for at in [0, 1] {
        assert_eq!(counted(&mut nodes, at, 0, entry), 5, "node {at}");
    }
    assert!(!nodes.digests(0, lost).is_empty());
    assert_eq!(nodes.digests(0, lost), nodes.digests(1, lost));
    // What the old store offered in vain is not in the new one, and is not taken to be.
    assert!(nodes.refused(1, 0).is_empty());
    assert!(nodes.digests(0, theirs).is_empty());
    assert!(nodes.is_equal(0, 1) && nodes.is_equal(1, 0));
    nodes.restart(2);
    nodes.pair(0, 2, true);
    nodes.pass(3 * REST_MS);
    assert!(!nodes.digests(0, theirs).is_empty());
    assert_eq!(nodes.refused(1, 0), BTreeSet::from([theirs]), "as it is offered anew");
    assert_all_equal(&mut nodes);
}

/// What is not released back is compared by nobody: only that its outbox is read anew tells that the
/// restored node may lack it.
#[test]
fn who_was_put_back_gets_its_words_though_its_peer_could_not_write_at_first_that_it_is_read_anew() {
    for calls in 0..12 {
        let mut nodes = Cluster::new(93 + calls, 2, Knobs::calm());
        let team = nodes.found(&[0, 1]);
        nodes.pair(0, 1, false);
        let entry = nodes.create(0, in_workspace(team, "of both"));
        nodes.pass(REST_MS);
        let mut types = BTreeSet::new();
        nodes.set_egress(1, 0, |filter| types = std::mem::take(&mut filter.types));
        nodes.pass(REST_MS);
        assert!(!nodes.is_released(1, 0, entry));
        let copy = nodes.disk(1);
        nodes.set_egress(1, 0, |filter| filter.types = types);
        nodes.run(1, success(entry)).expect("observed");
        nodes.pass(REST_MS);
        let held = nodes.digests(0, entry);
        assert_eq!((held.len(), nodes.digests(1, entry) == held), (2, true));
        nodes.crash(1);
        nodes.fail_once(0, calls, DiskFault::NoSpace);
        nodes.restart_on(1, copy);
        assert_eq!(nodes.digests(1, entry).len(), 1, "it was put back");
        nodes.pass(REST_MS);
        nodes.mend(0);
        nodes.pass(3 * REST_MS);
        assert_eq!(nodes.digests(1, entry), held, "after {calls} calls");
    }
}
