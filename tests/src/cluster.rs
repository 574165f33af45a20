//! Whole nodes, engine and store included, that replicate over a simulated network.
//!
//! Every node is the replica that the program runs, on a disk in memory; the network loses, repeats,
//! delays and reorders by a seed, and nodes crash and come back. Everything that was sent is kept,
//! so that a test can read what has left a node.

mod faults;
mod traffic;
mod versions;

use crate::node::{DiskMedium, Node, START, admit_all};
use crate::puppet::Puppet;
use klnode::engine::{Command, Engine, Judge, NewEntry, PeerAct, Receipt, Rejection, SourceKey};
use klnode::query::{Numbers, Reader};
use klnode::replicate::{Action, Event, Examiner, Preview, Replica, Setup, Writer};
use klnode::store::peers::Society;
use klnode::store::peers::rows::{Approval, PeerRow, Way, WorkspaceRow};
use klnode::store::{Snapshot, Store};
use klnode_config::Config;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, Nonce, StoreId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::filter::Filter;
use klnode_federation::proto::{Offerer, Settings, SyncState};
use klnode_federation::sim::{Delivery, Knobs, Network, START_MS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use versions::Build;

/// Time passes for a node at least this often, in milliseconds.
const TICK_MS: u64 = 10_000;
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
            let boots = 1;
            let tick_at = 0;
            let build = Build::default();
            let member = Member {
                replica,
                puppet,
                medium,
                author,
                key_seed,
                boots,
                tick_at,
                exchanges,
                build,
            };
            members.push(member);
            network.timer(at, 0, Wire::Tick);
        }
        let (links, sent) = (BTreeSet::new(), Vec::new());
        let (next_exchange, delivered, records, differences) = (1, 0, 0, BTreeMap::new());
        Self { network, seed, members, links, next_exchange, delivered, records, differences, sent }
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

    // Acquaintance.

    /// Makes two nodes peers of each other.
    pub fn pair(&mut self, one: usize, two: usize, is_mine: bool) {
        for (at, other) in [(one, two), (two, one)] {
            if self.members[at].puppet.is_some() {
                continue;
            }
            let (peer, since) = (self.author(other), self.now(at));
            let row = PeerRow {
                name: format!("node {other}"),
                approval: Approval::Approved,
                is_mine,
                since,
                ..PeerRow::default()
            };
            self.put_peer(at, peer, row);
        }
        self.links.insert((one.min(two), one.max(two)));
        self.connect(one, two);
    }

    /// Changes what a node knows of a peer.
    pub fn put_peer(&mut self, at: usize, peer: AuthorId, row: PeerRow) {
        self.replica(at).note(vec![PeerAct::Put(peer, Box::new(row))]).expect("noted");
        self.happen(at, Event::Changed([peer].into()));
    }

    /// Sets what a node sends to a peer.
    pub fn set_egress(&mut self, at: usize, to: usize, change: impl FnOnce(&mut Filter)) {
        let society = self.society(at);
        let peer = self.author(to);
        let row = society.peers.get(&peer).expect("acquainted").clone();
        let mut filter = self.replica(at).examiner().egress(&row, &society);
        change(&mut filter);
        self.put_peer(at, peer, PeerRow { egress: Some(filter), ..row });
    }

    /// Sets what a node takes from a peer; what was refused is asked for again.
    pub fn set_ingress(&mut self, at: usize, from: usize, change: impl FnOnce(&mut Filter)) {
        let mut filter = self.ingress(at, from);
        change(&mut filter);
        let peer = self.author(from);
        let row = self.society(at).peers.get(&peer).expect("acquainted").clone();
        self.put_peer(at, peer, PeerRow { ingress: Some(filter), ..row });
        self.readmit(at);
    }

    /// What a node takes from a peer.
    pub fn ingress(&mut self, at: usize, from: usize) -> Filter {
        let (society, peer) = (self.society(at), self.author(from));
        let row = society.peers.get(&peer).expect("acquainted");
        self.replica(at).examiner().ingress(row, &society)
    }

    /// Blocks an author on a node, or no longer; then what was refused is asked for again.
    pub fn block(&mut self, at: usize, author: AuthorId, is_blocked: bool) {
        let society = self.society(at);
        let unmet = PeerRow { approval: Approval::Refused, ..PeerRow::default() };
        let row = society.peers.get(&author).cloned().unwrap_or(unmet);
        self.put_peer(at, author, PeerRow { is_blocked, ..row });
        if !is_blocked {
            self.readmit(at);
        }
    }

    /// Whether a node has blocked an author.
    pub fn is_blocked(&mut self, at: usize, author: AuthorId) -> bool {
        self.society(at).peers.get(&author).is_some_and(|row| row.is_blocked)
    }

    fn readmit(&mut self, at: usize) {
        for other in 0..self.count() {
            let peer = self.author(other);
            let offers = self.snapshot(at).offers_of(peer).expect("readable");
            if offers.is_empty() {
                continue;
            }
            let acts = offers.into_iter().map(PeerAct::Readmit).chain([PeerAct::Rewind(peer)]);
            self.replica(at).note(acts.collect()).expect("noted");
            if other != at && self.network.is_linked(at, other) {
                self.happen(at, Event::Connected(peer));
            }
        }
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

    /// A node's store.
    pub fn store(&self, at: usize) -> StoreId {
        StoreId::from_bytes([self.members[at].key_seed; 16])
    }

    /// Puts a puppet in a node's place, under its key.
    pub fn possess(&mut self, at: usize, entries: &[EntryId], records: Vec<(u64, RawRecord)>) {
        self.members[at].replica = None;
        self.members[at].puppet = Some(Puppet::new(self.store(at), entries, records));
    }

    /// Founds a workspace with these members, the first its owner; all know its name.
    pub fn found(&mut self, members: &[usize]) -> WorkspaceId {
        let owner = members[0];
        let nonce = Nonce::from_bytes([7; 16]);
        let id = WorkspaceId::of(self.author(owner), nonce);
        let row =
            |since| WorkspaceRow { name: "team".into(), since, is_current: false, owner: None };
        for at in members {
            let since = self.now(*at);
            self.replica(*at).note(vec![PeerAct::NameWorkspace(id, row(since))]).expect("noted");
        }
        let mut claims = vec![Claim::Add(TextSet::OWNER_NONCES, nonce.to_string())];
        for at in &members[1..] {
            claims.push(Claim::Add(TextSet::MEMBERS, self.author(*at).to_string()));
        }
        let new = NewEntry {
            workspace: id,
            memory: Memory::Episodic,
            kind: Kind::Signal,
            title: "team".into(),
            content: "# Settings".into(),
            registers: Vec::new(),
            claims,
            citations: Vec::new(),
            source: Some(SourceKey { format: charter::FORMAT.into(), key: charter::KEY.into() }),
        };
        self.create(owner, new);
        id
    }

    // Time.

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

    // What there is to see.

    /// What a node knows of a peer's set and its own.
    pub fn state(&mut self, at: usize, peer: usize) -> SyncState {
        let peer = self.author(peer);
        self.replica(at).machine().state(peer)
    }

    /// Compares with a peer now.
    pub fn sync(&mut self, at: usize, peer: usize) {
        let peer = self.author(peer);
        self.happen(at, Event::Sync(peer));
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
