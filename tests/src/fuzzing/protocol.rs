//! The replication state machine with an arbitrary peer: comparisons, and whole frames.
//!
//! The comparison is private to the machine, so the target reaches it through the peer's messages.

use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::limits::{COMPARE_BYTES_MAX, FRAME_BYTES_MAX, VERSION};
use klnode_federation::proto::message::{
    ErasureReceipt, Greeting, OutboxCursor, SyncRequest, SyncResponse,
};
use klnode_federation::proto::{
    ComparedRecord, Offerer, OutboxTarget, Output, ProtocolInput, Replicator, Settings,
    StoreAccess, StoreUnavailable,
};
use std::ops::Range;

const PEER: AuthorId = AuthorId::from_bytes([2; 32]);
const OWN_STORE: StoreId = StoreId::from_bytes([1; 16]);
const THEIR_STORE: StoreId = StoreId::from_bytes([2; 16]);
const EPOCH: Boot = Boot(7);
const NOW: WallTime = WallTime::from_millis(1_000);

/// Records that each side has to compare: enough for nested ranges.
const OWN: Range<u64> = 0..100;
const THEIRS: Range<u64> = 40..160;

/// A store that contains only the compared records.
struct Shelf {
    comparable: Vec<ComparedRecord>,
}

impl StoreAccess for Shelf {
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
    fn outbox_head(&self, _: AuthorId) -> Result<u64, StoreUnavailable> {
        Ok(0)
    }
    fn outbox(
        &self,
        _: AuthorId,
        _: u64,
        _: usize,
    ) -> Result<Vec<(u64, OutboxTarget)>, StoreUnavailable> {
        Ok(Vec::new())
    }
    fn cursor_at(
        &self,
        _: AuthorId,
        position: u64,
    ) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        let cursor = OutboxCursor { store: OWN_STORE, epoch: EPOCH, position };
        Ok(Some(cursor).filter(|cursor| cursor.position == 0))
    }
    fn record(&self, _: AuthorId, _: Digest) -> Result<Option<(u8, RawRecord)>, StoreUnavailable> {
        Ok(None)
    }
    fn records_for(&self, _: AuthorId, _: &[Digest]) -> Result<Vec<RawRecord>, StoreUnavailable> {
        Ok(Vec::new())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, StoreUnavailable> {
        Ok(None)
    }
    fn knows(&self, _: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(false)
    }
    fn is_refused(&self, _: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(false)
    }
    fn cursor(&self, _: AuthorId) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        Ok(None)
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<ComparedRecord>, u64), StoreUnavailable> {
        Ok((self.comparable.clone(), 0))
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<ErasureReceipt>, StoreUnavailable> {
        Ok(Vec::new())
    }
}

/// The machine and its outputs.
struct Met {
    machine: Replicator,
    shelf: Shelf,
    at: u64,
    /// Its open requests, the newest last.
    asked: Vec<(u64, SyncRequest)>,
    answers: Vec<SyncResponse>,
}

impl Met {
    /// A machine after the greeting; its next request is for the peer's outbox.
    fn greeted(held: Range<u64>) -> Self {
        let item = |number: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            ComparedRecord { stamp: number, digest: Digest::from_bytes(bytes) }
        };
        let shelf = Shelf { comparable: held.map(item).collect() };
        let machine = Replicator::new(Settings::default());
        let mut met = Self { machine, shelf, at: 1_000, asked: Vec::new(), answers: Vec::new() };
        met.put(ProtocolInput::Connected(PEER));
        let (version, store, epoch) = (VERSION, THEIR_STORE, EPOCH);
        met.reply(
            &SyncResponse::Hello(Greeting { version, store, epoch, head: 0, time: NOW }).encode(),
        );
        met
    }

    /// A machine that has read the empty outbox and has started to compare.
    fn comparing(held: Range<u64>) -> Self {
        let mut met = Self::greeted(held);
        let end = OutboxCursor { store: THEIR_STORE, epoch: EPOCH, position: 0 };
        met.reply(&SyncResponse::Page(Vec::new(), end, false).encode());
        met
    }

    fn put(&mut self, input: ProtocolInput<'_>) {
        for output in self.machine.handle(input, &self.shelf, self.at) {
            match output {
                Output::Ask(_, id, frame) => {
                    assert!(frame.len() <= FRAME_BYTES_MAX, "a question of {} bytes", frame.len());
                    self.asked.push((id, SyncRequest::decode(&frame).expect("its own bytes")));
                }
                Output::Answer(_, frame) => {
                    assert!(frame.len() <= FRAME_BYTES_MAX, "an answer of {} bytes", frame.len());
                    self.answers.push(SyncResponse::decode(&frame).expect("its own bytes"));
                }
                _ => {}
            }
        }
    }

    /// Answers the newest open request.
    fn reply(&mut self, frame: &[u8]) {
        let (id, _) = self.asked.pop().expect("something was asked");
        self.put(ProtocolInput::Answered(PEER, id, frame));
    }

    /// Sends a request to the machine.
    fn ask(&mut self, frame: &[u8]) -> SyncResponse {
        self.put(ProtocolInput::Asked(PEER, 1, frame));
        assert_eq!(self.answers.len(), 1, "every question is answered, once");
        self.answers.remove(0)
    }

    /// Advances the time.
    fn go_on(&mut self) {
        self.at += 60_000;
        self.put(ProtocolInput::Tick);
    }
}

/// The bytes as a comparison request, and as a comparison response.
pub(super) fn compare(data: &[u8]) {
    let mut met = Met::greeted(OWN);
    match met.ask(&SyncRequest::Compare(true, data.to_vec()).encode()) {
        SyncResponse::Compare(message) => assert!(message.len() <= COMPARE_BYTES_MAX),
        SyncResponse::Refused(_) => {}
        other => panic!("{other:?} to a comparison"),
    }
    met.go_on();
    let mut met = Met::comparing(OWN);
    met.reply(&SyncResponse::Compare(data.to_vec()).encode());
    if let Some((_, SyncRequest::Compare(is_first, message))) = met.asked.last() {
        assert!(!is_first && message.len() <= COMPARE_BYTES_MAX);
    }
    met.go_on();
}

/// Delivers the bytes to the protocol machine as a request of the peer, and as its response in each
/// state.
pub(super) fn hear(frame: &[u8]) {
    let mut met = Met::greeted(OWN);
    let _ = met.ask(frame);
    met.go_on();
    for mut met in [Met::greeted(OWN), Met::comparing(OWN)] {
        met.reply(frame);
        met.go_on();
    }
}

/// Messages of a comparison between two honest sides.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut met = Met::comparing(OWN);
    while let Some((_, SyncRequest::Compare(is_first, message))) = met.asked.last().cloned() {
        let answer =
            Met::greeted(THEIRS).ask(&SyncRequest::Compare(is_first, message.clone()).encode());
        messages.push(message);
        let SyncResponse::Compare(back) = answer else { break };
        met.reply(&SyncResponse::Compare(back.clone()).encode());
        messages.push(back);
    }
    messages
}
