//! A peer that speaks the protocol well and holds whatever a test puts on it, also what no node of
//! this version would hold.

use klnode::replicate::{Action, Event};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::message::{Cursor, Receipt};
use klnode_federation::proto::{
    Comparable, Input, Offerer, Outcome, Outgoing, Output, Replicator, Settings, Unreadable, View,
};
use std::collections::BTreeMap;

/// What the puppet holds.
#[derive(Default)]
struct Shelf {
    store: StoreId,
    now: WallTime,
    outbox: Vec<Outgoing>,
    records: BTreeMap<Digest, (u64, RawRecord)>,
    cursors: BTreeMap<AuthorId, Cursor>,
}

/// The peer.
pub struct Puppet {
    machine: Replicator,
    shelf: Shelf,
}

impl Puppet {
    /// One that offers these entries, and these records of them with their stamps.
    pub fn new(store: StoreId, entries: &[EntryId], records: Vec<(u64, RawRecord)>) -> Self {
        let mut shelf = Shelf { store, ..Shelf::default() };
        shelf.outbox.extend(entries.iter().copied().map(Outgoing::Opened));
        for (stamp, raw) in records {
            let digest = SignedHeader::digest_of(&raw.header);
            shelf.outbox.push(Outgoing::Record(digest));
            shelf.records.insert(digest, (stamp, raw));
        }
        let settings = Settings { scrub_ms: 60_000, ..Settings::default() };
        Self { machine: Replicator::new(settings), shelf }
    }

    /// One that offers nothing and holds these, to be compared.
    pub fn holding(store: StoreId, records: impl Iterator<Item = (u64, RawRecord)>) -> Self {
        let mut puppet = Self::new(store, &[], Vec::new());
        let digest = |raw: &RawRecord| SignedHeader::digest_of(&raw.header);
        puppet.shelf.records = records.map(|held| (digest(&held.1), held)).collect();
        puppet
    }

    /// Takes in what happened; returns what is to be done.
    pub fn handle(&mut self, event: &Event<'_>, now: WallTime, at: u64) -> Vec<Action> {
        self.shelf.now = now;
        let input = match event {
            Event::Connected(peer) => Input::Connected(*peer),
            Event::Disconnected(peer) => Input::Disconnected(*peer),
            Event::Asked(peer, exchange, frame) => Input::Asked(*peer, *exchange, frame),
            Event::Answered(peer, id, frame) => Input::Answered(*peer, *id, frame),
            Event::Lost(peer, id) => Input::Lost(*peer, *id),
            Event::Unoffered(peer, id) => Input::Unoffered(*peer, *id),
            Event::Sync(peer) => Input::Sync(*peer),
            Event::Changed(_) | Event::Tick => Input::Tick,
        };
        let mut outputs = self.machine.handle(input, &self.shelf, at);
        let mut actions = Vec::new();
        while !outputs.is_empty() {
            match outputs.remove(0) {
                Output::Ask(peer, id, frame) => actions.push(Action::Ask(peer, id, frame)),
                Output::Answer(exchange, frame) => actions.push(Action::Answer(exchange, frame)),
                Output::Deliver(delivery) => {
                    let settled = vec![Outcome::Settled; delivery.arrived.len()];
                    for record in delivery.arrived.iter().filter_map(|one| one.record.as_ref().ok())
                    {
                        let held = (record.header().stamp.bits(), record.to_raw());
                        self.shelf.records.insert(record.digest(), held);
                    }
                    let applied = Input::Applied(delivery.peer, delivery.id, settled);
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

impl View for Shelf {
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
    fn outbox_head(&self, _: AuthorId) -> Result<u64, Unreadable> {
        Ok(self.outbox.len() as u64)
    }
    fn outbox(
        &self,
        _: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, Outgoing)>, Unreadable> {
        let numbered = (1..).zip(self.outbox.iter().copied());
        Ok(numbered.skip(after as usize).take(max).collect())
    }
    fn cursor_at(&self, _: AuthorId, position: u64) -> Result<Option<Cursor>, Unreadable> {
        let is_there = position <= self.outbox.len() as u64;
        Ok(is_there.then_some(Cursor { store: self.store, epoch: Boot(1), position }))
    }
    fn record(&self, _: AuthorId, of: Digest) -> Result<Option<(u8, RawRecord)>, Unreadable> {
        Ok(self.records.get(&of).map(|(_, raw)| (0, raw.clone())))
    }
    fn records_for(&self, _: AuthorId, of: &[Digest]) -> Result<Vec<RawRecord>, Unreadable> {
        let found = of.iter().filter_map(|digest| self.records.get(digest));
        Ok(found.map(|(_, raw)| raw.clone()).collect())
    }
    fn proof(&self, _: AuthorId, _: AuthorId) -> Result<Option<RawProof>, Unreadable> {
        Ok(None)
    }
    fn knows(&self, digest: Digest, _: Offerer) -> Result<bool, Unreadable> {
        Ok(self.records.contains_key(&digest))
    }
    fn is_refused(&self, _: Digest, _: Offerer) -> Result<bool, Unreadable> {
        Ok(false)
    }
    fn cursor(&self, peer: AuthorId) -> Result<Option<Cursor>, Unreadable> {
        Ok(self.cursors.get(&peer).copied())
    }
    fn comparable(&self, _: Offerer) -> Result<(Vec<Comparable>, u64), Unreadable> {
        let held = self.records.iter();
        let held = held.map(|(digest, (stamp, _))| Comparable { stamp: *stamp, digest: *digest });
        Ok((held.collect(), 0))
    }
    fn receipts(&self, _: AuthorId) -> Result<Vec<Receipt>, Unreadable> {
        Ok(Vec::new())
    }
}
