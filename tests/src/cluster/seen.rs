//! What a test sees of a cluster: what each node holds, releases and refuses, and knows of its peers.

use super::Cluster;
use klnode::query::{Numbers, Reader};
use klnode::replicate::{Moved, Preview};
use klnode::store::peers::rows::Way;
use klnode_config::Config;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_federation::proto::{Offerer, SyncState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Cluster {
    /// What a node knows of a peer's set and its own.
    pub fn state(&mut self, at: usize, peer: usize) -> SyncState {
        let peer = self.author(peer);
        self.replica(at).machine().state(peer)
    }

    /// Whether a node knows that a peer holds the same.
    pub fn is_equal(&mut self, at: usize, peer: usize) -> bool {
        matches!(self.state(at, peer), SyncState::Equal(_))
    }

    /// How many records have come to a node from a peer, and have gone to it, since the node runs.
    pub fn moved(&mut self, at: usize, peer: usize) -> Moved {
        let peer = self.author(peer);
        self.replica(at).traffic().with(peer)
    }

    /// What an author's word weighs at a node.
    pub fn weight(&mut self, at: usize, author: AuthorId) -> f64 {
        let (snapshot, now) = (self.snapshot(at), self.now(at));
        let reader = Reader::new(self.author(at), Numbers::new(&Config::default()));
        let reading = reader.at(&snapshot, now).expect("readable");
        reading.standing(author).expect("readable").weight.value
    }

    /// The digests that a node holds of an entry.
    pub fn digests(&mut self, at: usize, entry: EntryId) -> BTreeSet<Digest> {
        let records = self.snapshot(at).entry_records(entry).expect("readable");
        records.iter().map(Record::digest).collect()
    }

    /// The same, with whether the payload is there.
    pub fn payloads(&mut self, at: usize, entry: EntryId) -> BTreeMap<Digest, bool> {
        let records = self.snapshot(at).entry_records(entry).expect("readable");
        records.iter().map(|record| (record.digest(), record.payload().is_some())).collect()
    }

    /// Takes into the trace what each node holds.
    pub(crate) fn note_holdings(&mut self) {
        for at in 0..self.count() {
            for (entry, digests) in self.holdings(at) {
                self.network.note(entry.as_bytes());
                digests.iter().for_each(|digest| self.network.note(digest.as_bytes()));
            }
        }
    }

    /// Everything a node holds, by entry.
    pub fn holdings(&mut self, at: usize) -> BTreeMap<EntryId, BTreeSet<Digest>> {
        let entries = self.snapshot(at).entries().expect("readable");
        let entries: Vec<EntryId> = entries.map(|row| row.expect("readable").0).collect();
        entries.into_iter().map(|entry| (entry, self.digests(at, entry))).collect()
    }

    /// Whether an entry is released from one node to another now.
    pub fn is_released(&mut self, from: usize, to: usize, entry: EntryId) -> bool {
        let peer = self.author(to);
        self.snapshot(from).release(peer, entry).expect("readable").out == Way::Open
    }

    /// Why a node has refused records of another's store.
    pub fn refusals(&mut self, at: usize, from: usize) -> Vec<(Digest, String)> {
        let rows = self.snapshot(at).refusals(self.offer(from)).expect("readable");
        rows.map(|row| row.expect("readable")).map(|row| (row.digest, row.reason)).collect()
    }

    /// The same, each with the author, if its header can be read.
    pub fn refused_for(&mut self, at: usize, from: usize) -> Vec<(Option<AuthorId>, String)> {
        let rows = self.snapshot(at).refusals(self.offer(from)).expect("readable");
        let with_author = rows.map(|row| row.expect("readable")).map(|row| {
            let signed = SignedHeader::read_back(&row.header, row.signature).ok();
            (signed.map(|signed| signed.header().author), row.reason)
        });
        with_author.collect()
    }

    /// Of which entries a node has refused records of another's store.
    pub fn refused(&mut self, at: usize, from: usize) -> BTreeSet<EntryId> {
        let rows = self.snapshot(at).refusals(self.offer(from)).expect("readable");
        let headers = rows
            .map(|row| row.expect("readable"))
            .filter_map(|row| SignedHeader::read_back(&row.header, row.signature).ok());
        headers.map(|signed| signed.header().entry).collect()
    }

    fn offer(&self, from: usize) -> Offerer {
        Offerer { peer: self.author(from), store: self.store(from) }
    }

    /// What a node would send to another.
    pub fn preview(&mut self, from: usize, to: usize) -> Preview {
        let (snapshot, society) = (self.snapshot(from), Arc::new(self.society(from)));
        let (peer, now) = (self.author(to), self.now(from));
        let examiner = self.replica(from).examiner().clone();
        examiner.preview(&snapshot, &society, peer, None, now).expect("readable")
    }

    /// The number that stands for everything that happened.
    pub fn trace(&self) -> u64 {
        self.network.trace()
    }

    /// The pairs of nodes that are peers.
    pub fn links(&self) -> Vec<(usize, usize)> {
        self.links.iter().copied().collect()
    }
}
