//! How libp2p is put together: transport, protocols, limits, listeners.
//!
//! Everything that is chosen once stands here; what happens afterwards is in `task`.

use super::frame::Frames;
use super::gate::Gate;
use super::offer::ForApproved;
use super::{LONGEST, Limits, NetError, Protocol, Settings, address};
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

/// How long a connection may take until both sides have proved who they are.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams of one connection, of all protocols and both directions. Each may hold 256 KiB that
/// nobody has read.
const STREAMS_MAX: usize = 64;

/// Streams of one connection whose protocol is not agreed on yet.
const NEGOTIATING_STREAMS_MAX: usize = 16;

/// Exchanges of one connection in one protocol, both directions together.
const SYNC_EXCHANGES_MAX: usize = 32;
const PAIR_EXCHANGES_MAX: usize = 4;

/// How often a connection is tried, and how long the answer may take. It is given up when two in a
/// row fail: a peer that vanished without a word is noticed within 40 seconds.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// All that is spoken on a connection. The gate comes first: see there.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) gate: Gate,
    memory: memory_connection_limits::Behaviour,
    pub(super) sync: ForApproved<request_response::Behaviour<Frames>>,
    pub(super) pair: request_response::Behaviour<Frames>,
    identify: identify::Behaviour,
    ping: ping::Behaviour,
}

impl Behaviour {
    /// What carries the frames of a protocol.
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
        // Peers are told where this node listens, so that they find it again when it has moved,
        // and nothing about its version. What they tell is looked at in `task`.
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
            gate: Gate::new(limits),
            memory: memory_connection_limits::Behaviour::with_max_bytes(memory_bytes_max),
            sync: ForApproved::new(exchanges(
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

/// A swarm that listens.
pub(super) fn build(settings: &Settings, limits: &Limits) -> Result<Swarm<Behaviour>, NetError> {
    let Settings { key, listen, usual_port, .. } = settings;
    let as_key_error =
        |reason: &dyn std::fmt::Display| NetError::Key { reason: reason.to_string() };
    let keypair = Keypair::ed25519_from_bytes(key.to_bytes().as_mut_slice())
        .map_err(|error| as_key_error(&error))?;
    let transport = transport(&keypair).map_err(|error| as_key_error(&error))?;
    let behaviour = Behaviour::new(&keypair, limits);
    // Connections are closed here or by the peer, never for idleness: an approved peer that has
    // nothing to say must hear of the next commit at once.
    let config = Config::with_tokio_executor()
        .with_idle_connection_timeout(LONGEST)
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

/// Binds the port that the system chose before, if nobody else has it by now.
fn is_bound(swarm: &mut Swarm<Behaviour>, socket: SocketAddr) -> bool {
    let address = Multiaddr::from(socket.ip()).with(Part::Tcp(socket.port()));
    check_free("", socket).is_ok() && swarm.listen_on(address).is_ok()
}

type Transported = Boxed<(PeerId, StreamMuxerBox)>;

fn transport(keypair: &Keypair) -> Result<Transported, noise::Error> {
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
        tracing::warn!(%error, "No name server is configured: only numeric peer addresses work");
        let (config, options) = (dns::ResolverConfig::default(), dns::ResolverOpts::default());
        dns::tokio::Transport::custom(streams(), config, options)
    });
    Ok(TransportTimeout::new(resolving, HANDSHAKE_TIMEOUT).boxed())
}

/// An address to listen on: as it was given, parsed, and as a socket.
fn read_listener(text: &str) -> Result<(String, Multiaddr, SocketAddr), NetError> {
    let (_, address) = address::parse(text)?;
    let parts: Vec<Part<'_>> = address.iter().collect();
    let (ip, port) = match parts.as_slice() {
        [Part::Ip4(ip), Part::Tcp(port)] => (IpAddr::V4(*ip), *port),
        [Part::Ip6(ip), Part::Tcp(port)] => (IpAddr::V6(*ip), *port),
        _ => {
            let reason = "a listener needs a numeric address".to_owned();
            return Err(NetError::Listen { address: text.to_owned(), reason });
        }
    };
    Ok((text.to_owned(), address, SocketAddr::new(ip, port)))
}

/// libp2p shares its ports, so that a second node would take half of the first one's connections
/// without a word. Binding it once without sharing shows whether the port is taken.
fn check_free(text: &str, socket: SocketAddr) -> Result<(), NetError> {
    // The unspecified IPv6 address would be tried for IPv4 too, which libp2p does not use it for.
    let is_both = socket.is_ipv6() && socket.ip().is_unspecified();
    if socket.port() == 0 || is_both {
        return Ok(());
    }
    TcpListener::bind(socket)
        .map(drop)
        .map_err(|error| NetError::Listen { address: text.to_owned(), reason: error.to_string() })
}
