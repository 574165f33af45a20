//! The replication actor: a thread that runs replication over libp2p.
//!
//! The thread owns all state. A caller sends a closure and waits for its result. Data that callers
//! only read (addresses, connections, sync states) is published after every step.

mod address_updates;
mod fair_select;

use super::join_attempts::{JoinAttempt, JoinResult, Joins, TicketJoin};
use super::pair_error::PairError;
use super::release_policy::ReleasePolicy;
use super::replica::{Replica, ReplicaAction, ReplicaEvent, Setup, Traffic};
use address_updates::PendingAddresses;
use fair_select::{ActorInput, OtherInputs};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_engine::{self, PeerCommand};
use klnode_federation::net::{self, Protocol};
use klnode_federation::proto::SyncState;
use klnode_federation::proto::sas::RequestedRole;
use klnode_store::Error;
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::PeerRow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// The configuration of the actor.
pub struct Options {
    /// The settings of the network: addresses, ports and limits of connections.
    pub net: net::Settings,
    /// The release policy and the protocol settings.
    pub replica: Setup,
    /// The name of this node for its peers.
    pub name: String,
    /// Addresses of this node in addition to those it listens on, such as a host name or a router's
    /// address.
    pub announced: Vec<String>,
    /// Stores the port on which this node listens, so that it is used again at the next start.
    pub note_port: Box<dyn FnMut(u16) + Send>,
    /// Time from issue after which a ticket expires.
    pub ticket_lifetime: Duration,
    /// Time after which an undecided request to join by address expires.
    pub join_lifetime: Duration,
    /// The wall clock.
    pub now: fn() -> WallTime,
    /// Fills a buffer with random bytes.
    pub entropy: fn(&mut [u8]),
}

/// A published snapshot of the actor's state.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// Addresses at which peers can reach this node.
    pub addresses: Vec<String>,
    /// Connected peers and their addresses.
    pub connected: BTreeMap<AuthorId, String>,
    /// The result of the last comparison of records with each peer.
    pub states: BTreeMap<AuthorId, SyncState>,
    /// Peers whose outbox has grown since both sets were last equal.
    pub news_for: BTreeSet<AuthorId>,
    /// The lead of connected peers' clocks over this node's clock at the handshake, in
    /// milliseconds.
    pub clocks: BTreeMap<AuthorId, i64>,
    /// Numbers of records received from and sent to peers.
    pub traffic: Traffic,
    /// Nodes that were turned away recently, with the reason.
    pub turned_away: Vec<(WallTime, AuthorId, String)>,
    /// Pending joins by address, and finished joins that this node began.
    pub joins: Vec<JoinAttempt>,
    /// The wall-clock time at which this snapshot was taken.
    pub now: WallTime,
}

type ActorCall = Box<dyn FnOnce(&mut ReplicationActor) + Send>;

/// A handle to the actor. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    calls: mpsc::Sender<ActorCall>,
    live: Arc<RwLock<LiveState>>,
    changed: watch::Receiver<u64>,
    requests: watch::Receiver<u64>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("replicate::Handle")
    }
}

impl Handle {
    /// The latest published state.
    pub fn live(&self) -> LiveState {
        self.live.read().map(|live| live.clone()).unwrap_or_default()
    }

    /// A counter that changes whenever the published state may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// The number of the newest request of another node to join by address.
    pub fn requests(&self) -> watch::Receiver<u64> {
        self.requests.clone()
    }

    /// Runs a closure on the actor's thread and waits for the result.
    pub async fn call<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut ReplicationActor) -> T + Send + 'static,
    ) -> Result<T, PairError> {
        let (reply, answer) = oneshot::channel();
        let call: ActorCall = Box::new(move |core| {
            // The caller may have been dropped.
            let _ = reply.send(what(core));
        });
        self.calls.send(call).await.map_err(|_| PairError::Stopping)?;
        answer.await.map_err(|_| PairError::Stopping)
    }

    /// Waits until [`Handle::live`] shows the effect of all earlier calls.
    pub async fn wait_published(&self) -> Result<(), PairError> {
        // The state is published at the end of each turn, before the next call.
        self.call(|_| ()).await
    }

    /// Joins by a ticket, or by an address with the requested relation. A join by address returns
    /// as soon as the digits are known.
    pub async fn join(
        &self,
        target: String,
        want: Option<RequestedRole>,
    ) -> Result<JoinResult, PairError> {
        let (reply, answer) = oneshot::channel();
        self.call(move |core| core.join(&target, want, reply)).await?;
        answer.await.map_err(|_| PairError::Stopping)?
    }
}

/// The state of the actor.
pub struct ReplicationActor {
    pub(super) replica: Replica<klnode_engine::Handle>,
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
    /// Joins that wait for a connection, and the number of dials in progress for each.
    pub(super) dialling: BTreeMap<AuthorId, TicketJoin>,
    pub(super) dials: BTreeMap<AuthorId, usize>,
    /// Joins that wait for a response.
    pub(super) joining: BTreeMap<u64, TicketJoin>,
    /// Joins by address.
    pub(super) joins: Joins,
    /// Offers of membership that wait for a peer's response: the peer and the name of the ticket.
    pub(super) offers_asked: BTreeMap<u64, (AuthorId, [u8; 16])>,
    /// Peers whose outbox must be read from the start.
    pub(super) again: BTreeSet<AuthorId>,
    learned: PendingAddresses,
    pair_id: u64,
    started: Instant,
    turned_away: Vec<(WallTime, AuthorId, String)>,
}

/// Ids of pairing requests start here, so that they differ from those of the protocol.
const PAIR_IDS: u64 = 1 << 63;
/// Maximum number of nodes in the list of those that were turned away.
const TURNED_AWAY_MAX: usize = 16;
/// Time within which a node that is turned away again is not logged again.
const TURNED_AWAY_AGAIN: Duration = Duration::from_secs(60);
/// Longest interval between two ticks of the protocol, in milliseconds. A tick retries failed
/// reads, for example.
const TICK_MS: u64 = 1_000;
/// Maximum number of calls in the queue.
const CALLS_MAX: usize = 64;

/// A running actor.
pub struct ReplicationThread {
    handle: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Binds the network and starts the thread.
pub fn start(
    options: Options,
    engine: klnode_engine::Handle,
) -> Result<ReplicationThread, net::NetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("klnode-network")
        .enable_all()
        .build()
        .expect("the system has room for one more thread");
    let request_timeout = options.net.limits.request_timeout;
    let (net, events) = runtime.block_on(net::start(options.net))?;
    let (calls, inbox) = mpsc::channel(CALLS_MAX);
    let live = Arc::new(RwLock::new(LiveState::default()));
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
            let core = ReplicationActor {
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
                learned: PendingAddresses::default(),
                pair_id: PAIR_IDS,
                started: Instant::now(),
                turned_away: Vec::new(),
            };
            let others = OtherInputs::new(inbox, engine.head(), stopped);
            serve(core, events, others, &runtime, &shared, &publish);
        })
        .expect("the system has room for one more thread");
    let handle = Handle { calls, live, changed, requests };
    Ok(ReplicationThread { handle, stop, thread })
}

impl ReplicationThread {
    /// A handle to the actor.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops replication and waits for the thread.
    pub fn stop(self) {
        // Sending fails if the thread has ended already.
        let _ = self.stop.send(());
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// The announced addresses with this node's peer id appended.
fn named(announced: Vec<String>, own: AuthorId) -> Vec<String> {
    let id = net::peer_id_text(own);
    announced.into_iter().map(|address| format!("{address}/p2p/{id}")).collect()
}

fn serve(
    mut core: ReplicationActor,
    mut events: net::Events,
    mut others: OtherInputs,
    runtime: &tokio::runtime::Runtime,
    live: &RwLock<LiveState>,
    publish: &watch::Sender<u64>,
) {
    core.dial_approved();
    let mut ticked_at = core.at();
    loop {
        let at = core.at();
        let due = core.replica.next_at(at).min(ticked_at.saturating_add(TICK_MS));
        let wait = Duration::from_millis(due.saturating_sub(at));
        let next = runtime.block_on(others.next(events.next(), wait));
        let is_over = matches!(next, ActorInput::Stop | ActorInput::Lost);
        let turn = AssertUnwindSafe(|| {
            match next {
                ActorInput::Stop => return,
                ActorInput::Lost => core.clear_connections(),
                ActorInput::Event(event) => core.handle_event(event),
                ActorInput::Call(call) => call(&mut core),
                ActorInput::Tick => {
                    ticked_at = core.at();
                    core.step(ReplicaEvent::Tick);
                    core.tick_joins();
                }
            }
            core.store_due_addresses();
            core.read_again();
            let seen = core.live_state();
            *live.write().unwrap_or_else(PoisonError::into_inner) = seen;
            core.joins.announce();
        });
        if catch_unwind(turn).is_err() {
            // A damaged page can make redb panic. Dropping the reply channel answers a waiting
            // caller.
            tracing::error!(
                "Replication panicked, probably on damaged data, and continues; run `klnode check store`"
            );
            core.replica.miss(core.at());
        }
        publish.send_modify(|number| *number += 1);
        if is_over {
            break;
        }
    }
    runtime.block_on(core.net.stop());
}

impl ReplicationActor {
    /// Monotonic time since the start of the actor, in milliseconds.
    pub(super) fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The peers and workspaces as of now.
    pub fn membership(&mut self) -> Result<Arc<Membership>, Error> {
        let now = (self.now)();
        self.replica.membership(now)
    }

    /// The release policy.
    pub fn policy(&self) -> &ReleasePolicy {
        self.replica.policy()
    }

    pub(super) fn next_pair_id(&mut self) -> u64 {
        self.pair_id += 1;
        self.pair_id
    }

    /// Records a node that was turned away. Returns whether to log it.
    pub(super) fn note_turned_away(&mut self, peer: AuthorId, reason: &str) -> bool {
        note_turned_away_in(&mut self.turned_away, (self.now)(), peer, reason)
    }

    /// Clears the published connections, because without a network there are none.
    fn clear_connections(&mut self) {
        tracing::error!("The network stopped unexpectedly; restart the node to reach peers");
        self.listening.clear();
        self.connected.clear();
    }

    /// Dials all approved peers.
    fn dial_approved(&mut self) {
        let Ok(membership) = self.membership() else { return };
        for (peer, row) in &membership.peers {
            if membership.is_approved(*peer) {
                self.net.allow(*peer, row.places());
            }
        }
        self.step(ReplicaEvent::Tick);
    }

    /// Examines all entries again for these peers.
    pub(super) fn changed(&mut self, peers: BTreeSet<AuthorId>) {
        self.step(ReplicaEvent::Changed(peers));
    }

    /// Compares with peers now. Returns the start time: earlier results do not answer this request.
    pub fn sync(&mut self, peers: &[AuthorId]) -> WallTime {
        let begun = (self.now)();
        for peer in peers {
            self.step(ReplicaEvent::Sync(*peer));
        }
        begun
    }

    /// Starts a session with a peer that was connected before it was approved.
    pub(super) fn begin_session(&mut self, peer: AuthorId) {
        self.step(ReplicaEvent::Connected(peer));
    }

    /// Starts new sessions with the peers whose outbox must be read from the start.
    fn read_again(&mut self) {
        for peer in std::mem::take(&mut self.again) {
            if self.connected.contains_key(&peer) {
                self.begin_session(peer);
            }
        }
    }

    fn step(&mut self, event: ReplicaEvent<'_>) {
        let (now, at) = ((self.now)(), self.at());
        let mut actions = VecDeque::from(self.replica.handle(event, now, at));
        self.replica.report_duration(at, self.at());
        while let Some(action) = actions.pop_front() {
            let taken = match action {
                ReplicaAction::Ask(peer, id, frame) => {
                    let asked = self.net.request(peer, Protocol::Sync, id, frame);
                    if asked.is_err() {
                        // The network queue is full: treated like a lost response.
                        actions.extend(self.replica.handle(ReplicaEvent::Lost(peer, id), now, at));
                    }
                    asked
                }
                ReplicaAction::Answer(exchange, frame) => self.net.respond(exchange, frame),
                ReplicaAction::Disconnect(peer, ms) => {
                    self.net.disconnect(peer, Duration::from_millis(ms))
                }
            };
            if taken.is_err() {
                tracing::debug!("The network queue is full; dropping a message");
            }
        }
    }

    fn handle_event(&mut self, event: net::Event) {
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
                self.continue_after_dial(peer, dialled);
                if is_new {
                    self.step(ReplicaEvent::Connected(peer));
                    self.send_offers(peer);
                }
            }
            net::Event::Disconnected { peer } => {
                self.connected.remove(&peer);
                self.step(ReplicaEvent::Disconnected(peer));
            }
            net::Event::Learned { peer, addresses } => self.learned.hear(peer, addresses),
            net::Event::Request { peer, protocol: Protocol::Sync, exchange, frame } => {
                self.step(ReplicaEvent::Asked(peer, exchange, &frame));
            }
            net::Event::Request { peer, protocol: Protocol::Pair, exchange, frame } => {
                self.pair_asked(peer, exchange, &frame);
            }
            net::Event::Response { id, frame, .. } if id >= PAIR_IDS => {
                self.pair_answered(id, &frame);
            }
            net::Event::Response { peer, id, frame } => {
                self.step(ReplicaEvent::Answered(peer, id, &frame));
            }
            net::Event::Failed { id, reason, .. } if id >= PAIR_IDS => {
                self.pair_lost(id, &reason);
            }
            net::Event::Failed { peer, id, is_unoffered: true, .. } => {
                self.step(ReplicaEvent::Unoffered(peer, id));
            }
            net::Event::Failed { peer, id, .. } => self.step(ReplicaEvent::Lost(peer, id)),
            net::Event::DialFailed { peer, dialled, reason } => {
                self.dial_failed(peer, &reason);
                self.not_found(dialled, &reason);
            }
        }
    }

    /// Stores the addresses of peers, so that they are found again after a restart.
    fn store_due_addresses(&mut self) {
        let at = self.at();
        for (peer, addresses) in self.learned.take_due(at) {
            self.store_addresses(peer, addresses);
        }
    }

    fn store_addresses(&mut self, peer: AuthorId, addresses: Vec<String>) {
        let Ok(membership) = self.membership() else { return };
        let Some(row) = membership.peers.get(&peer) else { return };
        if row.addresses != addresses && !addresses.is_empty() {
            let row = PeerRow { addresses, ..row.clone() };
            // A failure is ignored: the addresses are learned again at the next contact.
            let _ = self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))]);
        }
    }

    /// The addresses of this node, farthest first: announced ones, those on the network, loopback.
    pub(super) fn addresses(&self) -> Vec<String> {
        if self.listening.is_empty() {
            return Vec::new();
        }
        let is_near = |one: &&String| one.contains("/127.0.0.1/") || one.contains("/::1/");
        let (near, far): (Vec<_>, Vec<_>) = self.listening.iter().partition(is_near);
        self.announced.iter().chain(far).chain(near).cloned().collect()
    }

    fn live_state(&mut self) -> LiveState {
        let mut addresses = self.addresses();
        addresses.reverse();
        let mut live = LiveState {
            addresses,
            connected: self.connected.clone(),
            turned_away: self.turned_away.clone(),
            joins: self.joins.list(self.at(), (self.now)()),
            now: (self.now)(),
            traffic: self.replica.traffic().clone(),
            ..LiveState::default()
        };
        let Ok(membership) = self.membership() else { return live };
        for peer in membership.peers.keys() {
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

/// Moves a node to the end of the list of those turned away and keeps it once. Returns whether to
/// log it: false if it was turned away a moment ago. So a node that retries endlessly neither
/// evicts others from the list nor fills the log.
fn note_turned_away_in(
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
    fn a_node_that_retries_is_logged_once_a_minute_and_listed_once() {
        let start = WallTime::from_millis(1_790_000_000_000);
        let (loud, other) = (AuthorId::from_bytes([1; 32]), AuthorId::from_bytes([2; 32]));
        let mut away = Vec::new();
        assert!(note_turned_away_in(&mut away, start, other, "used"));
        let mut news = 0;
        for second in 0..120 {
            let now = start.plus(Duration::from_secs(second));
            news += u64::from(note_turned_away_in(&mut away, now, loud, "refused"));
        }
        assert_eq!(news, 2);
        assert!(!note_turned_away_in(&mut away, start, loud, "blocked"));
        let listed: Vec<_> = away.iter().map(|(_, of, why)| (*of, why.as_str())).collect();
        assert_eq!(listed, [(other, "used"), (loud, "blocked")]);
    }
}
