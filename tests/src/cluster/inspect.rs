//! Inspection of a cluster: holdings, releases, refusals and sync states of each node.

use super::Cluster;
use klnode_config::Config;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_engine::OpenDocuments;
use klnode_federation::proto::{Offerer, SyncState};
use klnode_query::{Reader, ScoringParams};
use klnode_replication::{EngineWriter as _, ReleasePreview, TrafficCounts};
use klnode_store::Store;
use klnode_store::peers::row_types::ReleaseState;
use klnode_store::row_types::Seq;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Cluster {
    /// A node's sync state with a peer.
    pub fn state(&mut self, at: usize, peer: usize) -> SyncState {
        let peer = self.author(peer);
        self.replica(at).machine().state(peer)
    }

    /// Whether a node's sync state says that a peer holds the same set.
    pub fn is_equal(&mut self, at: usize, peer: usize) -> bool {
        matches!(self.state(at, peer), SyncState::Equal(_))
    }

    /// Numbers of records received from and sent to a peer since the node's start.
    pub fn moved(&mut self, at: usize, peer: usize) -> TrafficCounts {
        let peer = self.author(peer);
        self.replica(at).traffic().with(peer)
    }

    /// A node's store, for readers of its own.
    pub fn store_of(&mut self, at: usize) -> Store {
        self.replica(at).writer().store().clone()
    }

    /// The documents that a node holds in memory.
    pub fn documents(&mut self, at: usize) -> Arc<OpenDocuments> {
        Arc::clone(self.replica(at).writer().engine.documents())
    }

    /// The head of a node's feed, and its number of membership changes, which an index follows.
    pub fn marks(&mut self, at: usize) -> (Seq, u64) {
        let engine = &self.replica(at).writer().engine;
        (engine.head(), engine.membership_changes())
    }

    /// Weight of an author at a node.
    pub fn weight(&mut self, at: usize, author: AuthorId) -> f64 {
        let (snapshot, now) = (self.snapshot(at), self.now(at));
        let reader = Reader::new(self.author(at), ScoringParams::new(&Config::default()));
        let reading = reader.at(&snapshot, now).expect("readable");
        reading.standing(author).expect("readable").weight.value
    }

    /// Digests of all records that a node holds of an entry.
    pub fn digests(&mut self, at: usize, entry: EntryId) -> BTreeSet<Digest> {
        let records = self.snapshot(at).entry_records(entry).expect("readable");
        records.iter().map(Record::digest).collect()
    }

    /// As [`Cluster::digests`], with whether the payload is present.
    pub fn payloads(&mut self, at: usize, entry: EntryId) -> BTreeMap<Digest, bool> {
        let records = self.snapshot(at).entry_records(entry).expect("readable");
        records.iter().map(|record| (record.digest(), record.payload().is_some())).collect()
    }

    /// Adds the holdings of each node to the trace.
    pub(crate) fn note_holdings(&mut self) {
        for at in 0..self.count() {
            for (entry, digests) in self.holdings(at) {
                self.network.note(entry.as_bytes());
                digests.iter().for_each(|digest| self.network.note(digest.as_bytes()));
            }
        }
    }

    /// All record digests that a node holds, by entry.
    pub fn holdings(&mut self, at: usize) -> BTreeMap<EntryId, BTreeSet<Digest>> {
        let entries = self.snapshot(at).entries().expect("readable");
        let entries: Vec<EntryId> = entries.map(|row| row.expect("readable").0).collect();
        entries.into_iter().map(|entry| (entry, self.digests(at, entry))).collect()
    }

    /// Whether a node currently releases an entry to another.
    pub fn is_released(&mut self, from: usize, to: usize, entry: EntryId) -> bool {
        let peer = self.author(to);
        self.snapshot(from).release(peer, entry).expect("readable").out == ReleaseState::Open
    }

    /// Records of another's store that a node refused, with the reasons.
    pub fn refusals(&mut self, at: usize, from: usize) -> Vec<(Digest, String)> {
        let rows = self.snapshot(at).refusals(self.offer(from)).expect("readable");
        rows.map(|row| row.expect("readable")).map(|row| (row.digest, row.reason)).collect()
    }

    /// Reasons of refusals, each with the author if the header can be read.
    pub fn refused_for(&mut self, at: usize, from: usize) -> Vec<(Option<AuthorId>, String)> {
        let rows = self.snapshot(at).refusals(self.offer(from)).expect("readable");
        let with_author = rows.map(|row| row.expect("readable")).map(|row| {
            let signed = SignedHeader::read_back(&row.header, row.signature).ok();
            (signed.map(|signed| signed.header().author), row.reason)
        });
        with_author.collect()
    }

    /// Entries of which a node has refused records of another's store.
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

    /// Preview of the entries that a node would send to another.
    pub fn preview(&mut self, from: usize, to: usize) -> ReleasePreview {
        let (snapshot, membership) = (self.snapshot(from), Arc::new(self.membership(from)));
        let (peer, now) = (self.author(to), self.now(from));
        let policy = self.replica(from).policy().clone();
        policy.preview(&snapshot, &membership, peer, None, (now, None)).expect("readable")
    }

    /// Hash of all events so far.
    pub fn trace(&self) -> u64 {
        self.network.trace()
    }

    /// Pairs of nodes that are peers.
    pub fn links(&self) -> Vec<(usize, usize)> {
        self.links.iter().copied().collect()
    }
}
