//! Limits the number of connections and refuses banned peers.
//!
//! This behaviour replaces libp2p's own limits, because it must distinguish peers: strangers have
//! fewer slots than approved peers, so strangers that use all of theirs leave the others free. It
//! keeps nothing about a peer once its connections are closed, so a thousand fresh identities use
//! no memory. It must be the first behaviour: the ones after it treat every connection they see as
//! established.

use super::Limits;
use super::address;
use libp2p::PeerId;
use libp2p::core::transport::PortUse;
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::{
    ConnectionClosed, ConnectionDenied, ConnectionId, DialFailure, FromSwarm, ListenFailure,
    NetworkBehaviour, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm, dummy,
};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Maximum number of banned peers. Beyond it, the ban that ends first is lifted.
const AWAY_PEERS_MAX: usize = 1024;

/// One network may use one in this many slots for pending connections, so that a host that opens
/// connections and stays silent leaves the rest to others. libp2p closes no pending connection
/// before its timeout, so an older one cannot be evicted.
const SOURCE_SHARE: usize = 4;

/// Maximum number of connections with one stranger.
const STRANGER_CONNECTIONS_MAX: usize = 1;

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConnectionRefusal {
    #[error("the peer id does not contain an ed25519 key")]
    OtherKey,
    #[error("the peer is banned for a while")]
    Away,
    #[error("too many connections are being set up")]
    Pending,
    #[error("too many connections from one address are being set up")]
    PendingSource,
    #[error("too many connections are open")]
    Established,
    // The node's pairing code recognises this refusal by its text.
    #[error("too many connections with this peer are open")]
    PerPeer,
    #[error("too many strangers are connected")]
    Strangers,
}

/// Which side opened a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Theirs,
    Ours,
}

/// Counts connections and enforces the limits.
pub(super) struct ConnectionLimits {
    pending_max: usize,
    established_max: usize,
    per_peer_max: usize,
    strangers_max: usize,
    approved: BTreeSet<PeerId>,
    away: BTreeMap<PeerId, Instant>,
    /// Source network of each incoming pending connection.
    pending_theirs: BTreeMap<ConnectionId, Option<IpAddr>>,
    pending_ours: BTreeSet<ConnectionId>,
    established: BTreeMap<ConnectionId, (PeerId, Direction)>,
}

impl ConnectionLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            pending_max: limits.pending_connections_max,
            established_max: limits.established_connections_max,
            per_peer_max: limits.peer_connections_max,
            strangers_max: limits.stranger_connections_max,
            approved: BTreeSet::new(),
            away: BTreeMap::new(),
            pending_theirs: BTreeMap::new(),
            pending_ours: BTreeSet::new(),
            established: BTreeMap::new(),
        }
    }

    pub(super) fn approve(&mut self, peer: PeerId) {
        self.approved.insert(peer);
    }

    pub(super) fn disapprove(&mut self, peer: PeerId) {
        self.approved.remove(&peer);
    }

    pub(super) fn is_approved(&self, peer: &PeerId) -> bool {
        self.approved.contains(peer)
    }

    /// Refuses a peer until the given time.
    pub(super) fn keep_away(&mut self, peer: PeerId, until: Instant) {
        let now = Instant::now();
        self.away.retain(|_, until| *until > now);
        self.away.insert(peer, until);
        if self.away.len() > AWAY_PEERS_MAX {
            let soonest = self.away.iter().min_by_key(|(_, until)| **until).map(|(peer, _)| *peer);
            soonest.and_then(|peer| self.away.remove(&peer));
        }
    }

    /// Checks that do not depend on the number of connections: key type and ban.
    fn admit(&self, peer: &PeerId) -> Result<(), ConnectionRefusal> {
        if address::author(peer).is_none() {
            Err(ConnectionRefusal::OtherKey)
        } else if self.away.get(peer).is_some_and(|until| *until > Instant::now()) {
            Err(ConnectionRefusal::Away)
        } else {
            Ok(())
        }
    }

    /// Reserves a slot for a connection whose peer has proved its identity.
    fn establish(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        side: Direction,
    ) -> Result<(), ConnectionRefusal> {
        self.pending_theirs.remove(&id);
        self.pending_ours.remove(&id);
        self.admit(&peer)?;
        let count = |counts: &dyn Fn(&(PeerId, Direction)) -> bool| {
            self.established.values().filter(|connection| counts(connection)).count()
        };
        let is_approved = self.is_approved(&peer);
        let per_peer_max = if is_approved {
            self.per_peer_max
        } else {
            self.per_peer_max.min(STRANGER_CONNECTIONS_MAX)
        };
        if self.established.len() >= self.established_max {
            return Err(ConnectionRefusal::Established);
        }
        if count(&|(of, _)| *of == peer) >= per_peer_max {
            return Err(ConnectionRefusal::PerPeer);
        }
        // A peer that we dial does not count against the limit for incoming strangers.
        let is_visitor =
            |(of, side): &(PeerId, Direction)| *side == Direction::Theirs && !self.is_approved(of);
        if is_visitor(&(peer, side)) && count(&is_visitor) >= self.strangers_max {
            return Err(ConnectionRefusal::Strangers);
        }
        self.established.insert(id, (peer, side));
        Ok(())
    }

    /// Reserves a slot for a pending incoming connection.
    fn reserve_incoming(
        &mut self,
        id: ConnectionId,
        from: &Multiaddr,
    ) -> Result<(), ConnectionRefusal> {
        let source = address::source(from);
        let of_source = self.pending_theirs.values().filter(|one| **one == source).count();
        if self.pending_theirs.len() >= self.pending_max {
            return Err(ConnectionRefusal::Pending);
        }
        if of_source >= (self.pending_max / SOURCE_SHARE).max(1) {
            return Err(ConnectionRefusal::PendingSource);
        }
        self.pending_theirs.insert(id, source);
        Ok(())
    }

    /// Reserves a slot for an outgoing dial.
    fn dial(&mut self, id: ConnectionId) -> Result<(), ConnectionRefusal> {
        if self.pending_ours.len() >= self.pending_max {
            return Err(ConnectionRefusal::Pending);
        }
        self.pending_ours.insert(id);
        Ok(())
    }
}

impl NetworkBehaviour for ConnectionLimits {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        from: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.reserve_incoming(id, from).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.establish(id, peer, Direction::Theirs).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: Option<PeerId>,
        _: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        peer.map_or(Ok(()), |peer| self.admit(&peer)).map_err(ConnectionDenied::new)?;
        self.dial(id).map_err(ConnectionDenied::new)?;
        Ok(Vec::new())
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.establish(id, peer, Direction::Ours).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        let id = match event {
            FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. })
            | FromSwarm::DialFailure(DialFailure { connection_id, .. })
            | FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) => connection_id,
            _ => return,
        };
        self.pending_theirs.remove(&id);
        self.pending_ours.remove(&id);
        self.established.remove(&id);
    }

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::AuthorId;
    use std::time::Duration;

    fn peer(number: u8) -> PeerId {
        address::peer_id(&AuthorId::from_bytes([number; 32]))
    }

    fn id(number: usize) -> ConnectionId {
        ConnectionId::new_unchecked(number)
    }

    fn gate() -> ConnectionLimits {
        ConnectionLimits::new(&Limits {
            pending_connections_max: 2,
            established_connections_max: 5,
            peer_connections_max: 2,
            stranger_connections_max: 2,
            ..Limits::for_tests()
        })
    }

    #[test]
    fn strangers_do_not_use_slots_of_approved_peers() {
        let mut gate = gate();
        gate.approve(peer(9));
        assert_eq!(gate.establish(id(1), peer(1), Direction::Theirs), Ok(()));
        assert_eq!(
            gate.establish(id(2), peer(1), Direction::Theirs),
            Err(ConnectionRefusal::PerPeer)
        );
        assert_eq!(gate.establish(id(3), peer(2), Direction::Theirs), Ok(()));
        assert_eq!(
            gate.establish(id(4), peer(3), Direction::Theirs),
            Err(ConnectionRefusal::Strangers)
        );
        assert_eq!(gate.establish(id(5), peer(9), Direction::Theirs), Ok(()));
        assert_eq!(gate.establish(id(6), peer(9), Direction::Ours), Ok(()));
        assert_eq!(
            gate.establish(id(7), peer(9), Direction::Ours),
            Err(ConnectionRefusal::PerPeer)
        );
        // A dialled peer does not count as a visitor; an approved stranger frees its slot.
        assert_eq!(gate.establish(id(8), peer(3), Direction::Ours), Ok(()));
        gate.approve(peer(1));
        gate.established.remove(&id(8));
        assert_eq!(gate.establish(id(9), peer(4), Direction::Theirs), Ok(()));
        assert_eq!(
            gate.establish(id(10), peer(5), Direction::Ours),
            Err(ConnectionRefusal::Established)
        );
    }

    #[test]
    fn a_banned_peer_is_refused() {
        let mut gate = gate();
        gate.keep_away(peer(2), Instant::now() + Duration::from_secs(60));
        assert_eq!(gate.establish(id(2), peer(2), Direction::Theirs), Err(ConnectionRefusal::Away));
        gate.keep_away(peer(2), Instant::now());
        assert_eq!(gate.establish(id(2), peer(2), Direction::Theirs), Ok(()));
    }

    #[test]
    fn the_list_of_banned_peers_is_bounded() {
        let mut gate = gate();
        let later = Instant::now() + Duration::from_secs(60);
        for number in 0..=AWAY_PEERS_MAX {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            let until = later + Duration::from_secs(number as u64);
            gate.keep_away(address::peer_id(&AuthorId::from_bytes(key)), until);
        }
        assert_eq!(gate.away.len(), AWAY_PEERS_MAX);
        assert_eq!(gate.admit(&address::peer_id(&AuthorId::from_bytes([0; 32]))), Ok(()));
    }

    #[test]
    fn a_key_of_another_type_is_refused() {
        let hashed = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N".parse().unwrap();
        assert_eq!(
            gate().establish(id(1), hashed, Direction::Theirs),
            Err(ConnectionRefusal::OtherKey)
        );
    }

    #[test]
    fn pending_connections_count_until_they_end() {
        let mut gate = gate();
        let here: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let open = |gate: &mut ConnectionLimits, number: usize| {
            let from: Multiaddr = format!("/ip4/10.0.0.{number}/tcp/1").parse().unwrap();
            gate.handle_pending_inbound_connection(id(number), &here, &from).is_ok()
        };
        assert!(open(&mut gate, 1) && open(&mut gate, 2) && !open(&mut gate, 3));
        assert_eq!(gate.establish(id(1), peer(1), Direction::Theirs), Ok(()));
        assert!(open(&mut gate, 4) && !open(&mut gate, 5));
    }

    #[test]
    fn pending_connections_from_one_network_leave_slots_to_others() {
        let limits = Limits { pending_connections_max: 8, ..Limits::for_tests() };
        let mut gate = ConnectionLimits::new(&limits);
        let mut number = 0;
        let mut reserve_incoming = |gate: &mut ConnectionLimits, from: &str| {
            number += 1;
            gate.reserve_incoming(id(number), &from.parse().unwrap())
        };
        for port in 1..=2 {
            assert_eq!(reserve_incoming(&mut gate, &format!("/ip4/10.0.0.1/tcp/{port}")), Ok(()));
            assert_eq!(
                reserve_incoming(&mut gate, &format!("/ip6/2001:db8::{port}/tcp/1")),
                Ok(())
            );
        }
        let full = Err(ConnectionRefusal::PendingSource);
        assert_eq!(reserve_incoming(&mut gate, "/ip4/10.0.0.1/tcp/3"), full);
        // One host can use every address of its network.
        assert_eq!(reserve_incoming(&mut gate, "/ip6/2001:db8::ffff:1/tcp/1"), full);
        assert_eq!(reserve_incoming(&mut gate, "/ip6/2001:db8:0:1::1/tcp/1"), Ok(()));
        assert_eq!(reserve_incoming(&mut gate, "/ip4/10.0.0.2/tcp/1"), Ok(()));
    }
}
