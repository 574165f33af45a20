//! Peers, workspaces and strangers for nodes in a test's hand, and questions to such a node.

use crate::node::{Node, START, exchange, in_workspace};
use klnode::engine::{Arrival, Command, NewEntry, PeerAct, Receipt};
use klnode::index::{self, embed, vectors};
use klnode::query::{Answer, Audience, Cancel, Found, Numbers, Question, Reader, Standing};
use klnode::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode::store::rows::Seq;
use klnode_config::Config;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::record::Record;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::writer::{Claim, Writer};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// A peer that may talk.
pub fn paired(name: &str) -> PeerRow {
    let (name, approval) = (name.to_owned(), Approval::Approved);
    PeerRow { name, approval, since: START, ..PeerRow::default() }
}

impl Node {
    /// Notes things about peers.
    pub fn note(&mut self, acts: Vec<PeerAct>) {
        self.run(Command::Peers(acts)).expect("noted");
    }

    /// Puts a peer's row.
    pub fn meet(&mut self, peer: AuthorId, row: PeerRow) {
        self.note(vec![PeerAct::Put(peer, Box::new(row))]);
    }

    /// Writes an entry into a workspace.
    pub fn create_in(&mut self, workspace: WorkspaceId, title: &str) -> EntryId {
        self.create_new(in_workspace(workspace, title))
    }

    /// Writes an entry.
    pub fn create_new(&mut self, new: NewEntry) -> EntryId {
        match self.run(Command::Create(Box::new(new))) {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("the entry was not created: {other:?}"),
        }
    }

    /// Counts something once.
    pub fn observe(&mut self, entry: EntryId, of: Observation) {
        self.run(Command::Observe { entry, of, amount: Thousandths::ONE }).expect("observed");
    }

    /// Who reads as this node.
    pub fn reader(&self) -> Reader {
        Reader::new(self.author(), Numbers::new(&Config::default()))
    }

    /// An entry, read and judged.
    pub fn found(&self, entry: EntryId) -> Found {
        let snapshot = self.engine.store().snapshot().expect("readable");
        self.reader().read(&snapshot, entry, self.now).expect("readable").expect("known")
    }

    /// What an author is to this node.
    pub fn standing(&self, author: AuthorId) -> Standing {
        let snapshot = self.engine.store().snapshot().expect("readable");
        let reader = self.reader();
        let reading = reader.at(&snapshot, self.now).expect("readable");
        Standing::clone(&reading.standing(author).expect("readable"))
    }

    /// Some days later.
    pub fn wait_days(&mut self, days: u64) {
        self.now = self.now.plus(Duration::from_secs(days * 86_400));
    }
}

/// A workspace whose owner runs no node: only a key that signs.
pub struct Shared {
    /// Its id.
    pub id: WorkspaceId,
    owner: SecretKey,
    held: Holding,
}

impl Shared {
    /// A workspace with nobody in it but its owner.
    pub fn new(owner_seed: u8) -> Self {
        let (owner, nonce) = (SecretKey::from_bytes(&[owner_seed; 32]), Nonce::default());
        let id = WorkspaceId::of(owner.author(), nonce);
        let mut shared = Self { id, owner, held: Holding::default() };
        shared.say(&[Claim::Add(TextSet::OWNER_NONCES, nonce.to_string())]);
        shared
    }

    /// Lists a member.
    pub fn admit(&mut self, member: AuthorId) {
        self.say(&[Claim::Add(TextSet::MEMBERS, member.to_string())]);
    }

    /// Strikes a member off.
    pub fn expel(&mut self, member: AuthorId) {
        self.say(&[Claim::Withdraw(TextSet::MEMBERS, member.to_string())]);
    }

    fn say(&mut self, claims: &[Claim]) {
        let entry = charter::entry(self.id);
        let writer = Writer { key: &self.owner, boot: Boot(1), entry, own: &self.held };
        let count = u16::try_from(self.held.records().len()).unwrap_or(u16::MAX);
        let counter = self.held.records().map(|record| record.header().counter).max();
        let stamp = Hlc::new(START, count + u16::try_from(counter.unwrap_or(0)).unwrap_or(0));
        let origin = Some(charter::origin(self.id));
        let record = writer.claim(&self.held.to_entry(), origin, claims, stamp).expect("fits");
        self.held.merge(record);
    }

    /// Tells a node who belongs to it, and what it is called.
    pub fn tell(&self, node: &mut Node) {
        let row =
            WorkspaceRow { name: "team".into(), since: START, is_current: false, owner: None };
        node.note(vec![PeerAct::NameWorkspace(self.id, row)]);
        for record in self.held.records() {
            node.ingest(record.clone(), self.owner.author());
        }
    }
}

/// A node in a workspace with two members, alice and bob; carol is paired and no member.
pub struct Team {
    /// The node that is asked.
    pub node: Node,
    /// A member.
    pub alice: Node,
    /// Another.
    pub bob: Node,
    /// Paired, and no member.
    pub carol: Node,
    /// The workspace.
    pub shared: Shared,
}

impl Team {
    /// Four nodes that know who belongs to the workspace.
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

    /// The node exchanges everything with each of the others.
    pub fn exchange(&mut self) {
        for peer in [&mut self.alice, &mut self.bob, &mut self.carol] {
            exchange(&mut self.node, peer);
        }
    }
}

/// Somebody who has a key and no node.
pub struct Stranger(SecretKey);

impl Stranger {
    /// One of many.
    pub fn new(number: u32) -> Self {
        let mut seed = [0xEE; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        Self(SecretKey::from_bytes(&seed))
    }

    /// Who it is.
    pub fn author(&self) -> AuthorId {
        self.0.author()
    }

    /// Its only record on an entry: so many observations.
    pub fn observes(&self, entry: EntryId, of: Observation, times: u64) -> Record {
        let own = Holding::default();
        let writer = Writer { key: &self.0, boot: Boot(1), entry, own: &own };
        let amount = Thousandths(times * 1_000);
        writer.observe(of, amount, START.day(), Hlc::new(START, 0)).expect("fits")
    }

    /// Its only claim on an entry.
    pub fn claims(&self, entry: EntryId, claim: Claim) -> Record {
        let own = Holding::default();
        let writer = Writer { key: &self.0, boot: Boot(1), entry, own: &own };
        let held = klnode_crdt::entry::Entry::default();
        writer.claim(&held, None, &[claim], Hlc::new(START, 0)).expect("fits")
    }
}

/// Brings many records at once.
pub fn bring(node: &mut Node, records: Vec<Record>, from: AuthorId) {
    let arrivals = records.into_iter().map(|record| Arrival { record, from }).collect();
    node.run(Command::Ingest(arrivals)).expect("ingested");
}

fn at_the_start() -> WallTime {
    START
}

/// A node's index, in a folder of its own.
pub struct Indexed {
    running: Option<index::Running>,
    head: watch::Sender<Seq>,
    society: watch::Sender<u64>,
    _folder: TempDir,
}

impl Indexed {
    /// Starts an index on a node's store.
    pub fn start(node: &Node) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (head, followed) = watch::channel(node.engine.head());
        let (society, seen) = watch::channel(node.engine.society_changes());
        let setup = index::Setup {
            folder: folder.path().join("index"),
            model: embed::open(embed::Settings::BuiltIn).expect("is compiled in"),
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: node.author(),
            now: at_the_start,
        };
        let wakes = index::Wakes { head: followed, society: seen };
        let running = index::start(setup, node.engine.store().clone(), wakes).expect("starts");
        Self { running: Some(running), head, society, _folder: folder }
    }

    /// Its reader's end.
    pub fn index(&self) -> index::Index {
        self.running.as_ref().expect("runs").index()
    }

    /// Tells it of the node's newest commit, as the writer does: what is as before wakes nobody.
    pub fn follow(&self, node: &Node) {
        let (head, changes) = (node.engine.head(), node.engine.society_changes());
        self.head.send_if_modified(|known| std::mem::replace(known, head) != head);
        self.society.send_if_modified(|known| std::mem::replace(known, changes) != changes);
    }

    /// What a person, or a program, is answered.
    pub fn ask(&self, node: &Node, text: &str, audience: Audience) -> Answer {
        let snapshot = node.engine.store().snapshot().expect("readable");
        let question = Question { audience, ..Question::new(text, 5) };
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
