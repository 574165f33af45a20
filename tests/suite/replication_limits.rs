//! Limits on the cost that a peer can cause: its messages cost itself and leave nothing behind; and
//! a failed write of this node costs no peer anything.

use klnode_config::Config;
use klnode_crdt::equivocation::{EquivocationProof, RawProof};
use klnode_crdt::ids::{AuthorId, Boot, EntryId, StoreId, WorkspaceId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::signing_key::{Purpose, SecretKey};
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, OpenDocuments, PeerCommand, Receipt, Rejection};
use klnode_federation::proto::limits::VERSION;
use klnode_federation::proto::message::{
    Greeting, OutboxCursor, OutboxItem, SyncRequest, SyncResponse,
};
use klnode_federation::proto::peer_budget::Budget;
use klnode_federation::proto::{OutboxTarget, Settings};
use klnode_federation::sim::Knobs;
use klnode_query::{Reader, ScoringParams};
use klnode_replication::{
    EngineWriter, ReleasePolicy, Replica, ReplicaAction, ReplicaEvent, Setup,
};
use klnode_store::{Error, Store};
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::disk::{Disk, Fault};
use klnode_tests::test_engine::{Node, START};
use klnode_tests::workspace_fixture::{Stranger, bring, paired};
use redb::{Database, TableDefinition};
use std::ops::Range;
use std::sync::Arc;

/// Interval of the re-examination of all releases, in milliseconds.
const SWEEP_MS: u64 = 3_600_000;

/// A node whose engine is stepped directly.
struct InHand(Node);

impl EngineWriter for InHand {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        self.0.engine.step(&commands, self.0.now)
    }

    fn store(&self) -> &Store {
        self.0.engine.store()
    }

    fn documents(&self) -> &OpenDocuments {
        self.0.engine.documents()
    }
}

/// A node with one approved peer.
fn replica(peer: AuthorId) -> Replica<InHand> {
    replica_with(peer, Settings::default())
}

fn replica_with(peer: AuthorId, settings: Settings) -> Replica<InHand> {
    let mut node = Node::start(1, 1);
    node.meet(peer, paired("peer"));
    replica_of(node.author(), InHand(node), settings)
}

fn replica_of<W: EngineWriter>(own: AuthorId, writer: W, settings: Settings) -> Replica<W> {
    let config = Config::default();
    let reader = Arc::new(Reader::new(own, ScoringParams::new(&config)));
    let policy = ReleasePolicy::new(reader, &config.filter);
    Replica::new(writer, Setup { own, policy, settings, sweep_ms: SWEEP_MS })
}

/// Two headers that carry the signature of one of them.
fn nothing_proved() -> RawProof {
    let (liar, entry) = (Stranger::new(7), EntryId::from_bytes([3; 16]));
    let [one, two] = [1, 2].map(|times| liar.observes(entry, Observation::Success, times));
    let mut raw =
        EquivocationProof::find(one.signed_header(), two.signed_header()).unwrap().to_raw();
    raw.signatures.0 = raw.signatures.1;
    raw
}

#[test]
fn a_peer_that_sends_invalid_proofs_is_disconnected() {
    let peer = Stranger::new(1).author();
    let mut node = replica(peer);
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(ReplicaEvent::Connected(peer), START, 1_000);
    let mut is_sent_away = false;
    for at in (2_000..20_000).step_by(1_000) {
        let asked = actions.iter().filter_map(|action| match action {
            ReplicaAction::Ask(_, id, frame) => Some((*id, SyncRequest::decode(frame).unwrap())),
            _ => None,
        });
        let mut answers: Vec<(u64, SyncResponse)> = Vec::new();
        for (id, ask) in asked {
            answers.push((
                id,
                match ask {
                    SyncRequest::Hello(_) => {
                        let (version, head, time) = (VERSION, 20, START);
                        SyncResponse::Hello(Greeting { version, store, epoch, head, time })
                    }
                    SyncRequest::Changes(None, _) => {
                        let items = vec![OutboxItem::Proof(Box::new(nothing_proved())); 20];
                        SyncResponse::Page(
                            items,
                            OutboxCursor { store, epoch, position: 20 },
                            false,
                        )
                    }
                    _ => SyncResponse::Later(60_000),
                },
            ));
        }
        actions = node.handle(ReplicaEvent::Tick, START, at);
        for (id, answer) in answers {
            actions.extend(node.handle(
                ReplicaEvent::Answered(peer, id, &answer.encode()),
                START,
                at,
            ));
        }
        is_sent_away |=
            actions.iter().any(|action| matches!(action, ReplicaAction::Disconnect(..)));
    }
    assert!(is_sent_away);
    let snapshot = node.writer().store().snapshot().unwrap();
    assert!(snapshot.convicted_authors().unwrap().is_empty());
}

/// Responds with ever new pages of records; returns how many are requested within a few seconds.
fn pages_read(
    node: &mut Replica<InHand>,
    peer: AuthorId,
    page: impl Fn(u32) -> Vec<RawRecord>,
) -> u32 {
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(ReplicaEvent::Connected(peer), START, 1_000);
    let mut pages = 0;
    for at in (2_000..20_000).step_by(1_000) {
        let now = node.handle(ReplicaEvent::Tick, START, at);
        for action in std::mem::replace(&mut actions, now) {
            let ReplicaAction::Ask(_, id, frame) = action else { continue };
            let answer = match SyncRequest::decode(&frame).unwrap() {
                SyncRequest::Hello(_) => {
                    let (version, head, time) = (VERSION, 1, START);
                    SyncResponse::Hello(Greeting { version, store, epoch, head, time })
                }
                SyncRequest::Changes(..) => {
                    pages += 1;
                    let items =
                        page(pages).into_iter().map(|raw| OutboxItem::Whole(1, raw)).collect();
                    let position = u64::from(pages) * 1_000;
                    SyncResponse::Page(items, OutboxCursor { store, epoch, position }, true)
                }
                _ => SyncResponse::Done,
            };
            actions.extend(node.handle(
                ReplicaEvent::Answered(peer, id, &answer.encode()),
                START,
                at,
            ));
        }
    }
    pages
}

/// No release message precedes these records.
#[test]
fn an_entry_is_new_by_local_holdings_and_not_by_a_peers_claim() {
    const ENTRIES: u32 = 4;
    let entry = |number: u32| EntryId::from_bytes(u128::from(number).to_be_bytes());
    let said = |by: u32, number: u32| {
        let record = Stranger::new(by).observes(entry(number), Observation::Success, 1);
        record.to_raw()
    };
    let peer = Stranger::new(1).author();
    let budget = Budget { new_entries_max: u64::from(2 * ENTRIES), ..Budget::default() };
    let settings = Settings { budget, ..Settings::default() };
    let read = |page: &dyn Fn(u32) -> Vec<RawRecord>| {
        pages_read(&mut replica_with(peer, settings), peer, page)
    };
    let fresh = read(&|page| (0..ENTRIES).map(|at| said(7, page * ENTRIES + at)).collect());
    // Two pages, plus the prefetched ones.
    assert!((2..=4).contains(&fresh), "{fresh} pages");
    let known = read(&|page| (0..ENTRIES).map(|at| said(100 + page, at)).collect());
    assert!(known > 10, "{known} pages");
}

#[test]
fn a_conviction_re_examines_releases_and_an_unknown_key_does_not() {
    let (peer, stranger) = (Stranger::new(1), Stranger::new(2));
    let from = peer.author();
    let mut node = replica(from);
    // More entries than one batch of the sweep.
    let entries: Vec<EntryId> =
        (0..300).map(|number| node.writer().0.create(&format!("entry {number}"))).collect();
    let rest = (1_000..1_100).find(|at| {
        node.handle(ReplicaEvent::Tick, START, *at);
        node.next_at(*at) > *at
    });
    let at = rest.expect("everything is examined once");
    for (liar, is_examined) in [(stranger, false), (peer, true)] {
        let twins = [1, 2].map(|times| liar.observes(entries[0], Observation::Failure, times));
        bring(&mut node.writer().0, twins.to_vec(), from);
        node.handle(ReplicaEvent::Tick, START, at);
        let convicted = node.writer().store().snapshot().unwrap().convicted_authors().unwrap();
        assert!(convicted.contains(&liar.author()));
        assert_eq!(node.next_at(at) == at, is_examined);
    }
}

#[test]
fn release_messages_about_unknown_entries_are_limited_per_peer() {
    let (peer, other) = (Stranger::new(1), Stranger::new(2));
    let (mut node, from) = (Node::start(1, 1), peer.author());
    let entry = |number: u32| {
        let mut name = [7; 16];
        name[..4].copy_from_slice(&number.to_be_bytes());
        EntryId::from_bytes(name)
    };
    let told = |numbers: Range<u32>, is_open: bool| -> Vec<PeerCommand> {
        numbers.map(|number| PeerCommand::Released(from, entry(number), is_open)).collect()
    };
    let kept = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.releases(from).unwrap().count()
    };
    node.note(told(0..10, false));
    assert_eq!(kept(&node), 0, "a release that was never open does not end");
    node.note(told(0..10_005, true));
    assert_eq!(kept(&node), 10_000);
    let here = node.create("here");
    node.note(vec![PeerCommand::Released(from, here, true)]);
    assert_eq!(kept(&node), 10_001, "there is always room for held entries");
    // The records it delivers make room for as much.
    bring(&mut node, vec![peer.observes(entry(0), Observation::Success, 1)], from);
    node.note(told(20_000..20_005, true));
    assert_eq!(kept(&node), 10_002);
    // Records of other peers do so too; that is checked periodically.
    let brought = other.observes(entry(1), Observation::Success, 1);
    bring(&mut node, vec![brought], other.author());
    node.note(told(30_000..30_005, true));
    assert_eq!(kept(&node), 10_002);
    node.wait_days(1);
    node.note(told(30_000..30_005, true));
    assert_eq!(kept(&node), 10_003);
}

#[test]
fn a_toggling_release_leaves_one_message_of_each_kind_in_the_outbox() {
    let (mut node, peer) = (Node::start(1, 1), Stranger::new(1).author());
    let entry = node.create("to and fro");
    let outbox = |node: &Node| -> Vec<OutboxTarget> {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.outbox(peer, 0).unwrap().map(|row| row.unwrap().1).collect()
    };
    for _ in 0..10 {
        node.note([true, false].map(|is_open| PeerCommand::Release(peer, entry, is_open)).to_vec());
    }
    // Both remain: a peer that has not read the opening would ignore the end.
    let said = outbox(&node);
    let [opened, OutboxTarget::Record(record), ended] = said[..] else { panic!("{said:?}") };
    assert_eq!((opened, ended), (OutboxTarget::Opened(entry), OutboxTarget::Ended(entry)));
    node.note(vec![PeerCommand::Release(peer, entry, true)]);
    assert_eq!(outbox(&node), [ended, opened, OutboxTarget::Record(record)]);
}

#[test]
fn an_unsigned_record_of_a_newer_format_leaves_no_trace() {
    for is_signed in [true, false] {
        let mut nodes = Cluster::new(1, 2, Knobs::calm());
        let mut other = Node::start(2, 99);
        let entry = other.create("of today");
        let snapshot = other.engine.store().snapshot().unwrap();
        let record = snapshot.entry_records(entry).unwrap().remove(0);
        let mut header = record.to_raw().header;
        header[1] = 2;
        let key = SecretKey::from_bytes(&[if is_signed { 2 } else { 77 }; 32]);
        let signature = key.sign(Purpose::Record, &header);
        let newer = RawRecord { header, signature, payload: Some(b"of tomorrow".to_vec()) };
        let stamp = record.header().stamp.bits();
        nodes.possess(1, &[entry], vec![(stamp, newer), (stamp, record.to_raw())]);
        nodes.pair(0, 1, true);
        nodes.pass(REST_MS);
        assert!(!nodes.digests(0, entry).is_empty(), "later records have arrived");
        assert_eq!(nodes.refusals(0, 1).len(), usize::from(is_signed));
        // It is requested a few times, not endlessly.
        let before = nodes.sent.len();
        nodes.pass(300_000);
        let sent = nodes.sent.len() - before;
        assert!(sent <= 5 * 40, "{sent} frames in five minutes");
    }
}

/// Runs a node until it is idle; returns the time.
fn rest(node: &mut Replica<InHand>) -> u64 {
    let is_at_rest = |at: &u64| {
        node.handle(ReplicaEvent::Tick, START, *at);
        node.next_at(*at) > *at
    };
    (1_000..1_100).find(is_at_rest).expect("everything is examined once")
}

#[test]
fn the_periodic_sweep_yields_until_a_peer_waits() {
    let peer = Stranger::new(1).author();
    let mut node = replica(peer);
    // More entries than one batch of the sweep.
    for number in 0..300 {
        node.writer().0.create(&format!("entry {number}"));
    }
    let at = rest(&mut node) + SWEEP_MS;
    node.handle(ReplicaEvent::Tick, START, at);
    assert_eq!(node.next_at(at), at, "no duration was reported");
    node.report_duration(at, at + 50);
    assert_eq!(node.next_at(at + 50), at + 250);
    // Other events do not make it continue early.
    node.handle(ReplicaEvent::Tick, START, at + 60);
    node.report_duration(at + 60, at + 61);
    assert_eq!(node.next_at(at + 61), at + 250);
    node.handle(ReplicaEvent::Tick, START, at + 250);
    assert_eq!(node.next_at(at + 250), at + SWEEP_MS, "the sweep is complete");
    let at = at + SWEEP_MS;
    node.handle(ReplicaEvent::Tick, START, at);
    node.report_duration(at, at + 50);
    // Two batches: the one in progress starts again.
    let mut events = vec![ReplicaEvent::Tick, ReplicaEvent::Changed([peer].into())];
    while let Some(event) = events.pop() {
        node.handle(event, START, at + 60);
        node.report_duration(at + 60, at + 60);
        let next_at = if events.is_empty() { at + SWEEP_MS } else { at + 60 };
        assert_eq!(node.next_at(at + 60), next_at);
    }
}

fn answered(
    node: &mut Replica<InHand>,
    peer: AuthorId,
    ask: &SyncRequest,
    at: u64,
) -> SyncResponse {
    let actions = node.handle(ReplicaEvent::Asked(peer, 1, &ask.encode()), START, at);
    let answer = actions.into_iter().find_map(|action| match action {
        ReplicaAction::Answer(_, frame) => Some(SyncResponse::decode(&frame).unwrap()),
        _ => None,
    });
    answer.expect("every question is answered")
}

#[test]
fn a_peer_reading_from_the_start_is_answered_after_its_gaps_are_noted() {
    let peer = Stranger::new(1);
    let from = peer.author();
    let mut node = replica(from);
    let entry = node.writer().0.create("here");
    let brought = peer.observes(entry, Observation::Success, 1);
    bring(&mut node.writer().0, vec![brought.clone()], from);
    let at = rest(&mut node);
    let named = |node: &mut Replica<InHand>| -> Vec<OutboxTarget> {
        let snapshot = node.writer().store().snapshot().unwrap();
        snapshot.outbox(from, 0).unwrap().map(|row| row.unwrap().1).collect()
    };
    node.writer().0.medium.disk().fail_at_call(0, Fault::NoSpace);
    let ask = SyncRequest::Changes(None, 10);
    let answer = answered(&mut node, from, &ask, at);
    assert!(matches!(answer, SyncResponse::Later(_)), "{answer:?}");
    assert!(named(&mut node).is_empty());
    let answer = answered(&mut node, from, &ask, at + 5_000);
    assert!(matches!(answer, SyncResponse::Page(..)), "{answer:?}");
    assert_eq!(named(&mut node), [OutboxTarget::Returned(brought.digest())]);
}

/// A node whose disk is full for notes about receipts of peers.
struct Full(InHand);

impl EngineWriter for Full {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        let is_told = |act: &PeerCommand| matches!(act, PeerCommand::Told(..));
        let has_told =
            |command: &Command| matches!(command, Command::Peers(acts) if acts.iter().any(is_told));
        if commands.iter().any(has_told) {
            return commands.iter().map(|_| Err(Rejection::from(Error::Full))).collect();
        }
        self.0.write(commands)
    }

    fn store(&self) -> &Store {
        self.0.store()
    }

    fn documents(&self) -> &OpenDocuments {
        self.0.documents()
    }
}

/// A node and a peer that delivered the tombstones of `count` entries and has no receipt yet.
fn owing(count: usize) -> (Node, AuthorId, Vec<EntryId>) {
    let (mut node, mut other) = (Node::start(1, 1), Node::start(2, 2));
    let peer = other.author();
    node.meet(peer, paired("peer"));
    let team = WorkspaceId::from_bytes([7; 16]);
    let mut entries: Vec<EntryId> =
        (0..count).map(|number| other.create_in(team, &format!("entry {number}"))).collect();
    other.send_to(&mut node);
    for entry in &entries {
        other.run(Command::Forget { entry: *entry }).expect("forgotten");
    }
    other.send_to(&mut node);
    entries.sort();
    assert_eq!(due(node.engine.store(), peer), entries);
    (node, peer, entries)
}

fn due(store: &Store, peer: AuthorId) -> Vec<EntryId> {
    store.snapshot().unwrap().receipts_due(peer, 1_000).unwrap()
}

/// Number of times within a minute that an idle peer is sent receipts.
fn times_told(node: &mut Replica<impl EngineWriter>, peer: AuthorId) -> u32 {
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(ReplicaEvent::Connected(peer), START, 1_000);
    let mut told = 0;
    for at in (1_200..61_000).step_by(200) {
        let now = node.handle(ReplicaEvent::Tick, START, at);
        for action in std::mem::replace(&mut actions, now) {
            let ReplicaAction::Ask(_, id, frame) = action else { continue };
            let answer = match SyncRequest::decode(&frame).unwrap() {
                SyncRequest::Hello(_) => {
                    let (version, head, time) = (VERSION, 0, START);
                    SyncResponse::Hello(Greeting { version, store, epoch, head, time })
                }
                SyncRequest::Changes(..) => SyncResponse::Page(
                    Vec::new(),
                    OutboxCursor { store, epoch, position: 0 },
                    false,
                ),
                SyncRequest::Acknowledge(_) => {
                    told += 1;
                    SyncResponse::Done
                }
                _ => SyncResponse::Later(60_000),
            };
            actions.extend(node.handle(
                ReplicaEvent::Answered(peer, id, &answer.encode()),
                START,
                at,
            ));
        }
    }
    told
}

#[test]
fn a_receipt_that_cannot_be_noted_is_not_sent_endlessly() {
    let (node, peer, _) = owing(1);
    let mut node = replica_of(node.author(), Full(InHand(node)), Settings::default());
    let told = times_told(&mut node, peer);
    assert!((1..=3).contains(&told), "{told} times in a minute");
    assert_eq!(due(node.writer().store(), peer).len(), 1, "it stays due");
}

/// Replaces the receipt row of a peer and a forgotten entry with invalid bytes.
fn spoil(disk: &Disk, peer: AuthorId, entry: EntryId) {
    let table: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("receipts");
    let mut at = [0; 48];
    at[..32].copy_from_slice(peer.as_bytes());
    at[32..].copy_from_slice(entry.as_bytes());
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(&at, b"spoiled".as_slice()).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_damaged_receipt_does_not_block_the_others() {
    let (mut node, peer, entries) = owing(3);
    let other = Stranger::new(1).author();
    node.meet(other, paired("other"));
    node.note(entries.iter().map(|entry| PeerCommand::Release(other, *entry, true)).collect());
    let disk = crate::support::row_damage::stopped(node);
    spoil(&disk, peer, entries[0]);
    spoil(&disk, other, entries[1]);
    let node = Node::start_on(disk, 1, 3, START).expect("opens");
    let mut node = replica_of(node.author(), InHand(node), Settings::default());
    assert_eq!(times_told(&mut node, peer), 1);
    assert!(due(node.writer().store(), peer).is_empty());
    let row = node.writer().store().snapshot().unwrap().receipt(peer, entries[0]).unwrap();
    assert!(row.is_some_and(|row| row.is_upstream && !row.is_due));
}
