//! Replication: connects the feed, the protocol and the network.
//!
//! [`Replica`] is replication without threads, clocks or sockets: it takes events, reads the store,
//! writes through the single writer, and returns the messages to send. [`start`] runs it on a
//! thread over libp2p; a simulation runs it over a network in memory.
//!
//! - `release_policy`: which entries are released to a peer, and which rule holds the others back.
//! - `release_sweep`: examines all entries again in batches.
//! - `store_view`: the store as the protocol reads it.
//! - `peer_holdings`: computes the records that a peer holds from those refused or quarantined
//!   here.
//! - `delivery_filter`: prepares a peer's delivery for the writer.
//! - `quarantine_retry`: requests records again that were refused because the quarantine was full.
//! - `join_attempts`: the joins in progress.
//! - `pairing`: tickets, joins by address, offers of membership.
//! - `peer_admin`: the operator's decisions about peers, filters and members.
//! - `workspace_adoption`: names workspaces of the person's other nodes.
//! - `actor`: the thread.

mod actor;
mod delivery_classification;
mod join_attempts;
mod pair_error;
mod pairing;
mod peer_admin;
mod peer_holdings;
mod quarantine_retry;
mod release_policy;
mod release_sweep;
mod replica;
mod store_view;
mod workspace_adoption;

pub use actor::{Handle, LiveState, Options, ReplicationActor, ReplicationThread, start};
pub use join_attempts::{JoinAttempt, JoinDirection, JoinResult, JoinState};
pub use pair_error::PairError;
pub use release_policy::{HeldBack, ReleasePolicy, ReleasePreview};
pub use replica::{
    EngineWriter, Replica, ReplicaAction, ReplicaEvent, Setup, Traffic, TrafficCounts,
};
