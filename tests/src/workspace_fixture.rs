//! Peers, workspaces and strangers for test engines, and queries to such a node.

use crate::test_engine::{Node, START, exchange, in_workspace};
use klnode_config::Config;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, DeliveredRecord, NewEntry, PeerCommand, Receipt};
use klnode_index::{self, vectors};
use klnode_query::{
    AssessedEntry, Audience, AuthorStanding, Cancel, Reader, ScoringParams, SearchAnswer,
    SearchQuery,
};
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};
use klnode_store::row_types::Seq;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// Row of an approved peer.
pub fn paired(name: &str) -> PeerRow {
    let (name, approval) = (name.to_owned(), PeerApproval::Approved);
    PeerRow { name, approval, since: START, ..PeerRow::default() }
}

impl Node {
    /// Applies changes to peers.
    pub fn note(&mut self, acts: Vec<PeerCommand>) {
        self.run(Command::Peers(acts)).expect("noted");
    }

    /// Stores the row of a peer.
    pub fn meet(&mut self, peer: AuthorId, row: PeerRow) {
        self.note(vec![PeerCommand::Put(peer, Box::new(row))]);
    }

    /// Creates an entry in a workspace.
    pub fn create_in(&mut self, workspace: WorkspaceId, title: &str) -> EntryId {
        self.create_new(in_workspace(workspace, title))
    }

    /// Creates an entry.
    pub fn create_new(&mut self, new: NewEntry) -> EntryId {
        match self.run(Command::Create(Box::new(new))) {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("the entry was not created: {other:?}"),
        }
    }

    /// Counts one observation.
    pub fn observe(&mut self, entry: EntryId, of: Observation) {
        self.run(Command::Observe { entry, of, amount: Thousandths::ONE }).expect("observed");
    }

    /// Reader with this node's identity and the default parameters.
    pub fn reader(&self) -> Reader {
        Reader::new(self.author(), ScoringParams::new(&Config::default()))
    }

    /// An entry with its judgement.
    pub fn found(&self, entry: EntryId) -> AssessedEntry {
        let snapshot = self.engine.store().snapshot().expect("readable");
        self.reader().read(&snapshot, entry, self.now).expect("readable").expect("known")
    }

    /// Standing of an author at this node.
    pub fn standing(&self, author: AuthorId) -> AuthorStanding {
        let snapshot = self.engine.store().snapshot().expect("readable");
        let reader = self.reader();
        let reading = reader.at(&snapshot, self.now).expect("readable");
        AuthorStanding::clone(&reading.standing(author).expect("readable"))
    }

    /// Advances the clock by some days.
    pub fn wait_days(&mut self, days: u64) {
        self.now = self.now.plus(Duration::from_secs(days * 86_400));
    }
}

/// A workspace whose owner runs no node: the fixture holds only its key.
pub struct Shared {
    /// Id of the workspace.
    pub id: WorkspaceId,
    owner: SecretKey,
    held: LiveRecords,
}

impl Shared {
    /// A workspace whose only member is its owner.
    pub fn new(owner_seed: u8) -> Self {
        let (owner, nonce) = (SecretKey::from_bytes(&[owner_seed; 32]), Nonce::default());
        let id = WorkspaceId::of(owner.author(), nonce);
        let mut shared = Self { id, owner, held: LiveRecords::default() };
        shared.say(&[ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string())]);
        shared
    }

    /// Adds a member.
    pub fn admit(&mut self, member: AuthorId) {
        self.say(&[ClaimEdit::Add(TextSet::MEMBERS, member.to_string())]);
    }

    /// Removes a member.
    pub fn expel(&mut self, member: AuthorId) {
        self.say(&[ClaimEdit::Withdraw(TextSet::MEMBERS, member.to_string())]);
    }

    fn say(&mut self, claims: &[ClaimEdit]) {
        let entry = workspace_charter::entry(self.id);
        let writer = RecordBuilder { key: &self.owner, boot: Boot(1), entry, own: &self.held };
        let count = u16::try_from(self.held.records().len()).unwrap_or(u16::MAX);
        let counter = self.held.records().map(|record| record.header().counter).max();
        let stamp = Hlc::new(START, count + u16::try_from(counter.unwrap_or(0)).unwrap_or(0));
        let origin = Some(workspace_charter::origin(self.id));
        let record = writer.claim(&self.held.to_entry(), origin, claims, stamp).expect("fits");
        self.held.merge(record);
    }

    /// Stores the workspace's records and its name on a node.
    pub fn tell(&self, node: &mut Node) {
        let row =
            WorkspaceRow { name: "team".into(), since: START, is_current: false, owner: None };
        node.note(vec![PeerCommand::NameWorkspace(self.id, row)]);
        for record in self.held.records() {
            node.ingest(record.clone(), self.owner.author());
        }
    }
}

/// A node in a workspace with two members, alice and bob; carol is paired but not a member.
pub struct Team {
    /// Node that answers queries.
    pub node: Node,
    /// First member.
    pub alice: Node,
    /// Second member.
    pub bob: Node,
    /// Paired peer that is not a member.
    pub carol: Node,
    /// The shared workspace.
    pub shared: Shared,
}

impl Team {
    /// Four nodes that hold the workspace's records.
    pub fn gather() -> Self {
        let mut shared = Shared::new(9);
        let mut nodes = [1, 2, 3, 4].map(|seed| Node::start(seed, u64::from(seed)));
        for member in &nodes[..3] {
            shared.admit(member.author());
        }
        for node in &mut nodes {
            shared.tell(node);
        }
        let [mut node, alice, bob, carol] = nodes;
        for (peer, name) in [(&alice, "alice"), (&bob, "bob"), (&carol, "carol")] {
            node.meet(peer.author(), paired(name));
        }
        Self { node, alice, bob, carol, shared }
    }

    /// Exchanges all records between the node and each of the others.
    pub fn exchange(&mut self) {
        for peer in [&mut self.alice, &mut self.bob, &mut self.carol] {
            exchange(&mut self.node, peer);
        }
    }
}

/// An author that has a key but no node.
pub struct Stranger(SecretKey);

impl Stranger {
    /// Stranger with this number.
    pub fn new(number: u32) -> Self {
        let mut seed = [0xEE; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        Self(SecretKey::from_bytes(&seed))
    }

    /// Author id of the stranger.
    pub fn author(&self) -> AuthorId {
        self.0.author()
    }

    /// The stranger's only record on an entry: `times` observations.
    pub fn observes(&self, entry: EntryId, of: Observation, times: u64) -> Record {
        let own = LiveRecords::default();
        let writer = RecordBuilder { key: &self.0, boot: Boot(1), entry, own: &own };
        let amount = Thousandths(times * 1_000);
        writer.observe(of, amount, START.day(), Hlc::new(START, 0)).expect("fits")
    }

    /// The stranger's only claim on an entry.
    pub fn claims(&self, entry: EntryId, claim: ClaimEdit) -> Record {
        let own = LiveRecords::default();
        let writer = RecordBuilder { key: &self.0, boot: Boot(1), entry, own: &own };
        let held = klnode_crdt::entry::Entry::default();
        writer.claim(&held, None, &[claim], Hlc::new(START, 0)).expect("fits")
    }
}

/// Delivers many records at once.
pub fn bring(node: &mut Node, records: Vec<Record>, from: AuthorId) {
    let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
    node.run(Command::Ingest(arrivals)).expect("ingested");
}

fn at_the_start() -> WallTime {
    START
}

/// A node's index, in its own folder.
pub struct Indexed {
    running: Option<klnode_index::Running>,
    head: watch::Sender<Seq>,
    membership: watch::Sender<u64>,
    _folder: TempDir,
}

impl Indexed {
    /// Starts an index on a node's store.
    pub fn start(node: &Node) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (head, followed) = watch::channel(node.engine.head());
        let (membership, seen) = watch::channel(node.engine.membership_changes());
        let setup = klnode_index::Setup {
            folder: folder.path().join("index"),
            model: klnode_embed::open(klnode_embed::Settings::BuiltIn).expect("is compiled in"),
            passages: None,
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: node.author(),
            now: at_the_start,
        };
        let wakes = klnode_index::Wakes { head: followed, membership: seen };
        let running =
            klnode_index::start(setup, node.engine.store().clone(), wakes).expect("starts");
        Self { running: Some(running), head, membership, _folder: folder }
    }

    /// Read handle of the index.
    pub fn index(&self) -> klnode_index::Index {
        self.running.as_ref().expect("runs").index()
    }

    /// Notifies the index of the node's newest commit, as the writer does; an unchanged head wakes
    /// no worker.
    pub fn follow(&self, node: &Node) {
        let (head, changes) = (node.engine.head(), node.engine.membership_changes());
        self.head.send_if_modified(|known| std::mem::replace(known, head) != head);
        self.membership.send_if_modified(|known| std::mem::replace(known, changes) != changes);
    }

    /// The answer to a person or a program.
    pub fn ask(&self, node: &Node, text: &str, audience: Audience) -> SearchAnswer {
        let snapshot = node.engine.store().snapshot().expect("readable");
        let question = SearchQuery { audience, ..SearchQuery::new(text, 5) };
        let (index, cancel) = (self.index(), Cancel::default());
        let reader = node.reader();
        reader.search(&index, &snapshot, &question, node.now, &cancel).expect("an answer")
    }
}

impl Drop for Indexed {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}
