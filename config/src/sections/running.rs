//! Settings of the running process: log, local API, network, writer, index and hooks.
//!
//! Separate from the judgement numbers because these change what the node costs, never what it
//! believes. Nothing here depends on where the home folder lies.

use serde::Deserialize;

use crate::units::{
    Bytes, Fraction, Interval, List, ListenAddress, LocalTcp, LogFormat, LogLevel, NodeName,
    PeerAddress, SocketPath, Switch, ThreadDefault, Whole,
};

/// `[log]`: what is logged.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The least severe line that is written.
    pub level: LogLevel,
    /// What its lines look like.
    pub format: LogFormat,
}

/// `[api]`: the local API.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// The Unix socket.
    pub socket: SocketPath,
    /// Local clients over TCP.
    pub tcp: LocalTcp,
    /// Requests worked on at once.
    pub connections_max: Whole<1, 65_536>,
    /// Streams of events that are open at once.
    pub event_streams_max: Whole<0, 65_536>,
    /// The largest request body.
    pub body_bytes_max: Bytes,
}

/// `[mcp]`: the server that agents speak to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// Whether it may start a node where none runs.
    pub start_node: Switch,
}

/// `[network]`: connections with peers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// What this node calls itself; the machine's name if empty.
    pub name: NodeName,
    /// Multiaddrs to listen on; none means not to listen.
    pub listen: List<ListenAddress>,
    /// Multiaddrs beside those by which others reach this node.
    pub announce: List<PeerAddress>,
    /// Connections whose handshake is not finished.
    pub pending_connections_max: Whole<1, 65_536>,
    /// Finished connections, all peers together.
    pub established_connections_max: Whole<1, 65_536>,
    /// Connections with one peer.
    pub peer_connections_max: Whole<1, 64>,
    /// Memory of the process above which connections are refused.
    pub memory_bytes_max: Bytes,
    /// The slowest a stream may be.
    pub progress_bytes_per_second_min: Bytes,
    /// How long a peer may take to answer one request.
    pub request_timeout: Interval,
    /// The first wait before an unreachable peer is dialled again.
    pub redial_after: Interval,
    /// The longest such wait.
    pub redial_after_max: Interval,
}

/// `[threads]`: in which thread things are said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// The thread where none is named.
    pub default: ThreadDefault,
}

/// `[engine]`: the one writer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Commands that wait for the writer.
    pub queue_commands_max: Whole<1, 1_000_000>,
    /// Commands in one commit.
    pub group_commands_max: Whole<1, 1_000_000>,
    /// Bytes in one commit.
    pub group_bytes_max: Bytes,
    /// Memory for cached pages of the store.
    pub cache_bytes_max: Bytes,
}

/// `[index]`: the vector index.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The number of vectors from which on a graph replaces the exact scan.
    pub hnsw_entries_min: Whole<1, 1_000_000_000>,
    /// The part of dead points at which the graph is rebuilt.
    pub hnsw_dead_fraction_max: Fraction,
}

/// `[hooks]`: what clients run at certain moments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// How long a hook may take.
    pub deadline: Interval,
    /// Tokens that a briefing may take.
    pub briefing_tokens: Whole<100, 20_000>,
    /// Tokens that an answer may take.
    pub answer_tokens: Whole<1, 100_000>,
}
