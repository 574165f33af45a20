//! A protocol that is offered to approved peers alone.
//!
//! Wraps a behaviour so that on a stranger's connection its protocol does not exist: a stream that
//! asks for it is closed while the protocol is negotiated, before a byte of a frame is read. When
//! a stranger is approved (it has just paired), the protocol appears on the connection that is
//! already open; nothing has to be dialled again. What we send is not held back here: the task
//! looks at the approval before it sends.

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

/// A behaviour whose protocol only approved peers see.
pub(super) struct ForApproved<B> {
    /// The behaviour itself.
    pub(super) inner: B,
    approved: BTreeSet<PeerId>,
    /// For each open connection whose it is and the switch that its handler looks at.
    connections: BTreeMap<ConnectionId, (PeerId, Arc<AtomicBool>)>,
}

impl<B> ForApproved<B> {
    pub(super) fn new(inner: B) -> Self {
        Self { inner, approved: BTreeSet::new(), connections: BTreeMap::new() }
    }

    /// Offers the protocol to a peer, on its open connections too.
    pub(super) fn approve(&mut self, peer: PeerId) {
        self.approved.insert(peer);
        self.switch(peer);
    }

    /// Offers it no longer.
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

    fn wrap<H>(&mut self, connection: ConnectionId, peer: PeerId, inner: H) -> Switched<H> {
        let is_offered = Arc::new(AtomicBool::new(self.approved.contains(&peer)));
        self.connections.insert(connection, (peer, Arc::clone(&is_offered)));
        Switched { inner, is_offered }
    }
}

impl<B> NetworkBehaviour for ForApproved<B>
where
    B: NetworkBehaviour,
    THandler<B>: ConnectionHandler<InboundOpenInfo = ()>,
{
    type ConnectionHandler = Switched<THandler<B>>;
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

/// A handler whose inbound protocol is there or not.
pub(super) struct Switched<H> {
    inner: H,
    is_offered: Arc<AtomicBool>,
}

impl<H> ConnectionHandler for Switched<H>
where
    H: ConnectionHandler<InboundOpenInfo = ()>,
{
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = Offer<H::InboundProtocol>;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        let is_offered = self.is_offered.load(Ordering::Relaxed);
        self.inner.listen_protocol().map_upgrade(|inner| Offer { inner, is_offered })
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
        // The same events, of the protocol as it is without its switch.
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

/// An inbound protocol that names itself only while it is offered.
pub(super) struct Offer<P> {
    inner: P,
    is_offered: bool,
}

impl<P: UpgradeInfoSend> UpgradeInfo for Offer<P> {
    type Info = P::Info;
    type InfoIter = std::iter::Take<P::InfoIter>;

    fn protocol_info(&self) -> Self::InfoIter {
        let names = if self.is_offered { usize::MAX } else { 0 };
        self.inner.protocol_info().take(names)
    }
}

impl<P: InboundUpgradeSend> InboundUpgrade<Stream> for Offer<P> {
    type Output = P::Output;
    type Error = P::Error;
    type Future = P::Future;

    fn upgrade_inbound(self, stream: Stream, info: Self::Info) -> Self::Future {
        self.inner.upgrade_inbound(stream, info)
    }
}
