//! The machine alone, with a store that is made up: what a peer may say, and what comes of it.

use super::budget::Budget;
use super::message::{Answer, Ask, Cursor, Greeting, Item, Receipt};
use super::{
    Comparable, Delivery, Input, Offerer, Outcome, Outgoing, Output, Replicator, Settings,
    SyncState, Unreadable, View,
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

mod comparing;
mod pacing;
mod reading;
mod serving;

const PEER: AuthorId = AuthorId::from_bytes([2; 32]);
const THEIR_STORE: StoreId = StoreId::from_bytes([2; 16]);
const OWN_STORE: StoreId = StoreId::from_bytes([1; 16]);

/// A store that is made up.
#[derive(Default)]
struct Shelf {
    strangers: BTreeSet<AuthorId>,
    is_mine: bool,
    outbox: Vec<Outgoing>,
    records: BTreeMap<Digest, Record>,
    /// Held, but not for the peer.
    kept_back: BTreeSet<Digest>,
    refused: BTreeSet<Digest>,
    cursor: Option<Cursor>,
    receipts: Vec<Receipt>,
    proof: Option<RawProof>,
    is_broken: Cell<bool>,
    /// How much later it is by the clock.
    later_ms: u64,
    /// Rows that are gone through to compare, if these are more than are found.
    compared_rows: u64,
    /// How many records were read for a fetch.
    fetched: Cell<usize>,
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
        WallTime::from_millis(1_000 + self.later_ms)
    }
    fn is_approved(&self, peer: AuthorId) -> bool {
        !self.strangers.contains(&peer)
    }
    fn is_mine(&self, _: AuthorId) -> bool {
        self.is_mine
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
        self.fetched.set(self.fetched.get() + of.len());
        let found = of.iter().map(|digest| self.record(peer, *digest));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|one| one.1).collect())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, Unreadable> {
        self.read(self.proof.clone())
    }
    fn knows(&self, digest: Digest, _: Offerer) -> Result<bool, Unreadable> {
        self.read(self.records.contains_key(&digest))
    }
    fn is_refused(&self, digest: Digest, _: Offerer) -> Result<bool, Unreadable> {
        self.read(self.refused.contains(&digest))
    }
    fn cursor(&self, _: AuthorId) -> Result<Option<Cursor>, Unreadable> {
        self.read(self.cursor)
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<Comparable>, u64), Unreadable> {
        let shared = self.records.values().filter(|one| !self.kept_back.contains(&one.digest()));
        let item =
            |one: &Record| Comparable { stamp: one.header().stamp.bits(), digest: one.digest() };
        self.read((shared.map(item).collect(), self.compared_rows))
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
    /// Records that went out with answers.
    served: u64,
    delivered: Vec<Delivery>,
    advanced: Vec<Cursor>,
    penalised: Vec<String>,
    away: Vec<u64>,
    told: usize,
    received: Vec<Receipt>,
    requeued: Vec<Digest>,
    withdrawn: Vec<Digest>,
    /// How often the peer has begun to read from the start, and how often this side has.
    restarted: usize,
    reread: usize,
    /// Of questions and deliveries: none names two.
    ids: BTreeSet<u64>,
}

impl Bench {
    fn new(shelf: Shelf, budget: Budget) -> Self {
        Self {
            machine: Replicator::new(Settings { budget, ..Settings::default() }),
            shelf,
            at: 1_000,
            asked: Vec::new(),
            answers: Vec::new(),
            served: 0,
            delivered: Vec::new(),
            advanced: Vec::new(),
            penalised: Vec::new(),
            away: Vec::new(),
            told: 0,
            received: Vec::new(),
            requeued: Vec::new(),
            withdrawn: Vec::new(),
            restarted: 0,
            reread: 0,
            ids: BTreeSet::new(),
        }
    }

    /// In session with a peer that has nothing.
    fn met(shelf: Shelf) -> Self {
        let mut bench = Self::new(shelf, Budget::default());
        bench.meet();
        bench
    }

    fn meet(&mut self) {
        self.put(Input::Connected(PEER));
        assert!(matches!(self.reply(&Answer::Hello(theirs())), Ask::Hello(_)));
    }

    fn put(&mut self, input: Input<'_>) {
        for output in self.machine.handle(input, &self.shelf, self.at) {
            match output {
                Output::Ask(_, id, frame) => {
                    assert!(self.ids.insert(id), "{id} names something else");
                    self.asked.push((id, Ask::decode(&frame).expect("its own bytes")));
                }
                Output::Answer(_, frame) => {
                    self.answers.push(Answer::decode(&frame).expect("its own bytes"));
                }
                Output::Served(_, records) => self.served += records,
                Output::Deliver(delivery) => {
                    assert!(self.ids.insert(delivery.id), "{} names something else", delivery.id);
                    self.delivered.push(delivery);
                }
                Output::Advance(_, cursor) => self.advanced.push(cursor),
                Output::Penalise(_, what) => self.penalised.push(what),
                Output::Disconnect(_, ms) => self.away.push(ms),
                Output::Told(_, told) => {
                    self.told += 1;
                    self.shelf.receipts.retain(|receipt| !told.contains(receipt));
                }
                Output::Requeue(_, digests) => self.requeued.extend(digests),
                Output::Restart(_) => self.restarted += 1,
                Output::Reread(_) => self.reread += 1,
                Output::Received(_, receipts) => self.received.extend(receipts),
                Output::Withdrawn(_, digests) => self.withdrawn.extend(digests),
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
    sealed(EntryId::from_bytes([number; 16]), u64::from(number), Claims::default())
}

fn sealed(entry: EntryId, at_ms: u64, claims: Claims) -> Record {
    let at = Position {
        entry,
        place: Place { boot: Boot(3), generation: Generation(1) },
        counter: 1,
        stamp: Hlc::new(WallTime::from_millis(at_ms), 0),
        absorbs: Vec::new(),
    };
    let payload = Payload::Claims { origin: None, claims };
    Record::seal(at, payload, &SecretKey::from_bytes(&[2; 32])).expect("sealed")
}

fn whole(record: &Record) -> Item {
    Item::Whole(0, record.to_raw())
}

fn named(record: &Record) -> Item {
    Item::Named(0, record.digest())
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

fn receipt() -> Receipt {
    Receipt { entry: EntryId::from_bytes([4; 16]), told: 1, acknowledged: 0 }
}
