//! Tests of the state machine with a fake store: a peer's messages and their effects.

use super::message::{
    ErasureReceipt, Greeting, OutboxCursor, OutboxItem, SyncRequest, SyncResponse,
};
use super::peer_budget::Budget;
use super::{
    ComparedRecord, Delivery, Offerer, OutboxTarget, Output, ProtocolInput, RecordOutcome,
    Replicator, Settings, StoreAccess, StoreUnavailable, SyncState,
};
use klnode_crdt::claims::Claims;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Generation, StoreId};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, RawRecord, Record};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::version_vector::Slot;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

mod anti_entropy;
mod outbox_reader;
mod outbox_server;
mod peer_budget;

const PEER: AuthorId = AuthorId::from_bytes([2; 32]);
const THEIR_STORE: StoreId = StoreId::from_bytes([2; 16]);
const OWN_STORE: StoreId = StoreId::from_bytes([1; 16]);

/// A store in memory whose answers the test sets.
#[derive(Default)]
struct FakeStore {
    strangers: BTreeSet<AuthorId>,
    is_mine: bool,
    outbox: Vec<OutboxTarget>,
    records: BTreeMap<Digest, Record>,
    /// Held, but not visible to the peer.
    kept_back: BTreeSet<Digest>,
    refused: BTreeSet<Digest>,
    cursor: Option<OutboxCursor>,
    receipts: Vec<ErasureReceipt>,
    proof: Option<RawProof>,
    is_broken: Cell<bool>,
    /// Offset of the wall clock.
    later_ms: u64,
    /// Rows reported for a comparison, if more than the records found.
    compared_rows: u64,
    /// Number of records loaded for a fetch.
    fetched: Cell<usize>,
}

impl FakeStore {
    fn read<T>(&self, value: T) -> Result<T, StoreUnavailable> {
        if self.is_broken.get() { Err(StoreUnavailable) } else { Ok(value) }
    }

    /// Offers a record to the peer.
    fn offer(&mut self, record: &Record) {
        self.outbox.push(OutboxTarget::Record(record.digest()));
        self.records.insert(record.digest(), record.clone());
    }
}

impl StoreAccess for FakeStore {
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
    fn outbox_head(&self, _: AuthorId) -> Result<u64, StoreUnavailable> {
        self.read(self.outbox.len() as u64)
    }
    fn outbox(
        &self,
        _: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, OutboxTarget)>, StoreUnavailable> {
        let numbered = (1..).zip(self.outbox.iter().copied());
        self.read(numbered.skip(after as usize).take(max).collect())
    }
    fn cursor_at(
        &self,
        _: AuthorId,
        position: u64,
    ) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        let is_there = position <= self.outbox.len() as u64;
        self.read(is_there.then_some(OutboxCursor { store: OWN_STORE, epoch: Boot(7), position }))
    }
    fn record(&self, _: AuthorId, of: Digest) -> Result<Option<(u8, RawRecord)>, StoreUnavailable> {
        let found = self.records.get(&of).filter(|_| !self.kept_back.contains(&of));
        self.read(found.map(|record| (0, record.to_raw())))
    }
    fn records_for(
        &self,
        peer: AuthorId,
        of: &[Digest],
    ) -> Result<Vec<RawRecord>, StoreUnavailable> {
        self.fetched.set(self.fetched.get() + of.len());
        let found = of.iter().map(|digest| self.record(peer, *digest));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|one| one.1).collect())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, StoreUnavailable> {
        self.read(self.proof.clone())
    }
    fn knows(&self, digest: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        self.read(self.records.contains_key(&digest))
    }
    fn is_refused(&self, digest: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        self.read(self.refused.contains(&digest))
    }
    fn cursor(&self, _: AuthorId) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        self.read(self.cursor)
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<ComparedRecord>, u64), StoreUnavailable> {
        let shared = self.records.values().filter(|one| !self.kept_back.contains(&one.digest()));
        let item = |one: &Record| ComparedRecord {
            stamp: one.header().stamp.bits(),
            digest: one.digest(),
        };
        self.read((shared.map(item).collect(), self.compared_rows))
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<ErasureReceipt>, StoreUnavailable> {
        self.read(self.receipts.clone())
    }
}

/// The state machine, its store, and its collected outputs.
struct Bench {
    machine: Replicator,
    shelf: FakeStore,
    at: u64,
    asked: Vec<(u64, SyncRequest)>,
    answers: Vec<SyncResponse>,
    /// Records sent with answers.
    served: u64,
    delivered: Vec<Delivery>,
    advanced: Vec<OutboxCursor>,
    penalised: Vec<String>,
    away: Vec<u64>,
    told: usize,
    received: Vec<ErasureReceipt>,
    requeued: Vec<Digest>,
    withdrawn: Vec<Digest>,
    /// How often the peer, and how often this side, started reading from the beginning.
    restarted: usize,
    reread: usize,
    /// Ids of requests and deliveries, which must be unique.
    ids: BTreeSet<u64>,
}

impl Bench {
    fn new(shelf: FakeStore, budget: Budget) -> Self {
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

    /// In session with a peer whose outbox is empty.
    fn met(shelf: FakeStore) -> Self {
        let mut bench = Self::new(shelf, Budget::default());
        bench.meet();
        bench
    }

    fn meet(&mut self) {
        self.put(ProtocolInput::Connected(PEER));
        assert!(matches!(self.reply(&SyncResponse::Hello(theirs())), SyncRequest::Hello(_)));
    }

    fn put(&mut self, input: ProtocolInput<'_>) {
        for output in self.machine.handle(input, &self.shelf, self.at) {
            match output {
                Output::Ask(_, id, frame) => {
                    assert!(self.ids.insert(id), "{id} is used twice");
                    self.asked.push((id, SyncRequest::decode(&frame).expect("its own bytes")));
                }
                Output::Answer(_, frame) => {
                    self.answers.push(SyncResponse::decode(&frame).expect("its own bytes"));
                }
                Output::Served(_, records) => self.served += records,
                Output::Deliver(delivery) => {
                    assert!(self.ids.insert(delivery.id), "{} is used twice", delivery.id);
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

    /// The oldest open request.
    fn next(&mut self) -> (u64, SyncRequest) {
        assert!(!self.asked.is_empty(), "no request was sent");
        self.asked.remove(0)
    }

    /// Answers the oldest open request.
    fn reply(&mut self, answer: &SyncResponse) -> SyncRequest {
        let (id, ask) = self.next();
        self.put(ProtocolInput::Answered(PEER, id, &answer.encode()));
        ask
    }

    fn ask(&mut self, ask: &SyncRequest) -> SyncResponse {
        self.put(ProtocolInput::Asked(PEER, 1, &ask.encode()));
        self.answers.pop().expect("every request is answered")
    }

    fn apply(&mut self, outcome: RecordOutcome) {
        let delivery = self.delivered.remove(0);
        self.put(ProtocolInput::Applied(PEER, delivery.id, vec![outcome]));
    }

    fn pass(&mut self, ms: u64) {
        self.at += ms;
        self.put(ProtocolInput::Tick);
    }
}

fn theirs() -> Greeting {
    let time = WallTime::from_millis(1_500);
    Greeting { version: 1, store: THEIR_STORE, epoch: Boot(3), head: 0, time }
}

fn cursor(position: u64) -> OutboxCursor {
    OutboxCursor { store: THEIR_STORE, epoch: Boot(3), position }
}

fn record(number: u8) -> Record {
    sealed(EntryId::from_bytes([number; 16]), u64::from(number), Claims::default())
}

fn sealed(entry: EntryId, at_ms: u64, claims: Claims) -> Record {
    let at = Position {
        entry,
        place: Slot { boot: Boot(3), generation: Generation(1) },
        counter: 1,
        stamp: Hlc::new(WallTime::from_millis(at_ms), 0),
        absorbs: Vec::new(),
    };
    let payload = Payload::Claims { origin: None, claims };
    Record::seal(at, payload, &SecretKey::from_bytes(&[2; 32])).expect("sealed")
}

fn whole(record: &Record) -> OutboxItem {
    OutboxItem::Whole(0, record.to_raw())
}

fn named(record: &Record) -> OutboxItem {
    OutboxItem::Named(0, record.digest())
}

/// Reads to the end, and the first comparison finds no difference.
fn settled(shelf: FakeStore) -> Bench {
    let mut bench = Bench::met(shelf);
    bench.reply(&SyncResponse::Page(Vec::new(), cursor(0), false));
    assert!(matches!(
        bench.reply(&SyncResponse::Compare(Vec::new())),
        SyncRequest::Compare(true, _)
    ));
    assert!(matches!(bench.machine.state(PEER), SyncState::Equal(_)));
    assert_eq!(bench.asked, []);
    bench
}

fn receipt() -> ErasureReceipt {
    ErasureReceipt { entry: EntryId::from_bytes([4; 16]), told: 1, acknowledged: 0 }
}
