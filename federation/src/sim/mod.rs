//! A network in memory, drawn from a seed, on which whole nodes are simulated.
//!
//! It is data, not a program: no thread, no socket, no clock. [`Network`] holds what is under way
//! and hands it out in the order in which it arrives; time is a number of milliseconds that jumps
//! to the next arrival, so a simulated year of silence costs nothing. The same seed and the same
//! calls give the same trace, message by message, on every machine: what fails prints its seed, and
//! the seed fails again.
//!
//! # How a simulation is driven
//!
//! The caller owns the nodes; the network knows them by number. A loop takes the next delivery,
//! gives it to the node it is for, and sends on whatever the node puts out:
//!
//! ```
//! use klnode_federation::sim::{Delivery, Knobs, Network};
//!
//! let (seed, knobs) = (42, Knobs { loss: 200, duplication: 100, ..Knobs::calm() });
//! let mut network = Network::new(seed, 3, knobs);
//! let mut heard = [false; 3];
//! network.at(0, "begin");        // the script: what the test itself does, at its time
//! network.at(1_500, "part");
//! network.at(60_000, "calm");
//! network.at(90_000, "end");
//! while let Some((now, delivery)) = network.advance() {
//!     match delivery {
//!         Delivery::Script { message: "begin" } => network.timer(0, now, "tick"),
//!         Delivery::Script { message: "part" } => network.part(&[0]),
//!         Delivery::Script { message: "calm" } => {
//!             network.heal();
//!             network.set_knobs(Knobs::calm());
//!         }
//!         Delivery::Script { .. } => break,
//!         Delivery::Timer { node, message } => {     // it is a node's turn
//!             heard[node] = true;
//!             network.send(node, (node + 1) % 3, "gossip");
//!             network.timer(node, now + 1000, message);
//!         }
//!         Delivery::Message { to, .. } => {
//!             if !heard[to] {
//!                 network.timer(to, now, "tick");
//!             }
//!         }
//!     }
//! }
//! assert_eq!(heard, [true; 3], "seed {seed}, trace {:x}", network.trace());
//! ```
//!
//! What goes wrong by itself, with every message: it is lost, repeated, late, overtaken
//! ([`Knobs`]). What the test does: links are cut and healed, nodes crash and restart, clocks jump
//! and stop ([`Fault`]). A message travels on the connection on which it was sent: if its link is cut
//! or either node goes down before it arrives, it is lost, as it would be with TCP.
//! [`Network::counts`] tells whether a fault that a test is about has occurred at all.
//!
//! To check that nothing but the seed decides, run a simulation twice and compare
//! [`Network::trace`], into which [`Network::note`] takes whatever else must be equal, such as the
//! bytes of the frames.

mod clock;
mod fault;
mod network;
mod random;
#[cfg(test)]
mod tests;

pub use clock::START_MS;
pub use fault::{Counts, Fault, Knobs};
pub use network::{Delivery, Network};
