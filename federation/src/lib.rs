//! How klnode nodes talk to each other: the protocol, the network and a simulator of both.
//!
//! - [`proto`] is the protocol: messages, filters, pairing and the state machine. Pure.
//! - `net` (feature) carries it over libp2p, and is the only place that names it.
//! - `sim` (feature) is a network in memory that loses, repeats, reorders and delays by a seed.

#[cfg(feature = "net")]
pub mod net;
pub mod proto;
#[cfg(feature = "sim")]
pub mod sim;
