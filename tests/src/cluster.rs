//! Whole nodes, including engine and store, that replicate over a simulated network.
//!
//! Every node is the replica that the program runs, on an in-memory disk. The network loses,
//! duplicates, delays and reorders messages by a seed, and nodes crash and restart. All sent frames
//! are kept, so that a test can inspect the traffic of a node.

mod faults;
mod inspect;
mod newer_versions;
mod peering;
mod response_decoding;

use crate::peer_with_chosen_records::Puppet;
use crate::test_engine::{DiskMedium, Node, START, admit_all};
use klnode_config::Config;
use klnode_crdt::ids::{AuthorId, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, Engine, NewEntry, OpenDocuments, Receipt, RecordScreen, Rejection};
use klnode_federation::proto::{Settings, SyncState};
use klnode_federation::sim::{Arrival, Knobs, START_MS, SimNetwork};
use klnode_query::{Reader, ScoringParams};
use klnode_replication::{
    EngineWriter, ReleasePolicy, Replica, ReplicaAction, ReplicaEvent, Setup,
};
use klnode_store::peers::Membership;
use klnode_store::{Snapshot, Store};
use newer_versions::Build;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Time in milliseconds that is enough for the network to become idle.
pub const REST_MS: u64 = 30_000;
/// Longest interval in milliseconds between two ticks of a node.
pub const TICK_MS: u64 = 10_000;
/// Longest interval in milliseconds between two ticks of a puppet.
const PUPPET_TICK_MS: u64 = 50;
/// Timeout of a request in milliseconds.
const PATIENCE_MS: u64 = 3_000;
/// Interval in milliseconds at which all releases are examined again.
pub(crate) const SWEEP_MS: u64 = 600_000;

/// An event on the simulated network.
#[derive(Clone, Debug)]
enum Wire {
    Ask(u64, Vec<u8>),
    Answer(u64, Vec<u8>),
    Tick,
    Timeout(usize, u64),
    /// No message; it only advances the time.
    Pause,
}

/// A frame that has left a node.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    pub frame: Vec<u8>,
}

impl Sent {
    /// Whether the frame contains these bytes.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.frame.windows(bytes.len()).any(|part| part == bytes)
    }
}

/// An engine that the test steps at the simulated time.
pub struct InHand {
    engine: Engine,
    now: WallTime,
}

impl EngineWriter for InHand {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        self.engine.step(&commands, self.now)
    }

    fn store(&self) -> &Store {
        self.engine.store()
    }

    fn documents(&self) -> &OpenDocuments {
        self.engine.documents()
    }
}

struct Member {
    /// `None` while the node is down.
    replica: Option<Replica<InHand>>,
    /// Scripted peer that replaces the node.
    puppet: Option<Puppet>,
    medium: DiskMedium,
    author: AuthorId,
    key_seed: u8,
    /// Id of the node's store.
    store: StoreId,
    boots: u64,
    /// Time of the next tick.
    tick_at: u64,
    /// Open exchanges: the asking node and its request number.
    exchanges: BTreeMap<u64, (usize, u64)>,
    build: Build,
}

/// Nodes on a simulated network.
pub struct Cluster {
    network: SimNetwork<Wire>,
    seed: u64,
    members: Vec<Member>,
    links: BTreeSet<(usize, usize)>,
    next_exchange: u64,
    delivered: usize,
    /// Number of ticks of all nodes.
    ticks: u64,
    /// Number of records sent, in full or by name, whether or not they arrived.
    records: u64,
    /// Number of comparisons that found a difference, by initiator and peer.
    differences: BTreeMap<(usize, usize), u64>,
    /// All sent frames, in order.
    pub sent: Vec<Sent>,
}

fn replica(node: Node) -> Replica<InHand> {
    replica_with(node, &Config::default())
}

fn replica_with(node: Node, config: &Config) -> Replica<InHand> {
    let own = node.author();
    let reader = Arc::new(Reader::new(own, ScoringParams::new(config)));
    let policy = ReleasePolicy::new(reader, &config.filter);
    let settings = Settings { scrub_ms: 60_000, ..Settings::default() };
    let setup = Setup { own, policy, settings, sweep_ms: SWEEP_MS };
    Replica::new(InHand { engine: node.engine, now: node.now }, setup)
}

impl Cluster {
    /// `count` nodes, each its own author, without any peers.
    pub fn new(seed: u64, count: usize, knobs: Knobs) -> Self {
        Self::with_screens(seed, count, knobs, |_| admit_all())
    }

    /// As [`Cluster::new`], each node with its own judge; a restarted node admits everything.
    pub fn with_screens(
        seed: u64,
        count: usize,
        knobs: Knobs,
        judge: impl Fn(usize) -> Box<dyn RecordScreen>,
    ) -> Self {
        let start = |at: usize, key_seed, boot_seed| {
            Node::start_with_screen(key_seed, boot_seed, judge(at))
        };
        Self::with_nodes(seed, count, knobs, &Config::default(), start)
    }

    /// As [`Cluster::new`], with nodes that run with this configuration and scan every record.
    pub fn with_config(seed: u64, count: usize, knobs: Knobs, config: &Config) -> Self {
        let start = |_, key_seed, boot_seed| Node::start_with_config(key_seed, boot_seed, config);
        Self::with_nodes(seed, count, knobs, config, start)
    }

    fn with_nodes(
        seed: u64,
        count: usize,
        knobs: Knobs,
        config: &Config,
        start: impl Fn(usize, u8, u64) -> Node,
    ) -> Self {
        let mut network = SimNetwork::new(seed, count, knobs);
        let mut members = Vec::new();
        for at in 0..count {
            let key_seed = u8::try_from(at + 1).expect("few");
            let boot_seed = (seed << 8) + at as u64 + 1;
            let node = start(at, key_seed, boot_seed);
            let (author, medium) = (node.author(), node.medium.clone());
            let replica = replica_with(node, config);
            let (replica, puppet, exchanges) = (Some(replica), None, BTreeMap::new());
            let (boots, store) = (1, StoreId::from_bytes([key_seed; 16]));
            let tick_at = 0;
            let build = Build::default();
            let member = Member {
                replica,
                puppet,
                medium,
                author,
                key_seed,
                store,
                boots,
                tick_at,
                exchanges,
                build,
            };
            members.push(member);
            network.timer(at, 0, Wire::Tick);
        }
        let (links, sent) = (BTreeSet::new(), Vec::new());
        let (next_exchange, delivered, ticks, records) = (1, 0, 0, 0);
        Self {
            network,
            seed,
            members,
            links,
            next_exchange,
            delivered,
            ticks,
            records,
            differences: BTreeMap::new(),
            sent,
        }
    }

    /// Number of nodes.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Author of a node.
    pub fn author(&self, at: usize) -> AuthorId {
        self.members[at].author
    }

    /// Key of a node.
    pub fn key(&self, at: usize) -> SecretKey {
        SecretKey::from_bytes(&[self.members[at].key_seed; 32])
    }

    fn at_of(&self, author: AuthorId) -> usize {
        let at = self.members.iter().position(|member| member.author == author);
        at.expect("nodes talk to nodes of the cluster")
    }

    /// Current time of a node's clock.
    pub fn now(&self, at: usize) -> WallTime {
        WallTime::from_millis(START.as_millis() - START_MS + self.network.wall_ms(at))
    }

    fn replica(&mut self, at: usize) -> &mut Replica<InHand> {
        let now = self.now(at);
        let replica = self.members[at].replica.as_mut().expect("it runs");
        replica.writer().now = now;
        replica
    }

    /// Snapshot of a node's store.
    pub fn snapshot(&mut self, at: usize) -> Snapshot {
        self.replica(at).writer().store().snapshot().expect("readable")
    }

    /// Peers, members and blocks as a node sees them.
    pub fn membership(&mut self, at: usize) -> Membership {
        let (snapshot, now) = (self.snapshot(at), self.now(at));
        Membership::read(&snapshot, self.author(at), now).expect("readable")
    }

    /// Runs a command on a node.
    pub fn run(&mut self, at: usize, command: Command) -> Result<Receipt, Rejection> {
        let answer = self.replica(at).writer().write(vec![command]).remove(0);
        self.poke(at);
        answer
    }

    /// Creates an entry.
    pub fn create(&mut self, at: usize, new: NewEntry) -> EntryId {
        match self.run(at, Command::Create(Box::new(new))) {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("the entry was not created: {other:?}"),
        }
    }

    fn poke(&mut self, at: usize) {
        self.happen(at, ReplicaEvent::Tick);
    }

    /// Id of a node's store.
    pub fn store(&self, at: usize) -> StoreId {
        self.members[at].store
    }

    /// Replaces a node with a puppet that uses its key.
    pub fn possess(&mut self, at: usize, entries: &[EntryId], records: Vec<(u64, RawRecord)>) {
        self.members[at].replica = None;
        self.members[at].puppet = Some(Puppet::new(self.store(at), entries, records));
    }

    /// Starts a comparison with a peer.
    pub fn sync(&mut self, at: usize, peer: usize) {
        let peer = self.author(peer);
        self.happen(at, ReplicaEvent::Sync(peer));
    }

    fn connect(&mut self, one: usize, two: usize) {
        if self.network.is_linked(one, two) {
            let (a, b) = (self.author(one), self.author(two));
            self.happen(one, ReplicaEvent::Connected(b));
            self.happen(two, ReplicaEvent::Connected(a));
        }
    }

    fn happen(&mut self, at: usize, event: ReplicaEvent<'_>) {
        let (now, time) = (self.now(at), self.network.now_ms());
        let member = &mut self.members[at];
        let actions = match (&mut member.puppet, &mut member.replica) {
            (Some(puppet), _) => puppet.handle(&event, now, time),
            (None, Some(replica)) => {
                replica.writer().now = now;
                replica.handle(event, now, time)
            }
            (None, None) => return,
        };
        for action in actions {
            self.act(at, action);
        }
        self.plan_tick(at);
    }

    /// Schedules the next tick of a node.
    fn plan_tick(&mut self, at: usize) {
        let now = self.network.now_ms();
        let member = &mut self.members[at];
        let due = match (&member.replica, &member.puppet) {
            (Some(replica), _) => replica.next_at(now),
            (None, Some(_)) => now + PUPPET_TICK_MS,
            (None, None) => return,
        };
        let due = due.clamp(now + 1, now + TICK_MS);
        if due < member.tick_at || member.tick_at <= now {
            member.tick_at = due;
            self.network.timer(at, due, Wire::Tick);
        }
    }

    fn act(&mut self, at: usize, action: ReplicaAction) {
        match action {
            ReplicaAction::Ask(peer, id, frame) => {
                let to = self.at_of(peer);
                let frame = self.asked(at, to, frame);
                self.network.note(&frame);
                self.sent.push(Sent { from: at, to, frame: frame.clone() });
                self.network.timer(at, self.network.now_ms() + PATIENCE_MS, Wire::Timeout(to, id));
                self.network.send(at, to, Wire::Ask(id, frame));
            }
            ReplicaAction::Answer(exchange, frame) => {
                let Some((to, id)) = self.members[at].exchanges.remove(&exchange) else { return };
                let frame = self.answered(at, to, frame);
                self.records += response_decoding::records_of(&frame);
                self.network.note(&frame);
                self.sent.push(Sent { from: at, to, frame: frame.clone() });
                self.network.send(at, to, Wire::Answer(id, frame));
            }
            ReplicaAction::Disconnect(peer, _) => panic!("an honest node sent {peer} away"),
        }
    }

    /// Advances the time by `ms` milliseconds.
    pub fn pass(&mut self, ms: u64) {
        let end = self.network.now_ms() + ms;
        // An event at the end makes the time advance that far.
        self.network.at(end, Wire::Pause);
        while self.network.now_ms() < end {
            let Some((_, delivery)) = self.network.advance() else { break };
            self.deliver(delivery);
        }
    }

    /// Advances the time until `count` messages have arrived.
    pub fn pass_messages(&mut self, count: usize) {
        let end = self.delivered + count;
        while self.delivered < end {
            let Some((_, delivery)) = self.network.advance() else { break };
            self.deliver(delivery);
        }
    }

    /// Number of records sent, in full or by name, whether or not they arrived.
    pub fn records_sent(&self) -> u64 {
        self.records
    }

    /// Number of comparisons between two nodes that found a difference.
    pub fn differences(&self, one: usize, two: usize) -> u64 {
        let of = |pair| self.differences.get(&pair).copied().unwrap_or(0);
        of((one, two)) + of((two, one))
    }

    /// Number of ticks of all nodes.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Number of messages that have arrived.
    pub fn delivered(&self) -> usize {
        self.delivered
    }

    fn deliver(&mut self, delivery: Arrival<Wire>) {
        match delivery {
            Arrival::Script { .. } => {}
            Arrival::Timer { node, message: Wire::Timeout(to, id) } => {
                let peer = self.author(to);
                self.happen(node, ReplicaEvent::Lost(peer, id));
            }
            Arrival::Timer { node, .. } => {
                let now = self.network.now_ms();
                // Only the tick that was scheduled last counts; an earlier one replaced this.
                if self.members[node].tick_at == now {
                    self.members[node].tick_at = u64::MAX;
                    self.ticks += 1;
                    self.happen(node, ReplicaEvent::Tick);
                }
            }
            Arrival::Message { from, to, message: Wire::Ask(id, frame) } => {
                self.delivered += 1;
                let exchange = self.next_exchange;
                self.next_exchange += 1;
                self.members[to].exchanges.insert(exchange, (from, id));
                let peer = self.author(from);
                self.happen(to, ReplicaEvent::Asked(peer, exchange, &frame));
            }
            Arrival::Message { from, to, message: Wire::Answer(id, frame) } => {
                self.delivered += 1;
                let peer = self.author(from);
                self.happen(to, ReplicaEvent::Answered(peer, id, &frame));
                if response_decoding::is_comparison(&frame) && self.is_up(to) {
                    let differs = matches!(self.state(to, from), SyncState::Differs(..));
                    *self.differences.entry((to, from)).or_default() += u64::from(differs);
                }
            }
            Arrival::Message { .. } => {}
        }
    }
}
