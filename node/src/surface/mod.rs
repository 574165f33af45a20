//! What agents and the programs they run in meet: set-up of clients, and hooks.

pub mod connect;
pub mod hook;
