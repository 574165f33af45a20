//! What libp2p reports, as events: connections, failed dials, addresses, requests and answers.

use super::super::book::ADDRESSES_MAX;
use super::super::swarm::BehaviourEvent;
use super::super::{Event, Protocol, address, reason};
use super::{Line, Task};
use klnode_crdt::ids::AuthorId;
use libp2p::PeerId;
use libp2p::core::{ConnectedPoint, Multiaddr};
use libp2p::request_response::{self, OutboundFailure, OutboundRequestId};
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{identify, ping};
use tokio::time::Instant;

impl Task {
    /// Takes in what libp2p reports.
    pub(super) fn take(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::NewListenAddr { address, .. } => {
                let port = address::port(&address);
                let address = address::full(&address, &self.own);
                self.outbox.push_back(Event::Listening { address, port });
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                let address = address::full(&address, &self.own);
                self.outbox.push_back(Event::ListeningEnded { address });
            }
            SwarmEvent::ListenerClosed { addresses, reason, .. } => {
                if let Err(error) = reason {
                    tracing::error!(%error, ?addresses, "A listener has failed");
                }
                let own = self.own;
                let ended = addresses.iter().map(|address| address::full(address, &own));
                self.outbox.extend(ended.map(|address| Event::ListeningEnded { address }));
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(%error, "A listener cannot take connections for now");
            }
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.opened(peer_id, connection_id, endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, cause, .. } => {
                tracing::debug!(peer = %peer_id, ?cause, "A connection was closed");
                self.closed(peer_id, connection_id);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.undialled(peer_id, connection_id, &error);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                tracing::debug!(from = %send_back_addr, %error, "A connection was not let in");
            }
            SwarmEvent::Behaviour(event) => self.take_from_behaviour(event),
            _ => {}
        }
    }

    fn take_from_behaviour(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Sync(event) => self.exchanged(Protocol::Sync, event),
            BehaviourEvent::Pair(event) => self.exchanged(Protocol::Pair, event),
            BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. }) => {
                self.told_addresses(peer_id, info.listen_addrs);
            }
            BehaviourEvent::Ping(ping::Event { connection, result, .. }) => {
                // A peer that does not answer pings at all may still answer requests.
                if let Err(ping::Failure::Timeout | ping::Failure::Other { .. }) = result {
                    self.swarm.close_connection(connection);
                }
            }
            BehaviourEvent::Identify(_) => {}
            BehaviourEvent::Gate(never) | BehaviourEvent::Memory(never) => match never {},
        }
    }

    fn opened(&mut self, peer: PeerId, id: ConnectionId, endpoint: ConnectedPoint) {
        // The gate lets in nobody else.
        let Some(author) = address::author(&peer) else { return };
        let address = match endpoint {
            ConnectedPoint::Dialer { address, .. } => address,
            ConnectedPoint::Listener { send_back_addr, .. } => send_back_addr,
        };
        let line = Line { address, opened: Instant::now(), is_closing: false };
        self.book.connected(&peer, line.opened);
        let dialled = self.dials.remove(&id);
        if dialled.is_some() || !self.lines.contains_key(&peer) {
            self.outbox.push_back(line.connected(author, dialled));
        }
        self.lines.entry(peer).or_default().insert(id, line);
    }

    fn closed(&mut self, peer: PeerId, id: ConnectionId) {
        let Some(lines) = self.lines.get_mut(&peer) else { return };
        lines.remove(&id);
        if lines.is_empty() {
            self.lines.remove(&peer);
            self.told.remove(&peer);
            self.book.lost(&peer, Instant::now());
            let gone = address::author(&peer).map(|peer| Event::Disconnected { peer });
            self.outbox.extend(gone);
        }
    }

    /// A dial failed: a single one, which is reported, or one of an approved peer, which is
    /// reported unless the peer came by itself in the meantime.
    pub(super) fn undialled(&mut self, peer: Option<PeerId>, id: ConnectionId, error: &DialError) {
        let dialled = self.dials.remove(&id);
        let is_connected = peer.is_some_and(|peer| self.lines.contains_key(&peer));
        if let Some(peer) = peer.filter(|_| dialled.is_none()) {
            self.book.failed(&peer, Instant::now());
            self.recall(&peer);
        }
        if dialled.is_some() || !is_connected {
            let peer = peer.and_then(|peer| address::author(&peer));
            let reason = reason::of_dial(error);
            self.outbox.push_back(Event::DialFailed { peer, dialled, reason });
        }
    }

    fn told_addresses(&mut self, peer: PeerId, addresses: Vec<Multiaddr>) {
        let Some(line) = self.lines.get(&peer).and_then(|lines| lines.values().next()) else {
            return;
        };
        let bare = addresses.into_iter().map(address::bare);
        let worth = bare.filter(|told| address::is_worth_learning(told, &line.address));
        let told: Vec<Multiaddr> = worth.take(ADDRESSES_MAX).collect();
        self.told.insert(peer, told.clone());
        if let Some(author) = address::author(&peer) {
            self.learn(author, peer, told);
        }
    }

    fn exchanged(&mut self, protocol: Protocol, event: request_response::Event<Vec<u8>, Vec<u8>>) {
        use request_response::{Event as On, Message};
        match event {
            On::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => {
                let Some(author) = address::author(&peer) else { return };
                // An approval may end while its last request is on the way.
                if protocol == Protocol::Sync && !self.is_approved(&peer) {
                    return;
                }
                if protocol == Protocol::Pair && !self.may_pair(peer) {
                    return;
                }
                let exchange = self.next_exchange;
                self.next_exchange += 1;
                self.exchanges.insert(exchange, (protocol, request_id, channel));
                let frame = request;
                self.outbox.push_back(Event::Request { peer: author, protocol, exchange, frame });
            }
            On::Message { message: Message::Response { request_id, response }, .. } => {
                self.answered(protocol, request_id, |peer, id| Event::Response {
                    peer,
                    id,
                    frame: response,
                });
            }
            On::OutboundFailure { request_id, error, .. } => {
                self.answered(protocol, request_id, |peer, id| Event::Failed {
                    peer,
                    id,
                    reason: reason::of_request(&error),
                    is_unoffered: matches!(error, OutboundFailure::UnsupportedProtocols),
                });
            }
            On::InboundFailure { peer, request_id, error, .. } => {
                tracing::debug!(%peer, %error, "A peer's request could not be answered");
                self.exchanges.retain(|_, (of, id, _)| (*of, *id) != (protocol, request_id));
            }
            On::ResponseSent { .. } => {}
        }
    }

    fn answered(
        &mut self,
        protocol: Protocol,
        request: OutboundRequestId,
        event: impl FnOnce(AuthorId, u64) -> Event,
    ) {
        let asked = self.asked.remove(&(protocol, request));
        let answered = asked.and_then(|(peer, id)| Some(event(address::author(&peer)?, id)));
        self.outbox.extend(answered);
    }
}
