//! The machine alone, with a store that is made up: what a peer may say, and what comes of it.

use super::budget::Budget;
use super::message::{Answer, Ask, Cursor, Greeting, Item, Receipt};
use super::{
    Comparable, Delivery, Input, Outcome, Outgoing, Output, Replicator, Settings, SyncState,
    Unreadable, View,
};
use klnode_crdt::claims::Claims;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Generation, StoreId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, RawRecord, Record};
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::version::Place;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

const PEER: AuthorId = AuthorId::from_bytes([2; 32]);
const THEIR_STORE: StoreId = StoreId::from_bytes([2; 16]);
const OWN_STORE: StoreId = StoreId::from_bytes([1; 16]);

/// A store that is made up.
#[derive(Default)]
struct Shelf {
    strangers: BTreeSet<AuthorId>,
    outbox: Vec<Outgoing>,
    records: BTreeMap<Digest, Record>,
    /// Held, but not for the peer.
    kept_back: BTreeSet<Digest>,
    refused: BTreeSet<Digest>,
    cursor: Option<Cursor>,
    receipts: Vec<Receipt>,
    is_broken: Cell<bool>,
}

impl Shelf {
    fn read<T>(&self, value: T) -> Result<T, Unreadable> {
        if self.is_broken.get() { Err(Unreadable) } else { Ok(value) }
    }

    /// Puts a record where the peer finds it.
    fn offer(&mut self, record: &Record) {
        self.outbox.push(Outgoing::Record(record.digest()));
        self.records.insert(record.digest(), record.clone());
    }
}

impl View for Shelf {
    fn store(&self) -> StoreId {
        OWN_STORE
    }
    fn epoch(&self) -> Boot {
        Boot(7)
    }
    fn now(&self) -> WallTime {
        WallTime::from_millis(1_000)
    }
    fn is_approved(&self, peer: AuthorId) -> bool {
        !self.strangers.contains(&peer)
    }
    fn is_mine(&self, _: AuthorId) -> bool {
        false
    }
    fn outbox_head(&self, _: AuthorId) -> Result<u64, Unreadable> {
        self.read(self.outbox.len() as u64)
    }
    fn outbox(
        &self,
        _: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, Outgoing)>, Unreadable> {
        let numbered = (1..).zip(self.outbox.iter().copied());
        self.read(numbered.skip(after as usize).take(max).collect())
    }
    fn cursor_at(&self, _: AuthorId, position: u64) -> Result<Option<Cursor>, Unreadable> {
        let is_there = position <= self.outbox.len() as u64;
        self.read(is_there.then_some(Cursor { store: OWN_STORE, epoch: Boot(7), position }))
    }
    fn record(&self, _: AuthorId, of: Digest) -> Result<Option<(u8, RawRecord)>, Unreadable> {
        let found = self.records.get(&of).filter(|_| !self.kept_back.contains(&of));
        self.read(found.map(|record| (0, record.to_raw())))
    }
    fn records_for(&self, peer: AuthorId, of: &[Digest]) -> Result<Vec<RawRecord>, Unreadable> {
        let found = of.iter().map(|digest| self.record(peer, *digest));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|one| one.1).collect())
    }
    fn proof(&self, _: AuthorId) -> Result<Option<RawProof>, Unreadable> {
        self.read(None)
    }
    fn knows(&self, digest: Digest, _: StoreId) -> Result<bool, Unreadable> {
        self.read(self.records.contains_key(&digest))
    }
    fn is_refused(&self, digest: Digest, _: StoreId) -> Result<bool, Unreadable> {
        self.read(self.refused.contains(&digest))
    }
    fn cursor(&self, _: AuthorId) -> Result<Option<Cursor>, Unreadable> {
        self.read(self.cursor)
    }
    fn comparable(&self, _: AuthorId, _: StoreId) -> Result<Vec<Comparable>, Unreadable> {
        let shared = self.records.values().filter(|one| !self.kept_back.contains(&one.digest()));
        let item =
            |one: &Record| Comparable { stamp: one.header().stamp.bits(), digest: one.digest() };
        self.read(shared.map(item).collect())
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<Receipt>, Unreadable> {
        self.read(self.receipts.clone())
    }
}

/// The machine, what it reads, and what it has put out.
struct Bench {
    machine: Replicator,
    shelf: Shelf,
    at: u64,
    asked: Vec<(u64, Ask)>,
    answers: Vec<Answer>,
    delivered: Vec<Delivery>,
    advanced: Vec<Cursor>,
    penalised: Vec<String>,
    away: Vec<u64>,
    told: usize,
}

impl Bench {
    fn new(shelf: Shelf, budget: Budget) -> Self {
        let machine = Replicator::new(Settings { budget, ..Settings::default() });
        let (asked, answers, delivered) = (Vec::new(), Vec::new(), Vec::new());
        let (advanced, penalised, away) = (Vec::new(), Vec::new(), Vec::new());
        let (at, told) = (1_000, 0);
        Self { machine, shelf, at, asked, answers, delivered, advanced, penalised, away, told }
    }

    /// In session with a peer that has nothing.
    fn met(shelf: Shelf) -> Self {
        let mut bench = Self::new(shelf, Budget::default());
        bench.put(Input::Connected(PEER));
        bench.reply(&Answer::Hello(theirs()));
        bench
    }

    fn put(&mut self, input: Input<'_>) {
        for output in self.machine.handle(input, &self.shelf, self.at) {
            match output {
                Output::Ask(_, id, frame) => {
                    self.asked.push((id, Ask::decode(&frame).expect("its own bytes")));
                }
                Output::Answer(_, frame) => {
                    self.answers.push(Answer::decode(&frame).expect("its own bytes"));
                }
                Output::Deliver(delivery) => self.delivered.push(delivery),
                Output::Advance(_, cursor) => self.advanced.push(cursor),
                Output::Penalise(_, what) => self.penalised.push(what),
                Output::Disconnect(_, ms) => self.away.push(ms),
                Output::Told(..) => {
                    self.told += 1;
                    self.shelf.receipts.clear();
                }
                Output::Requeue(..)
                | Output::Withdrawn(..)
                | Output::Restart(_)
                | Output::Reread(_)
                | Output::Received(..) => {}
            }
        }
    }

    /// The oldest question that is still open.
    fn next(&mut self) -> (u64, Ask) {
        assert!(!self.asked.is_empty(), "nothing was asked");
        self.asked.remove(0)
    }

    /// Answers the oldest open question.
    fn reply(&mut self, answer: &Answer) -> Ask {
        let (id, ask) = self.next();
        self.put(Input::Answered(PEER, id, &answer.encode()));
        ask
    }

    fn ask(&mut self, ask: &Ask) -> Answer {
        self.put(Input::Asked(PEER, 1, &ask.encode()));
        self.answers.pop().expect("every question is answered")
    }

    fn apply(&mut self, outcome: Outcome) {
        let delivery = self.delivered.remove(0);
        self.put(Input::Applied(PEER, delivery.id, vec![outcome]));
    }

    fn pass(&mut self, ms: u64) {
        self.at += ms;
        self.put(Input::Tick);
    }
}

fn theirs() -> Greeting {
    let time = WallTime::from_millis(1_500);
    Greeting { version: 1, store: THEIR_STORE, epoch: Boot(3), head: 0, time }
}

fn cursor(position: u64) -> Cursor {
    Cursor { store: THEIR_STORE, epoch: Boot(3), position }
}

fn record(number: u8) -> Record {
    let at = Position {
        entry: EntryId::from_bytes([number; 16]),
        place: Place { boot: Boot(3), generation: Generation(1) },
        counter: 1,
        stamp: Hlc::new(WallTime::from_millis(u64::from(number)), 0),
        absorbs: Vec::new(),
    };
    let payload = Payload::Claims { origin: None, claims: Claims::default() };
    Record::seal(at, payload, &SecretKey::from_bytes(&[2; 32])).expect("sealed")
}

fn whole(record: &Record) -> Item {
    Item::Whole(0, record.to_raw())
}

fn named(record: &Record) -> Item {
    Item::Named(0, record.digest())
}

#[test]
fn a_page_that_does_not_follow_its_cursor_moves_nothing_and_is_a_fault() {
    let elsewhere = Cursor { store: StoreId::from_bytes([9; 16]), ..cursor(1) };
    let back = cursor(4);
    let pages = [
        (None, Answer::Page(vec![whole(&record(1))], elsewhere, false)),
        (Some(cursor(5)), Answer::Page(vec![whole(&record(1))], back, false)),
        // It says there is more, and leads nowhere.
        (Some(cursor(5)), Answer::Page(Vec::new(), cursor(5), true)),
    ];
    for (from, page) in pages {
        let mut bench = Bench::met(Shelf { cursor: from, ..Shelf::default() });
        assert_eq!(bench.reply(&page), Ask::Changes(from, 2_000));
        assert_eq!(bench.penalised, ["a page that does not follow its cursor"]);
        assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
        assert!(bench.asked.is_empty(), "it is not asked again at once");
        bench.pass(1_000);
        assert_eq!(bench.next().1, Ask::Changes(from, 2_000));
    }
}

#[test]
fn a_page_says_together_what_belongs_together() {
    let entry = |number: u8| EntryId::from_bytes([number; 16]);
    let shelf = Shelf {
        outbox: vec![
            Outgoing::Opened(entry(3)),
            Outgoing::Opened(entry(1)),
            Outgoing::Record(record(1).digest()),
            Outgoing::Opened(entry(4)),
            Outgoing::Record(record(2).digest()),
            Outgoing::Ended(entry(3)),
            Outgoing::Ended(entry(4)),
        ],
        records: [1, 2].map(|number| (record(number).digest(), record(number))).into(),
        ..Shelf::default()
    };
    let Answer::Page(items, end, false) = Bench::met(shelf).ask(&Ask::Changes(None, 10)) else {
        panic!("a page");
    };
    let expected = [
        Item::Opened(vec![entry(3)]),
        Item::First(0, record(1).to_raw()),
        Item::Opened(vec![entry(4)]),
        Item::Whole(0, record(2).to_raw()),
        Item::Ended(vec![entry(3), entry(4)]),
    ];
    assert_eq!((items.as_slice(), end.position), (&expected[..], 7));
    let end = cursor(7);
    let mut reader = Bench::met(Shelf::default());
    reader.reply(&Answer::Page(items, end, false));
    let notices = [(3, true), (1, true), (4, true), (3, false), (4, false)];
    let notices = notices.map(|(number, is_open)| (entry(number), is_open));
    assert_eq!(reader.delivered[0].releases, notices);
    assert_eq!(reader.delivered[0].arrived.len(), 2);
}

#[test]
fn an_answer_to_something_else_and_one_nobody_asked_for_change_nothing() {
    let mut bench = Bench::met(Shelf::default());
    bench.put(Input::Answered(PEER, 999, &Answer::Done.encode()));
    assert!(bench.penalised.is_empty(), "it may answer what was given up");
    assert!(matches!(bench.reply(&Answer::Records(vec![record(1).to_raw()])), Ask::Changes(..)));
    assert_eq!(bench.penalised, ["an answer to something else"]);
    let (id, ask) = bench.next();
    assert!(matches!(ask, Ask::Changes(None, _)), "it is asked again");
    bench.put(Input::Answered(PEER, id, b"\xc1nonsense"));
    assert_eq!(bench.penalised.len(), 2);
    assert!(bench.delivered.is_empty());
}

#[test]
fn records_that_were_not_asked_for_and_bad_signatures_are_dropped_and_are_faults() {
    let mut bench = Bench::met(Shelf::default());
    let forged = RawRecord { signature: record(9).to_raw().signature, ..record(1).to_raw() };
    let rows =
        vec![Item::Whole(0, forged), named(&record(2)), named(&record(3)), whole(&record(4))];
    bench.reply(&Answer::Page(rows, cursor(4), false));
    assert_eq!(bench.penalised, ["the signature is not the author's"]);
    assert!(bench.delivered.is_empty(), "what comes before is still on its way");
    let fetch = bench.reply(&Answer::Records(vec![record(3).to_raw(), record(5).to_raw()]));
    let Ask::Fetch(wanted) = fetch else { panic!("{fetch:?}") };
    assert_eq!(BTreeSet::from_iter(wanted), [record(2).digest(), record(3).digest()].into());
    assert_eq!(bench.penalised[1..], ["a record that was not asked for"]);
    // What a fetch leaves out is asked for once more; then it is gone at the sender.
    let again = bench.reply(&Answer::Records(Vec::new()));
    assert_eq!(again, Ask::Fetch(vec![record(2).digest()]));
    let came = bench.delivered[0].arrived.iter().map(|one| one.record.as_ref().unwrap().digest());
    assert_eq!(came.collect::<Vec<_>>(), [record(3).digest(), record(4).digest()]);
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(4)]);
}

#[test]
fn a_record_of_a_newer_format_is_no_fault_and_is_delivered_as_it_came() {
    let mut bench = Bench::met(Shelf::default());
    let key = SecretKey::from_bytes(&[2; 32]);
    // The header is an array of eleven: its first value is the format.
    let mut header = record(1).to_raw().header;
    assert_eq!(header[..2], [0x9b, 1]);
    header[1] = 2;
    let signature = key.sign(klnode_crdt::key::Purpose::Record, &header);
    let raw = RawRecord { header, signature, payload: Some(vec![1]) };
    let rows = vec![Item::Whole(0, raw.clone()), whole(&record(2))];
    bench.reply(&Answer::Page(rows, cursor(2), false));
    assert!(bench.penalised.is_empty());
    let arrived = &bench.delivered[0].arrived;
    assert_eq!(arrived[0].record.as_ref().unwrap_err().0, raw);
    assert!(arrived[1].record.is_ok());
}

#[test]
fn a_cursor_this_store_does_not_know_is_answered_so_and_the_reader_begins_anew() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    let known = Cursor { store: OWN_STORE, epoch: Boot(7), position: 1 };
    for wrong in [
        Cursor { position: 2, ..known },
        Cursor { epoch: Boot(6), ..known },
        Cursor { store: THEIR_STORE, ..known },
    ] {
        assert_eq!(bench.ask(&Ask::Changes(Some(wrong), 10)), Answer::UnknownCursor);
    }
    let page = bench.ask(&Ask::Changes(Some(known), 10));
    assert_eq!(page, Answer::Page(Vec::new(), known, false));
    let page = bench.ask(&Ask::Changes(None, 10));
    assert_eq!(page, Answer::Page(vec![whole(&record(1))], known, false));

    let mut reader = Bench::met(Shelf { cursor: Some(cursor(5)), ..Shelf::default() });
    assert_eq!(reader.reply(&Answer::UnknownCursor), Ask::Changes(Some(cursor(5)), 2_000));
    assert_eq!(reader.next().1, Ask::Changes(None, 2_000));
    assert!(reader.penalised.is_empty());
}

#[test]
fn a_cursor_of_another_store_of_the_peer_is_not_sent_to_it() {
    let other = Cursor { store: StoreId::from_bytes([9; 16]), ..cursor(5) };
    let mut reader = Bench::met(Shelf { cursor: Some(other), ..Shelf::default() });
    assert_eq!(reader.next().1, Ask::Changes(None, 2_000));
}

#[test]
fn a_peer_over_its_budget_is_told_later_then_sent_away() {
    let budget = Budget { frames_max: 2, ..Budget::default() };
    let mut bench = Bench::new(Shelf::default(), budget);
    let ask = Ask::Changes(None, 1);
    for _ in 0..2 {
        assert!(matches!(bench.ask(&ask), Answer::Page(..)));
    }
    bench.at = 11_000;
    assert_eq!(bench.ask(&ask), Answer::Later(49_000));
    assert_eq!(bench.ask(&ask), Answer::Later(49_000));
    assert!(bench.away.is_empty());
    assert_eq!(bench.ask(&ask), Answer::Later(60_000));
    assert_eq!(bench.away, [60_000]);
    bench.at = 61_000;
    bench.put(Input::Asked(PEER, 1, &ask.encode()));
    assert!(bench.answers.is_empty(), "it is away, and what was under way is dropped");
    bench.at = 71_000;
    assert!(matches!(bench.ask(&ask), Answer::Page(..)));
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn too_many_faults_send_a_peer_away() {
    let mut bench = Bench::new(Shelf::default(), Budget { faults_max: 1, ..Budget::default() });
    for _ in 0..2 {
        bench.put(Input::Asked(PEER, 1, b"\xc1"));
        assert!(matches!(bench.answers.pop(), Some(Answer::Refused(_))));
    }
    assert_eq!(bench.away, [60_000]);
}

#[test]
fn a_stranger_is_told_nothing_and_is_not_spoken_to() {
    let mut shelf = Shelf { strangers: [PEER].into(), ..Shelf::default() };
    shelf.offer(&record(1));
    shelf.receipts.push(receipt());
    let mut bench = Bench::new(shelf, Budget::default());
    bench.put(Input::Connected(PEER));
    for ask in [
        Ask::Hello(theirs()),
        Ask::Changes(None, 1),
        Ask::Fetch(vec![record(1).digest()]),
        Ask::Notify(1),
        Ask::Compare(true, vec![0x61]),
        Ask::Acknowledge(vec![receipt()]),
    ] {
        let no = Answer::Refused("this node is not paired with yours".into());
        assert_eq!(bench.ask(&ask), no);
    }
    bench.put(Input::Sync(PEER));
    bench.put(Input::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, [], "nothing is said to a stranger, the operator's wish or not");
}

#[test]
fn a_fetch_of_what_a_peer_may_not_have_looks_like_one_of_what_does_not_exist() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    shelf.records.insert(record(2).digest(), record(2));
    shelf.kept_back.insert(record(2).digest());
    let mut bench = Bench::met(shelf);
    let kept = bench.ask(&Ask::Fetch(vec![record(2).digest()]));
    assert_eq!(kept, bench.ask(&Ask::Fetch(vec![record(3).digest()])));
    let both = bench.ask(&Ask::Fetch(vec![record(2).digest(), record(1).digest()]));
    assert_eq!(both, Answer::Records(vec![record(1).to_raw()]));
}

#[test]
fn a_deferral_keeps_the_cursor_also_when_the_next_page_is_on_its_way() {
    let mut bench = Bench::met(Shelf::default());
    bench.reply(&Answer::Page(vec![whole(&record(1))], cursor(1), true));
    let (ahead, ask) = bench.next();
    assert_eq!(ask, Ask::Changes(Some(cursor(1)), 2_000));
    bench.apply(Outcome::Deferred);
    let second = Answer::Page(vec![whole(&record(2))], cursor(2), false);
    bench.put(Input::Answered(PEER, ahead, &second.encode()));
    assert!(bench.delivered.is_empty(), "what comes after waits");
    assert!(bench.advanced.is_empty());
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    let first = Answer::Page(vec![whole(&record(1))], cursor(1), true);
    assert_eq!(bench.reply(&first), Ask::Changes(None, 2_000));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1)]);
    assert_eq!(bench.reply(&second), Ask::Changes(Some(cursor(1)), 2_000));
    bench.apply(Outcome::Settled);
    assert_eq!(bench.advanced, [cursor(1), cursor(2)]);
}

/// Reads to the end, and compares as equal.
fn settled(shelf: Shelf) -> Bench {
    let mut bench = Bench::met(shelf);
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    assert!(matches!(bench.reply(&Answer::Compare(Vec::new())), Ask::Compare(true, _)));
    assert!(matches!(bench.machine.state(PEER), SyncState::Equal(_)));
    assert_eq!(bench.asked, []);
    bench
}

#[test]
fn commits_close_together_are_announced_once_and_a_lost_word_is_said_again() {
    let mut bench = settled(Shelf::default());
    for number in 1..=3 {
        bench.shelf.offer(&record(number));
        bench.put(Input::Queued(PEER));
        bench.pass(60);
        assert_eq!(bench.asked, []);
    }
    bench.pass(20);
    let (id, ask) = bench.next();
    assert_eq!(ask, Ask::Notify(3));
    bench.put(Input::Lost(PEER, id));
    bench.pass(1_000);
    assert_eq!(bench.reply(&Answer::Later(5_000)), Ask::Notify(3), "it was lost");
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert_eq!(bench.reply(&Answer::Done), Ask::Notify(3), "the peer was busy");
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn later_is_respected() {
    let mut bench = Bench::met(Shelf::default());
    assert!(matches!(bench.reply(&Answer::Later(5_000)), Ask::Changes(..)));
    bench.pass(4_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.next().1, Ask::Changes(..)));
}

fn receipt() -> Receipt {
    Receipt { entry: EntryId::from_bytes([4; 16]), told: 1, acknowledged: 0 }
}

#[test]
fn a_receipt_is_told_until_it_was_heard_and_then_no_more() {
    let mut bench = settled(Shelf::default());
    bench.shelf.receipts.push(receipt());
    bench.put(Input::Queued(PEER));
    bench.put(Input::Queued(PEER));
    let (id, ask) = bench.next();
    assert_eq!(ask, Ask::Acknowledge(vec![receipt()]));
    assert_eq!(bench.asked, [], "once at a time");
    bench.put(Input::Lost(PEER, id));
    assert_eq!(bench.told, 0);
    bench.pass(1_000);
    assert_eq!(bench.reply(&Answer::Done), Ask::Acknowledge(vec![receipt()]), "it was lost");
    assert_eq!(bench.told, 1);
    bench.put(Input::Queued(PEER));
    bench.pass(10_000);
    assert_eq!(bench.asked, []);
}

#[test]
fn a_word_that_overtakes_a_page_is_not_lost() {
    let mut bench = settled(Shelf::default());
    assert_eq!(bench.ask(&Ask::Notify(1)), Answer::Done);
    let (id, _) = bench.next();
    // The page was made before the second commit, the word of it comes before the page.
    assert_eq!(bench.ask(&Ask::Notify(2)), Answer::Done);
    let page = Answer::Page(vec![whole(&record(1))], cursor(1), false);
    bench.put(Input::Answered(PEER, id, &page.encode()));
    assert_eq!(bench.next().1, Ask::Changes(Some(cursor(1)), 2_000));
}

#[test]
fn a_peer_of_another_version_is_not_greeted_over_and_over() {
    let mut bench = Bench::new(Shelf::default(), Budget::default());
    bench.put(Input::Connected(PEER));
    let newer = Answer::Hello(Greeting { version: 2, ..theirs() });
    assert!(matches!(bench.reply(&newer), Ask::Hello(_)));
    assert!(matches!(bench.machine.state(PEER), SyncState::Refused(_)));
    assert_eq!(bench.asked, []);
    bench.pass(29_999);
    assert_eq!(bench.asked, []);
    bench.pass(1);
    assert!(matches!(bench.reply(&Answer::Hello(theirs())), Ask::Hello(_)), "it was upgraded");
    assert!(bench.machine.is_in_session(PEER));
}

#[test]
fn a_store_that_cannot_be_read_is_taken_for_nothing() {
    let mut shelf = Shelf::default();
    shelf.offer(&record(1));
    let mut bench = Bench::met(shelf);
    bench.shelf.is_broken.set(true);
    assert_eq!(bench.ask(&Ask::Changes(None, 1)), Answer::Later(1_000));
    assert_eq!(bench.ask(&Ask::Fetch(vec![record(1).digest()])), Answer::Later(1_000));
    bench.reply(&Answer::Page(vec![whole(&record(2))], cursor(1), false));
    assert!(bench.delivered.is_empty() && bench.advanced.is_empty());
    bench.shelf.is_broken.set(false);
    bench.pass(1_000);
    assert!(matches!(bench.next().1, Ask::Changes(None, _)), "the page is asked for again");
}

#[test]
fn what_differs_and_was_refused_is_counted_and_not_fetched_again() {
    let mut other = Shelf::default();
    other.offer(&record(1));
    other.offer(&record(2));
    let mut other = Bench::met(other);
    let mut bench = Bench::met(Shelf { refused: [record(1).digest()].into(), ..Shelf::default() });
    bench.reply(&Answer::Page(Vec::new(), cursor(0), false));
    let (id, ask) = bench.next();
    let answer = other.ask(&ask);
    bench.put(Input::Answered(PEER, id, &answer.encode()));
    assert!(matches!(bench.machine.state(PEER), SyncState::Differs(2, _)));
    assert_eq!(bench.next().1, Ask::Fetch(vec![record(2).digest()]));
}
