//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines): [`store`], [`engine`], [`cli`], [`wiring`]. Between them index, query, replicate,
//! api and surface will stand.

pub mod store;

pub mod engine;

pub mod cli;

pub mod wiring;
