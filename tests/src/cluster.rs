//! Whole nodes, engine and store included, that replicate over a simulated network.
//!
//! Every node is the replica that the program runs, on a disk in memory; the network loses, repeats,
//! delays and reorders by a seed, and nodes crash and come back. Everything that was sent is kept,
//! so that a test can read what has left a node.

mod acquaintance;
mod faults;
mod seen;
mod traffic;
mod versions;

use crate::node::{DiskMedium, Node, START, admit_all};
use crate::puppet::Puppet;
use klnode::engine::{Command, Engine, Judge, NewEntry, Receipt, Rejection};
use klnode::query::{Numbers, Reader};
use klnode::replicate::{Action, Event, Examiner, Replica, Setup, Writer};
use klnode::store::peers::Society;
use klnode::store::{Snapshot, Store};
use klnode_config::Config;
use klnode_crdt::ids::{AuthorId, EntryId, StoreId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::{Settings, SyncState};
use klnode_federation::sim::{Delivery, Knobs, Network, START_MS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use versions::Build;

/// Long enough for everything to come to rest, in milliseconds.
pub const REST_MS: u64 = 30_000;
/// Time passes for a node at least this often, in milliseconds.
pub const TICK_MS: u64 = 10_000;
/// The same for a puppet.
const PUPPET_TICK_MS: u64 = 50;
/// When an ask counts as lost.
const PATIENCE_MS: u64 = 3_000;
/// All releases are examined again so often.
pub(crate) const SWEEP_MS: u64 = 600_000;

/// What travels.
#[derive(Clone, Debug)]
enum Wire {
    Ask(u64, Vec<u8>),
    Answer(u64, Vec<u8>),
    Tick,
    Timeout(usize, u64),
    /// Nothing: time gets there.
    Pause,
}

/// Something that has left a node.
#[derive(Clone, Debug)]
pub struct Sent {
    /// From which node.
    pub from: usize,
    /// To which.
    pub to: usize,
    /// The bytes.
    pub frame: Vec<u8>,
}

impl Sent {
    /// Whether these bytes are in it.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.frame.windows(bytes.len()).any(|part| part == bytes)
    }
}

/// An engine in hand, stepped at the time the network says.
pub struct InHand {
    engine: Engine,
    now: WallTime,
}

impl Writer for InHand {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        self.engine.step(&commands, self.now)
    }

    fn store(&self) -> &Store {
        self.engine.store()
    }
}

struct Member {
    /// None while it is down.
    replica: Option<Replica<InHand>>,
    /// Speaks in its place.
    puppet: Option<Puppet>,
    medium: DiskMedium,
    author: AuthorId,
    key_seed: u8,
    /// What its store is called.
    store: StoreId,
    boots: u64,
    /// When time next passes for it.
    tick_at: u64,
    /// Exchanges that wait for an answer: who asked, under which number.
    exchanges: BTreeMap<u64, (usize, u64)>,
    build: Build,
}

/// Nodes on a network.
pub struct Cluster {
    /// The network.
    network: Network<Wire>,
    seed: u64,
    members: Vec<Member>,
    links: BTreeSet<(usize, usize)>,
    next_exchange: u64,
    delivered: usize,
    /// How often time has passed for nodes.
    ticks: u64,
    /// Records that were sent, whole or by name, whatever became of them.
    records: u64,
    /// Comparisons that found something, by who began them with whom.
    differences: BTreeMap<(usize, usize), u64>,
    /// Everything that was sent.
    pub sent: Vec<Sent>,
}

fn replica(node: Node) -> Replica<InHand> {
    let (own, config) = (node.author(), Config::default());
    let reader = Arc::new(Reader::new(own, Numbers::new(&config)));
    let examiner = Examiner::new(reader, &config.filter);
    let settings = Settings { scrub_ms: 60_000, ..Settings::default() };
    let setup = Setup { own, examiner, settings, sweep_ms: SWEEP_MS };
    Replica::new(InHand { engine: node.engine, now: node.now }, setup)
}

impl Cluster {
    /// So many nodes, each an author of its own, nobody acquainted.
    pub fn new(seed: u64, count: usize, knobs: Knobs) -> Self {
        Self::judged(seed, count, knobs, |_| admit_all())
    }

    /// The same, each with a judge of its own; one that starts again admits everything.
    pub fn judged(
        seed: u64,
        count: usize,
        knobs: Knobs,
        judge: impl Fn(usize) -> Box<dyn Judge>,
    ) -> Self {
        let mut network = Network::new(seed, count, knobs);
        let mut members = Vec::new();
        for at in 0..count {
            let key_seed = u8::try_from(at + 1).expect("few");
            let boot_seed = (seed << 8) + at as u64 + 1;
            let node = Node::start_judged(key_seed, boot_seed, judge(at));
            let (author, medium) = (node.author(), node.medium.clone());
            let (replica, puppet, exchanges) = (Some(replica(node)), None, BTreeMap::new());
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

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Who a node is.
    pub fn author(&self, at: usize) -> AuthorId {
        self.members[at].author
    }

    fn at_of(&self, author: AuthorId) -> usize {
        let at = self.members.iter().position(|member| member.author == author);
        at.expect("nodes talk to nodes of the cluster")
    }

    /// A node's clock.
    pub fn now(&self, at: usize) -> WallTime {
        WallTime::from_millis(START.as_millis() - START_MS + self.network.wall_ms(at))
    }

    fn replica(&mut self, at: usize) -> &mut Replica<InHand> {
        let now = self.now(at);
        let replica = self.members[at].replica.as_mut().expect("it runs");
        replica.writer().now = now;
        replica
    }

    /// What a node holds.
    pub fn snapshot(&mut self, at: usize) -> Snapshot {
        self.replica(at).writer().store().snapshot().expect("readable")
    }

    /// Who is who to a node.
    pub fn society(&mut self, at: usize) -> Society {
        let (snapshot, now) = (self.snapshot(at), self.now(at));
        Society::read(&snapshot, self.author(at), now).expect("readable")
    }

    /// Carries out a command on a node.
    pub fn run(&mut self, at: usize, command: Command) -> Result<Receipt, Rejection> {
        let answer = self.replica(at).writer().write(vec![command]).remove(0);
        self.poke(at);
        answer
    }

    /// Writes an entry.
    pub fn create(&mut self, at: usize, new: NewEntry) -> EntryId {
        match self.run(at, Command::Create(Box::new(new))) {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("the entry was not created: {other:?}"),
        }
    }

    fn poke(&mut self, at: usize) {
        self.happen(at, Event::Tick);
    }

    /// A node's store.
    pub fn store(&self, at: usize) -> StoreId {
        self.members[at].store
    }

    /// Puts a puppet in a node's place, under its key.
    pub fn possess(&mut self, at: usize, entries: &[EntryId], records: Vec<(u64, RawRecord)>) {
        self.members[at].replica = None;
        self.members[at].puppet = Some(Puppet::new(self.store(at), entries, records));
    }

    /// Compares with a peer now.
    pub fn sync(&mut self, at: usize, peer: usize) {
        let peer = self.author(peer);
        self.happen(at, Event::Sync(peer));
    }

    fn connect(&mut self, one: usize, two: usize) {
        if self.network.is_linked(one, two) {
            let (a, b) = (self.author(one), self.author(two));
            self.happen(one, Event::Connected(b));
            self.happen(two, Event::Connected(a));
        }
    }

    fn happen(&mut self, at: usize, event: Event<'_>) {
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

    /// Sees to it that time passes for a node when it next has something to do.
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

    fn act(&mut self, at: usize, action: Action) {
        match action {
            Action::Ask(peer, id, frame) => {
                let to = self.at_of(peer);
                let frame = self.asked(at, to, frame);
                self.network.note(&frame);
                self.sent.push(Sent { from: at, to, frame: frame.clone() });
                self.network.timer(at, self.network.now_ms() + PATIENCE_MS, Wire::Timeout(to, id));
                self.network.send(at, to, Wire::Ask(id, frame));
            }
            Action::Answer(exchange, frame) => {
                let Some((to, id)) = self.members[at].exchanges.remove(&exchange) else { return };
                let frame = self.answered(at, to, frame);
                self.records += traffic::records_of(&frame);
                self.network.note(&frame);
                self.sent.push(Sent { from: at, to, frame: frame.clone() });
                self.network.send(at, to, Wire::Answer(id, frame));
            }
            Action::Disconnect(peer, _) => panic!("an honest node sent {peer} away"),
        }
    }

    /// Lets so many milliseconds pass.
    pub fn pass(&mut self, ms: u64) {
        let end = self.network.now_ms() + ms;
        // Something happens at the end, so that time gets there.
        self.network.at(end, Wire::Pause);
        while self.network.now_ms() < end {
            let Some((_, delivery)) = self.network.advance() else { break };
            self.deliver(delivery);
        }
    }

    /// Lets time pass until so many messages have arrived.
    pub fn pass_messages(&mut self, count: usize) {
        let end = self.delivered + count;
        while self.delivered < end {
            let Some((_, delivery)) = self.network.advance() else { break };
            self.deliver(delivery);
        }
    }

    /// How many records were sent, whole or by name, whatever became of them.
    pub fn records_sent(&self) -> u64 {
        self.records
    }

    /// How many comparisons between two nodes have found something.
    pub fn differences(&self, one: usize, two: usize) -> u64 {
        let of = |pair| self.differences.get(&pair).copied().unwrap_or(0);
        of((one, two)) + of((two, one))
    }

    /// How often time has passed for nodes, because it was due or long ago.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many messages have arrived.
    pub fn delivered(&self) -> usize {
        self.delivered
    }

    fn deliver(&mut self, delivery: Delivery<Wire>) {
        match delivery {
            Delivery::Script { .. } => {}
            Delivery::Timer { node, message: Wire::Timeout(to, id) } => {
                let peer = self.author(to);
                self.happen(node, Event::Lost(peer, id));
            }
            Delivery::Timer { node, .. } => {
                let now = self.network.now_ms();
                // An earlier one has taken its place.
                if self.members[node].tick_at == now {
                    self.members[node].tick_at = u64::MAX;
                    self.ticks += 1;
                    self.happen(node, Event::Tick);
                }
            }
            Delivery::Message { from, to, message: Wire::Ask(id, frame) } => {
                self.delivered += 1;
                let exchange = self.next_exchange;
                self.next_exchange += 1;
                self.members[to].exchanges.insert(exchange, (from, id));
                let peer = self.author(from);
                self.happen(to, Event::Asked(peer, exchange, &frame));
            }
            Delivery::Message { from, to, message: Wire::Answer(id, frame) } => {
                self.delivered += 1;
                let peer = self.author(from);
                self.happen(to, Event::Answered(peer, id, &frame));
                if traffic::is_comparison(&frame) && self.is_up(to) {
                    let differs = matches!(self.state(to, from), SyncState::Differs(..));
                    *self.differences.entry((to, from)).or_default() += u64::from(differs);
                }
            }
            Delivery::Message { .. } => {}
        }
    }
}
