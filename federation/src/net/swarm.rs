//! Builds the libp2p swarm: transport, protocols, limits, listeners.
//!
//! All choices made once at start-up are here; the event loop is in `actor`.

use super::connection_limits::ConnectionLimits;
use super::frame::Frames;
use super::protocol_for_approved_peers::ApprovedOnly;
use super::{DURATION_MAX, Limits, NetError, Protocol, Settings, address};
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::timeout::TransportTimeout;
use libp2p::core::transport::{Boxed, Transport};
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::multiaddr::{Multiaddr, Protocol as Part};
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::{Config, NetworkBehaviour, Swarm};
use libp2p::{
    PeerId, StreamProtocol, TransportError, dns, identify, memory_connection_limits, noise, ping,
    tcp, yamux,
};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

/// Time limit for the handshake in which both sides prove their identity.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams per connection, for all protocols and both directions. Each may buffer 256 KiB of unread
/// data.
const STREAMS_MAX: usize = 64;

/// Streams per connection whose protocol is not negotiated yet.
const NEGOTIATING_STREAMS_MAX: usize = 16;

/// Concurrent exchanges per connection and protocol, both directions together.
const SYNC_EXCHANGES_MAX: usize = 32;
const PAIR_EXCHANGES_MAX: usize = 4;

/// Ping interval and timeout. A connection is closed after two failed pings in a row, so a peer
/// that vanished is noticed within 40 seconds.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// All behaviours of a connection. The connection limits must come first; see there.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) gate: ConnectionLimits,
    memory: memory_connection_limits::Behaviour,
    pub(super) sync: ApprovedOnly<request_response::Behaviour<Frames>>,
    pub(super) pair: request_response::Behaviour<Frames>,
    identify: identify::Behaviour,
    ping: ping::Behaviour,
}

impl Behaviour {
    /// The behaviour that carries a protocol's frames.
    pub(super) fn exchanges(
        &mut self,
        protocol: Protocol,
    ) -> &mut request_response::Behaviour<Frames> {
        match protocol {
            Protocol::Sync => &mut self.sync.inner,
            Protocol::Pair => &mut self.pair,
        }
    }

    fn new(keypair: &Keypair, limits: &Limits) -> Self {
        let memory_bytes_max = usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX);
        // Peers learn this node's listen addresses, so that they find it after it has moved, but
        // not its version. The actor filters the addresses that peers announce.
        let identify = identify::Config::new("/klnode/1".to_owned(), keypair.public())
            .with_agent_version("klnode".to_owned())
            .with_push_listen_addr_updates(true)
            .with_cache_size(0);
        let ping = ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_TIMEOUT);
        let exchanges = |protocol: Protocol, bytes_max, streams_max| {
            let frames = Frames { bytes_max, progress_min: limits.progress_bytes_per_second_min };
            let config = request_response::Config::default()
                .with_request_timeout(limits.request_timeout)
                .with_max_concurrent_streams(streams_max);
            let name = StreamProtocol::new(protocol.name());
            let names = [(name, ProtocolSupport::Full)];
            request_response::Behaviour::with_codec(frames, names, config)
        };
        let pairing_bytes_max = limits.pairing_frame_bytes_max;
        Self {
            gate: ConnectionLimits::new(limits),
            memory: memory_connection_limits::Behaviour::with_max_bytes(memory_bytes_max),
            sync: ApprovedOnly::new(exchanges(
                Protocol::Sync,
                limits.frame_bytes_max,
                SYNC_EXCHANGES_MAX,
            )),
            pair: exchanges(Protocol::Pair, pairing_bytes_max, PAIR_EXCHANGES_MAX),
            identify: identify::Behaviour::new(identify),
            ping: ping::Behaviour::new(ping),
        }
    }
}

/// Builds a swarm that listens on the configured addresses.
pub(super) fn build(settings: &Settings, limits: &Limits) -> Result<Swarm<Behaviour>, NetError> {
    let Settings { key, listen, usual_port, .. } = settings;
    let as_key_error =
        |reason: &dyn std::fmt::Display| NetError::Key { reason: reason.to_string() };
    let keypair = Keypair::ed25519_from_bytes(key.to_bytes().as_mut_slice())
        .map_err(|error| as_key_error(&error))?;
    let transport = transport(&keypair).map_err(|error| as_key_error(&error))?;
    let behaviour = Behaviour::new(&keypair, limits);
    // Idle connections stay open: an approved peer must be notified of the next commit at once.
    let config = Config::with_tokio_executor()
        .with_idle_connection_timeout(DURATION_MAX)
        .with_max_negotiating_inbound_streams(NEGOTIATING_STREAMS_MAX);
    let mut swarm = Swarm::new(transport, behaviour, keypair.public().to_peer_id(), config);
    let listen = listen.iter().map(|text| read_listener(text)).collect::<Result<Vec<_>, _>>()?;
    for (text, _, socket) in &listen {
        check_free(text, *socket)?;
    }
    for (text, address, socket) in listen {
        let usual = usual_port.filter(|_| socket.port() == 0);
        if usual.is_some_and(|port| is_bound(&mut swarm, SocketAddr::new(socket.ip(), port))) {
            continue;
        }
        swarm.listen_on(address).map_err(|error| {
            let reason = match error {
                TransportError::MultiaddrNotSupported(_) => "not supported".to_owned(),
                TransportError::Other(error) => error.to_string(),
            };
            NetError::Listen { address: text, reason }
        })?;
    }
    Ok(swarm)
}

/// Tries to bind the port of the last run. False if another process uses it now.
fn is_bound(swarm: &mut Swarm<Behaviour>, socket: SocketAddr) -> bool {
    let address = Multiaddr::from(socket.ip()).with(Part::Tcp(socket.port()));
    check_free("", socket).is_ok() && swarm.listen_on(address).is_ok()
}

type TransportOutput = Boxed<(PeerId, StreamMuxerBox)>;

fn transport(keypair: &Keypair) -> Result<TransportOutput, noise::Error> {
    let noise = noise::Config::new(keypair)?;
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(STREAMS_MAX);
    let streams = || {
        tcp::tokio::Transport::new(tcp::Config::new())
            .upgrade(Version::V1Lazy)
            .authenticate(noise.clone())
            .multiplex(yamux.clone())
            .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
    };
    let resolving = dns::tokio::Transport::system(streams()).unwrap_or_else(|error| {
        tracing::warn!(%error, "No name server is configured; only numeric peer addresses work");
        let (config, options) = (dns::ResolverConfig::default(), dns::ResolverOpts::default());
        dns::tokio::Transport::custom(streams(), config, options)
    });
    Ok(TransportTimeout::new(resolving, HANDSHAKE_TIMEOUT).boxed())
}

/// A listen address: as given, parsed, and as a socket address.
fn read_listener(text: &str) -> Result<(String, Multiaddr, SocketAddr), NetError> {
    let (_, address) = address::parse(text)?;
    let parts: Vec<Part<'_>> = address.iter().collect();
    let (ip, port) = match parts.as_slice() {
        [Part::Ip4(ip), Part::Tcp(port)] => (IpAddr::V4(*ip), *port),
        [Part::Ip6(ip), Part::Tcp(port)] => (IpAddr::V6(*ip), *port),
        _ => {
            let reason = "a listener needs a numeric IP address".to_owned();
            return Err(NetError::Listen { address: text.to_owned(), reason });
        }
    };
    Ok((text.to_owned(), address, SocketAddr::new(ip, port)))
}

/// Fails if the port is in use. libp2p shares its ports, so a second node would silently receive
/// half of the first one's connections. Binding once without sharing detects this.
fn check_free(text: &str, socket: SocketAddr) -> Result<(), NetError> {
    // An unspecified IPv6 address would also claim IPv4, which libp2p does not do.
    let is_both = socket.is_ipv6() && socket.ip().is_unspecified();
    if socket.port() == 0 || is_both {
        return Ok(());
    }
    TcpListener::bind(socket)
        .map(drop)
        .map_err(|error| NetError::Listen { address: text.to_owned(), reason: error.to_string() })
}
