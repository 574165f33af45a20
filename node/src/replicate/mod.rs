//! Replication: between the feed, the protocol and the network.
//!
//! [`Replica`] is the whole of it without threads, clocks or sockets: it takes what happened, reads
//! the store, writes through the one writer, and returns what is to be sent. [`start`] runs it on a
//! thread of its own over libp2p; a simulation runs the same thing over a network in memory.
//!
//! - `release`: which entries a peer may have, and why not the others.
//! - `view`: the store as the protocol reads it.
//! - `placed`: what the other side holds of what was put aside here.
//! - `deliver`: what a peer brought, on its way to the writer.
//! - `pairing`: tickets, joining by address, offers of membership.
//! - `policy`: what the operator decides.
//! - `room`: what was refused for want of room.
//! - `sweep`: who waits while everything is examined again.
//! - `workspaces`: those of the person's other machines.
//! - `run`: the thread.

mod deliver;
mod pairing;
mod placed;
mod policy;
mod release;
mod replica;
mod room;
mod run;
mod sweep;
mod view;
mod workspaces;

pub use pairing::{Join, JoinState, Joined, PairError, Side};
pub use release::{Examiner, Held, Preview};
pub use replica::{Action, Event, Moved, Replica, Setup, Traffic, Writer};
pub use run::{Core, Handle, Live, Options, Running, start};
