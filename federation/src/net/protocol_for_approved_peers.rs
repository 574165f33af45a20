//! Offers a protocol to approved peers only.
//!
//! Wraps a behaviour so that its protocol does not exist on a stranger's connection: a stream that
//! requests it is closed during protocol negotiation, before any byte of a frame is read. When a
//! stranger is approved, because it has just paired, the protocol appears on the open connection
//! without a new dial. Outgoing requests are not checked here; the actor checks the approval before
//! it sends.

use libp2p::PeerId;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, UpgradeInfo};
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::handler::{
    ConnectionEvent, FullyNegotiatedInbound, InboundUpgradeSend, ListenUpgradeError,
    UpgradeInfoSend,
};
use libp2p::swarm::{
    ConnectionClosed, ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId,
    FromSwarm, NetworkBehaviour, Stream, SubstreamProtocol, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A behaviour whose protocol only approved peers can use.
pub(super) struct ApprovedOnly<B> {
    /// The wrapped behaviour.
    pub(super) inner: B,
    approved: BTreeSet<PeerId>,
    /// The peer of each open connection, and the flag its handler reads.
    connections: BTreeMap<ConnectionId, (PeerId, Arc<AtomicBool>)>,
}

impl<B> ApprovedOnly<B> {
    pub(super) fn new(inner: B) -> Self {
        Self { inner, approved: BTreeSet::new(), connections: BTreeMap::new() }
    }

    /// Offers the protocol to a peer, including on its open connections.
    pub(super) fn approve(&mut self, peer: PeerId) {
        self.approved.insert(peer);
        self.switch(peer);
    }

    /// Withdraws the protocol from a peer.
    pub(super) fn disapprove(&mut self, peer: PeerId) {
        self.approved.remove(&peer);
        self.switch(peer);
    }

    fn switch(&self, peer: PeerId) {
        let is_offered = self.approved.contains(&peer);
        for (_, switch) in self.connections.values().filter(|(of, _)| *of == peer) {
            switch.store(is_offered, Ordering::Relaxed);
        }
    }

    fn wrap<H>(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        inner: H,
    ) -> SwitchableHandler<H> {
        let is_offered = Arc::new(AtomicBool::new(self.approved.contains(&peer)));
        self.connections.insert(connection, (peer, Arc::clone(&is_offered)));
        SwitchableHandler { inner, is_offered }
    }
}

impl<B> NetworkBehaviour for ApprovedOnly<B>
where
    B: NetworkBehaviour,
    THandler<B>: ConnectionHandler<InboundOpenInfo = ()>,
{
    type ConnectionHandler = SwitchableHandler<THandler<B>>;
    type ToSwarm = B::ToSwarm;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner =
            self.inner.handle_established_inbound_connection(connection, peer, local, remote)?;
        Ok(self.wrap(connection, peer, inner))
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = self
            .inner
            .handle_established_outbound_connection(connection, peer, address, role, port)?;
        Ok(self.wrap(connection, peer, inner))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. }) = event {
            self.connections.remove(&connection_id);
        }
        self.inner.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.inner.on_connection_handler_event(peer, connection, event);
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        self.inner.poll(cx)
    }
}

/// A connection handler whose inbound protocol can be switched on and off.
pub(super) struct SwitchableHandler<H> {
    inner: H,
    is_offered: Arc<AtomicBool>,
}

impl<H> ConnectionHandler for SwitchableHandler<H>
where
    H: ConnectionHandler<InboundOpenInfo = ()>,
{
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = GatedProtocol<H::InboundProtocol>;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        let is_offered = self.is_offered.load(Ordering::Relaxed);
        self.inner.listen_protocol().map_upgrade(|inner| GatedProtocol { inner, is_offered })
    }

    fn connection_keep_alive(&self) -> bool {
        self.inner.connection_keep_alive()
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<
        ConnectionHandlerEvent<Self::OutboundProtocol, Self::OutboundOpenInfo, Self::ToBehaviour>,
    > {
        self.inner.poll(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.inner.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: Self::FromBehaviour) {
        self.inner.on_behaviour_event(event);
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            Self::InboundProtocol,
            Self::OutboundProtocol,
            (),
            Self::OutboundOpenInfo,
        >,
    ) {
        use ConnectionEvent as On;
        // Forward the same events with the inner protocol's types.
        let event = match event {
            On::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info }) => {
                On::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info })
            }
            On::ListenUpgradeError(ListenUpgradeError { info, error }) => {
                On::ListenUpgradeError(ListenUpgradeError { info, error })
            }
            On::FullyNegotiatedOutbound(outbound) => On::FullyNegotiatedOutbound(outbound),
            On::DialUpgradeError(error) => On::DialUpgradeError(error),
            On::AddressChange(change) => On::AddressChange(change),
            On::LocalProtocolsChange(change) => On::LocalProtocolsChange(change),
            On::RemoteProtocolsChange(change) => On::RemoteProtocolsChange(change),
            _ => return,
        };
        self.inner.on_connection_event(event);
    }
}

/// An inbound protocol that announces its name only while it is offered.
pub(super) struct GatedProtocol<P> {
    inner: P,
    is_offered: bool,
}

impl<P: UpgradeInfoSend> UpgradeInfo for GatedProtocol<P> {
    type Info = P::Info;
    type InfoIter = std::iter::Take<P::InfoIter>;

    fn protocol_info(&self) -> Self::InfoIter {
        let names = if self.is_offered { usize::MAX } else { 0 };
        self.inner.protocol_info().take(names)
    }
}

impl<P: InboundUpgradeSend> InboundUpgrade<Stream> for GatedProtocol<P> {
    type Output = P::Output;
    type Error = P::Error;
    type Future = P::Future;

    fn upgrade_inbound(self, stream: Stream, info: Self::Info) -> Self::Future {
        self.inner.upgrade_inbound(stream, info)
    }
}
