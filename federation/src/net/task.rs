//! The task that owns all connections: it turns wishes and commands into calls of libp2p, and what
//! libp2p reports into events (`reported`).
//!
//! It never waits for anything but the next thing to do. While events wait to be read it takes
//! neither commands nor anything from the network, only wishes: so a caller that falls behind
//! slows its peers and fills no memory.

mod reported;

use super::book::Book;
use super::handle::{Command, Ends, Wish};
use super::pairs::{self, Asked, Pairs};
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

/// Requests to one peer that wait for an answer.
const REQUESTS_PER_PEER_MAX: usize = 16;

/// How long closing everything may take.
const FAREWELL: Duration = Duration::from_secs(1);

pub(super) struct Task {
    swarm: Swarm<Behaviour>,
    own: AuthorId,
    limits: Limits,
    ends: Ends,
    book: Book,
    /// Events that are on their way out. Nothing new happens before it is empty.
    outbox: VecDeque<Event>,
    /// The open connections of each peer.
    lines: BTreeMap<PeerId, BTreeMap<ConnectionId, Line>>,
    /// Where connected peers say they are: a stranger may be approved later.
    told: BTreeMap<PeerId, Vec<Multiaddr>>,
    /// Single dials, by the text that named them.
    dials: BTreeMap<ConnectionId, String>,
    /// Requests of peers that wait for our answer.
    exchanges: BTreeMap<u64, (Protocol, InboundRequestId, ResponseChannel<Vec<u8>>)>,
    next_exchange: u64,
    /// Our requests that wait for a peer's answer, with the caller's number.
    asked: BTreeMap<(Protocol, OutboundRequestId), (PeerId, u64)>,
    pairs: Pairs,
}

/// What there is to do.
enum Next {
    Nothing,
    Command(Command),
    Network(Box<SwarmEvent<BehaviourEvent>>),
    Due,
    End,
}

/// One open connection.
struct Line {
    address: Multiaddr,
    opened: Instant,
    is_closing: bool,
}

impl Task {
    pub(super) fn new(swarm: Swarm<Behaviour>, own: AuthorId, limits: Limits, ends: Ends) -> Self {
        Self {
            book: Book::new(*swarm.local_peer_id(), &limits),
            swarm,
            own,
            limits,
            ends,
            outbox: VecDeque::new(),
            lines: BTreeMap::new(),
            told: BTreeMap::new(),
            dials: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            next_exchange: 0,
            asked: BTreeMap::new(),
            pairs: Pairs::new(Instant::now()),
        }
    }

    /// Runs until it is stopped or nobody is left to talk to.
    pub(super) async fn run(mut self) {
        loop {
            self.heed_wishes();
            let next = self.next().await;
            // What was wished before a command was given comes before it.
            self.heed_wishes();
            match next {
                Next::Nothing => {}
                Next::Command(command) => self.obey(command),
                Next::Network(event) => self.take(*event),
                Next::Due => self.tick(),
                Next::End => break,
            }
        }
        self.part().await;
    }

    /// Waits for the next thing to do.
    async fn next(&mut self) -> Next {
        let due = self.next_due();
        let Self { swarm, outbox, ends, .. } = self;
        let is_idle = outbox.is_empty();
        let stopped = async { ends.stop.wait_for(|stop| *stop).await.map_or((), drop) };
        tokio::select! {
            // Handles that are all dropped without a word end it as well.
            () = stopped => Next::End,
            () = ends.wishes.changed() => Next::Nothing,
            permit = ends.events.reserve(), if !is_idle => match (permit, outbox.pop_front()) {
                (Ok(permit), Some(event)) => {
                    permit.send(event);
                    Next::Nothing
                }
                _ => Next::End,
            },
            command = ends.commands.recv(), if is_idle => command.map_or(Next::End, Next::Command),
            event = swarm.select_next_some(), if is_idle => Next::Network(Box::new(event)),
            () = until(due), if is_idle => Next::Due,
        }
    }

    /// Closes every connection in good order, if the peers let it.
    async fn part(mut self) {
        for peer in self.lines.keys().copied().collect::<Vec<_>>() {
            self.leave(peer);
        }
        let farewell = async {
            while self.swarm.connected_peers().next().is_some() {
                self.swarm.select_next_some().await;
            }
        };
        drop(timeout(FAREWELL, farewell).await);
        let Self { swarm, ends, .. } = self;
        drop(swarm);
        drop(ends.done);
    }

    fn next_due(&self) -> Option<Instant> {
        let strangers = self.lines.iter().filter(|(peer, _)| !self.is_approved(peer));
        let ends = strangers
            .flat_map(|(_, lines)| lines.values())
            .filter(|line| !line.is_closing)
            .map(|line| line.opened + self.limits.stranger_lifetime);
        ends.chain(self.book.next_due()).min()
    }

    /// Does what time brings: peers to dial, strangers to part from.
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
                self.undialled(Some(peer), id, &error);
            }
        }
        let lifetime = self.limits.stranger_lifetime;
        let gate = &self.swarm.behaviour().gate;
        let strangers = self.lines.iter_mut().filter(|(peer, _)| !gate.is_approved(peer));
        let lines = strangers.flat_map(|(_, lines)| lines.iter_mut());
        let old = lines.filter(|(_, line)| !line.is_closing && line.opened + lifetime <= now);
        let close: Vec<ConnectionId> = old
            .map(|(id, line)| {
                line.is_closing = true;
                *id
            })
            .collect();
        for id in close {
            self.swarm.close_connection(id);
        }
    }

    fn heed_wishes(&mut self) {
        for (author, wish) in self.ends.wishes.take() {
            let peer = address::peer_id(&author);
            if author == self.own {
                continue;
            }
            match wish {
                Wish::Allow(addresses) => self.allow(author, peer, &addresses),
                Wish::Forbid => self.forbid(peer),
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
                Err(error) => format!("cannot {error}"),
            };
            let (peer, dialled) = (Some(author), None);
            self.outbox.push_back(Event::DialFailed { peer, dialled, reason });
        }
        self.swarm.behaviour_mut().gate.approve(peer);
        self.swarm.behaviour_mut().sync.approve(peer);
        self.book.allow(peer, usable, Instant::now());
        self.recall(&peer);
        if let Some(told) = self.told.get(&peer).cloned() {
            self.learn(author, peer, told);
        }
    }

    fn forbid(&mut self, peer: PeerId) {
        let behaviour = self.swarm.behaviour_mut();
        // One that never was approved keeps the connection on which it may be pairing.
        if behaviour.gate.is_approved(&peer) {
            behaviour.gate.disapprove(peer);
            behaviour.sync.disapprove(peer);
            self.book.forbid(&peer);
            self.leave(peer);
        }
    }

    /// Parts from a peer, which does not come back before `until`.
    fn send_away(&mut self, peer: PeerId, until: Instant) {
        self.swarm.behaviour_mut().gate.keep_away(peer, until);
        self.book.stay_away(&peer, until);
        self.leave(peer);
    }

    /// Whether a peer is heard that asks to pair. One that asks too often is sent away; where too many
    /// ask, a stranger may try again on another connection.
    fn may_pair(&mut self, peer: PeerId) -> bool {
        let now = Instant::now();
        match self.pairs.ask(peer, self.is_approved(&peer), now) {
            Asked::Fine => return true,
            Asked::TooOften => self.send_away(peer, now + pairs::AWAY),
            Asked::TooMany => self.leave(peer),
        }
        tracing::debug!(%peer, "A request to pair was not heard: there are too many");
        false
    }

    /// Closes all connections with a peer, if there are any.
    fn leave(&mut self, peer: PeerId) {
        self.swarm.disconnect_peer_id(peer).unwrap_or_default();
    }

    /// Reminds the book of a peer that is connected already.
    fn recall(&mut self, peer: &PeerId) {
        if self.lines.contains_key(peer) {
            self.book.connected(peer, Instant::now());
        }
    }

    fn learn(&mut self, author: AuthorId, peer: PeerId, addresses: Vec<Multiaddr>) {
        let texts = addresses.iter().map(Multiaddr::to_string).collect();
        if self.book.learn(&peer, addresses) {
            self.outbox.push_back(Event::Learned { peer: author, addresses: texts });
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Dial { address } => self.dial(&address),
            Command::Request { peer, protocol, id, frame } => {
                if let Err(reason) = self.request(peer, protocol, id, frame) {
                    let reason = reason.to_owned();
                    let is_unoffered = false;
                    self.outbox.push_back(Event::Failed { peer, id, reason, is_unoffered });
                }
            }
            Command::Respond { exchange, frame } => {
                let Some((protocol, _, channel)) = self.exchanges.remove(&exchange) else { return };
                if frame.len() > self.frame_bytes_max(protocol) {
                    tracing::error!(bytes = frame.len(), "An answer is too long and was not sent");
                } else {
                    let behaviour = self.swarm.behaviour_mut().exchanges(protocol);
                    drop(behaviour.send_response(channel, frame));
                }
            }
            Command::Disconnect { peer, for_ } => {
                self.send_away(address::peer_id(&peer), Instant::now() + for_);
            }
        }
    }

    fn dial(&mut self, text: &str) {
        let (author, address) = match address::parse(text) {
            Ok(read) => read,
            Err(error) => {
                let (reason, dialled) = (format!("cannot {error}"), Some(text.to_owned()));
                self.outbox.push_back(Event::DialFailed { peer: None, dialled, reason });
                return;
            }
        };
        let peer = author.map(|author| address::peer_id(&author));
        if let (Some(author), Some(peer)) = (author, peer) {
            let line = self.lines.get(&peer).and_then(|lines| lines.values().next());
            if let Some(line) = line {
                self.outbox.push_back(line.connected(author, Some(text.to_owned())));
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
            self.undialled(peer, id, &error);
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
        if !self.lines.contains_key(&peer) {
            return Err("the peer is not connected");
        }
        if protocol == Protocol::Sync && !self.is_approved(&peer) {
            return Err("the peer is not approved");
        }
        if self.asked.values().filter(|(of, _)| *of == peer).count() >= REQUESTS_PER_PEER_MAX {
            return Err("too many requests wait for this peer");
        }
        let behaviour = self.swarm.behaviour_mut().exchanges(protocol);
        let request = behaviour.send_request(&peer, frame);
        self.asked.insert((protocol, request), (peer, id));
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

impl Line {
    fn connected(&self, peer: AuthorId, dialled: Option<String>) -> Event {
        Event::Connected { peer, address: self.address.to_string(), dialled }
    }
}

/// Waits until a time, or for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
