//! Replication on a thread of its own, over libp2p.
//!
//! The thread owns everything; whoever wants something of it sends a closure and waits for what it
//! returns. What others only look at (addresses, who is connected, how far it is in sync) is
//! published after every step.

mod learned;
mod turn;

use super::pairing::{Join, Joined, Joining, Joins, PairError};
use super::release::Examiner;
use super::replica::{Action, Event, Replica, Setup, Traffic};
use crate::engine::{self, PeerAct};
use crate::store::Error;
use crate::store::peers::Society;
use crate::store::peers::rows::PeerRow;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::SyncState;
use klnode_federation::proto::sas::Want;
use learned::Learned;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use turn::{Next, Others};

/// How replication is run.
pub struct Options {
    /// The network.
    pub net: net::Settings,
    /// What is decided, and how the protocol behaves.
    pub replica: Setup,
    /// What this node calls itself.
    pub name: String,
    /// Where it can be reached beside the addresses it listens on: by a name, or through a router.
    pub announced: Vec<String>,
    /// Keeps the port on which this node listens, to be its usual one.
    pub note_port: Box<dyn FnMut(u16) + Send>,
    /// How long a ticket is good.
    pub ticket_lifetime: Duration,
    /// How long an attempt to join by address may take.
    pub join_lifetime: Duration,
    /// The clock.
    pub now: fn() -> WallTime,
    /// Random bytes.
    pub entropy: fn(&mut [u8]),
}

/// What anyone may look at.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Where this node can be reached.
    pub addresses: Vec<String>,
    /// Who is connected, and from where.
    pub connected: BTreeMap<AuthorId, String>,
    /// What is known of each peer's and this node's sets.
    pub states: BTreeMap<AuthorId, SyncState>,
    /// Peers for which something was put out since both were last seen to hold the same.
    pub news_for: BTreeSet<AuthorId>,
    /// How far the clocks of connected peers were ahead of this one's when they greeted, in
    /// milliseconds.
    pub clocks: BTreeMap<AuthorId, i64>,
    /// How many records have passed between this node and its peers.
    pub traffic: Traffic,
    /// Nodes that were turned away lately, and why.
    pub turned_away: Vec<(WallTime, AuthorId, String)>,
    /// Joins by address that are under way, and this node's own that are over.
    pub joins: Vec<Join>,
    /// When this was so.
    pub now: WallTime,
}

type Call = Box<dyn FnOnce(&mut Core) + Send>;

/// A caller's end. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    live: Arc<RwLock<Live>>,
    changed: watch::Receiver<u64>,
    requests: watch::Receiver<u64>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("replicate::Handle")
    }
}

impl Handle {
    /// What there is to see.
    pub fn live(&self) -> Live {
        self.live.read().map(|live| live.clone()).unwrap_or_default()
    }

    /// Changes whenever there may be something new to see.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// The number of the newest request of another node to join by address.
    pub fn requests(&self) -> watch::Receiver<u64> {
        self.requests.clone()
    }

    /// Does something on the thread of replication, and waits for it.
    pub async fn call<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, PairError> {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |core| {
            // Whoever asked may have gone.
            let _ = reply.send(what(core));
        });
        self.calls.send(call).await.map_err(|_| PairError::Stopping)?;
        answer.await.map_err(|_| PairError::Stopping)
    }

    /// Waits until [`Handle::live`] shows everything that was done before.
    pub async fn published(&self) -> Result<(), PairError> {
        // What there is to see is published at the end of each turn, before the next call.
        self.call(|_| ()).await
    }

    /// Joins by a ticket, or by an address and what is asked for. By address it returns once the digits
    /// are known.
    pub async fn join(&self, target: String, want: Option<Want>) -> Result<Joined, PairError> {
        let (reply, answer) = oneshot::channel();
        self.call(move |core| core.join(&target, want, reply)).await?;
        answer.await.map_err(|_| PairError::Stopping)?
    }
}

/// Everything that the thread owns.
pub struct Core {
    pub(super) replica: Replica<engine::Handle>,
    pub(super) net: net::Handle,
    pub(super) own: AuthorId,
    pub(super) name: String,
    announced: Vec<String>,
    note_port: Box<dyn FnMut(u16) + Send>,
    pub(super) ticket_lifetime: Duration,
    pub(super) now: fn() -> WallTime,
    pub(super) entropy: fn(&mut [u8]),
    pub(super) listening: BTreeSet<String>,
    pub(super) connected: BTreeMap<AuthorId, String>,
    /// Joins that wait for a connection, and how many dials are under way for each.
    pub(super) dialling: BTreeMap<AuthorId, Joining>,
    pub(super) dials: BTreeMap<AuthorId, usize>,
    /// Joins that wait for an answer.
    pub(super) joining: BTreeMap<u64, Joining>,
    /// Joins by address.
    pub(super) joins: Joins,
    /// Offers of membership that wait for a peer's answer: to whom, and the ticket's name.
    pub(super) offers_asked: BTreeMap<u64, (AuthorId, [u8; 16])>,
    /// Peers to be read from the start.
    pub(super) again: BTreeSet<AuthorId>,
    learned: Learned,
    pair_id: u64,
    started: Instant,
    turned_away: Vec<(WallTime, AuthorId, String)>,
}

/// Numbers of pairing requests are apart from those of the protocol.
const PAIR_IDS: u64 = 1 << 63;
/// How many of those who were turned away are remembered.
const TURNED_AWAY_MAX: usize = 16;
/// Whoever is turned away again within so long is not told of once more.
const TURNED_AWAY_AGAIN: Duration = Duration::from_secs(60);
/// Time passes for the protocol at least this often: what could not be read is tried again.
const TICK_MS: u64 = 1_000;
/// Calls that may wait.
const CALLS_MAX: usize = 64;

/// Replication at work.
pub struct Running {
    handle: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Binds the network and starts the thread.
pub fn start(options: Options, engine: engine::Handle) -> Result<Running, net::NetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("klnode-network")
        .enable_all()
        .build()
        .expect("the system has room for one more thread");
    let request_timeout = options.net.limits.request_timeout;
    let (net, events) = runtime.block_on(net::start(options.net))?;
    let (calls, inbox) = mpsc::channel(CALLS_MAX);
    let live = Arc::new(RwLock::new(Live::default()));
    let (publish, changed) = watch::channel(0);
    let (stop, stopped) = oneshot::channel();
    let (to_requests, requests) = watch::channel(0);
    let own = options.replica.own;
    let shared = live.clone();
    let (name, ticket_lifetime) = (options.name, options.ticket_lifetime);
    let (now, entropy, setup) = (options.now, options.entropy, options.replica);
    let (announced, note_port) = (named(options.announced, own), options.note_port);
    let joins = Joins::new(own, options.join_lifetime, request_timeout, to_requests);
    let thread = std::thread::Builder::new()
        .name("klnode-replicator".into())
        .spawn(move || {
            let core = Core {
                replica: Replica::new(engine.clone(), setup),
                net,
                own,
                name,
                announced,
                note_port,
                ticket_lifetime,
                now,
                entropy,
                listening: BTreeSet::new(),
                connected: BTreeMap::new(),
                dialling: BTreeMap::new(),
                dials: BTreeMap::new(),
                joining: BTreeMap::new(),
                joins,
                offers_asked: BTreeMap::new(),
                again: BTreeSet::new(),
                learned: Learned::default(),
                pair_id: PAIR_IDS,
                started: Instant::now(),
                turned_away: Vec::new(),
            };
            let others = Others::new(inbox, engine.head(), stopped);
            serve(core, events, others, &runtime, &shared, &publish);
        })
        .expect("the system has room for one more thread");
    let handle = Handle { calls, live, changed, requests };
    Ok(Running { handle, stop, thread })
}

impl Running {
    /// A caller's end.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops talking to peers.
    pub fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// The addresses with this node's name at the end, as they are told to others.
fn named(announced: Vec<String>, own: AuthorId) -> Vec<String> {
    let id = net::peer_id_text(own);
    announced.into_iter().map(|address| format!("{address}/p2p/{id}")).collect()
}

fn serve(
    mut core: Core,
    mut events: net::Events,
    mut others: Others,
    runtime: &tokio::runtime::Runtime,
    live: &RwLock<Live>,
    publish: &watch::Sender<u64>,
) {
    core.welcome_back();
    let mut ticked_at = core.at();
    loop {
        let at = core.at();
        let due = core.replica.next_at(at).min(ticked_at.saturating_add(TICK_MS));
        let wait = Duration::from_millis(due.saturating_sub(at));
        let next = runtime.block_on(others.next(events.next(), wait));
        let is_over = matches!(next, Next::Stop | Next::Lost);
        let turn = AssertUnwindSafe(|| {
            match next {
                Next::Stop => return,
                Next::Lost => core.cut_off(),
                Next::Event(event) => core.happened(event),
                Next::Call(call) => call(&mut core),
                Next::Tick => {
                    ticked_at = core.at();
                    core.step(Event::Tick);
                    core.tick_joins();
                }
            }
            core.keep_learned();
            core.read_again();
            let seen = core.look();
            *live.write().unwrap_or_else(PoisonError::into_inner) = seen;
            core.joins.announce();
        });
        if catch_unwind(turn).is_err() {
            // A damaged page can make redb panic. Whoever waited is answered by what is dropped.
            tracing::error!("replication met something damaged, and goes on");
            core.replica.miss(core.at());
        }
        publish.send_modify(|number| *number += 1);
        if is_over {
            break;
        }
    }
    runtime.block_on(core.net.stop());
}

impl Core {
    /// The time since the start, in milliseconds.
    pub(super) fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Who is who now.
    pub fn society(&mut self) -> Result<Arc<Society>, Error> {
        let now = (self.now)();
        self.replica.society(now)
    }

    /// Decides what passes.
    pub fn examiner(&self) -> &Examiner {
        self.replica.examiner()
    }

    pub(super) fn next_pair_id(&mut self) -> u64 {
        self.pair_id += 1;
        self.pair_id
    }

    /// Remembers who was turned away. Whether that is news.
    pub(super) fn note_turned_away(&mut self, peer: AuthorId, reason: &str) -> bool {
        is_turned_away_anew(&mut self.turned_away, (self.now)(), peer, reason)
    }

    /// Without a network nobody is reached, and nobody should believe it.
    fn cut_off(&mut self) {
        tracing::error!("the network has ended by itself: start the node again to reach peers");
        self.listening.clear();
        self.connected.clear();
    }

    /// Dials everyone who may talk.
    fn welcome_back(&mut self) {
        let Ok(society) = self.society() else { return };
        for (peer, row) in &society.peers {
            if society.is_approved(*peer) {
                self.net.allow(*peer, row.places());
            }
        }
        self.step(Event::Tick);
    }

    /// Examines everything again for these peers.
    pub(super) fn changed(&mut self, peers: BTreeSet<AuthorId>) {
        self.step(Event::Changed(peers));
    }

    /// Compares with peers now. Returns when that began: what was so before is no answer to it.
    pub fn sync(&mut self, peers: &[AuthorId]) -> WallTime {
        let begun = (self.now)();
        for peer in peers {
            self.step(Event::Sync(*peer));
        }
        begun
    }

    /// A peer that was connected before it was approved.
    pub(super) fn begin_session(&mut self, peer: AuthorId) {
        self.step(Event::Connected(peer));
    }

    /// Peers whose outbox is to be read from the start are greeted anew.
    fn read_again(&mut self) {
        for peer in std::mem::take(&mut self.again) {
            if self.connected.contains_key(&peer) {
                self.begin_session(peer);
            }
        }
    }

    fn step(&mut self, event: Event<'_>) {
        let (now, at) = ((self.now)(), self.at());
        let mut actions = VecDeque::from(self.replica.handle(event, now, at));
        self.replica.took(at, self.at());
        while let Some(action) = actions.pop_front() {
            let taken = match action {
                Action::Ask(peer, id, frame) => {
                    let asked = self.net.request(peer, Protocol::Sync, id, frame);
                    if asked.is_err() {
                        // The network is too busy: as if no answer had come.
                        actions.extend(self.replica.handle(Event::Lost(peer, id), now, at));
                    }
                    asked
                }
                Action::Answer(exchange, frame) => self.net.respond(exchange, frame),
                Action::Disconnect(peer, ms) => {
                    self.net.disconnect(peer, Duration::from_millis(ms))
                }
            };
            if taken.is_err() {
                tracing::debug!("the network is too busy");
            }
        }
    }

    fn happened(&mut self, event: net::Event) {
        match event {
            net::Event::Listening { address, port } => {
                if self.listening.is_empty() {
                    (self.note_port)(port);
                }
                self.listening.insert(address);
            }
            net::Event::ListeningEnded { address } => {
                self.listening.remove(&address);
            }
            net::Event::Connected { peer, address, dialled } => {
                let is_new = self.connected.insert(peer, address).is_none();
                self.ask_to_pair(peer);
                self.found(peer, dialled);
                if is_new {
                    self.step(Event::Connected(peer));
                    self.send_offers(peer);
                }
            }
            net::Event::Disconnected { peer } => {
                self.connected.remove(&peer);
                self.step(Event::Disconnected(peer));
            }
            net::Event::Learned { peer, addresses } => self.learned.hear(peer, addresses),
            net::Event::Request { peer, protocol: Protocol::Sync, exchange, frame } => {
                self.step(Event::Asked(peer, exchange, &frame));
            }
            net::Event::Request { peer, protocol: Protocol::Pair, exchange, frame } => {
                self.pair_asked(peer, exchange, &frame);
            }
            net::Event::Response { id, frame, .. } if id >= PAIR_IDS => {
                self.pair_answered(id, &frame);
            }
            net::Event::Response { peer, id, frame } => {
                self.step(Event::Answered(peer, id, &frame));
            }
            net::Event::Failed { id, reason, .. } if id >= PAIR_IDS => {
                self.pair_lost(id, &reason);
            }
            net::Event::Failed { peer, id, is_unoffered: true, .. } => {
                self.step(Event::Unoffered(peer, id));
            }
            net::Event::Failed { peer, id, .. } => self.step(Event::Lost(peer, id)),
            net::Event::DialFailed { peer, dialled, reason } => {
                self.dial_failed(peer, &reason);
                self.not_found(dialled, &reason);
            }
        }
    }

    /// Keeps where peers can be reached, so that they are found again after a restart.
    fn keep_learned(&mut self) {
        let at = self.at();
        for (peer, addresses) in self.learned.take_due(at) {
            self.keep_places(peer, addresses);
        }
    }

    fn keep_places(&mut self, peer: AuthorId, addresses: Vec<String>) {
        let Ok(society) = self.society() else { return };
        let Some(row) = society.peers.get(&peer) else { return };
        if row.addresses != addresses && !addresses.is_empty() {
            let row = PeerRow { addresses, ..row.clone() };
            // It is learned again at the next contact.
            let _ = self.replica.note(vec![PeerAct::Put(peer, Box::new(row))]);
        }
    }

    /// Where this node can be reached, the farthest first: what is announced, what is on the network,
    /// what is on this machine.
    pub(super) fn addresses(&self) -> Vec<String> {
        if self.listening.is_empty() {
            return Vec::new();
        }
        let is_near = |one: &&String| one.contains("/127.0.0.1/") || one.contains("/::1/");
        let (near, far): (Vec<_>, Vec<_>) = self.listening.iter().partition(is_near);
        self.announced.iter().chain(far).chain(near).cloned().collect()
    }

    fn look(&mut self) -> Live {
        let mut addresses = self.addresses();
        addresses.reverse();
        let mut live = Live {
            addresses,
            connected: self.connected.clone(),
            turned_away: self.turned_away.clone(),
            joins: self.joins.look(self.at(), (self.now)()),
            now: (self.now)(),
            traffic: self.replica.traffic().clone(),
            ..Live::default()
        };
        let Ok(society) = self.society() else { return live };
        for peer in society.peers.keys() {
            live.states.insert(*peer, self.replica.machine().state(*peer));
            if self.replica.has_news_for(*peer) {
                live.news_for.insert(*peer);
            }
            if let Some(ahead) = self.replica.machine().clock_ahead_ms(*peer) {
                live.clocks.insert(*peer, ahead);
            }
        }
        live
    }
}

/// Puts whoever was turned away last, each once. Whether that is news, or was so a moment ago already:
/// a node that comes without end puts nobody else out, nor fills the log.
fn is_turned_away_anew(
    away: &mut Vec<(WallTime, AuthorId, String)>,
    now: WallTime,
    peer: AuthorId,
    reason: &str,
) -> bool {
    if let Some((at, _, why)) = away.iter_mut().find(|(_, of, _)| *of == peer)
        && now < at.plus(TURNED_AWAY_AGAIN)
    {
        reason.clone_into(why);
        return false;
    }
    away.retain(|(_, of, _)| *of != peer);
    away.push((now, peer, reason.to_owned()));
    if away.len() > TURNED_AWAY_MAX {
        away.remove(0);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_turned_away_all_the_time_is_news_once_a_minute_and_listed_once() {
        let start = WallTime::from_millis(1_790_000_000_000);
        let (loud, other) = (AuthorId::from_bytes([1; 32]), AuthorId::from_bytes([2; 32]));
        let mut away = Vec::new();
        assert!(is_turned_away_anew(&mut away, start, other, "used"));
        let mut news = 0;
        for second in 0..120 {
            let now = start.plus(Duration::from_secs(second));
            news += u64::from(is_turned_away_anew(&mut away, now, loud, "refused"));
        }
        assert_eq!(news, 2);
        assert!(!is_turned_away_anew(&mut away, start, loud, "blocked"));
        let listed: Vec<_> = away.iter().map(|(_, of, why)| (*of, why.as_str())).collect();
        assert_eq!(listed, [(other, "used"), (loud, "blocked")]);
    }
}
