//! The protocol's machine with a peer that may say anything: comparisons, and whole frames.
//!
//! The comparison itself is private to the machine, so it is met where a peer meets it.

use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::limits::{COMPARE_BYTES_MAX, FRAME_BYTES_MAX, VERSION};
use klnode_federation::proto::message::{Answer, Ask, Cursor, Greeting, Receipt};
use klnode_federation::proto::{
    Comparable, Input, Offerer, Outgoing, Output, Replicator, Settings, Unreadable, View,
};
use std::ops::Range;

const PEER: AuthorId = AuthorId::from_bytes([2; 32]);
const OWN_STORE: StoreId = StoreId::from_bytes([1; 16]);
const THEIR_STORE: StoreId = StoreId::from_bytes([2; 16]);
const EPOCH: Boot = Boot(7);
const NOW: WallTime = WallTime::from_millis(1_000);

/// Records that a side has to compare: enough for ranges inside of ranges.
const OWN: Range<u64> = 0..100;
const THEIRS: Range<u64> = 40..160;

/// A store with nothing in it but what is compared.
struct Shelf {
    comparable: Vec<Comparable>,
}

impl View for Shelf {
    fn store(&self) -> StoreId {
        OWN_STORE
    }
    fn epoch(&self) -> Boot {
        EPOCH
    }
    fn now(&self) -> WallTime {
        NOW
    }
    fn is_approved(&self, _: AuthorId) -> bool {
        true
    }
    fn is_mine(&self, _: AuthorId) -> bool {
        false
    }
    fn outbox_head(&self, _: AuthorId) -> Result<u64, Unreadable> {
        Ok(0)
    }
    fn outbox(&self, _: AuthorId, _: u64, _: usize) -> Result<Vec<(u64, Outgoing)>, Unreadable> {
        Ok(Vec::new())
    }
    fn cursor_at(&self, _: AuthorId, position: u64) -> Result<Option<Cursor>, Unreadable> {
        let cursor = Cursor { store: OWN_STORE, epoch: EPOCH, position };
        Ok(Some(cursor).filter(|cursor| cursor.position == 0))
    }
    fn record(&self, _: AuthorId, _: Digest) -> Result<Option<(u8, RawRecord)>, Unreadable> {
        Ok(None)
    }
    fn records_for(&self, _: AuthorId, _: &[Digest]) -> Result<Vec<RawRecord>, Unreadable> {
        Ok(Vec::new())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, Unreadable> {
        Ok(None)
    }
    fn knows(&self, _: Digest, _: Offerer) -> Result<bool, Unreadable> {
        Ok(false)
    }
    fn is_refused(&self, _: Digest, _: Offerer) -> Result<bool, Unreadable> {
        Ok(false)
    }
    fn cursor(&self, _: AuthorId) -> Result<Option<Cursor>, Unreadable> {
        Ok(None)
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<Comparable>, u64), Unreadable> {
        Ok((self.comparable.clone(), 0))
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<Receipt>, Unreadable> {
        Ok(Vec::new())
    }
}

/// The machine, and what it has put out.
struct Met {
    machine: Replicator,
    shelf: Shelf,
    at: u64,
    /// Its open questions, the newest last.
    asked: Vec<(u64, Ask)>,
    answers: Vec<Answer>,
}

impl Met {
    /// Greeted; the next thing it asks for is the peer's outbox.
    fn greeted(held: Range<u64>) -> Self {
        let item = |number: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            Comparable { stamp: number, digest: Digest::from_bytes(bytes) }
        };
        let shelf = Shelf { comparable: held.map(item).collect() };
        let machine = Replicator::new(Settings::default());
        let mut met = Self { machine, shelf, at: 1_000, asked: Vec::new(), answers: Vec::new() };
        met.put(Input::Connected(PEER));
        let (version, store, epoch) = (VERSION, THEIR_STORE, EPOCH);
        met.reply(&Answer::Hello(Greeting { version, store, epoch, head: 0, time: NOW }).encode());
        met
    }

    /// It has read the outbox, which is empty, and has begun to compare.
    fn comparing(held: Range<u64>) -> Self {
        let mut met = Self::greeted(held);
        let end = Cursor { store: THEIR_STORE, epoch: EPOCH, position: 0 };
        met.reply(&Answer::Page(Vec::new(), end, false).encode());
        met
    }

    fn put(&mut self, input: Input<'_>) {
        for output in self.machine.handle(input, &self.shelf, self.at) {
            match output {
                Output::Ask(_, id, frame) => {
                    assert!(frame.len() <= FRAME_BYTES_MAX, "a question of {} bytes", frame.len());
                    self.asked.push((id, Ask::decode(&frame).expect("its own bytes")));
                }
                Output::Answer(_, frame) => {
                    assert!(frame.len() <= FRAME_BYTES_MAX, "an answer of {} bytes", frame.len());
                    self.answers.push(Answer::decode(&frame).expect("its own bytes"));
                }
                _ => {}
            }
        }
    }

    /// Answers the newest open question.
    fn reply(&mut self, frame: &[u8]) {
        let (id, _) = self.asked.pop().expect("something was asked");
        self.put(Input::Answered(PEER, id, frame));
    }

    /// Asks it something.
    fn ask(&mut self, frame: &[u8]) -> Answer {
        self.put(Input::Asked(PEER, 1, frame));
        assert_eq!(self.answers.len(), 1, "every question is answered, once");
        self.answers.remove(0)
    }

    /// Time passes.
    fn go_on(&mut self) {
        self.at += 60_000;
        self.put(Input::Tick);
    }
}

/// The bytes as a question about what is held, and as the answer to one.
pub(super) fn compare(data: &[u8]) {
    let mut met = Met::greeted(OWN);
    match met.ask(&Ask::Compare(true, data.to_vec()).encode()) {
        Answer::Compare(message) => assert!(message.len() <= COMPARE_BYTES_MAX),
        Answer::Refused(_) => {}
        other => panic!("{other:?} to a comparison"),
    }
    met.go_on();
    let mut met = Met::comparing(OWN);
    met.reply(&Answer::Compare(data.to_vec()).encode());
    if let Some((_, Ask::Compare(is_first, message))) = met.asked.last() {
        assert!(!is_first && message.len() <= COMPARE_BYTES_MAX);
    }
    met.go_on();
}

/// The bytes as a frame of the peer, whatever was asked before.
pub(super) fn hear(frame: &[u8]) {
    let mut met = Met::greeted(OWN);
    let _ = met.ask(frame);
    met.go_on();
    for mut met in [Met::greeted(OWN), Met::comparing(OWN)] {
        met.reply(frame);
        met.go_on();
    }
}

/// What two honest sides say to each other when they compare.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut met = Met::comparing(OWN);
    while let Some((_, Ask::Compare(is_first, message))) = met.asked.last().cloned() {
        let answer = Met::greeted(THEIRS).ask(&Ask::Compare(is_first, message.clone()).encode());
        messages.push(message);
        let Answer::Compare(back) = answer else { break };
        met.reply(&Answer::Compare(back.clone()).encode());
        messages.push(back);
    }
    messages
}
