//! Stores after a migration, after a year with rewrites, and after a replacement, as seen by
//! their peers on a simulated network.

use klnode_crdt::entry_view::Entitlement;
use klnode_crdt::ids::{Boot, EntryId, StoreId};
use klnode_engine::{Command, NewEntry, SourceKey};
use klnode_federation::proto::message::{SyncRequest, SyncResponse};
use klnode_federation::sim::{ClockFault, Knobs};
use klnode_store::peers::row_types::FeedCursor;
use klnode_store::row_types::Seq;
use klnode_tests::cluster::{Cluster, REST_MS, Sent};
use klnode_tests::disk::Fault as DiskFault;
use klnode_tests::test_engine::{downgrade, in_workspace, lesson, success};
use std::collections::BTreeSet;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Whether a node reads from the start, or is told to.
fn begins_anew(sent: &Sent) -> bool {
    matches!(SyncRequest::decode(&sent.frame), Ok(SyncRequest::Changes(None, _)))
        || matches!(SyncResponse::decode(&sent.frame), Ok(SyncResponse::UnknownCursor))
}

#[track_caller]
fn assert_all_equal(nodes: &mut Cluster) {
    for (one, two) in nodes.links() {
        for (at, peer) in [(one, two), (two, one)] {
            assert!(nodes.is_equal(at, peer), "{at} of {peer}: {:?}", nodes.state(at, peer));
        }
    }
}

/// End of a node's feed, the boots that wrote it, and for each peer the end of its outbox and the
/// cursor in the peer's outbox.
type Places = (Seq, Vec<(Seq, Boot)>, Vec<(u64, Option<FeedCursor>)>);

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
fn a_migrated_store_resends_nothing_and_is_not_read_again() {
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
fn a_tombstone_waits_a_year_for_an_offline_peer_despite_rewrites() {
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
        nodes.disturb_clock(&ClockFault::Jumped { node, by_ms: 400 * DAY_MS });
    }
    for at in [0, 1] {
        // A node that slept for so long starts an epoch with its next write of any kind.
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

/// Observations of one author on an entry, as a node sees them, in whole observations.
fn counted(nodes: &mut Cluster, at: usize, by: usize, entry: EntryId) -> u64 {
    let (author, now) = (nodes.author(by), nodes.now(at));
    let entry = nodes.snapshot(at).entry(entry).expect("readable").to_entry();
    let view = entry.view(now, &Entitlement::default());
    view.counts[&author].successes.iter().map(|cell| cell.amount.0).sum::<u64>() / 1_000
}

#[test]
fn a_replaced_store_is_read_again_and_both_lives_count() {
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
    // Records that the old store offered in vain are not in the new one, and are not assumed to be.
    assert!(nodes.refused(1, 0).is_empty());
    assert!(nodes.digests(0, theirs).is_empty());
    assert!(nodes.is_equal(0, 1) && nodes.is_equal(1, 0));
    nodes.restart(2);
    nodes.pair(0, 2, true);
    nodes.pass(3 * REST_MS);
    assert!(!nodes.digests(0, theirs).is_empty());
    assert_eq!(nodes.refused(1, 0), BTreeSet::from([theirs]), "it is offered again");
    assert_all_equal(&mut nodes);
}

/// Records that are not released back are not compared: only reading the outbox from the start
/// shows that the restored node may lack them.
#[test]
fn a_restored_node_recovers_its_records_despite_a_failed_write_of_its_peer() {
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
        assert_eq!(nodes.digests(1, entry).len(), 1, "it was restored");
        nodes.pass(REST_MS);
        nodes.mend(0);
        nodes.pass(3 * REST_MS);
        assert_eq!(nodes.digests(1, entry), held, "after {calls} calls");
    }
}

/// The peer withholds relayed records from a restored node, and then releases their entry for the
/// first time. As the entry passes in one direction only, no comparison covers them.
#[test]
fn a_restored_node_recovers_relayed_records_that_its_peer_releases_later() {
    let mut nodes = Cluster::new(105, 3, Knobs::calm());
    let team = nodes.found(&[0, 1, 2]);
    nodes.pair(0, 1, false);
    nodes.pair(1, 2, false);
    let mut types = BTreeSet::new();
    nodes.set_egress(0, 1, |filter| types = std::mem::take(&mut filter.types));
    nodes.pass(REST_MS);
    let copy = nodes.disk(1);
    let entry = nodes.create(2, in_workspace(team, "relayed"));
    nodes.pass(REST_MS);
    let held = nodes.digests(0, entry);
    assert_eq!((held.len(), nodes.is_released(0, 1, entry)), (1, false));
    nodes.part(2);
    nodes.crash(1);
    nodes.restart_on(1, copy);
    nodes.pass(REST_MS);
    assert!(nodes.digests(1, entry).is_empty(), "its peer withholds the record");
    nodes.set_egress(0, 1, |filter| filter.types = types);
    nodes.pass(REST_MS);
    assert_eq!(nodes.digests(1, entry), held);
    assert!(nodes.is_equal(0, 1) && nodes.is_equal(1, 0));
}
