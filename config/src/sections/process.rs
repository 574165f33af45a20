//! Settings of the process: log, local API, MCP, network, writer, index, threads and hooks.
//!
//! Most of them change the cost and the reachability of the node, not its judgements. None depends
//! on the location of the home folder.

use serde::Deserialize;

use crate::units::{
    BoundedInteger, BoundedList, Bytes, Fraction, Interval, ListenAddress, LocalTcp, LogFormat,
    LogLevel, NodeName, PeerAddress, SocketPath, Switch, ThreadDefault,
};

/// `[log]`: log level and format.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Minimum severity of logged messages.
    pub level: LogLevel,
    /// Format of log lines.
    pub format: LogFormat,
}

/// `[api]` and `[tuning.api]`: the local API.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Path of the Unix socket.
    pub socket: SocketPath,
    /// TCP address for local clients, or off.
    pub tcp: LocalTcp,
    /// Maximum number of concurrent requests. Twice as many connections may be open.
    pub connections_max: BoundedInteger<1, 65_536>,
    /// Maximum number of concurrent event streams.
    pub event_streams_max: BoundedInteger<0, 65_536>,
    /// Maximum size of a request body.
    pub body_bytes_max: Bytes,
}

/// `[mcp]`: the MCP server, which connects agents to the node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// Whether the MCP server may start a node if none is running.
    pub start_node: Switch,
}

/// `[network]` and `[tuning.network]`: connections to peers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Name of this node for peers; the machine's name if empty.
    pub name: NodeName,
    /// Multiaddrs to listen on; an empty list disables listening.
    pub listen: BoundedList<ListenAddress>,
    /// Additional multiaddrs at which peers can reach this node.
    pub announce: BoundedList<PeerAddress>,
    /// Maximum number of connections with an unfinished handshake.
    pub pending_connections_max: BoundedInteger<1, 65_536>,
    /// Maximum number of established connections to all peers.
    pub established_connections_max: BoundedInteger<1, 65_536>,
    /// Maximum number of connections to one peer.
    pub peer_connections_max: BoundedInteger<1, 64>,
    /// Memory usage of the process above which new connections are refused.
    pub memory_bytes_max: Bytes,
    /// Minimum throughput of a stream, per second. Slower streams are closed.
    pub stream_bytes_per_second_min: Bytes,
    /// Timeout for a peer's answer to one request.
    pub request_timeout: Interval,
    /// Wait before the first redial of an unreachable peer; it doubles with each failure.
    pub redial_after: Interval,
    /// Maximum wait between two dials.
    pub redial_after_max: Interval,
}

/// `[threads]`: the default thread of entries and questions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// Thread to use if the caller names none.
    pub default: ThreadDefault,
}

/// `[engine]` and `[tuning.engine]`: the single writer thread and the store's cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Maximum length of the writer's queue, in commands.
    pub queue_commands_max: BoundedInteger<1, 1_000_000>,
    /// Maximum number of commands in one commit.
    pub commit_commands_max: BoundedInteger<1, 1_000_000>,
    /// Maximum size of one commit.
    pub commit_bytes_max: Bytes,
    /// Size of the page cache of the store.
    pub cache_bytes_max: Bytes,
}

/// `[tuning.index]`: the vector index.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Number of vectors from which an HNSW graph replaces the exact scan.
    pub hnsw_entries_min: BoundedInteger<1, 1_000_000_000>,
    /// Fraction of deleted points at which the graph is rebuilt.
    pub hnsw_deleted_fraction_max: Fraction,
}

/// `[hooks]`: hooks that agent clients run on their events.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Timeout of a hook.
    pub timeout: Interval,
    /// Token budget of the briefing at the start of a session.
    pub briefing_tokens: BoundedInteger<100, 20_000>,
    /// Token budget of the answer to a prompt or to a tool error.
    pub answer_tokens: BoundedInteger<1, 100_000>,
}
