//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies, each using only those before it (a test reads the
//! `use` lines).

pub mod store;

pub mod index;

pub mod engine;

pub mod query;
pub mod replicate;

pub mod api;
pub mod surface;

pub mod cli;

pub mod wiring;
