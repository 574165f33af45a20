//! The actor that owns all connections. It turns intents and commands into libp2p calls, and libp2p
//! events into [`Event`]s (in `swarm_events`).
//!
//! It never blocks on a single peer. While events wait to be read, it accepts neither commands nor
//! network input, only changes of approval. So a caller that falls behind slows its peers down
//! instead of filling memory.

mod swarm_events;

use super::address_book::AddressBook;
use super::handle::{ActorChannels, NetCommand, PeerIntent};
use super::pairing_rate_limit::{self, PairingRateLimit, RateDecision};
use super::swarm::{Behaviour, BehaviourEvent};
use super::{Event, Limits, Protocol, address};
use klnode_crdt::ids::AuthorId;
use libp2p::PeerId;
use libp2p::core::Multiaddr;
use libp2p::futures::StreamExt;
use libp2p::request_response::{InboundRequestId, OutboundRequestId, ResponseChannel};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, Swarm, SwarmEvent};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum number of unanswered requests to one peer.
const REQUESTS_PER_PEER_MAX: usize = 16;

/// Time limit for closing all connections on shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct NetworkActor {
    swarm: Swarm<Behaviour>,
    own: AuthorId,
    limits: Limits,
    ends: ActorChannels,
    book: AddressBook,
    /// Events not yet delivered. The actor accepts no new input until this queue is empty.
    outbox: VecDeque<Event>,
    /// Open connections of each peer.
    connections: BTreeMap<PeerId, BTreeMap<ConnectionId, PeerConnection>>,
    /// Addresses announced by connected peers, kept because a stranger may be approved later.
    announced: BTreeMap<PeerId, Vec<Multiaddr>>,
    /// One-off dials, with the text passed to [`super::Handle::dial`].
    dials: BTreeMap<ConnectionId, String>,
    /// Requests of peers that wait for our answer.
    exchanges: BTreeMap<u64, (Protocol, InboundRequestId, ResponseChannel<Vec<u8>>)>,
    next_exchange: u64,
    /// Our requests that wait for a peer's answer, with the caller's request id.
    pending_requests: BTreeMap<(Protocol, OutboundRequestId), (PeerId, u64)>,
    pairs: PairingRateLimit,
}

/// The next input of the actor.
enum ActorEvent {
    Nothing,
    Command(NetCommand),
    Network(Box<SwarmEvent<BehaviourEvent>>),
    Due,
    End,
}

struct PeerConnection {
    address: Multiaddr,
    opened: Instant,
    is_closing: bool,
}

impl NetworkActor {
    pub(super) fn new(
        swarm: Swarm<Behaviour>,
        own: AuthorId,
        limits: Limits,
        ends: ActorChannels,
    ) -> Self {
        Self {
            book: AddressBook::new(*swarm.local_peer_id(), &limits),
            swarm,
            own,
            limits,
            ends,
            outbox: VecDeque::new(),
            connections: BTreeMap::new(),
            announced: BTreeMap::new(),
            dials: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            next_exchange: 0,
            pending_requests: BTreeMap::new(),
            pairs: PairingRateLimit::new(Instant::now()),
        }
    }

    /// Runs until it is stopped or all handles or the event receiver are dropped.
    pub(super) async fn run(mut self) {
        loop {
            self.apply_wishes();
            let next = self.next().await;
            // Changes of approval made before a command take effect before it.
            self.apply_wishes();
            match next {
                ActorEvent::Nothing => {}
                ActorEvent::Command(command) => self.run_command(command),
                ActorEvent::Network(event) => self.handle_swarm_event(*event),
                ActorEvent::Due => self.tick(),
                ActorEvent::End => break,
            }
        }
        self.shut_down().await;
    }

    /// Waits for the next input.
    async fn next(&mut self) -> ActorEvent {
        let due = self.next_due();
        let Self { swarm, outbox, ends, .. } = self;
        let is_idle = outbox.is_empty();
        let stopped = async { ends.stop.wait_for(|stop| *stop).await.map_or((), drop) };
        tokio::select! {
            // Dropping all handles also ends the actor.
            () = stopped => ActorEvent::End,
            () = ends.wishes.changed() => ActorEvent::Nothing,
            permit = ends.events.reserve(), if !is_idle => match (permit, outbox.pop_front()) {
                (Ok(permit), Some(event)) => {
                    permit.send(event);
                    ActorEvent::Nothing
                }
                _ => ActorEvent::End,
            },
            command = ends.commands.recv(), if is_idle => command.map_or(ActorEvent::End, ActorEvent::Command),
            event = swarm.select_next_some(), if is_idle => ActorEvent::Network(Box::new(event)),
            () = until(due), if is_idle => ActorEvent::Due,
        }
    }

    /// Closes every connection gracefully, within a time limit.
    async fn shut_down(mut self) {
        for peer in self.connections.keys().copied().collect::<Vec<_>>() {
            self.close_connections(peer);
        }
        let shutdown = async {
            while self.swarm.connected_peers().next().is_some() {
                self.swarm.select_next_some().await;
            }
        };
        drop(timeout(SHUTDOWN_TIMEOUT, shutdown).await);
        let Self { swarm, ends, .. } = self;
        drop(swarm);
        drop(ends.done);
    }

    fn next_due(&self) -> Option<Instant> {
        let strangers = self.connections.iter().filter(|(peer, _)| !self.is_approved(peer));
        let ends = strangers
            .flat_map(|(_, connections)| connections.values())
            .filter(|connection| !connection.is_closing)
            .map(|connection| connection.opened + self.limits.stranger_lifetime);
        ends.chain(self.book.next_due()).min()
    }

    /// Dials peers that are due and closes expired connections of strangers.
    fn tick(&mut self) {
        let now = Instant::now();
        for (peer, addresses) in self.book.take_due(now) {
            let dial = DialOpts::peer_id(peer)
                .condition(PeerCondition::DisconnectedAndNotDialing)
                .addresses(addresses)
                .allocate_new_port()
                .build();
            let id = dial.connection_id();
            if let Err(error) = self.swarm.dial(dial) {
                self.dial_failed(Some(peer), id, &error);
            }
        }
        let lifetime = self.limits.stranger_lifetime;
        let gate = &self.swarm.behaviour().gate;
        let strangers = self.connections.iter_mut().filter(|(peer, _)| !gate.is_approved(peer));
        let connections = strangers.flat_map(|(_, connections)| connections.iter_mut());
        let old = connections.filter(|(_, connection)| {
            !connection.is_closing && connection.opened + lifetime <= now
        });
        let close: Vec<ConnectionId> = old
            .map(|(id, connection)| {
                connection.is_closing = true;
                *id
            })
            .collect();
        for id in close {
            self.swarm.close_connection(id);
        }
    }

    fn apply_wishes(&mut self) {
        for (author, wish) in self.ends.wishes.take() {
            let peer = address::peer_id(&author);
            if author == self.own {
                continue;
            }
            match wish {
                PeerIntent::Allow(addresses) => self.allow(author, peer, &addresses),
                PeerIntent::Forbid => self.forbid(peer),
            }
        }
    }

    fn allow(&mut self, author: AuthorId, peer: PeerId, addresses: &[String]) {
        let mut usable = Vec::new();
        for text in addresses {
            let reason = match address::parse(text) {
                Ok((of, address)) if of.is_none_or(|of| of == author) => {
                    usable.push(address);
                    continue;
                }
                Ok(_) => "the address names another peer".to_owned(),
                Err(error) => error.to_string(),
            };
            let (peer, dialled) = (Some(author), None);
            self.outbox.push_back(Event::DialFailed { peer, dialled, reason });
        }
        self.swarm.behaviour_mut().gate.approve(peer);
        self.swarm.behaviour_mut().sync.approve(peer);
        self.book.allow(peer, usable, Instant::now());
        self.note_connected(&peer);
        if let Some(announced) = self.announced.get(&peer).cloned() {
            self.learn(author, peer, announced);
        }
    }

    fn forbid(&mut self, peer: PeerId) {
        let behaviour = self.swarm.behaviour_mut();
        // A peer that was never approved keeps its connection, because it may be pairing on it.
        if behaviour.gate.is_approved(&peer) {
            behaviour.gate.disapprove(peer);
            behaviour.sync.disapprove(peer);
            self.book.forbid(&peer);
            self.close_connections(peer);
        }
    }

    /// Disconnects a peer and refuses it until the given time.
    fn ban(&mut self, peer: PeerId, until: Instant) {
        self.swarm.behaviour_mut().gate.keep_away(peer, until);
        self.book.stay_away(&peer, until);
        self.close_connections(peer);
    }

    /// Applies the rate limit to a pairing request. A peer that asks too often is banned for a
    /// while. If too many strangers ask, the connection is closed, and the stranger may try again.
    fn may_pair(&mut self, peer: PeerId) -> bool {
        let now = Instant::now();
        match self.pairs.ask(peer, self.is_approved(&peer), now) {
            RateDecision::Fine => return true,
            RateDecision::TooOften => self.ban(peer, now + pairing_rate_limit::AWAY),
            RateDecision::TooMany => self.close_connections(peer),
        }
        tracing::debug!(%peer, "The rate limit dropped a pairing request");
        false
    }

    /// Closes all connections with a peer.
    fn close_connections(&mut self, peer: PeerId) {
        self.swarm.disconnect_peer_id(peer).unwrap_or_default();
    }

    /// Tells the address book about a peer that is already connected.
    fn note_connected(&mut self, peer: &PeerId) {
        if self.connections.contains_key(peer) {
            self.book.connected(peer, Instant::now());
        }
    }

    fn learn(&mut self, author: AuthorId, peer: PeerId, addresses: Vec<Multiaddr>) {
        let texts = addresses.iter().map(Multiaddr::to_string).collect();
        if self.book.learn(&peer, addresses) {
            self.outbox.push_back(Event::Learned { peer: author, addresses: texts });
        }
    }

    fn run_command(&mut self, command: NetCommand) {
        match command {
            NetCommand::Dial { address } => self.dial(&address),
            NetCommand::Request { peer, protocol, id, frame } => {
                if let Err(reason) = self.request(peer, protocol, id, frame) {
                    let reason = reason.to_owned();
                    let is_unoffered = false;
                    self.outbox.push_back(Event::Failed { peer, id, reason, is_unoffered });
                }
            }
            NetCommand::Respond { exchange, frame } => {
                let Some((protocol, _, channel)) = self.exchanges.remove(&exchange) else { return };
                if frame.len() > self.frame_bytes_max(protocol) {
                    tracing::error!(
                        bytes = frame.len(),
                        "An answer exceeds the frame limit; it was not sent"
                    );
                } else {
                    let behaviour = self.swarm.behaviour_mut().exchanges(protocol);
                    drop(behaviour.send_response(channel, frame));
                }
            }
            NetCommand::Disconnect { peer, for_ } => {
                self.ban(address::peer_id(&peer), Instant::now() + for_);
            }
        }
    }

    fn dial(&mut self, text: &str) {
        let (author, address) = match address::parse(text) {
            Ok(read) => read,
            Err(error) => {
                let (reason, dialled) = (error.to_string(), Some(text.to_owned()));
                self.outbox.push_back(Event::DialFailed { peer: None, dialled, reason });
                return;
            }
        };
        let peer = author.map(|author| address::peer_id(&author));
        if let (Some(author), Some(peer)) = (author, peer) {
            let connection =
                self.connections.get(&peer).and_then(|connections| connections.values().next());
            if let Some(connection) = connection {
                self.outbox.push_back(connection.connected(author, Some(text.to_owned())));
                return;
            }
        }
        let dial = match peer {
            Some(peer) => DialOpts::peer_id(peer)
                .condition(PeerCondition::Always)
                .addresses(vec![address])
                .allocate_new_port()
                .build(),
            None => DialOpts::unknown_peer_id().address(address).allocate_new_port().build(),
        };
        let id = dial.connection_id();
        self.dials.insert(id, text.to_owned());
        if let Err(error) = self.swarm.dial(dial) {
            self.dial_failed(peer, id, &error);
        }
    }

    fn request(
        &mut self,
        author: AuthorId,
        protocol: Protocol,
        id: u64,
        frame: Vec<u8>,
    ) -> Result<(), &'static str> {
        let peer = address::peer_id(&author);
        if frame.len() > self.frame_bytes_max(protocol) {
            return Err("the request is longer than a frame may be");
        }
        if !self.connections.contains_key(&peer) {
            return Err("the peer is not connected");
        }
        if protocol == Protocol::Sync && !self.is_approved(&peer) {
            return Err("the peer is not approved");
        }
        if self.pending_requests.values().filter(|(of, _)| *of == peer).count()
            >= REQUESTS_PER_PEER_MAX
        {
            return Err("too many requests wait for this peer");
        }
        let behaviour = self.swarm.behaviour_mut().exchanges(protocol);
        let request = behaviour.send_request(&peer, frame);
        self.pending_requests.insert((protocol, request), (peer, id));
        Ok(())
    }

    fn is_approved(&self, peer: &PeerId) -> bool {
        self.swarm.behaviour().gate.is_approved(peer)
    }

    fn frame_bytes_max(&self, protocol: Protocol) -> usize {
        match protocol {
            Protocol::Sync => self.limits.frame_bytes_max,
            Protocol::Pair => self.limits.pairing_frame_bytes_max,
        }
    }
}

impl PeerConnection {
    fn connected(&self, peer: AuthorId, dialled: Option<String>) -> Event {
        Event::Connected { peer, address: self.address.to_string(), dialled }
    }
}

/// Sleeps until a time; without one, for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
