//! Federation between klnode nodes: the sync protocol, its network transport and a network
//! simulator.
//!
//! - [`proto`] holds the protocol: messages, filters, pairing and the state machine. It is pure: no
//!   clock, no I/O.
//! - `net` (feature) carries the protocol over libp2p. No other module depends on libp2p.
//! - `sim` (feature) is an in-memory network that loses, duplicates, reorders and delays messages
//!   as a seed dictates.

#![warn(missing_docs)]

#[cfg(feature = "net")]
pub mod net;
pub mod proto;
#[cfg(feature = "sim")]
pub mod sim;
