//! Who gets a connection: the one place that counts them and turns peers away.
//!
//! libp2p has ready-made limits and lists. This gate replaces them because it has to know more: a
//! stranger has fewer places than an approved peer, so that strangers who take all of theirs leave
//! those of the others free; and it keeps nothing about a peer once its connections are closed, so
//! that a thousand fresh identities leave no trace. It must be the first of the behaviours: those
//! after it take a connection that they are shown for established.

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

/// How many peers are kept away at once. Beyond it the one that may come back first is let in.
const AWAY_PEERS_MAX: usize = 1024;

/// Of the places for connections that are being set up, those from one place on the network have one
/// in so many: whoever only knocks and says nothing leaves the rest to others. libp2p closes no such
/// connection before its time, so an older one cannot give way.
const SOURCE_SHARE: usize = 4;

/// Connections with one stranger.
const STRANGER_CONNECTIONS_MAX: usize = 1;

/// Why a connection was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the peer id does not hold an ed25519 key")]
    OtherKey,
    #[error("the peer was sent away and may not come back yet")]
    Away,
    #[error("too many connections are being set up")]
    Pending,
    #[error("too many connections from one address are being set up")]
    PendingSource,
    #[error("too many connections are open")]
    Established,
    #[error("too many connections with this peer are open")]
    PerPeer,
    #[error("too many strangers are connected")]
    Strangers,
}

/// From which side a connection was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Theirs,
    Ours,
}

/// Counts connections and turns peers away.
pub(super) struct Gate {
    pending_max: usize,
    established_max: usize,
    per_peer_max: usize,
    strangers_max: usize,
    approved: BTreeSet<PeerId>,
    away: BTreeMap<PeerId, Instant>,
    /// Where each comes from.
    pending_theirs: BTreeMap<ConnectionId, Option<IpAddr>>,
    pending_ours: BTreeSet<ConnectionId>,
    established: BTreeMap<ConnectionId, (PeerId, Side)>,
}

impl Gate {
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

    /// Lets a peer in again only after `until`.
    pub(super) fn keep_away(&mut self, peer: PeerId, until: Instant) {
        let now = Instant::now();
        self.away.retain(|_, until| *until > now);
        self.away.insert(peer, until);
        if self.away.len() > AWAY_PEERS_MAX {
            let soonest = self.away.iter().min_by_key(|(_, until)| **until).map(|(peer, _)| *peer);
            soonest.and_then(|peer| self.away.remove(&peer));
        }
    }

    /// What holds for a peer whatever the number of connections is.
    fn admit(&self, peer: &PeerId) -> Result<(), Refused> {
        if address::author(peer).is_none() {
            Err(Refused::OtherKey)
        } else if self.away.get(peer).is_some_and(|until| *until > Instant::now()) {
            Err(Refused::Away)
        } else {
            Ok(())
        }
    }

    /// Takes a place for a connection whose peer has proved who it is.
    fn establish(&mut self, id: ConnectionId, peer: PeerId, side: Side) -> Result<(), Refused> {
        self.pending_theirs.remove(&id);
        self.pending_ours.remove(&id);
        self.admit(&peer)?;
        let count = |counts: &dyn Fn(&(PeerId, Side)) -> bool| {
            self.established.values().filter(|connection| counts(connection)).count()
        };
        let is_approved = self.is_approved(&peer);
        let per_peer_max = if is_approved {
            self.per_peer_max
        } else {
            self.per_peer_max.min(STRANGER_CONNECTIONS_MAX)
        };
        if self.established.len() >= self.established_max {
            return Err(Refused::Established);
        }
        if count(&|(of, _)| *of == peer) >= per_peer_max {
            return Err(Refused::PerPeer);
        }
        // Whom we dial was asked for here: it takes no place from those who come by themselves.
        let is_visitor =
            |(of, side): &(PeerId, Side)| *side == Side::Theirs && !self.is_approved(of);
        if is_visitor(&(peer, side)) && count(&is_visitor) >= self.strangers_max {
            return Err(Refused::Strangers);
        }
        self.established.insert(id, (peer, side));
        Ok(())
    }

    /// Takes a place for a connection from elsewhere that is not set up yet.
    fn knock(&mut self, id: ConnectionId, from: &Multiaddr) -> Result<(), Refused> {
        let source = address::source(from);
        let of_source = self.pending_theirs.values().filter(|one| **one == source).count();
        if self.pending_theirs.len() >= self.pending_max {
            return Err(Refused::Pending);
        }
        if of_source >= (self.pending_max / SOURCE_SHARE).max(1) {
            return Err(Refused::PendingSource);
        }
        self.pending_theirs.insert(id, source);
        Ok(())
    }

    /// Takes a place for a dial.
    fn dial(&mut self, id: ConnectionId) -> Result<(), Refused> {
        if self.pending_ours.len() >= self.pending_max {
            return Err(Refused::Pending);
        }
        self.pending_ours.insert(id);
        Ok(())
    }
}

impl NetworkBehaviour for Gate {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        from: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.knock(id, from).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.establish(id, peer, Side::Theirs).map_err(ConnectionDenied::new)?;
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
        self.establish(id, peer, Side::Ours).map_err(ConnectionDenied::new)?;
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

    fn gate() -> Gate {
        Gate::new(&Limits {
            pending_connections_max: 2,
            established_connections_max: 5,
            peer_connections_max: 2,
            stranger_connections_max: 2,
            ..Limits::for_tests()
        })
    }

    #[test]
    fn strangers_leave_the_places_of_approved_peers_free() {
        let mut gate = gate();
        gate.approve(peer(9));
        assert_eq!(gate.establish(id(1), peer(1), Side::Theirs), Ok(()));
        assert_eq!(gate.establish(id(2), peer(1), Side::Theirs), Err(Refused::PerPeer));
        assert_eq!(gate.establish(id(3), peer(2), Side::Theirs), Ok(()));
        assert_eq!(gate.establish(id(4), peer(3), Side::Theirs), Err(Refused::Strangers));
        assert_eq!(gate.establish(id(5), peer(9), Side::Theirs), Ok(()));
        assert_eq!(gate.establish(id(6), peer(9), Side::Ours), Ok(()));
        assert_eq!(gate.establish(id(7), peer(9), Side::Ours), Err(Refused::PerPeer));
        // One that we dial is no visitor; one that is approved gives its place back.
        assert_eq!(gate.establish(id(8), peer(3), Side::Ours), Ok(()));
        gate.approve(peer(1));
        gate.established.remove(&id(8));
        assert_eq!(gate.establish(id(9), peer(4), Side::Theirs), Ok(()));
        assert_eq!(gate.establish(id(10), peer(5), Side::Ours), Err(Refused::Established));
    }

    #[test]
    fn a_banished_peer_is_turned_away() {
        let mut gate = gate();
        gate.keep_away(peer(2), Instant::now() + Duration::from_secs(60));
        assert_eq!(gate.establish(id(2), peer(2), Side::Theirs), Err(Refused::Away));
        gate.keep_away(peer(2), Instant::now());
        assert_eq!(gate.establish(id(2), peer(2), Side::Theirs), Ok(()));
    }

    #[test]
    fn the_list_of_banished_peers_has_an_end() {
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
    fn a_key_of_another_kind_is_turned_away() {
        let hashed = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N".parse().unwrap();
        assert_eq!(gate().establish(id(1), hashed, Side::Theirs), Err(Refused::OtherKey));
    }

    #[test]
    fn half_open_connections_are_counted_until_they_end() {
        let mut gate = gate();
        let here: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let open = |gate: &mut Gate, number: usize| {
            let from: Multiaddr = format!("/ip4/10.0.0.{number}/tcp/1").parse().unwrap();
            gate.handle_pending_inbound_connection(id(number), &here, &from).is_ok()
        };
        assert!(open(&mut gate, 1) && open(&mut gate, 2) && !open(&mut gate, 3));
        assert_eq!(gate.establish(id(1), peer(1), Side::Theirs), Ok(()));
        assert!(open(&mut gate, 4) && !open(&mut gate, 5));
    }

    #[test]
    fn half_open_connections_from_one_place_leave_places_to_others() {
        let limits = Limits { pending_connections_max: 8, ..Limits::for_tests() };
        let mut gate = Gate::new(&limits);
        let mut number = 0;
        let mut knock = |gate: &mut Gate, from: &str| {
            number += 1;
            gate.knock(id(number), &from.parse().unwrap())
        };
        for port in 1..=2 {
            assert_eq!(knock(&mut gate, &format!("/ip4/10.0.0.1/tcp/{port}")), Ok(()));
            assert_eq!(knock(&mut gate, &format!("/ip6/2001:db8::{port}/tcp/1")), Ok(()));
        }
        let full = Err(Refused::PendingSource);
        assert_eq!(knock(&mut gate, "/ip4/10.0.0.1/tcp/3"), full);
        // A host has all addresses of its network to choose from.
        assert_eq!(knock(&mut gate, "/ip6/2001:db8::ffff:1/tcp/1"), full);
        assert_eq!(knock(&mut gate, "/ip6/2001:db8:0:1::1/tcp/1"), Ok(()));
        assert_eq!(knock(&mut gate, "/ip4/10.0.0.2/tcp/1"), Ok(()));
    }
}
