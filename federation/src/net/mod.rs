//! Real connections between nodes. No other module depends on libp2p.
//!
//! [`start`] binds the listeners and spawns one actor that owns all connections. The code that
//! drives the protocol sends commands through a [`Handle`] and reads [`Events`]. Frames are opaque
//! bytes here: `net` transports them, the protocol decodes them.
//!
//! Every connection is TCP, encrypted with Noise and multiplexed with Yamux. Noise proves that the
//! peer holds the ed25519 key in its peer id, and a dial that names a peer fails if another peer
//! answers. So the identity of a connected peer is always proven, and is always an [`AuthorId`].
//!
//! **Approved peers and strangers.** Peers passed to [`Handle::allow`] are dialled, and redialled
//! with growing waits when they are lost. They may use [`Protocol::Sync`] and [`Protocol::Pair`].
//! Any other peer that connects is a stranger: it may use only `Pair`, in short frames, on one
//! connection that is closed after [`Limits::stranger_lifetime`], and the number of strangers is
//! limited. A stranger that sends too many pairing requests is banned for a while. `Sync` does not
//! exist on a stranger's connection; it appears there as soon as the stranger is approved.
//!
//! **Exchanges.** A [`Handle::request`] ends in exactly one [`Event::Response`] or
//! [`Event::Failed`], sometimes after the [`Event::Disconnected`] that caused it. The caller may
//! answer an [`Event::Request`] with [`Handle::respond`]; without an answer the peer's request
//! fails.
//!
//! **Limits.** Every queue is bounded. If events are not read, the actor stops reading from the
//! network, and peers wait. A peer's violation costs the peer its stream or its connection and is
//! logged at debug level; it is never an error of this node.
//!
//! | file | content |
//! |---|---|
//! | `actor` | the event loop that owns all connections |
//! | `address` | addresses and peer ids as text |
//! | `address_book` | when an approved peer is dialled |
//! | `approved_peers_only` | hides a protocol from strangers |
//! | `connection_limits` | limits and bans |
//! | `error_text` | libp2p errors as one line |
//! | `frame` | the bytes of one frame, and the minimum transfer rate |
//! | `handle` | commands and approvals for the actor |
//! | `pairing_rate_limit` | how often peers may ask to pair |
//! | `swarm` | construction of the libp2p swarm |

mod actor;
mod address;
mod address_book;
mod connection_limits;
mod error_text;
mod frame;
mod handle;
mod pairing_rate_limit;
mod protocol_for_approved_peers;
mod swarm;
#[cfg(test)]
mod tests;

pub use address::{AddressError, author_of, parse_address, parse_target, peer_id_text, source_of};
pub use handle::{Events, Handle, QueueFull};

use klnode_crdt::ids::AuthorId;
use klnode_crdt::signing_key::SecretKey;
use std::time::Duration;

/// Parameters of [`start`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's own key, which is its identity on the network.
    pub key: SecretKey,
    /// Multiaddrs to listen on; with an empty list the node does not listen. Port 0 lets the system
    /// choose, and the unspecified address stands for every address of this machine.
    pub listen: Vec<String>,
    /// The port the system chose last time, tried first if the system is to choose. Two peers that
    /// both return on new ports could not find each other.
    pub usual_port: Option<u16>,
    /// Limits on the resources that peers may use.
    pub limits: Limits,
}

/// Limits on the resources that peers may use. The defaults are in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections with an unfinished handshake, in each direction. One network may use a quarter
    /// of them.
    pub pending_connections_max: usize,
    /// Established connections, all peers together.
    pub established_connections_max: usize,
    /// Connections with one approved peer. A stranger has one.
    pub peer_connections_max: usize,
    /// Connections opened by strangers, all together.
    pub stranger_connections_max: usize,
    /// If the process uses more memory than this, new connections are refused.
    pub memory_bytes_max: u64,
    /// Maximum length of a [`Protocol::Sync`] frame.
    pub frame_bytes_max: usize,
    /// Maximum length of a [`Protocol::Pair`] frame.
    pub pairing_frame_bytes_max: usize,
    /// A stream that transfers less than this per second is closed.
    pub progress_bytes_per_second_min: u64,
    /// Time limit for a request, from its first byte to the last byte of its answer.
    pub request_timeout: Duration,
    /// Wait before a peer is redialled; it doubles with each failure.
    pub redial_after: Duration,
    /// Maximum wait between two dials.
    pub redial_after_max: Duration,
    /// Time after which a stranger's connection is closed.
    pub stranger_lifetime: Duration,
}

/// Maximum length of a [`Protocol::Sync`] frame that the protocol allows.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a [`Protocol::Pair`] frame that the protocol allows.
pub const PAIRING_FRAME_BYTES_MAX: usize = 16 << 10;

/// The purpose of a frame, which decides which peers may send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Replication, for approved peers only.
    Sync,
    /// Pairing, open to strangers.
    Pair,
}

impl Protocol {
    /// The protocol's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "/klnode/sync/1",
            Self::Pair => "/klnode/pair/1",
        }
    }
}

/// A network event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node now listens on this address.
    Listening {
        /// The full address, including this node's peer id.
        address: String,
        /// TCP port of the address.
        port: u16,
    },
    /// The node no longer listens on this address.
    ListeningEnded {
        /// The full address, including this node's peer id.
        address: String,
    },
    /// A peer is connected. Sent once per peer, regardless of the number of connections, and again
    /// for a [`Handle::dial`] that led to a connected peer.
    Connected {
        /// Proven identity of the peer.
        peer: AuthorId,
        /// The peer's address: its source address, or the address that was dialled.
        address: String,
        /// The text passed to [`Handle::dial`], if that call caused this event.
        dialled: Option<String>,
    },
    /// The last connection with a peer has closed.
    Disconnected {
        /// The disconnected peer.
        peer: AuthorId,
    },
    /// An approved peer announced new addresses. They are dialled too.
    Learned {
        /// The peer that announced them.
        peer: AuthorId,
        /// All addresses it announced, without its peer id.
        addresses: Vec<String>,
    },
    /// A peer sent a request.
    Request {
        /// The peer that sent it.
        peer: AuthorId,
        /// The protocol of the request. From a stranger it is always [`Protocol::Pair`].
        protocol: Protocol,
        /// Identifies the request in [`Handle::respond`].
        exchange: u64,
        /// The encoded request.
        frame: Vec<u8>,
    },
    /// A peer answered a request.
    Response {
        /// The peer that answered.
        peer: AuthorId,
        /// The id passed to [`Handle::request`].
        id: u64,
        /// The encoded answer.
        frame: Vec<u8>,
    },
    /// A request failed; no answer will follow.
    Failed {
        /// The peer that was asked.
        peer: AuthorId,
        /// The id passed to [`Handle::request`].
        id: u64,
        /// The cause, for people, as a clause without a full stop.
        reason: String,
        /// True if the peer does not offer the protocol to this node: as far as the peer knows, the
        /// two are not paired.
        is_unoffered: bool,
    },
    /// A dial failed, or an address is unusable.
    DialFailed {
        /// The peer that was dialled, if known.
        peer: Option<AuthorId>,
        /// The text passed to [`Handle::dial`], if that call failed.
        dialled: Option<String>,
        /// The cause, for people, as a clause without a full stop.
        reason: String,
    },
}

/// Why the network could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// A listen address could not be parsed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A listener could not be bound.
    #[error("The node cannot listen on {address}: {reason}.")]
    Listen {
        /// The configured listen address.
        address: String,
        /// The cause, as a clause without a full stop.
        reason: String,
    },
    /// Noise rejected the node's key.
    #[error("The node's key cannot be used on the network: {reason}.")]
    Key {
        /// The cause, as a clause without a full stop.
        reason: String,
    },
}

/// Binds the listeners and spawns the actor that owns all connections. The actor ends with
/// [`Handle::stop`], or when all handles or the event receiver are dropped.
pub async fn start(settings: Settings) -> Result<(Handle, Events), NetError> {
    let limits = settings.limits.clone().clamped();
    let swarm = swarm::build(&settings, &limits)?;
    let (handle, events, ends) = handle::open();
    tokio::spawn(actor::NetworkActor::new(swarm, settings.key.author(), limits, ends).run());
    Ok((handle, events))
}

/// Upper bound for every duration in the limits; adding a longer one to a clock may overflow.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Limits {
    /// Clamps the durations to values that can be added to a clock.
    fn clamped(mut self) -> Self {
        for duration in [
            &mut self.request_timeout,
            &mut self.redial_after,
            &mut self.redial_after_max,
            &mut self.stranger_lifetime,
        ] {
            *duration = (*duration).min(DURATION_MAX);
        }
        self
    }

    /// Small limits and short times, for tests.
    #[cfg(test)]
    fn for_tests() -> Self {
        Self {
            pending_connections_max: 16,
            established_connections_max: 16,
            peer_connections_max: 2,
            stranger_connections_max: 4,
            memory_bytes_max: 16 << 30,
            frame_bytes_max: FRAME_BYTES_MAX,
            pairing_frame_bytes_max: PAIRING_FRAME_BYTES_MAX,
            progress_bytes_per_second_min: 1024,
            request_timeout: Duration::from_secs(10),
            redial_after: Duration::from_millis(50),
            redial_after_max: Duration::from_millis(200),
            stranger_lifetime: Duration::from_secs(60),
        }
    }
}
