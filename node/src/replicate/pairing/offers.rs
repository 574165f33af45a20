//! Offers of membership to peers that are paired already. An offer is a ticket that only one peer can
//! use: the inviter keeps it among its invitations and sends it when the peer is connected; the peer keeps
//! it until its operator accepts (joins with it) or declines. Until then the peer is no member.

use super::super::run::Core;
use super::PairError;
use crate::engine::PeerAct;
use crate::query::cleaned;
use crate::store::peers::rows::{Approval, OfferedRow, PeerRow};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::net::Protocol;
use klnode_federation::proto::pairing::{Answer, Ask, Invitation, OFFER_VERSION};
use klnode_federation::proto::ticket::{Offer, Secret, Ticket};
use std::time::Duration;

/// An offer waits at least this long for the peer's operator: the peer may be offline for days.
const OFFER_LIFETIME_MIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Offers of one peer that wait for the operator, and offers that are sent to one peer.
const OFFERS_PER_PEER_MAX: usize = 16;

/// The answer to an offer that the operator declined.
const DECLINED: &str = "its operator has declined";

/// The offers without the one of this name, and without those that have expired.
pub(super) fn without(mut offers: Vec<OfferedRow>, name: [u8; 16]) -> Vec<OfferedRow> {
    offers.retain(|one| one.name() != Some(name));
    offers
}

impl Core {
    /// Offers a paired peer membership in a workspace.
    pub fn offer_membership(&mut self, id: WorkspaceId, peer: AuthorId) -> Result<(), PairError> {
        let society = self.society()?;
        let name = society.name(id);
        if id.is_personal() {
            return Err(PairError::Personal(name));
        }
        let charter = self.charter(id)?;
        if !charter.may_invite(self.own) {
            return Err(PairError::MayNotInvite(name));
        }
        let row = society.peers.get(&peer).filter(|row| row.approval == Approval::Approved);
        if row.is_none_or(|row| row.is_blocked) || peer == self.own {
            return Err(PairError::NotPaired(self.called(peer)?));
        }
        if charter.members.contains(&peer) {
            return Err(PairError::AlreadyMember(self.called(peer)?));
        }
        if !self.offers_to(peer)?.iter().any(|one| is_of(one, id)) {
            if self.offers_to(peer)?.len() >= OFFERS_PER_PEER_MAX {
                return Err(PairError::TooManyOffers(self.called(peer)?));
            }
            let mut bytes = [0; 16];
            (self.entropy)(&mut bytes);
            let row = Invitation {
                secret: Secret::from_bytes(bytes),
                offer: Offer::Member(id, name),
                expires: (self.now)().plus(self.ticket_lifetime.max(OFFER_LIFETIME_MIN)),
                must_confirm: false,
                used_by: None,
                joiner: Some(peer),
            };
            self.replica.note(vec![PeerAct::Invite(Box::new(row))])?;
        }
        self.send_offers(peer);
        Ok(())
    }

    /// Takes back what a peer was offered in a workspace. False if nothing was.
    pub(in crate::replicate) fn withdraw_offer(
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

    /// What a peer was offered and has neither taken nor declined.
    fn offers_to(&mut self, peer: AuthorId) -> Result<Vec<Invitation>, PairError> {
        let now = (self.now)();
        let snapshot = self.replica.writer().store().snapshot()?;
        let mut offers = snapshot.invitations()?;
        offers.retain(|one| one.is_offer_to(peer, now));
        Ok(offers)
    }

    fn end_offer(&mut self, offer: Invitation) -> Result<(), PairError> {
        let ended = Invitation { expires: WallTime::from_millis(0), ..offer };
        Ok(self.replica.note(vec![PeerAct::Invite(Box::new(ended))])?)
    }

    /// Sends a connected peer what it is offered. The peer knows an offer that it has heard before.
    pub(in crate::replicate) fn send_offers(&mut self, peer: AuthorId) {
        if !self.connected.contains_key(&peer) {
            return;
        }
        let Ok(offers) = self.offers_to(peer) else { return };
        let addresses = self.told_addresses();
        for Invitation { secret, offer, expires, .. } in offers {
            let name = secret.name();
            let ticket = Ticket::new(self.own, &addresses, offer, expires, secret);
            let ask = Ask::Offer(OFFER_VERSION, ticket.to_string());
            let id = self.next_pair_id();
            if self.net.request(peer, Protocol::Pair, id, ask.encode()).is_ok() {
                self.offers_asked.insert(id, (peer, name));
            }
        }
    }

    /// The peer has heard an offer, or has declined it before.
    pub(super) fn offer_answered(&mut self, peer: AuthorId, name: [u8; 16], frame: &[u8]) {
        let is_declined =
            matches!(Answer::decode(frame), Ok(Answer::No(words)) if words == DECLINED);
        if is_declined {
            let _ = self.decline_heard(peer, OFFER_VERSION, name);
        }
    }

    /// A peer offers membership: it waits for the operator.
    pub(super) fn offer_heard(&mut self, peer: AuthorId, version: u8, text: &str) -> Answer {
        match self.keep_offer(peer, version, text) {
            Ok(Ok(())) => Answer::Heard,
            Ok(Err(why)) => Answer::No(why.into()),
            Err(_) => Answer::No("this node cannot answer just now".into()),
        }
    }

    /// Keeps an offer, or says why not.
    fn keep_offer(
        &mut self,
        peer: AuthorId,
        version: u8,
        text: &str,
    ) -> Result<Result<(), &'static str>, PairError> {
        const NO_OFFER: &str = "that is no offer";
        let (now, society) = ((self.now)(), self.society()?);
        let held = society.peers.get(&peer).filter(|row| row.approval == Approval::Approved);
        let Some(held) = held.filter(|row| !row.is_blocked).cloned() else {
            return Ok(Err("this node is not paired with yours"));
        };
        let Ok(ticket) = text.parse::<Ticket>() else { return Ok(Err(NO_OFFER)) };
        let Offer::Member(id, name) = &ticket.offer else { return Ok(Err(NO_OFFER)) };
        let is_its_own = ticket.inviter == peer && !id.is_personal();
        if version != OFFER_VERSION || !is_its_own || ticket.expires < now {
            return Ok(Err(NO_OFFER));
        }
        let secret = ticket.secret.name();
        if let Some(known) = held.offered.iter().find(|one| one.name() == Some(secret)) {
            return Ok(if known.is_declined { Err(DECLINED) } else { Ok(()) });
        }
        if society.is_member(self.own, *id) {
            return Ok(Ok(()));
        }
        let mut offered = held.offered.clone();
        offered.retain(|one| one.is_good(now) && one.workspace() != Some(*id));
        if offered.len() >= OFFERS_PER_PEER_MAX {
            return Ok(Err("too many offers wait for its operator"));
        }
        let name = cleaned(name);
        tracing::info!(%peer, name, "a peer offers membership; see `klnode workspace list`");
        let ticket = ticket.to_string();
        offered.push(OfferedRow { ticket, since: now, is_declined: false });
        let row = PeerRow { offered, ..held };
        self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        Ok(Ok(()))
    }

    /// A peer declines what this node offered, or takes back its own offer.
    pub(super) fn decline_heard(&mut self, peer: AuthorId, version: u8, name: [u8; 16]) -> Answer {
        let is_peer = self.society().is_ok_and(|society| society.is_approved(peer));
        if version != OFFER_VERSION || !is_peer {
            return Answer::No("that is no offer".into());
        }
        match self.end_declined(peer, name) {
            Ok(()) => Answer::Heard,
            Err(_) => Answer::No("this node cannot answer just now".into()),
        }
    }

    fn end_declined(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let offers = self.offers_to(peer)?;
        if let Some(offer) = offers.into_iter().find(|one| one.secret.name() == name) {
            tracing::info!(%peer, "a peer declined membership in a workspace");
            return self.end_offer(offer);
        }
        self.drop_offer(peer, name)
    }

    /// Forgets an offer of a peer.
    pub fn drop_offer(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let held = self.society()?.peers.get(&peer).cloned();
        let Some(held) = held else { return Ok(()) };
        let offered = without(held.offered.clone(), name);
        if offered.len() < held.offered.len() {
            let row = PeerRow { offered, ..held };
            self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        }
        Ok(())
    }

    /// The operator declines an offer of a peer. It stays known until it expires, so that it is not shown
    /// again when the peer repeats it.
    pub fn decline_offer(&mut self, peer: AuthorId, name: [u8; 16]) -> Result<(), PairError> {
        let held = self.society()?.peers.get(&peer).cloned();
        let Some(mut row) = held else { return Ok(()) };
        for one in row.offered.iter_mut().filter(|one| one.name() == Some(name)) {
            one.is_declined = true;
        }
        self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        self.tell_declined(peer, name);
        Ok(())
    }

    fn tell_declined(&mut self, peer: AuthorId, name: [u8; 16]) {
        let ask = Ask::Decline(OFFER_VERSION, name.into());
        let id = self.next_pair_id();
        // A peer that is not connected hears of it when it repeats or uses the offer.
        let _ = self.net.request(peer, Protocol::Pair, id, ask.encode());
    }
}

fn is_of(offer: &Invitation, workspace: WorkspaceId) -> bool {
    matches!(&offer.offer, Offer::Member(id, _) if *id == workspace)
}
