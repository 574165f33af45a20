//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines). Replicate and surface are still to come.

pub mod store;

pub mod index;

pub mod engine;

pub mod query;
pub mod replicate;

pub mod api;

pub mod cli;

pub mod wiring;
