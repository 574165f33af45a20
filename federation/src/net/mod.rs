//! Real connections between nodes: the only place that names libp2p.
//!
//! [`start`] binds the listeners and spawns one task that owns all connections. Whoever drives the
//! protocol holds a [`Handle`], through which it says what it wants, and reads what happens from
//! [`Events`]. Frames are opaque bytes here: `net` carries them, the protocol decodes them.
//!
//! Every connection is TCP, encrypted by Noise and multiplexed by Yamux. Noise proves that the peer
//! holds the ed25519 key that its peer id spells, and a dial that names a peer fails if another
//! answers: who is at the other end is never in doubt, and is always an [`AuthorId`].
//!
//! **Approved peers and strangers.** Peers given to [`Handle::allow`] are dialled, and dialled again
//! with growing waits when they are lost. They may speak [`Protocol::Sync`] and [`Protocol::Pair`].
//! Anyone else who connects is a stranger: it may speak `Pair` alone, in short frames, on one
//! connection that is closed after [`Limits::stranger_lifetime`], and there are only so many places
//! for strangers. Whoever asks to pair without end is sent away. `Sync` does not even exist on a
//! stranger's connection; it appears there at the moment the stranger is allowed.
//!
//! **Exchanges.** A [`Handle::request`] ends in exactly one [`Event::Response`] or
//! [`Event::Failed`], sometimes after the [`Event::Disconnected`] that caused it. An
//! [`Event::Request`] is answered with [`Handle::respond`], or not: then the peer's request fails.
//!
//! **Limits.** Every queue ends somewhere. If events are not read, the task stops reading from the
//! network, and peers wait; nothing piles up. What a peer does wrong costs the peer its stream or
//! its connection and is a debug line in the log, never an error of ours.
//!
//! | file | holds |
//! |---|---|
//! | `address` | addresses and peer ids as text |
//! | `frame` | the bytes of one frame, and who is too slow |
//! | `gate` | who gets a connection |
//! | `offer` | which protocols a connection has |
//! | `pairs` | how often peers may ask to pair |
//! | `book` | when an approved peer is dialled |
//! | `swarm` | how libp2p is put together |
//! | `task` | the task that owns it |
//! | `handle` | what the task is told |

mod address;
mod book;
mod frame;
mod gate;
mod handle;
mod offer;
mod pairs;
mod reason;
mod swarm;
mod task;
#[cfg(test)]
mod tests;

pub use address::{AddressError, author_of, parse_address, parse_target, peer_id_text, source_of};
pub use handle::{Busy, Events, Handle};

use klnode_crdt::ids::AuthorId;
use klnode_crdt::key::SecretKey;
use std::time::Duration;

/// What [`start`] needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's own key: its identity on the network.
    pub key: SecretKey,
    /// Multiaddrs to listen on; none listens nowhere. Port 0 lets the system choose, and the
    /// unspecified address stands for every address of this machine.
    pub listen: Vec<String>,
    /// The port to try first where the system is to choose: the one it chose before. A node that
    /// comes back elsewhere is lost to peers that did so as well.
    pub usual_port: Option<u16>,
    /// How much peers may cost.
    pub limits: Limits,
}

/// How much peers may cost. Where the defaults are: `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections whose handshake is not finished, in each direction; those from one address have a
    /// quarter of the places.
    pub pending_connections_max: usize,
    /// Finished connections, all peers together.
    pub established_connections_max: usize,
    /// Connections with one approved peer. A stranger has one.
    pub peer_connections_max: usize,
    /// Connections that strangers have opened, all together.
    pub stranger_connections_max: usize,
    /// Above this much memory in use by the process new connections are refused.
    pub memory_bytes_max: u64,
    /// The longest frame of [`Protocol::Sync`].
    pub frame_bytes_max: usize,
    /// The longest frame of [`Protocol::Pair`].
    pub pairing_frame_bytes_max: usize,
    /// A stream that moves less than this in a second is closed.
    pub progress_bytes_per_second_min: u64,
    /// How long a request may take, from its first byte to the last of its answer.
    pub request_timeout: Duration,
    /// The wait before a peer is dialled again; it doubles with each failure.
    pub redial_after: Duration,
    /// The longest wait between two dials.
    pub redial_after_max: Duration,
    /// How long a stranger's connection is kept.
    pub stranger_lifetime: Duration,
}

/// The longest frame of [`Protocol::Sync`] that the protocol knows.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The longest frame of [`Protocol::Pair`] that the protocol knows.
pub const PAIRING_FRAME_BYTES_MAX: usize = 16 << 10;

/// What a frame is about, and who may send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Replication, between approved peers.
    Sync,
    /// Pairing, open to strangers.
    Pair,
}

impl Protocol {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "/klnode/sync/1",
            Self::Pair => "/klnode/pair/1",
        }
    }
}

/// What happens on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Peers can reach this node here.
    Listening {
        /// The full address, with the own peer id.
        address: String,
        /// Its port.
        port: u16,
    },
    /// Peers can no longer reach this node here.
    ListeningEnded {
        /// The full address, with the own peer id.
        address: String,
    },
    /// A peer is connected. Once per peer, however many connections there are; and once more for a
    /// [`Handle::dial`] that led to a peer who was connected already.
    Connected {
        /// Who.
        peer: AuthorId,
        /// Where from, or where it was dialled.
        address: String,
        /// The text given to [`Handle::dial`], if that call led here.
        dialled: Option<String>,
    },
    /// The last connection with a peer is gone.
    Disconnected {
        /// Who.
        peer: AuthorId,
    },
    /// An approved peer says where it can be reached, and that was news. It is dialled there too.
    Learned {
        /// Who.
        peer: AuthorId,
        /// Everything it says, without its peer id.
        addresses: Vec<String>,
    },
    /// A peer asks something.
    Request {
        /// Who.
        peer: AuthorId,
        /// In which protocol. From a stranger it is always [`Protocol::Pair`].
        protocol: Protocol,
        /// What [`Handle::respond`] needs to answer it.
        exchange: u64,
        /// What it asks.
        frame: Vec<u8>,
    },
    /// A peer has answered.
    Response {
        /// Who.
        peer: AuthorId,
        /// The number given to [`Handle::request`].
        id: u64,
        /// The answer.
        frame: Vec<u8>,
    },
    /// There will be no answer.
    Failed {
        /// Who was asked.
        peer: AuthorId,
        /// The number given to [`Handle::request`].
        id: u64,
        /// Why, for people.
        reason: String,
        /// The peer does not offer the protocol to this node: as far as it knows, they are not paired.
        is_unoffered: bool,
    },
    /// A dial led to nobody, or an address is unusable.
    DialFailed {
        /// Who was dialled, where that is known.
        peer: Option<AuthorId>,
        /// The text given to [`Handle::dial`], if that call failed.
        dialled: Option<String>,
        /// Why, for people.
        reason: String,
    },
}

/// Why the network could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// An address to listen on is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A listener could not be bound.
    #[error("listen on {address}: {reason}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The key does not do for encrypted connections.
    #[error("use the node's key for the network: {reason}")]
    Key {
        /// Why not.
        reason: String,
    },
}

/// Binds the listeners and spawns the task that owns all connections. It ends with
/// [`Handle::stop`], when all handles are gone, or when the events are.
pub async fn start(settings: Settings) -> Result<(Handle, Events), NetError> {
    let limits = settings.limits.clone().sane();
    let swarm = swarm::build(&settings, &limits)?;
    let (handle, events, ends) = handle::open();
    tokio::spawn(task::Task::new(swarm, settings.key.author(), limits, ends).run());
    Ok((handle, events))
}

/// The longest time that makes sense anywhere here. Beyond it adding to a clock may overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Limits {
    /// The same, with durations that a clock can count to.
    fn sane(mut self) -> Self {
        for duration in [
            &mut self.request_timeout,
            &mut self.redial_after,
            &mut self.redial_after_max,
            &mut self.stranger_lifetime,
        ] {
            *duration = (*duration).min(LONGEST);
        }
        self
    }

    /// Small numbers and short times.
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
