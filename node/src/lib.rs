//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines).

/// One redb file: tables, snapshots, the batch.
pub mod store;

/// Words and vectors that follow the feed.
pub mod index;

/// The one writer.
pub mod engine;

/// Find, read, judge, order.
pub mod query;

/// Between feed, protocol and network.
pub mod replicate;

/// HTTP on the socket.
pub mod api;

/// MCP, hooks, clients' settings.
pub mod surface;

/// What can be typed.
pub mod cli;

/// The machine: clock, signals, exit codes.
pub mod wiring;
