//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines). Replicate and surface are still to come.

pub mod store;

pub mod index;

pub mod engine;

pub mod query;

#[cfg(any())]
pub mod api;

#[cfg(any())]
pub mod cli;

#[cfg(any())]
pub mod wiring;
