//! Pairing of two nodes. With a ticket, one node invites (`inviter`) and the other joins
//! (`joiner`). By address, one node requests (`join_requester`) and the other responds
//! (`join_responder`). Paired nodes can offer each other membership (`membership_offers`). The joins
//! in progress are in `join_attempts`, the operator's decisions in `peer_admin`. All of it runs on
//! the replication thread, so two nodes that use one ticket concurrently are handled one after the
//! other.

mod address_join_responder;
mod inviter;
mod join_requester;
mod joiner;
mod membership_offers;

use super::actor::ReplicationActor;
use klnode_federation::proto::limits::ADDRESSES_MAX;
use klnode_federation::proto::pairing::Card;

impl ReplicationActor {
    /// The addresses of this node for its peers.
    fn announced_addresses(&self) -> Vec<String> {
        let mut addresses = self.addresses();
        addresses.truncate(ADDRESSES_MAX);
        addresses
    }

    pub(super) fn card(&self) -> Card {
        Card { name: self.name.clone(), addresses: self.announced_addresses() }.cut()
    }
}
