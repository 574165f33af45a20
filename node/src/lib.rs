//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines):
//!
//! - [`store`]: one redb file: tables, snapshots, the batch;
//! - [`index`]: words and vectors that follow the feed;
//! - [`engine`]: the one writer;
//! - [`query`]: find, read, judge, order;
//! - [`replicate`]: between feed, protocol and network;
//! - [`api`]: HTTP on the socket;
//! - [`surface`]: MCP, hooks, clients' settings;
//! - [`cli`]: what can be typed;
//! - [`wiring`]: the machine: clock, signals, exit codes.

pub mod store;

pub mod index;

pub mod engine;

pub mod query;

pub mod replicate;

pub mod api;

pub mod surface;

pub mod cli;

pub mod wiring;
