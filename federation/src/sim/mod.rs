//! An in-memory network, driven by a seed, for simulations of whole nodes.
//!
//! It is data without threads, sockets or clocks. [`SimNetwork`] holds messages in flight and delivers
//! them in order of arrival. Time is a number of milliseconds that jumps to the next arrival, so a
//! simulated year of silence costs nothing. The same seed and the same calls give the same trace,
//! message by message, on every machine, so a failure can be reproduced from its seed.
//!
//! # How to drive a simulation
//!
//! The caller owns the nodes; the network knows them by number. A loop takes the next arrival,
//! passes it to the receiving node, and sends the messages that the node produces:
//!
//! ```
//! use klnode_federation::sim::{Arrival, Knobs, SimNetwork};
//!
//! let (seed, knobs) = (42, Knobs { loss: 200, duplication: 100, ..Knobs::calm() });
//! let mut network = SimNetwork::new(seed, 3, knobs);
//! let mut heard = [false; 3];
//! network.at(0, "begin");        // the script: scheduled events of the test
//! network.at(1_500, "part");
//! network.at(60_000, "calm");
//! network.at(90_000, "end");
//! while let Some((now, arrival)) = network.advance() {
//!     match arrival {
//!         Arrival::Script { message: "begin" } => network.timer(0, now, "tick"),
//!         Arrival::Script { message: "part" } => network.part(&[0]),
//!         Arrival::Script { message: "calm" } => {
//!             network.heal();
//!             network.set_knobs(Knobs::calm());
//!         }
//!         Arrival::Script { .. } => break,
//!         Arrival::Timer { node, message } => {     // a node acts
//!             heard[node] = true;
//!             network.send(node, (node + 1) % 3, "gossip");
//!             network.timer(node, now + 1000, message);
//!         }
//!         Arrival::Message { to, .. } => {
//!             if !heard[to] {
//!                 network.timer(to, now, "tick");
//!             }
//!         }
//!     }
//! }
//! assert_eq!(heard, [true; 3], "seed {seed}, trace {:x}", network.trace());
//! ```
//!
//! The network itself loses, duplicates, delays and reorders messages ([`Knobs`]). The test cuts
//! and heals links, crashes and restarts nodes, and makes clocks jump or stop ([`ClockFault`]). A
//! message travels on the connection on which it was sent: if its link is cut or either node goes
//! down before it arrives, it is lost, as with TCP. [`SimNetwork::counts`] shows whether the fault
//! that a test is about occurred at all.
//!
//! To check that the seed alone decides, run a simulation twice and compare [`SimNetwork::trace`].
//! [`SimNetwork::note`] adds other data that must be equal, such as the bytes of the frames.

mod clock;
mod faults;
mod network;
mod rng;
#[cfg(test)]
mod tests;

pub use clock::START_MS;
pub use faults::{ClockFault, FaultCounts, Knobs};
pub use network::{Arrival, SimNetwork};
