//! What a peer may bring about at others' expense: what it says costs itself, and leaves nothing behind. And
//! what this node cannot write costs no peer anything.

use klnode::engine::{Command, PeerAct, Receipt, Rejection};
use klnode::query::{Numbers, Reader};
use klnode::replicate::{Action, Event, Examiner, Replica, Setup, Writer};
use klnode::store::{Error, Store};
use klnode_config::Config;
use klnode_crdt::equivocation::{Proof, RawProof};
use klnode_crdt::ids::{AuthorId, Boot, EntryId, StoreId, WorkspaceId};
use klnode_crdt::key::{Purpose, SecretKey};
use klnode_crdt::record::RawRecord;
use klnode_crdt::tally::Observation;
use klnode_federation::proto::budget::Budget;
use klnode_federation::proto::limits::VERSION;
use klnode_federation::proto::message::{Answer, Ask, Cursor, Greeting, Item};
use klnode_federation::proto::{Outgoing, Settings};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::disk::{Disk, Fault};
use klnode_tests::node::{Node, START};
use klnode_tests::society::{Stranger, bring, paired};
use redb::{Database, TableDefinition};
use std::ops::Range;
use std::sync::Arc;

/// How often everything is examined again, in milliseconds.
const SWEEP_MS: u64 = 3_600_000;

/// A node whose engine is stepped at once.
struct InHand(Node);

impl Writer for InHand {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        self.0.engine.step(&commands, self.0.now)
    }

    fn store(&self) -> &Store {
        self.0.engine.store()
    }
}

/// A node that may talk with somebody.
fn replica(peer: AuthorId) -> Replica<InHand> {
    replica_with(peer, Settings::default())
}

fn replica_with(peer: AuthorId, settings: Settings) -> Replica<InHand> {
    let mut node = Node::start(1, 1);
    node.meet(peer, paired("peer"));
    replica_of(node.author(), InHand(node), settings)
}

fn replica_of<W: Writer>(own: AuthorId, writer: W, settings: Settings) -> Replica<W> {
    let config = Config::default();
    let reader = Arc::new(Reader::new(own, Numbers::new(&config)));
    let examiner = Examiner::new(reader, &config.filter);
    Replica::new(writer, Setup { own, examiner, settings, sweep_ms: SWEEP_MS })
}

/// Two headers with the signature of one of them on both.
fn nothing_proved() -> RawProof {
    let (liar, entry) = (Stranger::new(7), EntryId::from_bytes([3; 16]));
    let [one, two] = [1, 2].map(|times| liar.observes(entry, Observation::Success, times));
    let mut raw = Proof::find(one.signed(), two.signed()).unwrap().to_raw();
    raw.signatures.0 = raw.signatures.1;
    raw
}

#[test]
fn who_brings_proofs_that_prove_nothing_is_sent_away() {
    let peer = Stranger::new(1).author();
    let mut node = replica(peer);
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(Event::Connected(peer), START, 1_000);
    let mut is_sent_away = false;
    for at in (2_000..20_000).step_by(1_000) {
        let asked = actions.iter().filter_map(|action| match action {
            Action::Ask(_, id, frame) => Some((*id, Ask::decode(frame).unwrap())),
            _ => None,
        });
        let mut answers: Vec<(u64, Answer)> = Vec::new();
        for (id, ask) in asked {
            answers.push((
                id,
                match ask {
                    Ask::Hello(_) => {
                        let (version, head, time) = (VERSION, 20, START);
                        Answer::Hello(Greeting { version, store, epoch, head, time })
                    }
                    Ask::Changes(None, _) => {
                        let items = vec![Item::Proof(Box::new(nothing_proved())); 20];
                        Answer::Page(items, Cursor { store, epoch, position: 20 }, false)
                    }
                    _ => Answer::Later(60_000),
                },
            ));
        }
        actions = node.handle(Event::Tick, START, at);
        for (id, answer) in answers {
            actions.extend(node.handle(Event::Answered(peer, id, &answer.encode()), START, at));
        }
        is_sent_away |= actions.iter().any(|action| matches!(action, Action::Disconnect(..)));
    }
    assert!(is_sent_away);
    let snapshot = node.writer().store().snapshot().unwrap();
    assert!(snapshot.convicted().unwrap().is_empty());
}

/// Answers with ever new pages of records; how many of them are asked for within a few seconds.
fn pages_read(
    node: &mut Replica<InHand>,
    peer: AuthorId,
    page: impl Fn(u32) -> Vec<RawRecord>,
) -> u32 {
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(Event::Connected(peer), START, 1_000);
    let mut pages = 0;
    for at in (2_000..20_000).step_by(1_000) {
        let now = node.handle(Event::Tick, START, at);
        for action in std::mem::replace(&mut actions, now) {
            let Action::Ask(_, id, frame) = action else { continue };
            let answer = match Ask::decode(&frame).unwrap() {
                Ask::Hello(_) => {
                    let (version, head, time) = (VERSION, 1, START);
                    Answer::Hello(Greeting { version, store, epoch, head, time })
                }
                Ask::Changes(..) => {
                    pages += 1;
                    let items = page(pages).into_iter().map(|raw| Item::Whole(1, raw)).collect();
                    let position = u64::from(pages) * 1_000;
                    Answer::Page(items, Cursor { store, epoch, position }, true)
                }
                _ => Answer::Done,
            };
            actions.extend(node.handle(Event::Answered(peer, id, &answer.encode()), START, at));
        }
    }
    pages
}

/// No word of a release goes before these records.
#[test]
fn entries_are_new_by_what_is_held_here_whatever_a_peer_says_of_them() {
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
    // Two, and what was asked for ahead.
    assert!((2..=4).contains(&fresh), "{fresh} pages");
    let known = read(&|page| (0..ENTRIES).map(|at| said(100 + page, at)).collect());
    assert!(known > 10, "{known} pages");
}

#[test]
fn a_convicted_peer_has_everything_examined_anew_and_a_made_up_key_nothing() {
    let (peer, stranger) = (Stranger::new(1), Stranger::new(2));
    let from = peer.author();
    let mut node = replica(from);
    // More than are examined at once.
    let entries: Vec<EntryId> =
        (0..300).map(|number| node.writer().0.create(&format!("entry {number}"))).collect();
    let rest = (1_000..1_100).find(|at| {
        node.handle(Event::Tick, START, *at);
        node.next_at(*at) > *at
    });
    let at = rest.expect("everything is examined once");
    for (liar, is_examined) in [(stranger, false), (peer, true)] {
        let twins = [1, 2].map(|times| liar.observes(entries[0], Observation::Failure, times));
        bring(&mut node.writer().0, twins.to_vec(), from);
        node.handle(Event::Tick, START, at);
        let convicted = node.writer().store().snapshot().unwrap().convicted().unwrap();
        assert!(convicted.contains(&liar.author()));
        assert_eq!(node.next_at(at) == at, is_examined);
    }
}

#[test]
fn of_entries_of_which_nothing_is_here_a_peer_tells_so_much_and_no_more() {
    let (peer, other) = (Stranger::new(1), Stranger::new(2));
    let (mut node, from) = (Node::start(1, 1), peer.author());
    let entry = |number: u32| {
        let mut name = [7; 16];
        name[..4].copy_from_slice(&number.to_be_bytes());
        EntryId::from_bytes(name)
    };
    let told = |numbers: Range<u32>, is_open: bool| -> Vec<PeerAct> {
        numbers.map(|number| PeerAct::Released(from, entry(number), is_open)).collect()
    };
    let kept = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.releases(from).unwrap().count()
    };
    node.note(told(0..10, false));
    assert_eq!(kept(&node), 0, "what never was open does not end");
    node.note(told(0..10_005, true));
    assert_eq!(kept(&node), 10_000);
    let here = node.create("here");
    node.note(vec![PeerAct::Released(from, here, true)]);
    assert_eq!(kept(&node), 10_001, "of what is here there is always room");
    // What it brings makes room for as much.
    bring(&mut node, vec![peer.observes(entry(0), Observation::Success, 1)], from);
    node.note(told(20_000..20_005, true));
    assert_eq!(kept(&node), 10_002);
    // So does what others bring; that is looked at now and then.
    let brought = other.observes(entry(1), Observation::Success, 1);
    bring(&mut node, vec![brought], other.author());
    node.note(told(30_000..30_005, true));
    assert_eq!(kept(&node), 10_002);
    node.wait_days(1);
    node.note(told(30_000..30_005, true));
    assert_eq!(kept(&node), 10_003);
}

#[test]
fn a_release_that_opens_and_ends_all_the_time_leaves_one_word_of_each_in_the_outbox() {
    let (mut node, peer) = (Node::start(1, 1), Stranger::new(1).author());
    let entry = node.create("to and fro");
    let outbox = |node: &Node| -> Vec<Outgoing> {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.outbox(peer, 0).unwrap().map(|row| row.unwrap().1).collect()
    };
    for _ in 0..10 {
        node.note([true, false].map(|is_open| PeerAct::Release(peer, entry, is_open)).to_vec());
    }
    // Both: whoever has not read that it was opened would not mind that it has ended.
    let said = outbox(&node);
    let [opened, Outgoing::Record(record), ended] = said[..] else { panic!("{said:?}") };
    assert_eq!((opened, ended), (Outgoing::Opened(entry), Outgoing::Ended(entry)));
    node.note(vec![PeerAct::Release(peer, entry, true)]);
    assert_eq!(outbox(&node), [ended, opened, Outgoing::Record(record)]);
}

#[test]
fn nothing_is_kept_of_what_claims_to_be_of_a_newer_format_and_is_signed_by_nobody() {
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
        assert!(!nodes.digests(0, entry).is_empty(), "what comes after it is here");
        assert_eq!(nodes.refusals(0, 1).len(), usize::from(is_signed));
        // It is asked for a few times, not over and over.
        let before = nodes.sent.len();
        nodes.pass(300_000);
        let sent = nodes.sent.len() - before;
        assert!(sent <= 5 * 40, "{sent} frames in five minutes");
    }
}

/// Lets a node come to rest; when it has.
fn rest(node: &mut Replica<InHand>) -> u64 {
    let is_at_rest = |at: &u64| {
        node.handle(Event::Tick, START, *at);
        node.next_at(*at) > *at
    };
    (1_000..1_100).find(is_at_rest).expect("everything is examined once")
}

#[test]
fn what_is_examined_for_the_time_alone_leaves_the_machine_to_others_until_somebody_waits() {
    let peer = Stranger::new(1).author();
    let mut node = replica(peer);
    // More than are examined at once.
    for number in 0..300 {
        node.writer().0.create(&format!("entry {number}"));
    }
    let at = rest(&mut node) + SWEEP_MS;
    node.handle(Event::Tick, START, at);
    assert_eq!(node.next_at(at), at, "nobody says that it took any time");
    node.took(at, at + 50);
    assert_eq!(node.next_at(at + 50), at + 250);
    // Nor does it go on because something else happens.
    node.handle(Event::Tick, START, at + 60);
    node.took(at + 60, at + 61);
    assert_eq!(node.next_at(at + 61), at + 250);
    node.handle(Event::Tick, START, at + 250);
    assert_eq!(node.next_at(at + 250), at + SWEEP_MS, "that was the rest");
    let at = at + SWEEP_MS;
    node.handle(Event::Tick, START, at);
    node.took(at, at + 50);
    // Two pieces: the one under way begins anew.
    let mut events = vec![Event::Tick, Event::Changed([peer].into())];
    while let Some(event) = events.pop() {
        node.handle(event, START, at + 60);
        node.took(at + 60, at + 60);
        let next_at = if events.is_empty() { at + SWEEP_MS } else { at + 60 };
        assert_eq!(node.next_at(at + 60), next_at);
    }
}

fn answered(node: &mut Replica<InHand>, peer: AuthorId, ask: &Ask, at: u64) -> Answer {
    let actions = node.handle(Event::Asked(peer, 1, &ask.encode()), START, at);
    let answer = actions.into_iter().find_map(|action| match action {
        Action::Answer(_, frame) => Some(Answer::decode(&frame).unwrap()),
        _ => None,
    });
    answer.expect("every question is answered")
}

#[test]
fn whoever_reads_from_the_start_is_answered_once_it_is_noted_what_it_may_lack() {
    let peer = Stranger::new(1);
    let from = peer.author();
    let mut node = replica(from);
    let entry = node.writer().0.create("here");
    let brought = peer.observes(entry, Observation::Success, 1);
    bring(&mut node.writer().0, vec![brought.clone()], from);
    let at = rest(&mut node);
    let named = |node: &mut Replica<InHand>| -> Vec<Outgoing> {
        let snapshot = node.writer().store().snapshot().unwrap();
        snapshot.outbox(from, 0).unwrap().map(|row| row.unwrap().1).collect()
    };
    node.writer().0.medium.disk().fail_at_call(0, Fault::NoSpace);
    let ask = Ask::Changes(None, 10);
    let answer = answered(&mut node, from, &ask, at);
    assert!(matches!(answer, Answer::Later(_)), "{answer:?}");
    assert!(named(&mut node).is_empty());
    let answer = answered(&mut node, from, &ask, at + 5_000);
    assert!(matches!(answer, Answer::Page(..)), "{answer:?}");
    assert_eq!(named(&mut node), [Outgoing::Returned(brought.digest())]);
}

/// A node whose disk is full whenever it is to note what a peer has heard.
struct Full(InHand);

impl Writer for Full {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        let is_told = |act: &PeerAct| matches!(act, PeerAct::Told(..));
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
}

/// A node and a peer that brought the tombstones of so many entries, of which it has not heard yet.
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

/// How often a peer that has nothing is told within a minute what became of entries.
fn times_told(node: &mut Replica<impl Writer>, peer: AuthorId) -> u32 {
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(Event::Connected(peer), START, 1_000);
    let mut told = 0;
    for at in (1_200..61_000).step_by(200) {
        let now = node.handle(Event::Tick, START, at);
        for action in std::mem::replace(&mut actions, now) {
            let Action::Ask(_, id, frame) = action else { continue };
            let answer = match Ask::decode(&frame).unwrap() {
                Ask::Hello(_) => {
                    let (version, head, time) = (VERSION, 0, START);
                    Answer::Hello(Greeting { version, store, epoch, head, time })
                }
                Ask::Changes(..) => {
                    Answer::Page(Vec::new(), Cursor { store, epoch, position: 0 }, false)
                }
                Ask::Acknowledge(_) => {
                    told += 1;
                    Answer::Done
                }
                _ => Answer::Later(60_000),
            };
            actions.extend(node.handle(Event::Answered(peer, id, &answer.encode()), START, at));
        }
    }
    told
}

#[test]
fn a_peer_is_not_told_over_and_over_what_it_has_heard_where_that_cannot_be_noted() {
    let (node, peer, _) = owing(1);
    let mut node = replica_of(node.author(), Full(InHand(node)), Settings::default());
    let told = times_told(&mut node, peer);
    assert!((1..=3).contains(&told), "{told} times in a minute");
    assert_eq!(due(node.writer().store(), peer).len(), 1, "it stays due");
}

/// Puts what is no row in the place of what is known of a peer and a forgotten entry.
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
fn a_damaged_receipt_keeps_nobody_from_hearing_of_the_others() {
    let (mut node, peer, entries) = owing(3);
    let other = Stranger::new(1).author();
    node.meet(other, paired("other"));
    node.note(entries.iter().map(|entry| PeerAct::Release(other, *entry, true)).collect());
    let disk = crate::strikes::stopped(node);
    spoil(&disk, peer, entries[0]);
    spoil(&disk, other, entries[1]);
    let node = Node::start_on(disk, 1, 3, START).expect("opens");
    let mut node = replica_of(node.author(), InHand(node), Settings::default());
    assert_eq!(times_told(&mut node, peer), 1);
    assert!(due(node.writer().store(), peer).is_empty());
    let row = node.writer().store().snapshot().unwrap().receipt(peer, entries[0]).unwrap();
    assert!(row.is_some_and(|row| row.is_upstream && !row.is_due));
}
