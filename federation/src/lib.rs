//! How klnode nodes talk to each other: the protocol, the network and a simulator of both.
//!
//! Nothing stands here yet. What the store already keeps for it (releases, outboxes, refusals,
//! cursors, feed epochs) is in the node; why it is shaped so, in `docs/adr`.

#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "sim")]
pub mod sim;
