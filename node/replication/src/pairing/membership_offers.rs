//! Offers of membership to paired peers. An offer is a ticket for one peer: the inviter stores it
//! with its invitations and sends it when the peer is connected. The peer stores it until its
//! operator accepts (joins with it) or declines. Until then the peer is not a member.

use crate::actor::ReplicationActor;
use crate::pair_error::PairError;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_engine::PeerCommand;
use klnode_federation::net::Protocol;
use klnode_federation::proto::pairing::{Invitation, OFFER_VERSION, PairRequest, PairResponse};
use klnode_federation::proto::ticket::{JoinOffer, Secret, Ticket};
use klnode_query::clean_name;
use klnode_store::peers::row_types::{OfferedRow, PeerApproval, PeerRow};
use std::time::Duration;

/// Minimum lifetime of an offer: the peer may be offline for days.
const OFFER_LIFETIME_MIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Maximum number of unanswered offers from one peer, and of those to one peer.
const OFFERS_PER_PEER_MAX: usize = 16;

/// The response to an offer that the operator declined. It is part of the protocol.
const DECLINED: &str = "its operator has declined";

/// The offers without the one of this name.
pub(super) fn without(mut offers: Vec<OfferedRow>, name: [u8; 16]) -> Vec<OfferedRow> {
    offers.retain(|one| one.name() != Some(name));
    offers
}

impl ReplicationActor {
    /// Offers membership in a workspace to a paired peer.
    pub fn offer_membership(&mut self, id: WorkspaceId, peer: AuthorId) -> Result<(), PairError> {
        let membership = self.membership()?;
        let name = membership.name(id);
        if id.is_personal() {
            return Err(PairError::Personal(name));
        }
        let charter = self.charter(id)?;
        if !charter.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name));
        }
        let row = membership.peers.get(&peer).filter(|row| row.approval == PeerApproval::Approved);
        if row.is_none_or(|row| row.is_blocked) || peer == self.own {
            return Err(PairError::NotPaired(self.peer_name(peer)?));
        }
        if charter.members.contains(&peer) {
            return Err(PairError::AlreadyMember(self.peer_name(peer)?));
        }
        if !self.offers_to(peer)?.iter().any(|one| is_of(one, id)) {
            if self.offers_to(peer)?.len() >= OFFERS_PER_PEER_MAX {
                return Err(PairError::TooManyOffers(self.peer_name(peer)?));
            }
            let mut bytes = [0; 16];
            (self.entropy)(&mut bytes);
            let row = Invitation {
                secret: Secret::from_bytes(bytes),
                offer: JoinOffer::Member(id, name),
                expires: (self.now)().plus(self.ticket_lifetime.max(OFFER_LIFETIME_MIN)),
                must_confirm: false,
                used_by: None,
                joiner: Some(peer),
            };
            self.replica.note(vec![PeerCommand::Invite(Box::new(row))])?;
        }
        self.send_offers(peer);
        Ok(())
    }

    /// Withdraws an offer of membership. Returns false if there is none.
    pub(crate) fn withdraw_offer(
        &mut self,
        id: WorkspaceId,
        peer: AuthorId,
    ) -> Result<bool, PairError> {
        let offers = self.offers_to(peer)?;
        let Some(offer) = offers.into_iter().find(|one| is_of(one, id)) else { return Ok(false) };
        let name = offer.secret.name();
        self.end_offer(offer)?;
        self.tell_declined(peer, name);
        Ok(true)
    }

    /// The unanswered offers to a peer.
    fn offers_to(&mut self, peer: AuthorId) -> Result<Vec<Invitation>, PairError> {
        let now = (self.now)();
        let snapshot = self.replica.writer().store().snapshot()?;
        let mut offers = snapshot.invitations()?;
        offers.retain(|one| one.is_offer_to(peer, now));
        Ok(offers)
    }

    fn end_offer(&mut self, offer: Invitation) -> Result<(), PairError> {
        let ended = Invitation { expires: WallTime::from_millis(0), ..offer };
        Ok(self.replica.note(vec![PeerCommand::Invite(Box::new(ended))])?)
    }

    /// Sends all offers to a connected peer. The peer recognises offers that it already has.
    pub(crate) fn send_offers(&mut self, peer: AuthorId) {
        if !self.connected.contains_key(&peer) {
            return;
        }
        let Ok(offers) = self.offers_to(peer) else { return };
        let addresses = self.announced_addresses();
        for Invitation { secret, offer, expires, .. } in offers {
            let name = secret.name();
            let ticket = Ticket::new(self.own, &addresses, offer, expires, secret);
            let ask = PairRequest::Offer(OFFER_VERSION, ticket.to_string());
            let id = self.next_pair_id();
            if self.net.request(peer, Protocol::Pair, id, ask.encode()).is_ok() {
                self.offers_asked.insert(id, (peer, name));
            }
        }
    }

    /// Handles the response to an offer: a peer may have declined it before.
    pub(super) fn offer_answered(&mut self, peer: AuthorId, name: [u8; 16], frame: &[u8]) {
        let is_declined =
            matches!(PairResponse::decode(frame), Ok(PairResponse::No(words)) if words == DECLINED);
        if is_declined {
            let _ = self.decline_heard(peer, OFFER_VERSION, name);
        }
    }

    /// Handles an offer of a peer, which then waits for the operator.
    pub(super) fn offer_heard(&mut self, peer: AuthorId, version: u8, text: &str) -> PairResponse {
        match self.keep_offer(peer, version, text) {
            Ok(Ok(())) => PairResponse::Heard,
            Ok(Err(why)) => PairResponse::No(why.into()),
            Err(_) => PairResponse::No("this node cannot answer just now".into()),
        }
    }

    /// Stores an offer, or returns the reason for its refusal.
    fn keep_offer(
        &mut self,
        peer: AuthorId,
        version: u8,
        text: &str,
    ) -> Result<Result<(), &'static str>, PairError> {
        const NO_OFFER: &str = "that is no offer";
        let (now, membership) = ((self.now)(), self.membership()?);
        let held = membership.peers.get(&peer).filter(|row| row.approval == PeerApproval::Approved);
        let Some(held) = held.filter(|row| !row.is_blocked).cloned() else {
            return Ok(Err("this node is not paired with yours"));
        };
        let Ok(ticket) = text.parse::<Ticket>() else { return Ok(Err(NO_OFFER)) };
        let JoinOffer::Member(id, name) = &ticket.offer else { return Ok(Err(NO_OFFER)) };
        let is_its_own = ticket.inviter == peer && !id.is_personal();
        if version != OFFER_VERSION || !is_its_own || ticket.expires < now {
            return Ok(Err(NO_OFFER));
        }
        let secret = ticket.secret.name();
        if let Some(known) = held.offered.iter().find(|one| one.name() == Some(secret)) {
            return Ok(if known.is_declined { Err(DECLINED) } else { Ok(()) });
        }
        if membership.is_member(self.own, *id) {
            return Ok(Ok(()));
        }
        let mut offered = held.offered.clone();
        offered.retain(|one| one.is_good(now) && one.workspace() != Some(*id));
        if offered.len() >= OFFERS_PER_PEER_MAX {
            return Ok(Err("too many offers wait for its operator"));
        }
        let name = clean_name(name);
        tracing::info!(%peer, name, "A peer offers membership; see `klnode workspace list`");
        let ticket = ticket.to_string();
        offered.push(OfferedRow { ticket, since: now, is_declined: false });
        let row = PeerRow { offered, ..held };
        self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        Ok(Ok(()))
    }

    /// Handles a message by which a peer declines this node's offer or withdraws its own.
    pub(super) fn decline_heard(
        &mut self,
        peer: AuthorId,
        version: u8,
        name: [u8; 16],
    ) -> PairResponse {
        let is_peer = self.membership().is_ok_and(|membership| membership.is_approved(peer));
        if version != OFFER_VERSION || !is_peer {
            return PairResponse::No("that is no offer".into());
        }
        match self.end_declined(peer, name) {
            Ok(()) => PairResponse::Heard,
            Err(_) => PairResponse::No("this node cannot answer just now".into()),
        }
    }

    fn end_declined(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let offers = self.offers_to(peer)?;
        if let Some(offer) = offers.into_iter().find(|one| one.secret.name() == name) {
            tracing::info!(%peer, "A peer declined membership in a workspace");
            return self.end_offer(offer);
        }
        self.drop_offer(peer, name)
    }

    /// Deletes an offer of a peer.
    pub fn drop_offer(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let held = self.membership()?.peers.get(&peer).cloned();
        let Some(held) = held else { return Ok(()) };
        let offered = without(held.offered.clone(), name);
        if offered.len() < held.offered.len() {
            let row = PeerRow { offered, ..held };
            self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        }
        Ok(())
    }

    /// Declines an offer of a peer. The offer is kept until it expires, so that it is not shown
    /// again when the peer repeats it.
    pub fn decline_offer(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let held = self.membership()?.peers.get(&peer).cloned();
        let Some(mut row) = held else { return Ok(()) };
        for one in row.offered.iter_mut().filter(|one| one.name() == Some(name)) {
            one.is_declined = true;
        }
        self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        self.tell_declined(peer, name);
        Ok(())
    }

    fn tell_declined(&mut self, peer: AuthorId, name: [u8; 16]) {
        let ask = PairRequest::Decline(OFFER_VERSION, name.into());
        let id = self.next_pair_id();
        // A peer that is not connected learns of it when it repeats or uses the offer.
        let _ = self.net.request(peer, Protocol::Pair, id, ask.encode());
    }
}

fn is_of(offer: &Invitation, workspace: WorkspaceId) -> bool {
    matches!(&offer.offer, JoinOffer::Member(id, _) if *id == workspace)
}
