//! The klnode node, as a library: everything but `main`.
//!
//! Modules in the order of their dependencies; each uses only those before it.

pub mod engine;
pub mod store;
