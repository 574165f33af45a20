//! Translates libp2p's swarm events: connections, failed dials, addresses, requests and answers.

use super::super::address_book::ADDRESSES_MAX;
use super::super::swarm::BehaviourEvent;
use super::super::{Event, Protocol, address, error_text};
use super::{NetworkActor, PeerConnection};
use klnode_crdt::ids::AuthorId;
use libp2p::PeerId;
use libp2p::core::{ConnectedPoint, Multiaddr};
use libp2p::request_response::{self, OutboundFailure, OutboundRequestId};
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{identify, ping};
use tokio::time::Instant;

impl NetworkActor {
    /// Handles one swarm event.
    pub(super) fn handle_swarm_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
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
                    tracing::error!(%error, ?addresses, "A listener failed; peers cannot reach this node at its addresses");
                }
                let own = self.own;
                let ended = addresses.iter().map(|address| address::full(address, &own));
                self.outbox.extend(ended.map(|address| Event::ListeningEnded { address }));
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(%error, "A listener cannot accept connections; it will retry");
            }
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.connection_opened(peer_id, connection_id, endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, cause, .. } => {
                tracing::debug!(peer = %peer_id, ?cause, "A connection was closed");
                self.connection_closed(peer_id, connection_id);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.dial_failed(peer_id, connection_id, &error);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                tracing::debug!(from = %send_back_addr, %error, "An incoming connection was refused");
            }
            SwarmEvent::Behaviour(event) => self.handle_behaviour_event(event),
            _ => {}
        }
    }

    fn handle_behaviour_event(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Sync(event) => self.handle_exchange(Protocol::Sync, event),
            BehaviourEvent::Pair(event) => self.handle_exchange(Protocol::Pair, event),
            BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. }) => {
                self.learn_announced(peer_id, info.listen_addrs);
            }
            BehaviourEvent::Ping(ping::Event { connection, result, .. }) => {
                // A peer without ping support may still answer requests, so only timeouts and I/O
                // errors count.
                if let Err(ping::Failure::Timeout | ping::Failure::Other { .. }) = result {
                    self.swarm.close_connection(connection);
                }
            }
            BehaviourEvent::Identify(_) => {}
            BehaviourEvent::Gate(never) | BehaviourEvent::Memory(never) => match never {},
        }
    }

    fn connection_opened(&mut self, peer: PeerId, id: ConnectionId, endpoint: ConnectedPoint) {
        // The connection limits admit only peers with an ed25519 key.
        let Some(author) = address::author(&peer) else { return };
        let address = match endpoint {
            ConnectedPoint::Dialer { address, .. } => address,
            ConnectedPoint::Listener { send_back_addr, .. } => send_back_addr,
        };
        let connection = PeerConnection { address, opened: Instant::now(), is_closing: false };
        self.book.connected(&peer, connection.opened);
        let dialled = self.dials.remove(&id);
        if dialled.is_some() || !self.connections.contains_key(&peer) {
            self.outbox.push_back(connection.connected(author, dialled));
        }
        self.connections.entry(peer).or_default().insert(id, connection);
    }

    fn connection_closed(&mut self, peer: PeerId, id: ConnectionId) {
        let Some(connections) = self.connections.get_mut(&peer) else { return };
        connections.remove(&id);
        if connections.is_empty() {
            self.connections.remove(&peer);
            self.announced.remove(&peer);
            self.book.lost(&peer, Instant::now());
            let gone = address::author(&peer).map(|peer| Event::Disconnected { peer });
            self.outbox.extend(gone);
        }
    }

    /// Handles a failed dial. A one-off dial is always reported. A dial of an approved peer is
    /// reported unless the peer connected by itself in the meantime.
    pub(super) fn dial_failed(
        &mut self,
        peer: Option<PeerId>,
        id: ConnectionId,
        error: &DialError,
    ) {
        let dialled = self.dials.remove(&id);
        let is_connected = peer.is_some_and(|peer| self.connections.contains_key(&peer));
        if let Some(peer) = peer.filter(|_| dialled.is_none()) {
            self.book.failed(&peer, Instant::now());
            self.note_connected(&peer);
        }
        if dialled.is_some() || !is_connected {
            let peer = peer.and_then(|peer| address::author(&peer));
            let reason = error_text::of_dial(error);
            self.outbox.push_back(Event::DialFailed { peer, dialled, reason });
        }
    }

    fn learn_announced(&mut self, peer: PeerId, addresses: Vec<Multiaddr>) {
        let Some(connection) =
            self.connections.get(&peer).and_then(|connections| connections.values().next())
        else {
            return;
        };
        let bare = addresses.into_iter().map(address::bare);
        let worth =
            bare.filter(|announced| address::is_worth_learning(announced, &connection.address));
        let announced: Vec<Multiaddr> = worth.take(ADDRESSES_MAX).collect();
        self.announced.insert(peer, announced.clone());
        if let Some(author) = address::author(&peer) {
            self.learn(author, peer, announced);
        }
    }

    fn handle_exchange(
        &mut self,
        protocol: Protocol,
        event: request_response::Event<Vec<u8>, Vec<u8>>,
    ) {
        use request_response::{Event as On, Message};
        match event {
            On::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => {
                let Some(author) = address::author(&peer) else { return };
                // Approval may be revoked while a request is in flight.
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
                self.resolve_request(protocol, request_id, |peer, id| Event::Response {
                    peer,
                    id,
                    frame: response,
                });
            }
            On::OutboundFailure { request_id, error, .. } => {
                self.resolve_request(protocol, request_id, |peer, id| Event::Failed {
                    peer,
                    id,
                    reason: error_text::of_request(&error),
                    is_unoffered: matches!(error, OutboundFailure::UnsupportedProtocols),
                });
            }
            On::InboundFailure { peer, request_id, error, .. } => {
                tracing::debug!(%peer, %error, "The answer to a peer's request was not sent");
                self.exchanges.retain(|_, (of, id, _)| (*of, *id) != (protocol, request_id));
            }
            On::ResponseSent { .. } => {}
        }
    }

    fn resolve_request(
        &mut self,
        protocol: Protocol,
        request: OutboundRequestId,
        event: impl FnOnce(AuthorId, u64) -> Event,
    ) {
        let pending = self.pending_requests.remove(&(protocol, request));
        let event = pending.and_then(|(peer, id)| Some(event(address::author(&peer)?, id)));
        self.outbox.extend(event);
    }
}
