//! A peer that speaks the protocol correctly and holds any records a test gives it, even
//! ones that no node of this version would hold.

use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::message::{ErasureReceipt, OutboxCursor};
use klnode_federation::proto::{
    ComparedRecord, Offerer, OutboxTarget, Output, ProtocolInput, RecordOutcome, Replicator,
    Settings, StoreAccess, StoreUnavailable,
};
use klnode_replication::{ReplicaAction, ReplicaEvent};
use std::collections::BTreeMap;

/// Records of the puppet.
#[derive(Default)]
struct Shelf {
    store: StoreId,
    now: WallTime,
    outbox: Vec<OutboxTarget>,
    records: BTreeMap<Digest, (u64, RawRecord)>,
    cursors: BTreeMap<AuthorId, OutboxCursor>,
}

/// A peer whose records the test chooses.
pub struct Puppet {
    machine: Replicator,
    shelf: Shelf,
}

impl Puppet {
    /// A puppet that offers these entries, and records of them with their stamps.
    pub fn new(store: StoreId, entries: &[EntryId], records: Vec<(u64, RawRecord)>) -> Self {
        let mut shelf = Shelf { store, ..Shelf::default() };
        shelf.outbox.extend(entries.iter().copied().map(OutboxTarget::Opened));
        for (stamp, raw) in records {
            let digest = SignedHeader::digest_of(&raw.header);
            shelf.outbox.push(OutboxTarget::Record(digest));
            shelf.records.insert(digest, (stamp, raw));
        }
        let settings = Settings { scrub_ms: 60_000, ..Settings::default() };
        Self { machine: Replicator::new(settings), shelf }
    }

    /// A puppet that offers nothing and holds these records for comparison.
    pub fn holding(store: StoreId, records: impl Iterator<Item = (u64, RawRecord)>) -> Self {
        let mut puppet = Self::new(store, &[], Vec::new());
        let digest = |raw: &RawRecord| SignedHeader::digest_of(&raw.header);
        puppet.shelf.records = records.map(|held| (digest(&held.1), held)).collect();
        puppet
    }

    /// Handles an event; returns the resulting actions.
    pub fn handle(
        &mut self,
        event: &ReplicaEvent<'_>,
        now: WallTime,
        at: u64,
    ) -> Vec<ReplicaAction> {
        self.shelf.now = now;
        let input = match event {
            ReplicaEvent::Connected(peer) => ProtocolInput::Connected(*peer),
            ReplicaEvent::Disconnected(peer) => ProtocolInput::Disconnected(*peer),
            ReplicaEvent::Asked(peer, exchange, frame) => {
                ProtocolInput::Asked(*peer, *exchange, frame)
            }
            ReplicaEvent::Answered(peer, id, frame) => ProtocolInput::Answered(*peer, *id, frame),
            ReplicaEvent::Lost(peer, id) => ProtocolInput::Lost(*peer, *id),
            ReplicaEvent::Unoffered(peer, id) => ProtocolInput::Unoffered(*peer, *id),
            ReplicaEvent::Sync(peer) => ProtocolInput::Sync(*peer),
            ReplicaEvent::Changed(_) | ReplicaEvent::Tick => ProtocolInput::Tick,
        };
        let mut outputs = self.machine.handle(input, &self.shelf, at);
        let mut actions = Vec::new();
        while !outputs.is_empty() {
            match outputs.remove(0) {
                Output::Ask(peer, id, frame) => actions.push(ReplicaAction::Ask(peer, id, frame)),
                Output::Answer(exchange, frame) => {
                    actions.push(ReplicaAction::Answer(exchange, frame));
                }
                Output::Deliver(delivery) => {
                    let settled = vec![RecordOutcome::Settled; delivery.arrived.len()];
                    for record in delivery.arrived.iter().filter_map(|one| one.record.as_ref().ok())
                    {
                        let held = (record.header().stamp.bits(), record.to_raw());
                        self.shelf.records.insert(record.digest(), held);
                    }
                    let applied = ProtocolInput::Applied(delivery.peer, delivery.id, settled);
                    outputs.extend(self.machine.handle(applied, &self.shelf, at));
                }
                Output::Advance(peer, cursor) => {
                    self.shelf.cursors.insert(peer, cursor);
                }
                _ => {}
            }
        }
        actions
    }
}

impl StoreAccess for Shelf {
    fn store(&self) -> StoreId {
        self.store
    }
    fn epoch(&self) -> Boot {
        Boot(1)
    }
    fn now(&self) -> WallTime {
        self.now
    }
    fn is_approved(&self, _: AuthorId) -> bool {
        true
    }
    fn is_mine(&self, _: AuthorId) -> bool {
        true
    }
    fn outbox_head(&self, _: AuthorId) -> Result<u64, StoreUnavailable> {
        Ok(self.outbox.len() as u64)
    }
    fn outbox(
        &self,
        _: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, OutboxTarget)>, StoreUnavailable> {
        let numbered = (1..).zip(self.outbox.iter().copied());
        Ok(numbered.skip(after as usize).take(max).collect())
    }
    fn cursor_at(
        &self,
        _: AuthorId,
        position: u64,
    ) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        let is_there = position <= self.outbox.len() as u64;
        Ok(is_there.then_some(OutboxCursor { store: self.store, epoch: Boot(1), position }))
    }
    fn record(&self, _: AuthorId, of: Digest) -> Result<Option<(u8, RawRecord)>, StoreUnavailable> {
        Ok(self.records.get(&of).map(|(_, raw)| (0, raw.clone())))
    }
    fn records_for(&self, _: AuthorId, of: &[Digest]) -> Result<Vec<RawRecord>, StoreUnavailable> {
        let found = of.iter().filter_map(|digest| self.records.get(digest));
        Ok(found.map(|(_, raw)| raw.clone()).collect())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, StoreUnavailable> {
        Ok(None)
    }
    fn knows(&self, digest: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(self.records.contains_key(&digest))
    }
    fn is_refused(&self, _: Digest, _: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(false)
    }
    fn cursor(&self, peer: AuthorId) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        Ok(self.cursors.get(&peer).copied())
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<ComparedRecord>, u64), StoreUnavailable> {
        let held = self.records.iter();
        let held =
            held.map(|(digest, (stamp, _))| ComparedRecord { stamp: *stamp, digest: *digest });
        Ok((held.collect(), 0))
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<ErasureReceipt>, StoreUnavailable> {
        Ok(Vec::new())
    }
}
